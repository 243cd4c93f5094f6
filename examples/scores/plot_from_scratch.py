"""
The method from scratch
=======================

This example implements conformal training of a score for claims, as published by Hittesdorf,
Salzetta and Cheng (arXiv:2604.20098). Only the data come from the package.

An answer is a list of claims, and some claims depend on others. Each claim has a *risk*. In this
example the risk is minus a weighted sum of the features of the claim. A filter keeps a claim if
its risk, and the risk of every claim that it depends on, is below a threshold. *Calibration*
chooses the threshold on answers whose claims people have judged. With alpha = 0.1, the filter
then keeps a false claim in at most one answer in ten, on average over calibration sets. This
holds for any weights that do not depend on the calibration answers. All answers are included in
this proportion, also those without any kept claim.

**What is trained?** The weights. **Why?** If false claims in more than one answer in ten have a
low risk, the threshold must be low, so the filter keeps few true claims. A classifier learns to
separate all true claims from all false claims, but the threshold depends only on the safest false
claim of each answer. Conformal training therefore directly maximises the number of true claims
kept after the threshold has been calibrated for these weights.
"""

import autograd.numpy as np
from autograd import value_and_grad
from matplotlib import pyplot as plt
from scipy.optimize import minimize

from skdcf.datasets import make_reasoning_graphs

# %%
# Filtering
# ---------
#
# The *path risk* of a claim is the largest risk among the claim and its ancestors. The
# *nonconformity score* of an answer is the smallest path risk of its false claims. It is the
# largest safe threshold: up to this threshold, the filter keeps no false claim of the answer. The
# calibrated threshold is the k-th smallest nonconformity score of n judged answers, with
# k = floor(alpha (n + 1)). Alpha is the accepted probability that the filter keeps a false claim.
#
# A false claim of a new answer is kept only if the score of this answer is below the k-th
# smallest of the n scores. The score is then among the k smallest of all n + 1 scores. If the new
# answer comes from the same distribution, each rank is equally likely, so this happens with
# probability k / (n + 1), which is at most alpha. Ties can only reduce the probability.
#
# For example, k is 20 for n = 199 and alpha = 0.1. The threshold is the 20th smallest score, so
# the filter keeps a false claim in at most 19 of the calibration answers. This count is correct
# even if the weights were fitted to the calibration answers. The guarantee for a new answer
# requires weights that were fitted to other answers.


def ancestors(graph):
    """Return a matrix whose row v marks claim v and all its ancestors."""
    above = np.eye(graph.n_claims, dtype=bool)
    for parent, child in graph.edges:  # the child depends on the parent
        above[child, parent] = True
    for _ in range(graph.n_claims):  # each product doubles the length of known chains
        above = above @ above
    return above


def path_risk(risk, above):
    return np.where(above, risk, -np.inf).max(axis=1)


def hard_score(risk, above, true):
    # Without a false claim, every threshold is safe.
    return np.min(path_risk(risk, above)[~true], initial=np.inf)


def hard_threshold(scores, alpha):
    k = int(alpha * (len(scores) + 1) + 1e-9)  # 1e-9 corrects rounding errors
    return np.sort(scores)[k - 1] if k else -np.inf  # too few answers: keep nothing


def keep(risk, above, threshold):
    return path_risk(risk, above) < threshold


# %%
# The generated data consist of 60 training answers, 199 calibration answers and 600 new answers.
# A label of 1 means that the claim is true. The features are standardised with the means and
# standard deviations of the training answers.

graphs, labels = make_reasoning_graphs(859, random_state=0, return_X_y=True)
mean, deviation = graphs[:60].features.mean(axis=0), graphs[:60].features.std(axis=0)
answers = [
    ((g.features - mean) / np.where(deviation > 0, deviation, 1), ancestors(g), y == 1)
    for g, y in zip(graphs, labels, strict=True)
]
train, calibration, new = answers[:60], answers[60:259], answers[259:]


def calibrate_and_filter(weights, alpha):
    """Return the true claims kept per new answer, and the error rate.

    The error rate is the proportion of new answers from which a false claim is kept.
    """
    scores = [hard_score(-X @ weights, above, true) for X, above, true in calibration]
    threshold = hard_threshold(np.array(scores), alpha)
    kept = [(keep(-X @ weights, above, threshold), true) for X, above, true in new]
    right = np.mean([(mask & true).sum() for mask, true in kept])
    return right, np.mean([(mask & ~true).any() for mask, true in kept])


# %%
# Training
# --------
#
# To find the weights that keep the most true claims with a gradient method, we need the derivative
# of the number of kept true claims. However, "the risk is below t" is either true or false, so this
# number is a step function, and its derivative is 0 almost everywhere. We therefore replace each
# step with a smooth approximation:
#
# * "the risk is below t" becomes a sigmoid, a number between 0 and 1;
# * "the claim and its ancestors are kept" becomes a weighted geometric mean of these numbers;
# * "some false claim is kept" becomes one minus a power of the geometric mean over the false claims
#   of one minus these means;
# * "the largest safe threshold", "the k-th smallest score" and "the largest t below the calibrated
#   threshold" become weighted means, with most of the weight on the right value.
#
# Each answer has a *grid* T of candidate thresholds: its risks, one smaller value (at which
# nothing is kept) and one larger value (at which everything is kept). Every path risk is one of
# the risks, so these candidates suffice. Each function ``soft_...`` below is one row of the paper's
# table of soft steps and uses the paper's letters. The constants determine how closely a soft step
# approximates the exact one.

T_p = 0.1  # width of the sigmoid for "the risk of a claim is below t"
gamma = (
    1.0  # weight of each ancestor in the geometric mean; the claim itself has weight 1
)
lam = 1.5  # penalty for a false claim in the search for the largest safe threshold
tau_s = 0.3  # a smaller value makes a single false claim count more
beta = 20.0  # sharpness of "the largest"
tau_z = 0.02  # width of the sigmoid for "t is below the calibrated threshold"
rho = 10.0  # sharpness of "the k-th smallest score"
margin = 1.0  # distance of the two outer grid values from the risks


def log_sigmoid(x):
    return -np.logaddexp(0, -x)


def softmax(x):
    weights = np.exp(x - np.max(x))
    return weights / np.sum(weights)


def minmax(x):
    low, high = np.min(x), np.max(x)
    return (x - low) / (high - low) if high > low else 0 * x


def soft_kept(risk, above):
    """Return the grid T, and log q: the degree to which each claim is kept at each t.

    A row of log q belongs to a claim, and a column to a threshold in T.
    """
    lowest = np.array([np.min(risk) - margin])
    highest = np.array([np.max(risk) + margin])
    T = np.concatenate([lowest, risk, highest])
    log_p = log_sigmoid((T - risk[:, None]) / T_p)
    weight = np.where(np.eye(len(risk)), 1.0, gamma * above)
    log_q = (weight / weight.sum(axis=1, keepdims=True)) @ log_p  # a geometric mean
    return T, log_q


def soft_score(T, log_q, true):
    """Return a soft version of the largest threshold at which no false claim is kept."""
    if true.all():
        violation = np.zeros(len(T))
    else:
        log_dropped = np.log(-np.expm1(log_q[~true]))  # log(1 - q) of each false claim
        # Nearly 1 if a false claim is kept at t: 1 - (geometric mean of 1 - q)^(1 / tau_s).
        violation = 1 - np.exp(np.mean(log_dropped, axis=0) / tau_s)
    # A threshold is good if it is large and its violation is small. As lam > 1, a threshold with
    # the largest violation has less merit than the smallest threshold without a violation.
    merit = minmax(T) - lam * minmax(violation)
    return np.sum(softmax(beta * merit) * T)


def soft_threshold(scores, alpha):
    """Return a soft version of the k-th smallest score.

    This is one row of NeuralSort (Grover et al., arXiv:1903.08850), whose weights are largest at
    the k-th smallest score.
    """
    n = len(scores)
    k = max(int(alpha * (n + 1) + 1e-9), 1)  # k = 0 has no gradient
    distance = np.sum(np.abs(scores[:, None] - scores), axis=1)
    return np.sum(softmax(rho * ((2 * k - n - 1) * scores - distance)) * scores)


def soft_true_claims(T, log_q, true, threshold):
    """Return a soft count of the true claims kept at the largest t below the threshold."""
    # As beta is smaller than 1 / tau_z, values of t above the threshold have little weight.
    choice = softmax(beta * T + log_sigmoid((threshold - T) / tau_z))
    return np.sum(np.exp(log_q[true]) @ choice)


def retention(risks, answers, alpha):
    """Return a soft count of the true claims kept per answer."""
    soft = [
        (*soft_kept(risk, above), true)  # T, log q and labels of one answer
        for risk, (_, above, true) in zip(risks, answers, strict=True)
    ]
    scores = np.array([soft_score(T, log_q, true) for T, log_q, true in soft])
    threshold = soft_threshold(scores, alpha)
    counts = [soft_true_claims(T, log_q, true, threshold) for T, log_q, true in soft]
    return sum(counts) / len(counts)


def loss(weights, alpha=0.1):
    """Return minus the logarithm of the retention on the training answers.

    The logarithm makes an optimisation step depend on the relative change of the retention. The
    same answers determine the soft threshold and are filtered with it. This affects only how good
    the weights are. The guarantee comes from the calibration answers.
    """
    risks = [-X @ weights for X, _, _ in train]
    # Multiplying all risks by a positive constant does not change the filter, but the soft steps
    # depend on the scale of the risks.
    scale = np.std(np.concatenate(risks))
    return -np.log(retention([risk / scale for risk in risks], train, alpha))


# %%
# Autograd differentiates the loss with respect to the weights: through the retention, the soft
# threshold and the soft scores of all answers. L-BFGS minimises the loss. It starts from one good
# feature, "frequency-score", the frequency of a claim in other sampled answers to the same
# question. It stops after eight iterations, because more iterations would overfit the 60 training
# answers.

start = np.zeros(graphs.n_features)
start[graphs.feature_names.index("frequency-score")] = 1.0
trained = minimize(
    value_and_grad(loss), start, jac=True, method="L-BFGS-B", options={"maxiter": 8}
)
print(f"loss {loss(start):.3f} -> {trained.fun:.3f}")

# %%
# The remaining steps do not use the soft functions. For each level, the exact procedure
# calibrates a threshold for the trained weights and filters the new answers. The quality of the
# soft steps affects the number of kept claims. It does not affect the guarantee, because the
# calibration answers were not used for training. On average over calibration sets, the error rate
# is at most alpha for both sets of weights. The table shows one calibration set. At alpha = 0.05,
# the standard deviation between sets of 199 answers is about 1.5 percentage points.

levels = np.array([0.02, 0.05, 0.1, 0.15, 0.2])
before, after = (
    np.array([calibrate_and_filter(weights, alpha) for alpha in levels])
    for weights in (start, trained.x)
)
print("        true claims kept    error rate")
print("alpha   start   trained     start   trained")
for alpha, start_row, trained_row in zip(levels, before, after, strict=True):
    (kept_0, wrong_0), (kept_1, wrong_1) = start_row, trained_row
    print(
        f"{alpha:5.2f}  {kept_0:6.2f}  {kept_1:7.2f}   {wrong_0:7.1%}  {wrong_1:7.1%}"
    )

fig, ax = plt.subplots(figsize=(5, 3.2), layout="constrained")
ax.plot(levels, after[:, 0], "o-", label="trained through calibration")
ax.plot(levels, before[:, 0], "s--", label="frequency, starting point")
ax.set(xlabel="alpha", ylabel="true claims kept per answer")
ax.legend()
plt.show()

# %%
# In the package, `~skdcf.HardCF` implements the first part and `~skdcf.relaxation.GridRelaxation`
# the second part. The default of `~skdcf.CoherentConformalFilter` differs in three respects
# (:doc:`/guide/training`): its confidence is computed from the price of a claim, its weights are
# shrunk towards their starting values, and its relaxation is faster.
