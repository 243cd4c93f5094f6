"""What filters make scorers of: what a user writes for ``scorer=``, and those of folds."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from .._checks import warn
from .._parameters import settings
from ..exceptions import GuaranteeWarning
from ..features.columns import apply_columns
from ..graphs import GraphBatch
from ..ops.hard import path_risk
from ._classifier import ClassifierScorer
from ._differentiable import ConformalScorer
from ._mixture import MixtureScorer
from ._neyman_pearson import NeymanPearsonScorer
from ._scorer import FREQUENCY, FeatureScorer, FrequencyScorer, Scorer, Task


@settings
class FunctionScorer(Scorer):
    """A function of a `GraphBatch` as the scorer.

    Parameters
    ----------
    function : callable
        From a GraphBatch to an array of shape (n_claims,), higher meaning more
        trustworthy. It must look at each problem by itself: ranks or scales taken over
        the batch void the guarantee, and are refused where they are noticed.

    Attributes
    ----------
    function_ : callable
        The function; a copy of it where it is an object with a state of its own.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> graphs, y = make_reasoning_graphs(200, random_state=0, return_X_y=True)
    >>> HardCF(lambda batch: -batch.depth).fit(graphs, y).scorer_
    FunctionScorer(function=<function <lambda> at ...>)
    """

    learns = False

    function: Callable[[GraphBatch], ArrayLike]

    def fit(
        self, batch: GraphBatch, labels: NDArray | None = None, task: Task | None = None
    ) -> Self:
        """Keep a copy of the function; nothing is learnt.

        Parameters
        ----------
        batch, labels, task : ignored

        Returns
        -------
        self

        Warns
        -----
        GuaranteeWarning
            If the function is a method of a scorer that was trained before.
        """
        owner = getattr(self.function, "__self__", None)
        if isinstance(owner, Scorer) and owner.does_learn():
            warn(
                f"the function is a method of a fitted {type(owner).__name__}: the "
                "guarantee needs problems here that it was not trained on. Pass the "
                "scorer itself to have it trained on other problems",
                GuaranteeWarning,
            )
        self.function_ = deepcopy(self.function)
        return self

    def confidence(self, batch: GraphBatch) -> NDArray[np.float64]:
        return np.asarray(self.function_(batch))


@settings
class CrossScorer(Scorer):
    """How many calibration problems have a score that a claim does not stay below.

    Made by filters with ``calibration_size="cross"``. The scorer of fold k has not seen
    the problems of fold k; with R of that scorer, the risk of a claim is the number of
    those whose score is at most R, summed over the folds.

    Parameters
    ----------
    scorers : list of fitted Scorer
        One per fold.
    scores : list of ndarray
        Sorted nonconformity scores of the problems of each fold.
    features : list of fitted transformers, optional
        One per fold, where columns learn; each scorer then sees those of its own fold.
    edges : {"given", "none"}, default="given"
        Whether edges are dropped once such columns are computed.

    References
    ----------
    R. Foygel Barber, E. Candès, A. Ramdas, R. Tibshirani. Predictive inference with the
    jackknife+. Annals of Statistics 2021.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.scorers import ClassifierScorer
    >>> graphs, y = make_reasoning_graphs(100, random_state=0, return_X_y=True)
    >>> cf = HardCF(ClassifierScorer(), calibration_size="cross", random_state=0)
    >>> cf = cf.fit(graphs, y)
    >>> cf.n_calibration_, len(cf.scorer_.scorers)
    (100, 10)
    """

    learns = False
    resolution = 0.0  # counts are whole numbers

    scorers: list
    scores: list
    features: list | None = None
    edges: Literal["given", "none"] = "given"

    def fit(self, batch, labels, task):
        """Refused: the filter fits one scorer per fold.

        Parameters
        ----------
        batch, labels, task
            As in `Scorer.fit`.

        Raises
        ------
        ValueError
            Always.
        """
        raise ValueError(
            'a CrossScorer is made by a filter: pass calibration_size="cross" with the '
            "scorer that is to be fitted in each fold"
        )

    def columns_read(self) -> tuple[str, ...] | None:
        """Names of the columns that any of the scorers reads; None where that is all.

        Returns
        -------
        tuple of str or None
        """
        read = [scorer.columns_read() for scorer in self.scorers]
        if any(names is None for names in read):
            return None
        return tuple(dict.fromkeys(name for names in read for name in names))

    def saw(self, batch: GraphBatch) -> NDArray[np.bool_]:
        """Which problems some of the scorers knew before, as in `Scorer.saw`.

        Parameters
        ----------
        batch : GraphBatch

        Returns
        -------
        ndarray of bool, shape (n_problems,)
        """
        return np.any([scorer.saw(batch) for scorer in self.scorers], axis=0)

    def confidence(self, batch: GraphBatch) -> NDArray[np.float64]:
        """Minus the number of calibration problems; whole numbers.

        Parameters
        ----------
        batch : GraphBatch

        Returns
        -------
        ndarray of shape (n_claims,)
        """
        total = np.zeros(batch.n_claims)
        features = self.features or [None] * len(self.scorers)
        for scorer, scores, columns in zip(
            self.scorers, self.scores, features, strict=True
        ):
            seen = apply_columns(columns, batch)
            seen = seen.without_edges() if self.edges == "none" else seen
            risk = path_risk(-np.asarray(scorer.confidence(seen), float), seen)
            total += np.searchsorted(scores, risk, side="right")
        return -total


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
    kind = _kind_of(scorer)
    if kind is None:
        raise ValueError(
            f"scorer is {scorer!r}, but must be None, one of {list(NAMED)}, a feature's "
            "name or column number, a Scorer, a differentiable model (with "
            "init(n_features, rng) and model(params, X)), a classifier with "
            "decision_function or predict_proba, or a function of a GraphBatch"
            + (": derive it from Scorer" if hasattr(scorer, "confidence") else "")
        )
    return kind(scorer)


def _kind_of(scorer):
    """What makes a scorer of an object, or None where nothing does."""
    if isinstance(scorer, type):
        return None
    if isinstance(scorer, Scorer):
        return clone
    if callable(scorer) and callable(getattr(scorer, "init", None)):
        return ConformalScorer
    if hasattr(scorer, "fit"):
        says = hasattr(scorer, "predict_proba") or hasattr(scorer, "decision_function")
        return ClassifierScorer if says else None
    return FunctionScorer if callable(scorer) else None
