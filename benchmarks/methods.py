"""The filters that the experiments compare, in one place.

Ties are broken by a seeded jitter everywhere: it lifts filters whose scores are coarse,
such as a frequency out of five, and would otherwise favour learnt scores.
"""

import numpy as np
from paper import ALPHAS
from sklearn.model_selection import GridSearchCV

from skdcf import (
    BoostedIndependentFactuality,
    CoherentConformalFilter,
    HardCF,
    IndependentFactuality,
    SingleFeatureCF,
    XGBoostCF,
)
from skdcf.relaxation import GridRelaxation
from skdcf.scorers import (
    ClassifierScorer,
    MixtureScorer,
    NeymanPearsonScorer,
    TextHazard,
)
from skdcf.training import SoftTraining

FREQUENCY = "CF, frequency"
LOGISTIC, BOOSTED = "CF, logistic regression", "CF, XGBoost"
AUTO, LINEAR, NEYMAN_PEARSON = "auto", "DCF, path relaxation", "Neyman-Pearson"
OURS = (LINEAR, NEYMAN_PEARSON, AUTO)
TIES = {"ties": "jitter"}


def single_feature(feature):
    """CF on one feature; the share of the descendants is chosen on training problems."""
    filter = SingleFeatureCF(feature, **TIES)
    return GridSearchCV(filter, {"beta_mix": np.arange(11) / 10})


def paper_settings(kind, alphas):
    """The published procedure: one filter per alpha, with the nearest tabled row."""
    out = {}
    for alpha in alphas:
        row = min(ALPHAS[kind], key=lambda tabled: abs(tabled - alpha))
        filter = CoherentConformalFilter.from_paper(kind, row, **TIES)
        out[alpha] = filter.set_params(alpha=alpha)
    return out


def sharpened():
    """The published procedure from a better start and with a sharper grid."""
    training = SoftTraining.from_paper().set_params(start="coherent")
    return CoherentConformalFilter(
        "linear", relaxation=GridRelaxation(), training=training, **TIES
    )


def compared():
    """Baselines and ours, on whatever columns there are."""
    return {
        LOGISTIC: HardCF(ClassifierScorer(), **TIES),
        BOOSTED: XGBoostCF(**TIES),
        LINEAR: CoherentConformalFilter("linear", **TIES),
        NEYMAN_PEARSON: HardCF(NeymanPearsonScorer(), **TIES),
        AUTO: CoherentConformalFilter("auto", **TIES),
    }


TEXT = f"{AUTO}, text hazard"


def reading():
    """`auto` with a hazard of the words of claims."""
    return {TEXT: CoherentConformalFilter(MixtureScorer(text=TextHazard()), **TIES)}


def for_answers():
    """`auto` for users who need something in every answer."""
    return CoherentConformalFilter(MixtureScorer(gain="answers"), **TIES)


def learned(kind, alphas):
    """Filters that learn from all features, by name; ``kind`` of the tabled settings."""
    logistic = ClassifierScorer()
    return {
        "independent, logistic regression": IndependentFactuality(logistic, **TIES),
        "independent, boosted": BoostedIndependentFactuality(**TIES),
        BOOSTED: XGBoostCF(**TIES),
        LOGISTIC: HardCF(logistic, **TIES),
        "DCF, paper's grid": paper_settings(kind, alphas),
        "DCF, sharpened grid": sharpened(),
        LINEAR: CoherentConformalFilter("linear", **TIES),
        NEYMAN_PEARSON: HardCF(NeymanPearsonScorer(), **TIES),
        AUTO: CoherentConformalFilter("auto", **TIES),
    }


def with_frequency(kind, alphas):
    """All methods for data with a feature called frequency-score."""
    return {
        FREQUENCY: single_feature("frequency-score"),
        "independent, frequency": IndependentFactuality("frequency-score", **TIES),
    } | learned(kind, alphas)
