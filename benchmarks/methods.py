"""The filters that the experiments compare, in one place.

Ties are broken by a seeded jitter in all filters. Filters with coarse scores, such as a frequency
out of five, keep more claims with the jitter. Without it, trained scores would have an advantage.
"""

import numpy as np
from sklearn.base import clone

from skdcf import CoherentConformalFilter, HardCF
from skdcf.relaxation import GridRelaxation
from skdcf.scorers import ClassifierScorer, ConfTrScorer
from skdcf.scorers._models import _tanh
from skdcf.training import SoftTraining

FREQUENCY, LOGISTIC = "CF, frequency", "CF, logistic regression"
PRICED = "CF, priced logistic regression"
AUTO, LINEAR = "auto", "DCF, path relaxation"
PUBLISHED = "DCF, as published"
MARGIN = f"{PUBLISHED}, margin 0.1"
OWN_SCORE = "CF, its authors' score"
OURS = (LINEAR, AUTO, PUBLISHED)
TIES = {"ties": "jitter"}


def sharpened():
    """The published procedure from a better start and with a sharper grid."""
    training = SoftTraining.from_paper().set_params(init="coherent")
    scorer = ConfTrScorer(gain=None)
    return CoherentConformalFilter(
        scorer, relaxation=GridRelaxation(), training=training, **TIES
    )


class Probabilities:
    """The paper's LogisticClaimScorer: the confidence is a probability, sigmoid(x w + b)."""

    def init(self, n_features, rng):
        """Draw weights as `LinearModel` does; the intercept starts at 0."""
        bound = n_features**-0.5
        return np.append(rng.uniform(-bound, bound, n_features), 0.0)

    def __call__(self, params, X):
        """Confidences between 0 and 1."""
        return 0.5 * (1 + _tanh((X @ params[:-1] + params[-1]) / 2))

    def __repr__(self):
        return "Probabilities()"


def published(alpha, margin=20.0):
    """The settings that are printed for FELM, whose tables end at 0.1.

    The margin of 20 is printed for the validation of the paper alone.
    """
    filter = CoherentConformalFilter.from_paper("felm", min(alpha, 0.1), **TIES)
    return filter.set_params(alpha=alpha, relaxation__margin=margin)


def compared():
    """Baselines and ours, on whatever columns there are."""
    return {
        LOGISTIC: HardCF(ClassifierScorer(gain=None), **TIES),
        PRICED: HardCF(ClassifierScorer(), **TIES),  # the fair baseline
        LINEAR: CoherentConformalFilter(ConfTrScorer(gain=None), **TIES),
        AUTO: CoherentConformalFilter(**TIES),
    }


def fit_levels(filter, X, y, alphas, groups=None):
    """Return the filter fitted at each level, keyed by alpha."""
    return {
        alpha: clone(filter).set_params(alpha=alpha).fit(X, y, groups)
        for alpha in alphas
    }
