"""
Two claims, feature by feature
==============================

A true claim that no other answer repeats, and a false one that all of them repeat: what
does a trained score make of them? The paper behind this package (arXiv:2604.20098) shows one
of each. Here they are found and computed as it describes, on generated problems: 20 folds,
weights averaged, and a claim kept where most folds keep it.
"""

# %%
# Twenty folds
# ------------
# In each fold 141 of 202 problems train, and 30 others calibrate at alpha = 0.06. All folds
# then filter the same 200 problems, which none of them has seen. The frequency needs no
# training, and is calibrated with as many.

import numpy as np

from skdcf import CoherentConformalFilter, HardCF
from skdcf.datasets import make_reasoning_graphs

X, y = make_reasoning_graphs(402, "math", random_state=2, return_X_y=True)
X, y, new, labels = X[:202], y[:202], X[202:], np.concatenate(y[202:])
names = X.feature_names

rng = np.random.default_rng(0)
kept = {"trained": [], "frequency": []}
weights = []
for seed in range(20):
    fold = rng.permutation(len(X))[:171]
    filters = {
        "trained": CoherentConformalFilter("linear", alpha=0.06, random_state=seed),
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
# Among the true claims with frequency 0 that the trained score keeps, this one is in the
# problem in which the two filters differ most, of those in which something is dropped.

from skdcf.inspection import Contributions
from skdcf.plots import ReasoningGraphDisplay

frequency = new.features[:, names.index("frequency-score")]
apart = np.bincount(new.problem_of, trained != by_frequency)[new.problem_of]
whole = (np.bincount(new.problem_of, ~trained) == 0)[new.problem_of]


def clearest(candidates):
    """The claim of the problem in which the filters differ most."""
    return max(np.flatnonzero(candidates), key=apart.__getitem__)


def draw(claim):
    """The claim's problem: what the trained score keeps."""
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
# Weight times value, for each feature that is not 0. The frequency adds nothing.


def table(claim):
    """Contributions of the features that are not 0, and of the frequency."""
    values = new.features[claim]
    shown = (values != 0) | (np.array(names) == "frequency-score")
    kept_names = np.array(names)[shown].tolist()
    return Contributions(kept_names, values[shown], weights[shown])


table(rare)

# %%
# A false claim that a frequency keeps
# ------------------------------------
# All five other answers made the same claim, and it is false.

often = clearest((labels == 0) & (frequency == 5) & by_frequency & ~trained)
draw(often)

# %%

table(often)

# %%
# The promise is the same for both filters, and it is not about single claims: a claim is
# dropped because claims with such a score were too often false in the problems that
# calibrated. :doc:`/referees/paper` has the tables of the paper beside these.
#
# A filter of your own gives such tables for every claim: see `skdcf.inspection.explain`.
