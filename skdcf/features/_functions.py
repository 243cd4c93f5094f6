"""Columns that a function of the caller computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
from joblib import hash as digest
from numpy.typing import ArrayLike

from .._parameters import settings
from ..graphs import GraphBatch, ReasoningGraph
from ._transformers import GraphTransformer


@settings
class FunctionColumns(GraphTransformer):
    """Columns that a function computes, such as the scores of a model or of a server.

    Parameters
    ----------
    function : callable
        Function ``function(graph)`` that returns an array of shape (n_claims, len(names)) for a
        `skdcf.ReasoningGraph`. The function must not learn from the problems, and its result must
        depend only on the graph.
    names : sequence of str
        Column names.

    Raises
    ------
    ValueError
        If the function returns an array of another shape, or a number that is not finite. The
        message names the problem and the claim.

    Notes
    -----
    Results are cached in memory by content, and copies made by scikit-learn's ``clone`` share the
    cache, so the function is called once for each different problem, even if a later call fails.
    The cache is not saved with the transformer.

    The function may read all claims of an answer, so its columns count as looking ahead.

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.features import FunctionColumns
    >>> def reward(graph):  # stands in for a model
    ...     return [[len(claim) / 10] for claim in graph.claims]
    >>> graph = ReasoningGraph(None, claims=["6 / 2 = 3"], problem="Half of 6?")
    >>> FunctionColumns(reward, ["reward"]).fit_transform([graph]).features
    array([[0.9]])
    """

    _parameter_constraints = {"function": [callable], "names": ["array-like"]}

    function: Callable[[ReasoningGraph], ArrayLike]
    names: Sequence[str]

    def __sklearn_clone__(self) -> Self:
        copy = type(self)(**self.get_params(deep=False))
        copy._results = self._results
        return copy

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in super().__getstate__().items() if k != "_results"}

    @cached_property
    def _results(self):
        return {}

    def own_names(self) -> tuple[str, ...]:
        return tuple(self.names)

    def own_columns(self, batch: GraphBatch) -> np.ndarray:
        results = self._results
        rows = [np.empty((0, len(self.names)))]
        for i, graph in enumerate(batch):
            key = self.function, digest(graph.to_dict())
            if key not in results:
                results[key] = self._measure(graph, batch.name_of(i))
            rows.append(results[key])
        return np.concatenate(rows)

    def _measure(self, graph, name):
        columns = np.asarray(self.function(graph), dtype=np.float64)
        shape = graph.n_claims, len(self.names)
        if columns.shape != shape:
            raise ValueError(
                f"function(graph) must return an array of shape {shape} for {name}, with one row "
                f"per claim and one column per name, got shape {columns.shape}"
            )
        for v, j in np.argwhere(~np.isfinite(columns)):
            raise ValueError(
                f"function(graph) must return finite numbers, got {columns[v, j]} for claim {v} of "
                f"{name} in column {self.names[j]!r}"
            )
        return columns
