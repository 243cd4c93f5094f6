"""Pipelines that end in a filter, with the methods of a filter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn import get_config
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils import metadata_routing
from sklearn.utils.validation import check_is_fitted

from ._parameters import Documented
from .inspection import explain
from .metrics import unwrap

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from .graphs import Labels, Problems, ReasoningGraph

__all__ = ["FilterPipeline", "make_filter_pipeline"]


class FilterPipeline(Documented, Pipeline):
    """A `~sklearn.pipeline.Pipeline` that ends in a filter, and can do what filters can.

    A pipeline of scikit-learn hands on `fit`, `predict`, `decision_function` and `score`
    alone. This one also filters, explains and calibrates, and its `fit` takes ``groups``.
    For a pipeline or a search that is there already, ``FilterPipeline.of(fitted)`` gives it
    the same methods.

    Parameters
    ----------
    steps : list of (str, estimator)
        The last one is a filter.
    transform_input : list of str, optional
    memory : str or joblib.Memory, optional
    verbose : bool, default=False
        As in `~sklearn.pipeline.Pipeline`.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_word_problems
    >>> from skdcf.features import reasoning_features
    >>> from skdcf.pipeline import make_filter_pipeline
    >>> X, y = make_word_problems(200, random_state=0, return_X_y=True)
    >>> pipe = make_filter_pipeline(
    ...     reasoning_features(), HardCF("neyman-pearson", alpha=0.2, random_state=0)
    ... ).fit(X[:150], y[:150])
    >>> answers = pipe.filter(X[150:], output="text")
    >>> len(answers)
    50
    >>> pipe.explain(X[150]).kept.tolist() == pipe.predict(X[150:])[0].tolist()
    True
    """

    # scikit-learn asks the steps, not the pipeline, who wants groups.
    __metadata_request__fit = {"groups": metadata_routing.UNUSED}

    def fit(
        self,
        X: Problems,
        y: Labels | None = None,
        groups: ArrayLike | None = None,
        **params: Any,
    ) -> Self:
        """Fit all steps; the groups go to the filter.

        Parameters
        ----------
        X, y, groups
            As in `fit` of the filter.
        **params
            For steps, as in `~sklearn.pipeline.Pipeline`.

        Returns
        -------
        self
        """
        if groups is not None:
            routed = get_config()["enable_metadata_routing"]
            params["groups" if routed else f"{self.steps[-1][0]}__groups"] = groups
        return super().fit(X, y, **params)

    @classmethod
    def of(cls, fitted: Any) -> FilterPipeline:
        """A fitted pipeline, or the best one of a fitted search, with these methods.

        Parameters
        ----------
        fitted : fitted Pipeline, or search around one
            Nothing is fitted again, and nothing of it is changed.

        Returns
        -------
        FilterPipeline

        Raises
        ------
        ValueError
            If it is no pipeline that ends in a filter.
        """
        while hasattr(fitted, "best_estimator_"):
            fitted = fitted.best_estimator_
        steps = getattr(fitted, "steps", [("filter", fitted)])
        if not hasattr(steps[-1][1], "predict_alpha"):
            raise ValueError(f"{fitted!r} does not end in a filter")
        return cls(list(steps))

    def _at_the_end(self, X):
        """The filter, and X as it sees it."""
        check_is_fitted(self)
        if len(self.steps) == 1:
            return self.steps[0][1], X
        return unwrap(self, X)

    def predict_alpha(self, X: Problems) -> NDArray:
        """The smallest alpha at which each claim is kept.

        Parameters
        ----------
        X : problems, as in `fit`

        Returns
        -------
        As of the filter.
        """
        filter, seen = self._at_the_end(X)
        return filter.predict_alpha(seen)

    def path_risk(self, X: Problems) -> NDArray:
        """The largest risk among each claim and its ancestors.

        Parameters
        ----------
        X : problems, as in `fit`

        Returns
        -------
        As of the filter.
        """
        filter, seen = self._at_the_end(X)
        return filter.path_risk(seen)

    def filter(
        self, X: Problems, alpha: float | None = None, *, output: Any = "graphs"
    ) -> Any:
        """The problems with their kept claims only.

        Parameters
        ----------
        X : problems, as in `fit`
        alpha : float in (0, 1), optional
            None is the filter's own.
        output : {"graphs", "text"}, default="graphs"

        Returns
        -------
        list of ReasoningGraph, or list of str
        """
        filter, seen = self._at_the_end(X)
        return filter.filter(seen, alpha, output=output)

    def explain(
        self,
        X: ReasoningGraph | Problems,
        y: Labels | None = None,
        *,
        alpha: float | None = None,
    ) -> Any:
        """Why each claim was kept or dropped: `skdcf.inspection.explain`.

        Parameters
        ----------
        X : ReasoningGraph, or problems as in `fit`
        y : labels of X, optional
        alpha : float in (0, 1), optional

        Returns
        -------
        Explanation, or list of Explanation
        """
        check_is_fitted(self)
        target = self.steps[0][1] if len(self.steps) == 1 else self
        return explain(target, X, y, alpha=alpha)

    def calibrate(self, X: Problems, y: Labels) -> Self:
        """Calibrate the filter again, on problems that nothing here was fitted to.

        Parameters
        ----------
        X, y
            As in `fit`.

        Returns
        -------
        self
        """
        filter, seen = self._at_the_end(X)
        filter.calibrate(seen, y)
        return self

    def threshold(self, alpha: float | None = None) -> float | NDArray[np.float64]:
        """The conformal threshold of the filter.

        Parameters
        ----------
        alpha : float in (0, 1), optional

        Returns
        -------
        As of the filter.
        """
        return self.steps[-1][1].threshold(alpha)


def make_filter_pipeline(*steps: Any, memory: Any = None) -> FilterPipeline:
    """A `FilterPipeline` whose steps are named after their classes.

    Parameters
    ----------
    *steps : estimators
        The last one is a filter.
    memory : str or joblib.Memory, optional

    Returns
    -------
    FilterPipeline
    """
    return FilterPipeline(make_pipeline(*steps).steps, memory=memory)
