"""
The contributions of features to two claims
===========================================

This example compares a trained score with a frequency on two claims, a true claim that no other
answer repeats and a false claim that all other answers repeat. The paper that this package
implements (arXiv:2604.20098) shows one claim of each kind. The example follows its procedure on
generated problems, with 20 folds and averaged weights. A claim is kept if most folds keep it.
"""

# %%
# Twenty folds
# ------------
# In each fold, 141 of 202 problems are used for training and 30 others for calibration at alpha =
# 0.06. The filters of all folds are applied to the same 200 new problems. The frequency
# score needs no training. Its filter is calibrated on the same number of problems.

import numpy as np

from skdcf import CoherentConformalFilter, HardCF
from skdcf.datasets import make_reasoning_graphs
from skdcf.scorers import ConfTrScorer

X, y = make_reasoning_graphs(402, "math", random_state=2, return_X_y=True)
X, y, new, labels = X[:202], y[:202], X[202:], np.concatenate(y[202:])
names = X.feature_names

rng = np.random.default_rng(0)
kept = {"trained": [], "frequency": []}
weights = []
for seed in range(20):
    fold = rng.permutation(len(X))[:171]
    filters = {
        "trained": CoherentConformalFilter(
            ConfTrScorer(gain=None), alpha=0.06, random_state=seed
        ),
        "frequency": HardCF("frequency-score", alpha=0.06, random_state=seed),
    }
    for name, filter in filters.items():
        filter.set_params(ties="jitter", calibration_size=30)
        filter.fit(X[fold], [y[i] for i in fold])
        kept[name].append(np.concatenate(list(filter.predict(new))))
    weights.append(filters["trained"].coef_)

weights = np.mean(weights, axis=0)
trained, by_frequency = (np.mean(kept[name], axis=0) > 0.5 for name in kept)
print(
    f"claims kept by most folds: {trained.sum()}, by the frequency {by_frequency.sum()}"
)

# %%
# A true claim that a frequency drops
# -----------------------------------
# This true claim has frequency 0, and the trained score keeps it. It is taken from the problem
# with dropped claims in which the two filters differ most.

from skdcf.plots import ReasoningGraphDisplay

frequency = new.features[:, names.index("frequency-score")]
apart = np.bincount(new.problem_of, trained != by_frequency)[new.problem_of]
whole = (np.bincount(new.problem_of, ~trained) == 0)[new.problem_of]


def clearest(candidates):
    """Return the claim of the problem in which the filters differ most."""
    return max(np.flatnonzero(candidates), key=apart.__getitem__)


def draw(claim):
    """Draw the problem of the claim with the claims kept by the trained score."""
    number = new.problem_of[claim]
    own = slice(*new.offsets[number : number + 2])
    print(f"claim {claim - own.start} of {own.stop - own.start}")
    print(f"   kept: trained {trained[own].sum()}, frequency {by_frequency[own].sum()}")
    return ReasoningGraphDisplay.from_graph(
        new[number], kept=trained[own], labels=labels[own]
    )


rare = clearest((labels == 1) & (frequency == 0) & trained & ~by_frequency & ~whole)
draw(rare)

# %%
# The table shows weight times value for each feature that is not 0. The contribution of the
# frequency is 0.


def table(claim):
    """Print the contributions of the nonzero features and of the frequency."""
    values = new.features[claim]
    for name, value, weight in zip(names, values, weights, strict=True):
        if value or name == "frequency-score":
            print(f"{name:<26} {value:7.2f} * {weight:7.3f} = {value * weight:7.3f}")


table(rare)

# %%
# A false claim that a frequency keeps
# ------------------------------------
# All five other answers contain this false claim.

often = clearest((labels == 0) & (frequency == 5) & by_frequency & ~trained)
draw(often)

# %%

table(often)

# %%
# Both filters have the same guarantee, which does not concern single claims. A claim is dropped
# because claims with such a score were too often false in the calibration problems.
# :doc:`/referees/paper` shows the tables of the paper next to ours.
#
# `skdcf.inspection.shap_values` computes such contributions for linear scorers, relative to an
# average claim.
