"""From what a user writes for ``scorer=`` to an object that scores."""

from numbers import Integral

from sklearn.base import clone

from ._classifier import ClassifierScorer
from ._fixed import FREQUENCY, FeatureScorer, FrequencyScorer, FunctionScorer


def as_scorer(scorer, batch):
    """A fresh, unfitted scorer for the problems of ``batch``.

    Parameters
    ----------
    scorer : None, str, int, scorer, classifier or callable
        None is the frequency where a feature is called "frequency-score", else logistic
        regression; a str or int is a feature; a classifier is trained on
        claims; a callable is a function of a GraphBatch.
    batch : GraphBatch

    Returns
    -------
    object with ``confidence``

    Raises
    ------
    ValueError
        If it is none of these.
    """
    if scorer is None:
        named = FREQUENCY in (batch.feature_names or ())
        return FrequencyScorer() if named else ClassifierScorer()
    if isinstance(scorer, str) or (
        isinstance(scorer, Integral) and not isinstance(scorer, bool)
    ):
        return FeatureScorer(scorer)
    if hasattr(scorer, "confidence"):
        return clone(scorer, safe=False)
    if hasattr(scorer, "fit") and (
        hasattr(scorer, "predict_proba") or hasattr(scorer, "decision_function")
    ):
        return ClassifierScorer(scorer)
    if callable(scorer) and not hasattr(scorer, "init"):
        return FunctionScorer(scorer)
    raise ValueError(
        f"scorer is {scorer!r}: expected None, a feature's name or column number, an "
        "object with confidence(batch), a classifier with decision_function or "
        "predict_proba, or a function of a GraphBatch"
    )
