"""The filters that the experiments compare, in one place.

Ties are broken by a seeded jitter in all filters. Filters with coarse scores, such as a frequency
out of five, keep more claims with the jitter. Without it, trained scores would have an advantage.
"""

import numpy as np
from sklearn.base import clone

from skdcf import CoherentConformalFilter, HardCF, XGBoostCF
from skdcf.relaxation import GridRelaxation
from skdcf.scorers import (
    ClassifierScorer,
    NeymanPearsonScorer,
    StackingScorer,
)
from skdcf.scorers._models import _tanh
from skdcf.training import SoftTraining

FREQUENCY, UNTRAINED = "CF, frequency", "CF, context_trigrams, untrained"
LOGISTIC, BOOSTED = "CF, logistic regression", "CF, XGBoost"
AUTO, LINEAR, NEYMAN_PEARSON = "auto", "DCF, path relaxation", "Neyman-Pearson"
PUBLISHED = "DCF, as published"
MARGIN = f"{PUBLISHED}, margin 0.1"
OWN_LABEL, COHERENT = f"{LOGISTIC}, own label", f"{LOGISTIC}, coherent label"
OWN_SCORE = "CF, its authors' score"
OURS = (LINEAR, NEYMAN_PEARSON, AUTO, PUBLISHED)
TIES = {"ties": "jitter"}


def sharpened():
    """The published procedure from a better start and with a sharper grid."""
    training = SoftTraining.from_paper().set_params(init="coherent")
    return CoherentConformalFilter(
        "linear", relaxation=GridRelaxation(), training=training, **TIES
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


def logistic(**settings):
    """The fair baseline: of an answer's claims it learns what the default learns."""
    return HardCF(ClassifierScorer(target="hazard"), **TIES, **settings)


def published(alpha, margin=20.0):
    """The settings that are printed for FELM, whose tables end at 0.1.

    The margin of 20 is printed for the validation of the paper alone.
    """
    filter = CoherentConformalFilter.from_paper("felm", min(alpha, 0.1), **TIES)
    return filter.set_params(alpha=alpha, relaxation__margin=margin)


def compared():
    """Baselines and ours, on whatever columns there are."""
    return {
        LOGISTIC: logistic(),
        BOOSTED: XGBoostCF(**TIES),
        LINEAR: CoherentConformalFilter("linear", **TIES),
        NEYMAN_PEARSON: HardCF(NeymanPearsonScorer(), **TIES),
        AUTO: CoherentConformalFilter("stack", **TIES),
    }


def labelled():
    """Logistic regression that learns one label or another."""
    labels = {"": "hazard", ", own label": "own", ", coherent label": "coherent"}
    return {
        LOGISTIC + text: HardCF(ClassifierScorer(target=label), **TIES)
        for text, label in labels.items()
    }


def for_answers():
    """`auto` for users who need something in every answer."""
    return CoherentConformalFilter(StackingScorer(gain="answers"), **TIES)


def fit_levels(filter, X, y, alphas, groups=None):
    """Return the filter fitted at each level, keyed by alpha."""
    return {
        alpha: clone(filter).set_params(alpha=alpha).fit(X, y, groups)
        for alpha in alphas
    }
