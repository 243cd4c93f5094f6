"""Transformers of graphs: the door between scikit-learn's pipelines and GraphBatch.

A transformer takes problems and returns them with other feature columns; texts, edges
and names of the problems pass through. What it adds depends on one problem at a time,
so that `fit` learns nothing and only looks whether the columns can be made.
"""

import sys
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import TransformerMixin
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from .._checks import check_choice
from .._parameters import Settings
from ..graphs import GraphBatch, ReasoningGraph, as_batch

SMALLEST_PART = 50  # problems; below, sending them costs more than it saves
Graphs = GraphBatch | Sequence[ReasoningGraph]


class KeepsGraphs(TransformerMixin, Settings, auto_wrap_output_keys=None):
    """A transformer whose output is a GraphBatch, whatever tables others make."""

    def __init_subclass__(cls, **options: Any) -> None:
        options.setdefault("auto_wrap_output_keys", None)
        super().__init_subclass__(**options)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Refuse tables: the output is a GraphBatch.

        A pipeline that is asked for tables asks all of its steps. That call is let
        through, and this step returns a GraphBatch all the same, as it does under
        ``sklearn.set_config(transform_output="pandas")``.

        Parameters
        ----------
        transform : "default" or None

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If ``transform`` is "pandas" or "polars".
        """
        check_choice("transform", transform, (None, "default", "pandas", "polars"))
        caller = sys._getframe(1).f_globals.get("__name__")
        if transform in ("pandas", "polars") and caller != "sklearn.utils._set_output":
            raise ValueError(
                f"{type(self).__name__} cannot make a table of {transform}: its output is "
                "a GraphBatch, whose edges no table holds. "
                "skdcf.adapters.to_frame(graphs) makes a table with one row per claim"
            )
        return self


class GraphTransformer(KeepsGraphs):
    """A transformer that adds columns.

    Subclasses say which (`_own_names`) and make them (`_own_columns`). An input column
    of the same name is replaced, so that transforming twice changes nothing.
    """

    def fit(self, X: Graphs, y: Any = None) -> Self:
        """Look whether the columns can be made; nothing is learned.

        Parameters
        ----------
        X : GraphBatch or sequence of ReasoningGraph
        y : ignored

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter has a wrong value, or the problems lack what the columns are
            made from.
        """
        self.validate()
        batch = as_batch(X)
        self._check(batch)
        self.feature_names_in_ = np.array(list_columns(batch), dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)
        return self

    def transform(self, X: Graphs) -> GraphBatch:
        """Add the columns.

        Parameters
        ----------
        X : GraphBatch or sequence of ReasoningGraph

        Returns
        -------
        GraphBatch
            The same problems; the columns of X that are not replaced come first.
        """
        check_is_fitted(self)
        batch = as_batch(X)
        check_same_columns(self, batch)
        return self._add(batch)

    def get_feature_names_out(
        self, input_features: Sequence[str] | None = None
    ) -> np.ndarray:
        """Names of the columns of the transformed problems.

        Parameters
        ----------
        input_features : sequence of str, optional
            Names of the input columns; those seen in `fit` by default.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        given = self.feature_names_in_ if input_features is None else input_features
        own = list(self._own_names())
        kept = [name for name in given if name not in own]
        return np.array(kept + own, dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "feature_names_in_")

    def _own_names(self) -> Sequence[str]:
        """Names of the columns that are added."""
        raise NotImplementedError

    def _own_columns(self, batch: GraphBatch) -> np.ndarray:
        """The columns that are added, shape (n_claims, n_names)."""
        raise NotImplementedError

    def _check(self, batch: GraphBatch) -> None:
        """Raise ValueError if `_own_columns` cannot work on the batch."""

    def _add(self, batch: GraphBatch) -> GraphBatch:
        self._check(batch)
        return append_columns(batch, self._mapped_columns(batch), self._own_names())

    def _mapped_columns(self, batch: GraphBatch) -> np.ndarray:
        """The columns, made in parts where ``joblib.parallel_config`` asks for more jobs.

        A column looks at one problem at a time, so the parts make no difference.
        """
        n_parts = min(4 * effective_n_jobs(None), len(batch) // SMALLEST_PART)
        if n_parts < 2 or effective_n_jobs(None) == 1:
            return self._own_columns(batch)
        cuts = np.array_split(np.arange(len(batch)), n_parts)
        parts = (delayed(self._own_columns)(batch[rows]) for rows in cuts)
        return np.concatenate(Parallel()(parts))


def list_columns(batch: GraphBatch) -> list[str]:
    """Names of the columns that a batch brings; x0, x1, ... where it names none."""
    if batch.features is None:
        return []
    return list(batch.feature_names or (f"x{i}" for i in range(batch.n_features)))


def check_same_columns(transformer: KeepsGraphs, batch: GraphBatch) -> None:
    """Raise ValueError if the columns are not those seen in fit."""
    names, seen = list_columns(batch), list(transformer.feature_names_in_)
    if names != seen:
        name = type(transformer).__name__
        raise ValueError(f"{name} was fitted with the columns {seen}, not {names}")


def append_columns(
    batch: GraphBatch, columns: np.ndarray, names: Sequence[str]
) -> GraphBatch:
    """The batch with further columns; those of the same name are replaced."""
    names, before = list(names), list_columns(batch)
    kept = [i for i, name in enumerate(before) if name not in names]
    if kept:
        columns = np.hstack([batch.features[:, kept], columns])
    return batch.replace_features(columns, [before[i] for i in kept] + names)
