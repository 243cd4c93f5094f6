"""The filters that the experiments compare, in one place.

Ties are broken by a seeded jitter everywhere: it lifts filters whose scores are coarse,
such as a frequency out of five, and would otherwise favour learnt scores.
"""

from skdcf import CoherentConformalFilter, HardCF, XGBoostCF
from skdcf.relaxation import GridRelaxation
from skdcf.scorers import (
    ClassifierScorer,
    NeymanPearsonScorer,
    StackingScorer,
)
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
