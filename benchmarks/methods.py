"""The filters that the experiments compare, in one place.

Ties are broken by a seeded jitter everywhere: it lifts filters whose scores are coarse,
such as a frequency out of five, and would otherwise favour learnt scores.
"""

from skdcf import CoherentConformalFilter, HardCF, XGBoostCF
from skdcf.relaxation import GridRelaxation
from skdcf.scorers import (
    ClassifierScorer,
    MixtureScorer,
    NeymanPearsonScorer,
)
from skdcf.training import SoftTraining

FREQUENCY, UNTRAINED = "CF, frequency", "CF, context_trigrams, untrained"
LOGISTIC, BOOSTED = "CF, logistic regression", "CF, XGBoost"
AUTO, LINEAR, NEYMAN_PEARSON = "auto", "DCF, path relaxation", "Neyman-Pearson"
PUBLISHED, HAZARD = "DCF, as published", f"{LOGISTIC}, hazard label"
OURS = (LINEAR, NEYMAN_PEARSON, AUTO, PUBLISHED)
TIES = {"ties": "jitter"}


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


def labelled():
    """Logistic regression that learns one label or another."""
    labels = {"": "own", ", coherent label": "coherent", ", hazard label": "hazard"}
    return {
        LOGISTIC + text: HardCF(ClassifierScorer(label=label), **TIES)
        for text, label in labels.items()
    }


def for_answers():
    """`auto` for users who need something in every answer."""
    return CoherentConformalFilter(MixtureScorer(gain="answers"), **TIES)
