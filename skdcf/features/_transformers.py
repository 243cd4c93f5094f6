"""Base classes of graph transformers, which can be steps of a scikit-learn pipeline.

A graph transformer changes the feature columns of the problems, but not their texts, edges or
names. The new columns of a problem usually depend on that problem only, so `fit` only checks that
the columns can be computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import TransformerMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from .._parameters import Settings, settings
from .._sklearn import Composition
from ..graphs import GraphBatch, ReasoningGraph, as_batch
from ._cleaning import check_claim_texts

# Maximum number of claims that are processed together. If few claims are, a text parsed by one
# transformer of a union is still cached when the next transformer needs it.
_BLOCK = 4096

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
    per_problem : bool
        Whether the columns of a problem are independent of the other problems.
    looks_ahead : frozenset of str
        Names of the columns whose values depend on later claims.
    """

    requires_fit: bool | None = None
    reads_edges: bool = True
    per_problem: ClassVar[bool] = True
    looks_ahead: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls, **options: Any) -> None:
        options.setdefault("auto_wrap_output_keys", None)
        super().__init_subclass__(**options)

    def does_learn(self) -> bool:
        """Return whether the transformer needs fitting.

        Returns
        -------
        does_learn : bool
            The value of ``requires_fit``. If ``requires_fit`` is None, the result is True if the
            class overrides `fit`.
        """
        has_own_fit = type(self).fit is not GraphTransformer.fit
        return has_own_fit if self.requires_fit is None else self.requires_fit

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
        if self.does_learn():
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
        self._check(batch)
        self.feature_names_in_ = np.array(list_columns(batch), dtype=object)
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
        names = list_columns(batch)
        names_of_fit = list(self.feature_names_in_)
        if names != names_of_fit:
            name = type(self).__name__
            raise ValueError(
                f"{name} must have the same columns as in fit, {names_of_fit}, got {names}"
            )
        return self._add(batch)

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
        return np.array(self._join_names(list(input_names)), dtype=object)

    def _join_names(self, given: list[str]) -> list[str]:
        """Return all output column names, given the input column names."""
        own_names = list(self.own_names())
        return [name for name in given if name not in own_names] + own_names

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.requires_fit = self.does_learn()
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

    def _check(self, batch: GraphBatch) -> None:
        """Raise ValueError if `own_columns` cannot be computed for the batch."""

    def _add(self, batch: GraphBatch) -> GraphBatch:
        self._check(batch)
        columns_before = list_columns(batch)
        columns = self._in_blocks(batch)
        names = self._join_names(columns_before)
        names_kept = names[: len(names) - columns.shape[1]]
        if batch.features is not None and names_kept:
            kept = [columns_before.index(name) for name in names_kept]
            columns = np.hstack([batch.features[:, kept], columns])
        return batch.replace_features(columns, names)

    def _in_blocks(self, batch: GraphBatch) -> np.ndarray:
        """Compute the columns, block by block if problems are independent of each other."""
        if not self.own_names():
            return np.empty((batch.n_claims, 0))
        block = batch.offsets[:-1] // _BLOCK
        cuts = np.flatnonzero(np.diff(block)) + 1
        if not len(cuts) or not self.per_problem:
            return self._checked_columns(batch)
        bounds = pairwise([0, *cuts.tolist(), len(batch)])
        return np.concatenate([self._checked_columns(batch[a:b]) for a, b in bounds])

    def _checked_columns(self, batch: GraphBatch) -> np.ndarray:
        """Compute the columns, and raise ValueError if their shape is wrong."""
        columns = self.own_columns(batch)
        shape = batch.n_claims, len(self.own_names())
        if np.shape(columns) != shape:
            raise ValueError(
                f"{type(self).__name__}.own_columns must return an array of shape {shape}, "
                "with one row per claim and one column per name, got the shape "
                f"{np.shape(columns)}"
            )
        return columns


@settings
class OptionalColumns(GraphTransformer):
    """Base class for features of optional texts, such as the context or the alternatives.

    A subclass defines ``columns``, and ``field``, which is the name of the attribute that
    contains the texts.
    """

    requires_fit = False
    columns: ClassVar[tuple[str, ...]]
    field: ClassVar[str] = ""
    _parameter_constraints = {"optional": ["boolean"]}

    _: KW_ONLY
    optional: bool = False

    def fit(self, X: Graphs, y: Any = None) -> Self:
        batch = as_batch(X)
        self.used_ = not self.optional or self._is_there(batch)
        return super().fit(batch)

    def _is_there(self, batch: GraphBatch) -> bool:
        """Return whether a problem has the texts that the columns require."""
        return getattr(batch, self.field) is not None

    def own_names(self) -> tuple[str, ...]:
        return self.columns if self.used_ else ()

    def _check(self, batch: GraphBatch) -> None:
        if self.used_:
            check_claim_texts(batch)
            if self.field:
                check_known(batch, self.field)


def check_known(batch: GraphBatch, field: str) -> None:
    """Raise ValueError if the given field of a problem is unknown (None)."""
    values = getattr(batch, field)
    for i, texts in enumerate([None] * len(batch) if values is None else values):
        if texts is None:
            is_unknown = "are unknown" if field[-1] == "s" else "is unknown"
            raise ValueError(
                f"the {field} of {batch.name_of(i)} {is_unknown}, but the columns depend "
                "on it. A filter that was calibrated with it needs it for the guarantee. "
                f"Pass {field}=[...] with texts obtained in the same way as for the "
                f"calibration problems, or {field}=() if there are none"
            )


def list_columns(batch: GraphBatch) -> list[str]:
    """Return the column names of a batch, or x0, x1, ... if the columns have no names."""
    if batch.features is None:
        return []
    n_features = batch.features.shape[1]
    return list(batch.feature_names or (f"x{i}" for i in range(n_features)))


@settings
class GraphUnion(GraphTransformer, Composition):
    """Concatenate the columns of several transformers.

    The ``FeatureUnion`` of scikit-learn concatenates tables and would drop texts and edges.

    Parameters
    ----------
    transformer_list : list of (str, transformer)
        Transformers of this package. Each transformer is applied to the original input.
    keep_input : bool, default=True
        Whether to keep the input columns, which precede the new columns. A new column replaces an
        input column with the same name.

    Attributes
    ----------
    transformers_ : list
        Fitted copies of the transformers.

    Raises
    ------
    ValueError
        If two transformers add a column with the same name.

    Examples
    --------
    >>> from skdcf import GraphBatch
    >>> from skdcf.features import GraphFeatures, GraphUnion
    >>> batch = GraphBatch.from_arrays([[5.0], [0.0]], [0, 2], [(0, 1)])
    >>> sides = [("in", GraphFeatures(["nx_in_degree"])),
    ...          ("out", GraphFeatures(["nx_out_degree"]))]
    >>> union = GraphUnion(sides, keep_input=False).fit(batch)
    >>> union.get_feature_names_out().tolist()
    ['nx_in_degree', 'nx_out_degree']
    >>> union.transform(batch).features
    array([[0., 1.],
           [1., 0.]])
    """

    _parameter_constraints = {
        "transformer_list": [list, tuple],
        "keep_input": ["boolean"],
    }

    transformer_list: Sequence[tuple[str, GraphTransformer]]
    _: KW_ONLY
    keep_input: bool = True

    @property
    def per_problem(self) -> bool:  # type: ignore[override]
        """Return whether the columns of all members are independent of other problems."""
        return all(member.per_problem for member in self._members)

    @property
    def looks_ahead(self) -> frozenset[str]:  # type: ignore[override]
        """Return the names of all members' columns that depend on later claims."""
        return frozenset().union(*[member.looks_ahead for member in self._members])

    @property
    def reads_edges(self) -> bool:  # type: ignore[override]
        """Return whether the columns of any member depend on the edges."""
        return any(member.reads_edges for member in self._members)

    @property
    def _members(self):
        return [member for _, member in self.transformer_list]

    def does_learn(self) -> bool:
        return any(member.does_learn() for member in self._members)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, including those of the members as ``name__parameter``.

        Parameters
        ----------
        deep : bool, default=True
            Whether to include the parameters of the members.

        Returns
        -------
        params : dict
            Parameter values, keyed by name.
        """
        return self._get_params("transformer_list", deep=deep)

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, or replace a member with ``name=transformer``.

        Parameters
        ----------
        **params
            New values, keyed by the names that `get_params` returns.

        Returns
        -------
        self : object
            The transformer itself.
        """
        self._set_params("transformer_list", **params)
        return self

    def fit(self, X: Graphs, y: Any = None) -> Self:
        """Fit a copy of every member.

        Parameters
        ----------
        X : GraphBatch or sequence of ReasoningGraph
            The problems.
        y : labels, optional
            Claim labels, which are passed to the members.

        Returns
        -------
        self : object
            The fitted transformer.

        Raises
        ------
        ValueError
            If there are no members, or if two members add a column with the same name.
        """
        batch = as_batch(X)
        self.validate()
        self.transformers_ = [clone(member).fit(batch, y) for member in self._members]
        owner: dict[str, str] = {}
        for k, member in enumerate(self.transformers_):
            name = self.transformer_list[k][0]
            for column in member.own_names():
                if column in owner:
                    raise ValueError(
                        f"{owner[column]!r} and {name!r} cannot both have the column {column!r}. "
                        "Rename one of the two columns"
                    )
                owner[column] = name
        return super().fit(batch)

    def validate(self) -> None:
        """Raise ValueError if there are no members or if their names are not unique.

        Raises
        ------
        ValueError
            If an entry of ``transformer_list`` is invalid.
        """
        super().validate()
        for pair in self.transformer_list:
            named = isinstance(pair, (tuple, list)) and len(pair) == 2
            if not (named and isinstance(pair[1], GraphTransformer)):
                raise ValueError(
                    "transformer_list must contain (name, transformer) pairs with transformers "
                    f"from skdcf.features, got {pair!r}. Add other transformers after the union, "
                    "for example make_pipeline(GraphUnion(...), PCA(3))"
                )
        if not self.transformer_list:
            raise ValueError(
                "transformer_list must contain at least one (name, transformer) pair, but it "
                "is empty"
            )
        self._validate_names([name for name, _ in self.transformer_list])

    def _join_names(self, given: list[str]) -> list[str]:
        return super()._join_names(given if self.keep_input else [])

    def own_names(self) -> list[str]:
        return [name for m in self.transformers_ for name in m.own_names()]

    def _check(self, batch: GraphBatch) -> None:
        for member in self.transformers_:
            member._check(batch)

    def own_columns(self, batch: GraphBatch) -> np.ndarray:
        used = [member for member in self.transformers_ if member.own_names()]
        return np.hstack([member.own_columns(batch) for member in used])
