"""From what a user writes for ``scorer=`` to a `Scorer`: the one place that does it."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any

from sklearn.base import clone

from ._classifier import ClassifierScorer
from ._conformal import ConformalScorer
from ._mixture import MixtureScorer
from ._neyman_pearson import NeymanPearsonScorer
from ._protocol import FREQUENCY, FeatureScorer, FrequencyScorer, FunctionScorer, Scorer

if TYPE_CHECKING:
    from ..graphs import GraphBatch

NAMED = {
    "auto": MixtureScorer,
    "linear": ConformalScorer,
    "neyman-pearson": lambda: NeymanPearsonScorer(random_state=None),
}


def as_scorer(scorer: Any, batch: GraphBatch) -> Scorer:
    """A fresh, unfitted scorer for the problems of ``batch``.

    Parameters
    ----------
    scorer : None, str, int, Scorer, differentiable model, classifier or callable
        None is the frequency where a feature is called "frequency-score", else logistic
        regression. "auto", "linear" and "neyman-pearson" are `MixtureScorer`,
        `ConformalScorer` and `NeymanPearsonScorer`; another str, or an int, is a
        feature. A differentiable model is trained through soft calibration, a classifier
        on claims; a callable is a function of a GraphBatch. A fitted scorer or
        classifier is fitted afresh: what it was trained on is not known here.
    batch : GraphBatch

    Returns
    -------
    Scorer

    Raises
    ------
    ValueError
        If it is none of these, or its parameters make no sense.
    """
    made = _make(scorer, batch.feature_names or ())
    made.validate()
    return made


def _make(scorer, names):
    if scorer is None:
        return FrequencyScorer() if FREQUENCY in names else ClassifierScorer()
    if isinstance(scorer, str) and scorer in NAMED:
        if scorer in names:
            raise ValueError(
                f"{scorer!r} is the name of a scorer and of a feature: pass "
                f"FeatureScorer({scorer!r}) for the feature, or rename it"
            )
        return NAMED[scorer]()
    if isinstance(scorer, (str, Integral)) and not isinstance(scorer, bool):
        return FeatureScorer(scorer)
    if hasattr(scorer, "predict_alpha"):
        raise ValueError(
            f"scorer is {scorer!r}, which is a filter: pass what it scores with, its own "
            "scorer"
        )
    if isinstance(scorer, type) or not _is_object_that_scores(scorer):
        raise ValueError(
            f"scorer is {scorer!r}, but must be None, one of {list(NAMED)}, a feature's "
            "name or column number, a Scorer, a differentiable model (with "
            "init(n_features, rng) and model(params, X)), a classifier with "
            "decision_function or predict_proba, or a function of a GraphBatch"
            + (": derive it from Scorer" if hasattr(scorer, "confidence") else "")
        )
    if isinstance(scorer, Scorer):
        return clone(scorer)
    if _is_model(scorer):
        return ConformalScorer(scorer)
    return (
        ClassifierScorer(scorer) if hasattr(scorer, "fit") else FunctionScorer(scorer)
    )


def _is_model(scorer):
    return callable(scorer) and callable(getattr(scorer, "init", None))


def _is_object_that_scores(scorer):
    if isinstance(scorer, Scorer):
        return True
    if hasattr(scorer, "fit"):
        return hasattr(scorer, "predict_proba") or hasattr(scorer, "decision_function")
    return callable(scorer)
