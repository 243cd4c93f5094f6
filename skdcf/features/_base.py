"""Transformers of graphs: the door between scikit-learn's pipelines and GraphBatch.

A transformer takes problems and returns them with other feature columns; texts, edges
and names of the problems pass through. What it adds depends on one problem at a time,
so that `fit` learns nothing and only looks whether the columns can be made.
"""

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..graphs import as_batch


class KeepsGraphs(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):
    """A transformer whose output is a GraphBatch, whatever tables others make."""

    def __init_subclass__(cls, **options):
        options.setdefault("auto_wrap_output_keys", None)
        super().__init_subclass__(**options)

    def set_output(self, *, transform=None):
        """Accepted for the sake of pipelines; the output stays a GraphBatch.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"} or None

        Returns
        -------
        self
        """
        return self


class GraphTransformer(KeepsGraphs):
    """A transformer that adds columns.

    Subclasses say which (`_own_names`) and make them (`_own_columns`). An input column
    of the same name is replaced, so that transforming twice changes nothing.
    """

    def fit(self, X, y=None):
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
            If the problems lack what the columns are made from.
        """
        batch = as_batch(X)
        self._check(batch)
        self.feature_names_in_ = np.array(input_names(batch), dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)
        return self

    def transform(self, X):
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
        check_same_input(self, batch)
        return self._add(batch)

    def get_feature_names_out(self, input_features=None):
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

    def __sklearn_is_fitted__(self):
        return hasattr(self, "feature_names_in_")

    def _check(self, batch):
        """Raise ValueError if `_own_columns` cannot work on the batch."""

    def _add(self, batch):
        self._check(batch)
        return append(batch, self._own_columns(batch), self._own_names())


def input_names(batch):
    """Names of the columns that a batch brings; x0, x1, ... where it names none."""
    if batch.features is None:
        return []
    return list(batch.feature_names or (f"x{i}" for i in range(batch.n_features)))


def check_same_input(transformer, batch):
    """Raise ValueError if the columns are not those seen in fit."""
    names, seen = input_names(batch), list(transformer.feature_names_in_)
    if names != seen:
        name = type(transformer).__name__
        raise ValueError(f"{name} was fitted with the columns {seen}, not {names}")


def append(batch, columns, names):
    """The batch with further columns; those of the same name are replaced."""
    names, before = list(names), input_names(batch)
    kept = [i for i, name in enumerate(before) if name not in names]
    if kept:
        columns = np.hstack([batch.features[:, kept], columns])
    return batch.replace_features(columns, [before[i] for i in kept] + names)
