"""
Learning a score through calibration
====================================

This example compares three scores with the same graphs and guarantee.
"""

# %%
# Three scores
# ------------
# The first score is the published frequency. The second is a logistic regression, which learns to
# classify claims. The third is the default: a linear model whose price is trained through
# calibration, coherence and filtering.

import numpy as np

from skdcf import CoherentConformalFilter, HardCF
from skdcf.datasets import make_reasoning_graphs
from skdcf.scorers import ClassifierScorer, FrequencyScorer

graphs, y = make_reasoning_graphs(3000, kind="math", random_state=1, return_X_y=True)
train, y_train = graphs[:700], y[:700]
test, y_test = graphs[700:], y[700:]

filters = {
    "frequency": HardCF(FrequencyScorer(0.8), ties="jitter", random_state=0),
    "logistic regression": HardCF(ClassifierScorer(gain=None), random_state=0),
    "conformal training": CoherentConformalFilter(random_state=0),
}

# %%
# Conformal training optimises the score for one level, so one filter is fitted per level. The
# filters are evaluated by leave-one-out on problems that were not used for training.

from skdcf.evaluation import leave_one_out

alphas = [0.03, 0.05, 0.1, 0.15]
for name, filter in filters.items():
    kept = []
    for alpha in alphas:
        filter.set_params(alpha=alpha).fit(train, y_train)
        kept.append(leave_one_out(filter, test, y_test, [alpha]).retention[0])
    print(f"{name:20s}", "  ".join(f"{value:5.2f}" for value in kept))

# %%
# One level or many
# -----------------
# You can use a filter trained for 0.05 at any other level. The guarantee holds, and the sets of
# kept claims are nested. This table shows the loss of claims from training for another level:

one = CoherentConformalFilter("linear", alpha=0.05, random_state=0).fit(train, y_train)
elsewhere = leave_one_out(one, test, y_test, alphas).retention
share = elsewhere / np.array(kept)  # ``kept``: trained for each level
for alpha, value in zip(alphas, share, strict=True):
    print(
        f"alpha = {alpha:.2f}: {value:6.1%} of the claims kept after training for this level"
    )

# %%
# The learnt weights
# ------------------
# The weights refer to the original units of the features. To compare them, multiply them by the
# standard deviations of the features.

import matplotlib.pyplot as plt

weight = one.coef_[: train.n_features] * train.features.std(axis=0)
top = np.argsort(-np.abs(weight))[:10][::-1]
figure, ax = plt.subplots(figsize=(6, 3.8), layout="constrained")
ax.barh([train.feature_names[j] for j in top], weight[top])
ax.axvline(0, color="k", lw=0.8)
ax.set(xlabel="weight x deviation of the feature", title="Contribution to the log odds")

# %%
# Soft against hard
# -----------------
# Training uses a soft version of the procedure. The plots compare the soft with the hard
# nonconformity score for each problem with an error. On the left, the scores of the default
# relaxation are identical, because its maximum and minimum are hard. The right panel shows the
# published relaxation with its validation settings.

from skdcf.ops.hard import nonconformity_scores, segment_max, segment_min
from skdcf.relaxation import GridRelaxation, PathRelaxation

risk = -one.confidence(test)
true = np.concatenate(list(y_test)) == 1
first_unsafe = nonconformity_scores(
    np.concatenate(list(one.path_risk(test))), true, test.offsets
)
wrong = np.isfinite(first_unsafe)  # problems with an error
published = GridRelaxation.from_paper("validation")
# The grid of the published relaxation ends at the last safe threshold.
below = np.where(risk < np.repeat(first_unsafe, test.sizes), risk, -np.inf)
lowest = segment_min(risk, test.offsets) - published.margin
last_safe = np.maximum(segment_max(below, test.offsets), lowest)

figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
for ax, name, relaxation, hard in [
    (axes[0], "path", PathRelaxation(), first_unsafe),
    (axes[1], "grid, published", published, last_safe),
]:
    soft = relaxation.soft_scores(risk, relaxation.plan(test, true))
    r = np.corrcoef(soft[wrong], hard[wrong])[0, 1]
    ax.plot(hard[wrong], soft[wrong], "o", alpha=0.6, ms=4)
    ax.axline((hard[wrong].min(),) * 2, slope=1, color="k", lw=0.9)
    ax.set(xlabel="hard score", ylabel="soft score", title=f"{name}: r = {r:.3f}")
