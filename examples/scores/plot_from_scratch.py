"""
The method from scratch
=======================

Conformal training of a score for claims, as published by Hittesdorf, Salzetta and Cheng
(arXiv:2604.20098), in a hundred lines. Nothing is imported from the package but the data.

An answer is a list of claims, some of which build on others. Each claim gets a *risk*: here, minus
a weighted sum of its features. A filter keeps the claims whose risk, and that of everything they
build on, lies below a threshold. The threshold is chosen on answers whose claims were judged, such
that at most one answer in ten keeps a false claim. This holds for any weights.

**What is trained** are the weights. **Why**: with bad weights, a few false claims have a low risk.
The threshold must stay below these, so the filter keeps few true claims. A classifier learns to
tell true from false claims everywhere, but only the false claims with the lowest risks decide the
threshold. So the weights are trained for what counts in the end: the number of true claims kept,
after the threshold was chosen for these weights.
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
# The *path risk* of a claim is the largest risk among the claim and its ancestors. The *score* of
# an answer is the smallest path risk of its false claims: at any threshold up to this score, no
# false claim is kept. The threshold is the k-th smallest score of n judged answers, with
# k = floor(alpha (n + 1)). If a new answer is drawn like these, its score is among the k smallest
# of n + 1 with probability at most alpha. So a false claim is kept with probability at most alpha.
#
# For example, k is 20 with n = 199 and alpha = 0.1: the filter keeps a false claim in 19 of the
# 199 judged answers, whatever the risks are.


def ancestors(graph):
    """Mark in row v the claim v and all that it builds on."""
    above = np.eye(graph.n_claims, dtype=bool)
    for parent, child in graph.edges:
        above[child, parent] = True
    for _ in range(graph.n_claims):
        above = above @ above
    return above


def path_risk(risk, above):
    return np.where(above, risk, -np.inf).max(axis=1)


def hard_score(risk, above, true):
    return np.min(path_risk(risk, above)[~true], initial=np.inf)


def hard_threshold(scores, alpha):
    k = int(alpha * (len(scores) + 1) + 1e-9)
    return np.sort(scores)[k - 1] if k else -np.inf


def keep(risk, above, threshold):
    return path_risk(risk, above) < threshold


# %%
# The data are generated: 60 answers to train on, 199 to calibrate with, and 600 new ones.

graphs, labels = make_reasoning_graphs(859, random_state=0, return_X_y=True)
mean, deviation = graphs[:60].features.mean(axis=0), graphs[:60].features.std(axis=0)
answers = [
    ((g.features - mean) / np.where(deviation > 0, deviation, 1), ancestors(g), y == 1)
    for g, y in zip(graphs, labels, strict=True)
]
train, calibration, new = answers[:60], answers[60:259], answers[259:]


def true_claims_kept(weights, alpha):
    """Number of true claims kept per new answer, and the share with a false one."""
    scores = [hard_score(-X @ weights, above, true) for X, above, true in calibration]
    threshold = hard_threshold(np.array(scores), alpha)
    kept = [(keep(-X @ weights, above, threshold), true) for X, above, true in new]
    right = np.mean([(mask & true).sum() for mask, true in kept])
    return right, np.mean([(mask & ~true).any() for mask, true in kept])


# %%
# Training
# --------
#
# Which weights keep most? To find out by gradient descent, we need the derivative of the number of
# true claims kept. But "is the risk below t?" is 0 or 1, and the k-th smallest score jumps from one
# answer to another. Their derivatives are 0 or undefined. So each step is replaced by a smooth one
# that comes close to it:
#
# * "below t" becomes a sigmoid, a number between 0 and 1;
# * "all ancestors are kept" becomes a weighted geometric mean of these numbers;
# * "the largest threshold" and "the k-th smallest score" become weighted means, with most weight on
#   the right one.
#
# All thresholds of an answer are tried at once: the *grid* T of its risks, and one value below and
# one above. The functions below are the rows of the paper's table, with its letters. The constants
# determine how closely each soft step approximates the hard one.

T_p = 0.1  # width of the sigmoid "the risk of a claim is below t"
gamma = 1.0  # weight of an ancestor, against 1 of the claim itself
lam = 1.5  # price of a false claim, when the largest safe threshold is sought
tau_s = 0.3  # the smaller, the more one false claim counts
beta = 20.0  # sharpness of "the largest threshold"
tau_z = 0.02  # width of the sigmoid "t is below the threshold of all answers"
rho = 10.0  # sharpness of "the k-th smallest score"
margin = 1.0  # how far the grid goes beyond the risks


def log_sigmoid(x):
    return -np.logaddexp(0, -x)


def softmax(x):
    weights = np.exp(x - np.max(x))
    return weights / np.sum(weights)


def minmax(x):
    low, high = np.min(x), np.max(x)
    return (x - low) / (high - low) if high > low else 0 * x


def soft_kept(risk, above):
    """Return the grid T, and log q: softly, are claim v and its ancestors kept at t?"""
    ends = np.array([np.min(risk) - margin]), np.array([np.max(risk) + margin])
    T = np.concatenate([ends[0], risk, ends[1]])
    log_p = log_sigmoid((T - risk[:, None]) / T_p)
    weight = np.where(np.eye(len(risk)), 1.0, gamma * above)
    return T, (weight / weight.sum(axis=1, keepdims=True)) @ log_p


def soft_score(T, log_q, true):
    """Return softly the largest threshold at which no false claim is kept."""
    if true.all():
        violation = np.zeros(len(T))
    else:
        log_valid = np.mean(np.log(-np.expm1(log_q[~true])), axis=0)
        violation = 1 - np.exp(log_valid / tau_s)
    return np.sum(softmax(beta * (minmax(T) - lam * minmax(violation))) * T)


def soft_threshold(scores, alpha):
    """Return softly the k-th smallest score: one row of NeuralSort."""
    n = len(scores)
    k = max(int(alpha * (n + 1) + 1e-9), 1)
    distance = np.sum(np.abs(scores[:, None] - scores), axis=1)
    return np.sum(softmax(rho * ((2 * k - n - 1) * scores - distance)) * scores)


def soft_true_claims(T, log_q, true, threshold):
    """Return softly the number of true claims kept at the largest t below the threshold."""
    weights = softmax(beta * T + log_sigmoid((threshold - T) / tau_z))
    return np.sum(np.exp(log_q[true]) @ weights)


def retention(risks, answers, alpha):
    """Return softly the number of true claims kept per answer."""
    grids = [
        soft_kept(risk, above)
        for risk, (_, above, _) in zip(risks, answers, strict=True)
    ]
    truth = [true for _, _, true in answers]
    scores = np.array([soft_score(*g, y) for g, y in zip(grids, truth, strict=True)])
    threshold = soft_threshold(scores, alpha)
    kept = [
        soft_true_claims(*g, y, threshold) for g, y in zip(grids, truth, strict=True)
    ]
    return sum(kept) / len(kept)


def loss(weights, alpha=0.1):
    """Return minus the logarithm of the retention, for risks in unit deviation.

    The training answers choose the soft threshold, and are filtered with it.
    """
    risks = [-X @ weights for X, _, _ in train]
    deviation = np.std(np.concatenate(risks))
    return -np.log(retention([risk / deviation for risk in risks], train, alpha))


# %%
# That is all. Autograd computes the derivative of the loss in the weights: through the retention,
# the soft threshold and the soft scores of all answers. L-BFGS lowers the loss. It starts from a
# score that is known to be good: how often other answers repeat a claim.

start = np.zeros(graphs.n_features)
start[graphs.feature_names.index("frequency-score")] = 1.0
trained = minimize(
    value_and_grad(loss), start, jac=True, method="L-BFGS-B", options={"maxiter": 8}
)
print(f"loss {loss(start):.3f} -> {trained.fun:.3f}")

# %%
# The soft steps are thrown away now. The hard procedure chooses a threshold for the trained weights
# on the calibration answers, which training has not seen, and filters new answers. How good the
# soft steps were decides how many claims are kept. It does not decide whether the guarantee holds.
# The last column lies near alpha: on average over calibration sets it is at most alpha.

levels = np.array([0.02, 0.05, 0.1, 0.15, 0.2])
before, after = (
    np.array([true_claims_kept(weights, alpha) for alpha in levels])
    for weights in (start, trained.x)
)
for alpha, (kept, wrong) in zip(levels, after, strict=True):
    print(f"alpha {alpha:.2f}: {kept:.2f} true claims, {wrong:.3f} with a false one")

fig, ax = plt.subplots(figsize=(5, 3.2), layout="constrained")
ax.plot(levels, after[:, 0], "o-", label="trained through calibration")
ax.plot(levels, before[:, 0], "s--", label="frequency, where it starts")
ax.set(xlabel="alpha", ylabel="true claims kept per answer")
ax.legend()
plt.show()

# %%
# The package does the same faster and with more care: `~skdcf.HardCF` is the first part,
# `~skdcf.relaxation.GridRelaxation` the second. The page :doc:`/guide/training` says what it adds
# to the method: a start and a pull towards it, another relaxation, and base scorers that are
# combined in this way.
