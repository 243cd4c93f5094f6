"""Convert the parameter ``scorer`` of a filter to a scorer."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from copy import deepcopy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from .._checks import is_integer, warn
from .._parameters import settings
from ..exceptions import GuaranteeWarning
from ..graphs import GraphBatch
from ._classifier import STRENGTH as STRENGTH
from ._classifier import SURE, ClassifierScorer
from ._models import ConfTrScorer
from ._scorer import (
    FeatureScorer,
    FrequencyScorer,
    Scorer,
)
from ._scorer import folds as folds
from ._scorer import out_of_fold_confidence as out_of_fold_confidence
from ._scorer import scorer_requires_fit as scorer_requires_fit


@settings
class FunctionScorer(Scorer):
    """Scorer that applies a function to each `GraphBatch`.

    Parameters
    ----------
    function : callable
        The function, which must return an array of shape (n_claims,) in which larger values mean
        safer claims. The values for a problem must not depend on other problems. Ranking or
        scaling the values over the batch invalidates the guarantee, and raises an error if it is
        detected.

    Attributes
    ----------
    function_ : callable
        The function, or a copy if the function is an object with state.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> graphs, y = make_reasoning_graphs(200, random_state=0, return_X_y=True)
    >>> HardCF(lambda batch: batch.depth).fit(graphs, y).scorer_
    FunctionScorer(function=<function <lambda> at ...>)
    """

    requires_fit = False

    function: Callable[[GraphBatch], ArrayLike]

    def fit(self, batch: GraphBatch, labels: Any = None, task: Any = None) -> Self:
        """Store a copy of the function without fitting anything.

        Parameters
        ----------
        batch, labels, task : object, optional
            Ignored.

        Returns
        -------
        self : object
            The fitted scorer.

        Warns
        -----
        GuaranteeWarning
            If the function is a method of a scorer that is already fitted.
        """
        owner = getattr(self.function, "__self__", None)
        if isinstance(owner, Scorer) and scorer_requires_fit(owner):
            warn(
                f"the scorer is a method of a fitted {type(owner).__name__}. The guarantee "
                "holds only for problems that were not used to train this scorer. Pass the "
                f"{type(owner).__name__} itself, so the filter trains it on other problems",
                GuaranteeWarning,
            )
        self.function_ = deepcopy(self.function)
        return self

    def confidence(self, batch: GraphBatch) -> NDArray[np.float64]:
        return np.asarray(self.function_(batch))


def as_scorer(scorer: Any, batch: GraphBatch) -> Scorer:
    """Return an unfitted scorer for the problems of ``batch``.

    Parameters
    ----------
    scorer : None, str, int, Scorer, differentiable model, classifier or callable
        The value to convert. The default is the feature "frequency-score" if it exists, and a
        logistic regression otherwise. The name "linear" refers to `ConfTrScorer`. Any other string
        or integer specifies a feature. A differentiable model is trained through soft calibration,
        while a classifier is trained on claims. A callable must accept a GraphBatch. Scorers and
        classifiers that are already fitted are fitted again, because their training data are
        unknown.
    batch : GraphBatch
        The problems.

    Returns
    -------
    unfitted_scorer : Scorer
        The unfitted scorer.

    Raises
    ------
    ValueError
        If the value cannot be converted, or if a parameter is invalid.
    TypeError
        If `fit` of the scorer does not accept the problems, the labels and the task.
    """
    scorer_made = _make(scorer, batch.feature_names or ())
    scorer_made.validate()
    try:
        inspect.signature(scorer_made.fit).bind(batch, None, None)
    except TypeError:
        raise TypeError(
            f"{type(scorer_made).__name__}.fit must accept fit(batch, labels, task), where labels "
            "is a 1-D array over all claims (1 for true, 0 for false, -1 for unknown), got "
            f"fit{inspect.signature(scorer_made.fit)}"
        ) from None
    return scorer_made


def _make(scorer, names):
    if scorer is None:
        return FrequencyScorer() if "frequency-score" in names else ClassifierScorer()
    if isinstance(scorer, str) and scorer == "linear":
        if scorer in names:
            raise ValueError(
                "a scorer and a feature cannot both be named 'linear'. Pass "
                "FeatureScorer('linear') to use the feature, or rename the feature"
            )
        return ConfTrScorer()
    if isinstance(scorer, str):
        return FeatureScorer(scorer)
    if is_integer(scorer):
        return FeatureScorer(int(scorer))
    if hasattr(scorer, "predict_alpha"):
        raise ValueError(
            f"scorer must not be a filter, got {scorer!r}. Pass the scorer of this filter "
            "instead"
        )
    if hasattr(scorer, "forward"):
        raise ValueError(
            f"scorer must be a Scorer that contains the torch module, got {scorer!r}. The page "
            '"Training and your own scorer" shows one'
        )
    kind = _kind_of(scorer)
    if kind is None:
        raise ValueError(
            f"scorer must be None, 'linear', a feature's name or column "
            "number, a Scorer, a differentiable model (with init(n_features, rng) "
            "and model(params, X)), a classifier with decision_function or "
            f"predict_proba, or a function of a GraphBatch, got {scorer!r}"
            + (
                ". Make the class a subclass of Scorer"
                if hasattr(scorer, "confidence")
                else ""
            )
        )
    return kind(scorer)


def _kind_of(scorer):
    """Return the class that converts an object to a scorer, or None if no class does."""
    # scikit-learn's get_scorer and make_scorer return objects that evaluate predictions and
    # cannot score claims.
    if isinstance(scorer, type) or hasattr(scorer, "_score_func"):
        return None
    if isinstance(scorer, Scorer):
        return clone
    if callable(scorer) and callable(getattr(scorer, "init", None)):
        return ConfTrScorer
    if hasattr(scorer, "fit"):
        return ClassifierScorer if any(hasattr(scorer, n) for n in SURE) else None
    return FunctionScorer if callable(scorer) else None
