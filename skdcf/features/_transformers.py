"""Base classes of graph transformers, which can be steps of a scikit-learn pipeline.

A graph transformer changes the feature columns of the problems, but not their texts, edges or
names. The new columns of a problem usually depend on that problem only, so `fit` only checks that
the columns can be computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted

from .._checks import ROWS
from .._parameters import Settings, settings
from ..graphs import GraphBatch, ReasoningGraph, as_batch
from ._cleaning import check_claim_texts

Graphs = GraphBatch | Sequence[ReasoningGraph]


class GraphTransformer(TransformerMixin, Settings, auto_wrap_output_keys=None):
    """Base class of all feature transformers. Subclasses add columns to the problems.

    A subclass implements `own_names`, which returns the column names, and `own_columns`, which
    returns the values. A new column replaces an input column with the same name, so a second
    transformation has no effect.

    Attributes
    ----------
    requires_fit : bool or None
        Whether the transformer needs fitting. If None, the transformer needs fitting only if its
        class overrides `fit`. The value applies to the `fit` method of the class that sets
        ``requires_fit``, not to the `fit` method of a subclass.
    reads_edges : bool
        Whether the columns depend on the edges of a problem. If True, the edges of new
        problems must be known if and only if they were known in calibration.
    """

    requires_fit: bool | None = None
    reads_edges: bool = True

    def __init_subclass__(cls, **options: Any) -> None:
        options.setdefault("auto_wrap_output_keys", None)
        super().__init_subclass__(**options)

    def fit_transform(self, X: Graphs, y: Any = None) -> GraphBatch:
        """Fit the transformer and transform the same problems, as a step of a Pipeline.

        Parameters
        ----------
        X : GraphBatch or sequence of ReasoningGraph
            The problems.
        y : object, optional
            Ignored.

        Returns
        -------
        X_new : GraphBatch
            The problems with the new columns.

        Raises
        ------
        ValueError
            If the transformer needs fitting, because a Pipeline around a filter would fit it to the
            calibration problems.
        """
        if get_tags(self).requires_fit:
            raise ValueError(
                f"{self!r} must not be fitted in a Pipeline, because it would be fitted on "
                "the calibration problems and void the guarantee. Pass this transformer to "
                "the filter as features=, so that it is fitted only on training problems"
            )
        return self.fit(X, y).transform(X)

    def fit(self, X: Graphs, y: Any = None) -> Self:
        """Check that the columns can be computed, without fitting anything.

        Parameters
        ----------
        X : GraphBatch or sequence of ReasoningGraph
            The problems.
        y : object, optional
            Ignored.

        Returns
        -------
        self : object
            The fitted transformer.

        Raises
        ------
        ValueError
            If a parameter is invalid, or if the problems lack data that the columns require.
        """
        self.validate()
        batch = as_batch(X)
        self._prepare(batch)
        self._check(batch)
        self.feature_names_in_ = np.array(batch.column_names, dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)
        return self

    def transform(self, X: Graphs) -> GraphBatch:
        """Add the columns.

        Parameters
        ----------
        X : GraphBatch or sequence of ReasoningGraph
            The problems.

        Returns
        -------
        X_new : GraphBatch
            The same problems. The columns of X that are not replaced precede the new columns.
        """
        check_is_fitted(self)
        batch = as_batch(X)
        names = batch.column_names
        names_of_fit = list(self.feature_names_in_)
        name = type(self).__name__
        if names != names_of_fit:
            raise ValueError(
                f"{name} must have the same columns as in fit, {names_of_fit}, got {names}"
            )
        if not self.own_names():
            return batch
        self._check(batch)
        columns = self.own_columns(batch)
        shape = batch.n_claims, len(self.own_names())
        if np.shape(columns) != shape:
            raise ValueError(
                f"{name}.own_columns must return an array of shape {shape}, "
                "with one row per claim and one column per name, got the shape "
                f"{np.shape(columns)}"
            )
        new_names = self.get_feature_names_out()
        kept = [names.index(name) for name in new_names[: -shape[1]]]
        if batch.features is not None:
            columns = np.hstack([batch.features[:, kept], columns])
        return batch.replace_features(columns, new_names)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the column names of the transformed problems.

        Parameters
        ----------
        input_features : sequence of str, optional
            Input column names. By default, the columns seen during `fit` are used.

        Returns
        -------
        feature_names_out : ndarray of str
            Names of the input columns that are kept, followed by the new column names.
        """
        check_is_fitted(self)
        input_names = (
            self.feature_names_in_ if input_features is None else input_features
        )
        own_names = list(self.own_names())
        kept = [name for name in input_names if name not in own_names]
        return np.array(kept + own_names, dtype=object)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.requires_fit = self.requires_fit
        if self.requires_fit is None:
            tags.requires_fit = type(self).fit is not GraphTransformer.fit
        tags.input_tags.two_d_array = False  # X contains graphs.
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "feature_names_in_")

    def own_names(self) -> Sequence[str]:
        """Return the names of the columns that are added.

        Returns
        -------
        names : sequence of str
            One name per column.
        """
        raise NotImplementedError

    def own_columns(self, batch: GraphBatch) -> np.ndarray:
        """Compute the additional columns.

        Parameters
        ----------
        batch : GraphBatch
            The problems. The columns of a problem must be independent of the other problems.

        Returns
        -------
        columns : ndarray of shape (n_claims, n_names)
            One row per claim.
        """
        raise NotImplementedError

    def _prepare(self, batch):
        """Choose the columns for the batch that is passed to `fit`."""

    def _check(self, batch):
        """Raise ValueError if `own_columns` cannot be computed for the batch."""


@settings
class OptionalColumns(GraphTransformer):
    """Base class for features of optional texts, such as the context or the alternatives.

    A subclass defines ``columns``, and ``field``, which is the name of the attribute that
    contains the texts.
    """

    columns: ClassVar[tuple[str, ...]]
    field: ClassVar[str] = ""
    _parameter_constraints = {"optional": ["boolean"]}

    _: KW_ONLY
    optional: bool = False

    def _prepare(self, batch):
        self.used_ = not self.optional or self._is_there(batch)

    def _is_there(self, batch):
        """Return whether a problem has the texts that the columns require."""
        return getattr(batch, self.field) is not None

    def own_names(self) -> tuple[str, ...]:
        return self.columns if self.used_ else ()

    def _check(self, batch):
        if self.used_:
            check_claim_texts(batch)
            if self.field:
                check_known(batch, self.field)


def check_known(batch, field):
    """Raise ValueError if the given field of a problem is unknown (None)."""
    values = getattr(batch, field)
    for i in range(len(batch)):
        if values is None or values[i] is None:
            raise ValueError(
                f"{ROWS[field]!r} of {batch.name_of(i)} must not be None, because the columns "
                "depend on it. Pass texts obtained in the same way as for the calibration "
                "problems, or an empty value if there are none"
            )
