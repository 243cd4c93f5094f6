"""
Learning a score through calibration
====================================

The same features, the same graph, the same guarantee: what differs is what the score was
trained for.
"""

# %%
# Three scores
# ------------
# Frequency, as published; logistic regression, which learns to classify claims; and a
# linear score trained through calibration, coherence and filtering.

import numpy as np

from skdcf import CoherentConformalFilter, HardCF
from skdcf.datasets import make_reasoning_graphs
from skdcf.scorers import ClassifierScorer, FrequencyScorer

graphs, y = make_reasoning_graphs(3000, kind="math", random_state=1, return_X_y=True)
train, y_train = graphs[:700], y[:700]
test, y_test = graphs[700:], y[700:]

filters = {
    "frequency": HardCF(FrequencyScorer(0.8), ties="jitter", random_state=0),
    "logistic regression": HardCF(ClassifierScorer(), random_state=0),
    "conformal training": CoherentConformalFilter("linear", random_state=0),
}

# %%
# One conformally trained filter per level, as each level wants a score of its own, and
# exact leave-one-out evaluation on problems that no training has seen.

from skdcf.evaluation import fit_levels
from skdcf.metrics import leave_one_out

alphas = [0.03, 0.05, 0.1, 0.15]
for name, filter in filters.items():
    fitted = fit_levels(filter, train, y_train, alphas)
    kept = [leave_one_out(fitted[a], test, y_test, [a]).retention[0] for a in alphas]
    print(f"{name:20s}", "  ".join(f"{value:5.2f}" for value in kept))

# %%
# One level or many
# -----------------
# A filter trained for 0.05 may be asked for any other level: the guarantee holds and
# kept sets stay nested. What it costs to have trained for another level:

one = CoherentConformalFilter("linear", alpha=0.05, random_state=0).fit(train, y_train)
elsewhere = leave_one_out(one, test, y_test, alphas).retention
share = elsewhere / np.array(kept)  # ``kept``: trained for each level
for alpha, value in zip(alphas, share, strict=True):
    print(f"alpha = {alpha:.2f}: {value:6.1%} of what its own training keeps")

# %%
# What it learned
# ---------------
# Weights are per unit of the features as they were passed; times their deviation, they
# can be compared.

import matplotlib.pyplot as plt

weight = one.coef_ * train.features.std(axis=0)
top = np.argsort(-np.abs(weight))[:10][::-1]
figure, ax = plt.subplots(figsize=(6, 3.8), layout="constrained")
ax.barh([train.feature_names[j] for j in top], weight[top])
ax.axvline(0, color="k", lw=0.8)
ax.set(xlabel="weight x deviation of the feature", title="What makes a claim trusted")

# %%
# Soft against hard
# -----------------
# Training saw a soft version of the procedure. For each problem with an error: the soft
# nonconformity score against the hard one, as trained (left: identical, since maximum
# and minimum are hard), and for the published relaxation with its validation settings.

from skdcf.plots import SoftHardDisplay
from skdcf.relaxation import GridRelaxation

figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
for ax, (name, relaxation) in zip(
    axes,
    {"path": None, "grid, published": GridRelaxation.from_paper("validation")}.items(),
    strict=True,
):
    display = SoftHardDisplay.from_estimator(
        one, test, y_test, alphas, relaxation=relaxation, ax=ax
    )
    ax.set_title(f"{name}: r = {display.report.score_pearson:.3f}")
