"""Problems: claims with their dependencies, packed in flat arrays.

A `GraphBatch` holds many problems, and a `ReasoningGraph` is one problem, which is checked as a
batch of one. The arrays are checked when a batch is made, and never change.

Values are passed from parents to children in one sweep over the edges, layer by layer. A batch of
small problems has a few wide layers, which numpy processes in a single call each. A long chain
has many narrow layers, whose edges are processed one by one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from itertools import chain, compress, repeat
from operator import add, or_
from textwrap import shorten
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._arrays import (
    find_bits,
    in_blocks,
    offsets_of,
    optional_rows,
    ranges,
    read_only,
    segment_ids,
    slices,
    starts_run,
)
from ._checks import (
    ROWS,
    Floats,
    check_column,
    check_list,
    check_names,
    check_table,
    check_value,
    column_names,
    is_integer,
    listed,
    printable,
    show,
    warn,
)
from ._html import batch_html, graph_html
from .exceptions import ParameterWarning

#: Values of claims or problems, in which None means that the value is unknown.
Values: TypeAlias = Iterable[Any] | None
_Objects: TypeAlias = NDArray[np.object_] | None


def pass_on(ufunc, values, batch):
    """Combine the value of each claim with the values of its ancestors in a single pass.

    The running time is O(claims + edges) for all graphs together. ``ufunc`` is numpy's maximum,
    minimum, bitwise_or or add, which counts an ancestor once for each path to the claim. Values
    may be complex for maximum and minimum, which compare their real parts first.

    Examples
    --------
    >>> import numpy as np
    >>> from skdcf import GraphBatch
    >>> from skdcf.graphs import pass_on
    >>> from skdcf.ops.ancestors import sum_ancestors
    >>> diamond = [(0, 1), (0, 2), (1, 3), (2, 3)]
    >>> batch = GraphBatch.from_arrays(np.zeros((4, 1)), [0, 4], diamond)
    >>> pass_on(np.maximum, np.array([5, 7, 1, 2]), batch)
    array([5, 7, 5, 7])
    >>> sum_ancestors(np.array([5, 7, 1, 2]), batch)
    array([ 5, 12,  6, 15])
    """
    out = values = np.array(values)
    for parents, children, starts in batch.sweep:
        if starts is None:
            # The Python function that does the same to two numbers is faster.
            joins = {np.maximum: max, np.minimum: min, np.bitwise_or: or_, np.add: add}
            join: Any = ufunc if out.ndim > 1 else joins[ufunc]
            if out.dtype == complex:
                # Python compares pairs, but not complex numbers.
                out = out.view("f8, f8")
            cells = out.tolist() if out.ndim == 1 else [*out]
            for parent, child in zip(parents, children, strict=True):
                cells[child] = join(cells[child], cells[parent])
            return np.array(cells, out.dtype).view(values.dtype)
        inherited = ufunc.reduceat(out[parents], starts)
        out[children] = ufunc(out[children], inherited)
    return out


def sort_edges(edges, n_claims):
    """Return the distinct edges, sorted by (child, parent)."""
    key = edges[:, 1] * n_claims + edges[:, 0]
    if (key[1:] > key[:-1]).all():
        return edges
    key.sort(kind="stable")  # np.unique is much slower.
    key = key[starts_run(key)]
    child = key // n_claims
    return np.stack([key - child * n_claims, child], axis=1)


def find_depth(edges, n_claims):
    """Return the length of the longest path to each claim. The edges are sorted by child.

    Raises
    ------
    graphlib.CycleError
        If there is a cycle. The second argument of the error contains its claims.
    """
    depth = np.zeros(n_claims, np.int32)
    layer = n_before = 0
    # Remove the edges of one layer at a time, while a layer has more than 2 % of the edges.
    while (len(edges) and len(edges) < 0.98 * n_before) or not layer:
        layer += 1
        n_before = len(edges)
        depth[edges[:, 1]] = layer
        # Only parents that are children of remaining edges have reached this layer.
        edges = edges[depth[edges[:, 0]] == layer]
    if not len(edges):
        return depth
    if (edges[:, 0] >= edges[:, 1]).any():
        parents = defaultdict(list)
        for parent, child in edges.tolist():
            parents[child].append(parent)
        place = {c: i for i, c in enumerate(TopologicalSorter(parents).static_order())}
        edges = edges[np.argsort([place[child] for child in edges[:, 1].tolist()])]
    # Now all edges to a parent precede the edges from it.
    cells = depth.tolist()
    for parent, child in zip(*edges.T.tolist(), strict=True):
        if cells[child] <= cells[parent]:
            cells[child] = cells[parent] + 1
    return np.array(cells, np.int32)


class GraphBatch(Sequence["ReasoningGraph"]):
    """Packed sequence of `ReasoningGraph` objects, stored in flat arrays.

    Create a batch with `from_graphs` or `from_arrays`. ``batch[i]`` is a `ReasoningGraph`.
    ``batch[slice]``, ``batch[index_array]`` and ``batch[boolean_mask]`` return batches. Indexing
    a batch does not require a loop over problems, so scikit-learn can split batches efficiently.

    Attributes
    ----------
    features : ndarray of shape (n_claims, n_features) or None
        Claim features, with one row per claim, concatenated over the problems.
    offsets : ndarray of shape (n_graphs + 1,)
        Rows ``offsets[i]:offsets[i + 1]`` are the claims of problem i.
    edges : ndarray of shape (n_edges, 2)
        Edges (parent, child) as row indices of ``features``, sorted by (child, parent).
    edge_offsets : ndarray of shape (n_graphs + 1,)
        Rows ``edge_offsets[i]:edge_offsets[i + 1]`` are the edges of problem i.
    edges_known : ndarray of bool of shape (n_graphs,)
        Whether the edges of each problem are known. A problem with unknown edges has no rows in
        ``edges``.
    claims, problems, ids : object ndarray or None
        Claim texts, question texts, and problem names.
    alternatives, context, provenance, metadata : object ndarray or None
        Object arrays with one entry per problem. Individual entries may be None. An entry of
        ``alternatives`` is a tuple of alternative answers. An entry of ``context`` is a tuple of
        texts that must support the answer. An entry of ``provenance`` or
        ``metadata`` is a dict.
    feature_names : tuple of str or None
        Feature column names.

    Examples
    --------
    >>> from skdcf import GraphBatch
    >>> batch = GraphBatch.from_arrays([[0.9], [0.8], [0.1]], [0, 2, 3], [(0, 1)])
    >>> batch
    GraphBatch(n_graphs=2, n_claims=3, n_edges=1, n_features=1)
    >>> batch[0]
    ReasoningGraph(n_claims=2, n_edges=1, n_features=1)
    >>> batch[[1, 0, 1]].offsets
    array([0, 1, 3, 4])
    """

    features: Floats | None
    offsets: NDArray[np.int64]
    edges: NDArray[np.int64]
    edge_offsets: NDArray[np.int64]
    edges_known: NDArray[np.bool_]
    claims: _Objects
    problems: _Objects
    alternatives: _Objects
    context: _Objects
    ids: _Objects
    provenance: _Objects
    metadata: _Objects
    feature_names: tuple[str, ...] | None

    #: Columns that filters computed for the problems, keyed by transformer.
    tables = None

    def __init__(self) -> None:
        raise TypeError("call from_graphs or from_arrays instead of GraphBatch()")

    @classmethod
    def _trusted(cls, **fields):
        """Create a batch from fields that have already been checked."""
        batch = object.__new__(cls)
        batch.__dict__.update(fields)
        return batch

    @classmethod
    def from_arrays(
        cls,
        features: ArrayLike | None,
        offsets: ArrayLike,
        edges: ArrayLike | None = None,
        *,
        edges_known: ArrayLike | None = None,
        claims: Values = None,
        problems: Values = None,
        alternatives: Values = None,
        context: Values = None,
        feature_names: Iterable[str] | None = None,
        ids: Values = None,
        provenance: Values = None,
        metadata: Values = None,
    ) -> GraphBatch:
        """Create a batch from flat arrays, without a Python loop over problems.

        Parameters
        ----------
        features : array-like of shape (n_claims, n_features) or None
            Features of the claims. Arrays of dtype float64 are not copied, and must not be changed
            afterwards.
        offsets : array-like of int, shape (n_graphs + 1,)
            Offsets of the problems. The offsets must start at 0, be non-decreasing, and end with
            n_claims.
        edges : array-like of int, shape (n_edges, 2), optional
            Edges (parent, child) as row indices of ``features``. Both claims of an edge must
            belong to the same problem. If None, the edges of all problems are unknown. If
            ``edges`` is empty, all claims are independent.
        edges_known : array-like of bool, shape (n_graphs,), optional
            Whether the edges of each problem are known. Required only if the edges of some but
            not all problems are known.
        claims : sequence of str or None, length n_claims, optional
            Claim texts. Within a problem, either all claim texts must be strings, or all of them
            must be None.
        problems : sequence of str or None, length n_graphs, optional
            Question text of each problem, or None if the question is unknown.
        alternatives, context : sequence, length n_graphs, optional
            One sequence of strings per problem, or None if the texts are unknown.
        feature_names : sequence of str, optional
            Column names. By default, the column names of a pandas, polars or pyarrow table are
            used.
        ids, provenance, metadata : sequence, length n_graphs, optional
            The argument ``ids`` contains problem names, which are used in messages and files. The
            arguments ``provenance`` and ``metadata`` contain dicts.

        Returns
        -------
        batch : GraphBatch
            The packed problems.

        Raises
        ------
        ValueError
            If the input is invalid, as described in `ReasoningGraph`. The error message contains
            the names of the problem and the claim.
        """
        offsets = np.asarray(offsets)
        if offsets.ndim != 1 or len(offsets) < 2 or offsets.dtype.kind not in "iu":
            raise ValueError(
                "offsets must be a 1-D integer array with at least two entries, because a batch "
                f"must not be empty, got {offsets.dtype} of shape {offsets.shape}"
            )
        bounds = offsets.astype(np.int64)
        if bounds[0] != 0 or (bounds[1:] < bounds[:-1]).any():
            raise ValueError("offsets must start at 0 and must never decrease")
        batch = cls._trusted(offsets=read_only(bounds))
        batch._set_rows(
            ids=ids,
            problems=problems,
            alternatives=alternatives,
            context=context,
            provenance=provenance,
            metadata=metadata,
        )
        batch._set_features(features, feature_names)
        batch._set_claims(claims)
        if batch.features is None and batch.claims is None:
            raise ValueError(
                "features and claims cannot both be None. Pass at least one of them"
            )
        batch._set_edges(edges, edges_known)
        return batch

    def _set_rows(self, **rows):
        """Store fields with one value per problem."""
        for name, values in rows.items():
            column = check_column(values, len(self), name)
            setattr(self, name, column)
            if column is None or (name == "problems" and {*map(type, column)} == {str}):
                continue
            for i, value in enumerate(column):
                try:
                    column[i] = check_value(name, value)
                except ValueError as error:
                    raise ValueError(f"{self.name_of(i)}: {error}") from None

    def _set_features(self, features, feature_names):
        table = None
        if features is not None:
            table = check_table(features)
            if table.ndim != 2 or len(table) != self.n_claims:
                raise ValueError(
                    "features must have shape (n_claims, n_features), with n_claims = "
                    f"{self.n_claims}, got {table.shape}"
                )
            is_finite = np.isfinite(table)
            if not is_finite.all():
                row, column = np.argwhere(~is_finite)[0]
                raise ValueError(
                    f"{self.locate(row)}, feature {column} must be finite, got "
                    f"{table[row, column]}. Impute or drop such values first"
                )
            table = read_only(table)
        self.features = table
        self.feature_names = check_names(feature_names, features, self.n_features)

    def _set_claims(self, claims):
        """Store the texts, which either all claims or no claims must have."""
        self.claims = texts = check_column(claims, self.n_claims, "claims")
        is_odd = texts is not None and {*map(type, texts)} != {str}
        for row, text in enumerate(texts if is_odd else ()):
            if not isinstance(text, str):
                raise ValueError(
                    f"{self.locate(row)} must be a str, got {show(text)}. Pack problems with "
                    "and without claim texts separately"
                )

    def _set_edges(self, edges, known):
        """Store the sorted, distinct edges, and for which problems they are known."""
        self.edges = read_only(self._check_edges(() if edges is None else edges))
        self.edge_offsets = read_only(self.edges[:, 1].searchsorted(self.offsets))
        assumed = np.full(self.shape, edges is not None)
        known = assumed if known is None else np.array(known)
        if known.shape != self.shape or known.dtype != bool:
            raise ValueError(
                f"edges_known must contain {len(self)} booleans, one per problem, got "
                f"{known.dtype} of shape {known.shape}"
            )
        has_edges = self.edge_offsets[:-1] < self.edge_offsets[1:]
        for i in (has_edges & ~known).nonzero()[0]:
            raise ValueError(
                f"{self.name_of(i)}: edges must not be passed if its edges_known is False"
            )
        self.edges_known = read_only(known)

    def _check_edges(self, edges):
        """Return the sorted, distinct edges, or raise ValueError if there is a cycle."""
        try:
            pairs = np.asarray(edges if isinstance(edges, np.ndarray) else list(edges))
        except (TypeError, ValueError):  # One of the entries is not a pair.
            pairs = np.zeros(1)
        if pairs.size == 0:
            return np.empty((0, 2), np.int64)
        if pairs.shape[1:] != (2,) or pairs.dtype.kind not in "iu":
            raise ValueError(
                f"edges must be (parent, child) pairs of integers, got {show(edges)}"
            )
        for place in ((pairs < 0) | (pairs >= self.n_claims)).ravel().nonzero()[0]:
            raise ValueError(
                f"edge {tuple(pairs[place // 2].tolist())} is out of range for "
                f"{self.n_claims} claims. Positions start at 0"
            )
        pairs = pairs.astype(np.int64, order="C")  # The caller may change the array.
        # A single problem needs no comparison.
        homes = self.problem_of.take(pairs) if len(self) > 1 else pairs[:0]
        for i in (homes[:, 0] != homes[:, 1]).nonzero()[0]:
            raise ValueError(
                f"edge {tuple(pairs[i].tolist())} must connect two claims of the same "
                f"problem, but it connects the problems {homes[i].tolist()}"
            )
        pairs = sort_edges(pairs, self.n_claims)
        # If all parents precede their children, there is no cycle.
        if (pairs[:, 0] >= pairs[:, 1]).any():
            try:
                self.depth = find_depth(pairs, self.n_claims)
            except CycleError as error:
                cycle = np.array(error.args[1])
                i = self.problem_of[cycle[0]]
                path = shorten(" -> ".join(map(str, cycle[:30] - self.offsets[i])), 80)
                raise ValueError(
                    f"{self.name_of(i)}: the edges contain a self-loop or a cycle: {path}"
                ) from None
        return pairs

    @classmethod
    def from_graphs(cls, graphs: Iterable[ReasoningGraph]) -> GraphBatch:
        """Create a batch from a sequence of graphs.

        Parameters
        ----------
        graphs : sequence of ReasoningGraph
            Graphs that all have the same feature columns. A GraphBatch is returned unchanged.

        Returns
        -------
        batch : GraphBatch
            The packed problems.

        Raises
        ------
        ValueError
            If the sequence is empty, or if the graphs have different feature columns.
        """
        if isinstance(graphs, cls):
            return graphs
        graphs = list(graphs)
        if not graphs:
            raise ValueError("X must contain at least one problem, but it is empty")
        for i, graph in enumerate(graphs):
            if not isinstance(graph, ReasoningGraph):
                raise ValueError(
                    f"problem {i}: expected a ReasoningGraph, got {type(graph).__name__}. Use "
                    "ReasoningGraph.from_dict to convert a dictionary"
                )
        # An answer without claims may have any columns.
        filled = [g for g in graphs if g.n_claims] or graphs[:1]
        first = filled[0]
        kind = _kind_of(first)
        for i, graph in enumerate(graphs):
            if graph.n_claims and _kind_of(graph) != kind:
                test = "(g.claims is None, np.shape(g.features)[1:], g.feature_names)"
                raise ValueError(
                    f"problem {i} ({graph!r}): claim texts and features must be known for all "
                    f"problems or for none, with the same names, got {_kind_of(graph)} and {kind}. "
                    f"These lines separate the problems: alike = [g for g in graphs if {test} == "
                    f"{kind}]; others = [g for g in graphs if {test} != {kind}]"
                )
        offsets = offsets_of([g.n_claims for g in graphs])
        edge_offsets = offsets_of([len(g.edges) for g in graphs])
        edges = np.concatenate([g.edges for g in graphs])
        edges += np.repeat(offsets[:-1], np.diff(edge_offsets))[:, None]
        features = first.features
        if features is not None:
            features = read_only(np.concatenate([g.features for g in filled]))
        claims = None
        if first.claims is not None:
            texts = chain.from_iterable(g.claims or () for g in filled)
            claims = np.fromiter(texts, object, offsets[-1])
        rows = {
            name: check_column([getattr(g, single) for g in graphs], len(graphs), name)
            for name, single in ROWS.items()
        }
        # The graphs have checked their fields.
        return cls._trusted(
            features=features,
            offsets=read_only(offsets),
            edges=read_only(edges),
            edge_offsets=read_only(edge_offsets),
            edges_known=read_only(np.array([g.edges_known for g in graphs])),
            claims=claims,
            feature_names=first.feature_names,
            **rows,
        )

    def _copy(self, **changes):
        """Return a changed copy that keeps what was computed."""
        return self._trusted(**self.__dict__ | changes)

    def replace_features(
        self, features: ArrayLike | None, feature_names: Iterable[str] | None = None
    ) -> GraphBatch:
        """Return the same problems with different features, sharing all other fields.

        Parameters
        ----------
        features : array-like of shape (n_claims, n_features) or None
            The new features. None removes the features.
        feature_names : sequence of str, optional
            Column names. By default, the column names of a pandas, polars or pyarrow table are
            used.

        Returns
        -------
        new_batch : GraphBatch
            The problems with the new features, and with the edges and texts of this batch.
        """
        # Everything else that was computed depends on the edges alone.
        batch = self._copy(tables=None)
        vars(batch).pop("fractional", None)
        batch._set_features(features, feature_names)
        return batch

    def replace_edges(self, edges: ArrayLike) -> GraphBatch:
        """Return the same problems with different edges, which are marked as known.

        Parameters
        ----------
        edges : array-like of int, shape (n_edges, 2)
            Edges as in `from_arrays`.

        Returns
        -------
        new_batch : GraphBatch
            The problems with the new edges, and with the features and texts of this batch.

        Raises
        ------
        ValueError
            If the edges are invalid, as in `from_arrays`.
        """
        batch = self._trusted(**self.__getstate__())
        batch._set_edges(edges, None)
        return batch

    def replace(self, **rows: Iterable[Mapping[str, Any] | None] | None) -> GraphBatch:
        """Return the same problems with other provenance or metadata, sharing all other fields.

        Parameters
        ----------
        **rows : sequence of (dict or None), length n_graphs, or None
            One dict or None per problem for each of the names ``provenance`` and ``metadata``.

        Returns
        -------
        new_batch : GraphBatch
            The problems with the new dicts, and with the features, edges and texts of this batch.
        """
        batch = self._copy(tables=None)
        batch._set_rows(**rows)
        return batch

    def carry_table(self, key: Any, features: Any, feature_names: Any) -> GraphBatch:
        """Return the same problems with cached columns, which are also kept in any slice.

        Parameters
        ----------
        key : bytes
            Identifier of the transformer that computed the columns.
        features : ndarray of shape (n_claims, n_columns)
            The columns to store.
        feature_names : tuple of str or None
            Names of the columns.

        Returns
        -------
        new_batch : GraphBatch
            The problems with the ``features`` of this batch and the cached columns.
        """
        return self._copy(tables=(self.tables or {}) | {key: (features, feature_names)})

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickling, without what was computed."""
        fields = GraphBatch.__annotations__
        return {name: value for name, value in vars(self).items() if name in fields}

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def shape(self) -> tuple[int]:
        """Shape (n_graphs,), which allows scikit-learn to index a batch like an array."""
        return (len(self),)

    @property
    def n_claims(self) -> int:
        """Total number of claims in all problems."""
        return int(self.offsets[-1])

    @property
    def n_features(self) -> int | None:
        """Number of feature columns, or None if there are no features."""
        return None if self.features is None else self.features.shape[1]

    @property
    def column_names(self) -> list[str]:
        """Names of the feature columns, which are x0, x1, ... if they have no names."""
        return [*(self.feature_names or map("x{}".format, range(self.n_features or 0)))]

    @property
    def provenance_rows(self) -> list[dict[str, Any]]:
        """Provenance of each problem, or an empty list if no problem has provenance."""
        return [] if self.provenance is None else [row or {} for row in self.provenance]

    @property
    def metadata_rows(self) -> list[dict[str, Any]]:
        """Metadata of each problem, or an empty list if no problem has metadata."""
        return [] if self.metadata is None else [row or {} for row in self.metadata]

    def name_of(self, i: int | np.integer) -> str:
        """Return the name of a problem for use in messages.

        Parameters
        ----------
        i : int
            Problem index.

        Returns
        -------
        name : str
            The name of the problem, such as ``problem 3 ("q7")``.
        """
        name = optional_rows(self.ids, i)
        return f"problem {i}" + ("" if name is None else f' ("{printable(name)}")')

    def locate(self, row: int | np.integer) -> str:
        """Return the name of a claim for use in messages.

        Parameters
        ----------
        row : int
            Row index of the claim.

        Returns
        -------
        name : str
            The name of the claim, such as ``problem 3 ("q7"), claim 2``.
        """
        i = self.problem_of[row]
        return f"{self.name_of(i)}, claim {row - self.offsets[i]}"

    def __repr__(self) -> str:
        return f"GraphBatch(n_graphs={len(self)}, {_sizes_of(self)})"

    _repr_html_ = batch_html

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        if np.dtype(dtype) != object:
            raise TypeError(
                "a GraphBatch cannot be converted to a numeric array. Add columns with "
                "make_pipeline, transform tables with HardCF(features=StandardScaler()), and "
                "shuffle columns with skdcf.inspection.permutation_importance"
            )
        return np.fromiter(self, object, len(self))

    @overload
    def __getitem__(self, key: int | np.integer) -> ReasoningGraph: ...
    @overload
    def __getitem__(self, key: slice | ArrayLike) -> GraphBatch: ...

    def __getitem__(self, key):
        if is_integer(key):
            graph = object.__new__(ReasoningGraph)
            graph._set_problem(self, range(len(self))[key])
            return graph
        # scikit-learn may pass a tuple that ends with an ellipsis.
        rows = np.arange(len(self))[key]
        if rows.ndim != 1:
            raise IndexError(
                f"the index must be an integer, slice, 1-D array or boolean mask, got {show(key)}"
            )
        return self._take(rows, self.sizes[rows], np.diff(self.edge_offsets)[rows])

    def _take(self, rows, sizes, n_edges):
        """Return the first ``sizes[i]`` claims of problem ``rows[i]`` for each i.

        The parents of these claims must be among them. The edges between these claims are the
        first ``n_edges[i]`` edges of the problem.
        """
        offsets = offsets_of(sizes)
        first = self.offsets[rows]
        claims = ranges(first, sizes)
        # Edges are sorted by child. They are row indices, so they are renumbered.
        edges = self.edges[ranges(self.edge_offsets[rows], n_edges)]
        edges += np.repeat(offsets[:-1] - first, n_edges)[:, None]
        features = self.features
        return self._trusted(
            features=None if features is None else read_only(features[claims]),
            claims=optional_rows(self.claims, claims),
            offsets=read_only(offsets),
            edges=read_only(edges),
            edge_offsets=read_only(offsets_of(n_edges)),
            edges_known=read_only(self.edges_known[rows]),
            feature_names=self.feature_names,
            tables={
                key: (read_only(table[claims]), names)
                for key, (table, names) in (self.tables or {}).items()
            },
            **{name: optional_rows(getattr(self, name), rows) for name in ROWS},
        )

    def split(self, values: NDArray[Any]) -> NDArray[np.object_]:
        """Split an array of claim values into one view per problem.

        Parameters
        ----------
        values : ndarray of shape (n_claims, ...)
            Claim values, concatenated over the problems.

        Returns
        -------
        views : object ndarray of shape (n_graphs,)
            Views of ``values``, with one view per problem.
        """
        views = map(values.__getitem__, slices(self.offsets))
        return np.fromiter(views, object, len(self))

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Number of claims in each problem, as an array of shape (n_graphs,)."""
        return np.diff(self.offsets)

    @cached_property
    def problem_of(self) -> NDArray[np.int64]:
        """Problem index of each claim, as an array of shape (n_claims,)."""
        return segment_ids(self.offsets)

    @cached_property
    def position(self) -> NDArray[np.int64]:
        """Position of each claim in its problem, from 0, as an array of shape (n_claims,)."""
        return np.arange(self.n_claims) - self.offsets[self.problem_of]

    @cached_property
    def fractional(self) -> tuple[NDArray[np.int64], Floats]:
        """Indices and values of the columns with a number that is not whole, or exceeds 2048."""
        table: Any = self.features

        def count(block):
            others = (block != np.rint(block)) | (abs(block) > 2048)
            # The product of matrices is the fastest sum.
            return [np.ones(len(block), np.float32) @ others]

        # A few rows may show that all columns are fractional.
        counts = in_blocks(count, table[:100]).sum(axis=0)
        if len(table) > 100 and not counts.all():
            counts = in_blocks(count, table).sum(axis=0)
        columns = np.flatnonzero(counts)
        # Guards reduce rows fastest if the values of a column are adjacent.
        return columns, table if counts.all() else table.T[columns].T

    @cached_property
    def depth(self) -> NDArray[np.int32]:
        """Length of the longest path that ends at each claim, as an array of shape (n_claims,)."""
        return find_depth(self.edges, self.n_claims)

    @cached_property
    def sweep(self) -> list[tuple[Any, ...]]:
        """Groups of edges by the rank of their child, from which `pass_on` passes values on.

        Each group is a tuple (parents, children, starts), in which the parents of ``children[i]``
        are ``parents[starts[i]:starts[i + 1]]``. The last item may contain the edges of many narrow
        groups, which are processed one after another. In this case, ``starts`` is None.
        """
        parents, children = self.edges.T
        # If there are few positions or many edges, the position is as good as the depth, and is
        # found much faster.
        rank: Any = self.position
        size = self.sizes.max(initial=0)
        if size > 64 + len(children) // 16 or (parents > children).any():
            rank = self.depth
        rank = rank[children]
        if size < 2**15:
            rank = rank.astype(np.int16)  # numpy sorts them in linear time.
        # `take` is faster than an index array for rows.
        edges = np.take(self.edges, np.argsort(rank, kind="stable"), axis=0)
        sizes = np.bincount(rank)
        sizes = sizes[sizes > 0]
        # A Python loop processes 64 edges in the time of one numpy call, but the values of all
        # claims have to be converted first.
        n_groups = offsets_of(sizes - 64).argmax()
        if 0 < n_groups > len(sizes) - 64:
            n_groups = len(sizes)
        *groups, rest = np.split(edges, np.cumsum(sizes[:n_groups]))
        sweep: list[tuple[Any, ...]] = []
        for group in groups:
            parents, children = group.T
            starts = np.flatnonzero(starts_run(children))
            sweep.append((parents, children[starts], starts))
        if len(rest):
            sweep.append((*rest.T.tolist(), None))
        return sweep

    @cached_property
    def closure(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Offsets and rows of the ancestors of each claim, including the claim, in order.

        The ancestors of a claim are passed along the edges as the bits of an integer. The integer
        is a uint64 if no problem has more than 64 claims, and otherwise a Python integer.
        """
        size = int(self.sizes.max(initial=1))
        if size > 10_000:  # 50 million pairs take 0.4 GB.
            raise ValueError(
                f"{self.name_of(self.sizes.argmax())} must have at most 10,000 claims to "
                f"list all ancestors, got {size:,}. Split the answer"
            )
        first = self.offsets[self.problem_of]
        if size <= 64:
            bits = np.uint64(1) << self.position.astype("<u8")
            packed = pass_on(np.bitwise_or, bits, self).view(np.uint8).reshape(-1, 8)
            is_set = np.unpackbits(packed, axis=1, count=size, bitorder="little")
            claims, places = np.divmod(np.flatnonzero(is_set), size)
            lengths = np.bincount(claims, minlength=self.n_claims)
            return offsets_of(lengths), first[claims] + places
        bits = np.array([1 << place for place in self.position.tolist()], object)
        masks = pass_on(np.bitwise_or, bits, self)
        # The mask of a claim has one bit for each claim of the problem, rounded up to whole bytes.
        n_bytes = self.sizes[self.problem_of] // 8 + 1
        packed = b"".join(map(int.to_bytes, masks, n_bytes.tolist(), repeat("little")))  # type: ignore[arg-type]
        counts = [mask.bit_count() for mask in masks]
        shift = np.repeat(first - 8 * offsets_of(n_bytes)[:-1], counts)
        return offsets_of(counts), find_bits(packed) + shift


def _sizes_of(graph):
    """Return the numbers of claims, edges and features of a graph or batch in words."""
    n_edges = len(graph.edges) if np.any(graph.edges_known) else "unknown"
    sizes = f"n_claims={graph.n_claims}, n_edges={n_edges}"
    if graph.features is not None:
        sizes += f", n_features={graph.features.shape[1]}"
    return sizes


def _kind_of(graph):
    """Return whether texts are missing, the number of features in a tuple, and their names."""
    shape = getattr(graph.features, "shape", ())  # np.shape is slow.
    return graph.claims is None, shape[1:], graph.feature_names


@dataclass(frozen=True, init=False, repr=False, eq=False, slots=True)
class ReasoningGraph:
    """Claims of one answer, together with their dependency graph.

    Parameters
    ----------
    features : array-like of shape (n_claims, n_features) or None
        Claim features, with one row of finite numbers per claim. If None, the claims have only
        texts.
    edges : iterable of (parent, child), optional
        The dependencies. The claim with index ``child`` depends on the claim with index
        ``parent``. Claim indices start at 0. The claims can be in any order. Duplicate edges are
        merged, and the edges are sorted by (child, parent). If ``edges`` is empty, all claims are
        independent. If None, the dependencies are unknown. A filter distinguishes between
        independent claims and unknown dependencies.
    claims : sequence of str, optional
        Claim texts.
    problem : str, optional
        Question to which the answer belongs.
    alternatives : sequence of str, optional
        Texts of other answers to the same question. The sequence of alternatives may be empty.
    context : sequence of str, optional
        Texts that must support the answer, such as retrieved passages. If None, the texts are
        unknown. If the list is empty, the answer has no context.
    feature_names : sequence of str, optional
        Feature column names. By default, the column names of a pandas, polars or pyarrow table
        are used.
    id : str or int, optional
        Problem name, which is used in messages and files.
    provenance : dict, optional
        How the answer and its labels were made, as strings, numbers and booleans, such as
        ``{"model": "qwen2.5", "label_source": "person"}``. A filter compares the values with
        those of its calibration problems. Provenance is ignored in comparisons with ``==``.
    metadata : dict, optional
        Additional data, such as the model or the subject. Metadata is ignored in comparisons with
        ``==``. The key ``group`` identifies the question (see `skdcf.identity.question_groups`).

    Attributes
    ----------
    edges : ndarray of int of shape (n_edges, 2)
        The sorted edges. The array of edges is empty if the edges are unknown.
    edges_known : bool
        Whether the edges are known.
    n_claims : int
        Number of claims. The number of claims is 0 if a filter keeps no claims.

    Raises
    ------
    ValueError
        If the edges contain a cycle, a self-loop or an invalid index. A ValueError is also raised
        if a feature value is missing, masked, infinite or complex, or if a text is not a string.
        Sets are rejected because their order is undefined. The numbers of claims, feature rows
        and names must be consistent.

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> graph = ReasoningGraph([[0.9], [0.8], [0.1]], [(0, 1), (1, 2)])
    >>> graph
    ReasoningGraph(n_claims=3, n_edges=2, n_features=1)
    >>> graph.ancestors(2)
    array([0, 1])
    """

    features: Floats | None
    edges: NDArray[np.int64]
    claims: tuple[str, ...] | None
    alternatives: tuple[str, ...] | None
    context: tuple[str, ...] | None
    feature_names: tuple[str, ...] | None
    problem: str | None
    id: Any
    provenance: dict[str, Any] | None
    metadata: dict[str, Any] | None
    edges_known: bool
    n_claims: int

    def __init__(
        self,
        features: ArrayLike | None = None,
        edges: Iterable[Iterable[int]] | None = None,
        *,
        claims: Iterable[str] | None = None,
        problem: str | None = None,
        alternatives: Iterable[str] | None = None,
        context: Iterable[str] | None = None,
        feature_names: Iterable[str] | None = None,
        id: Any = None,
        provenance: Mapping[str, str | float | bool] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        try:
            texts = None if claims is None else listed(claims, "claims")
            if isinstance(features, np.ndarray):
                features = features.copy()  # The caller may change the array.
            rows = texts if features is None else check_list("features", features)
            batch = GraphBatch.from_arrays(
                features,
                [0, 0 if rows is None else len(rows)],
                edges,  # type: ignore[arg-type]  # checked when it is read
                claims=texts,
                problems=[problem],
                alternatives=[alternatives],
                context=[context],
                feature_names=feature_names,
                provenance=[provenance],
                metadata=[metadata],
            )
        except ValueError as error:
            message = str(error).removeprefix("problem 0").lstrip(":, ")
            name = "" if id is None else f'problem "{printable(id)}": '
            raise ValueError(name + message) from None
        self._set_problem(batch, 0, id=id)

    def _set_problem(self, batch, i, **changes):
        """Store the fields of problem i of a batch, some of which are changed."""
        claims = slice(*batch.offsets[i : i + 2].tolist())
        edges = batch.edges[slice(*batch.edge_offsets[i : i + 2].tolist())]
        fields = {
            single: optional_rows(getattr(batch, name), i)
            for name, single in ROWS.items()
        }
        fields |= {
            "features": optional_rows(batch.features, claims),
            "edges": read_only(edges - claims.start) if claims.start else edges,
            "claims": None if batch.claims is None else tuple(batch.claims[claims]),
            "feature_names": batch.feature_names,
            "edges_known": bool(batch.edges_known[i]),
            "n_claims": claims.stop - claims.start,
        }
        for name, value in (fields | changes).items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        name = "" if self.id is None else f", id={printable(repr(self.id))}"
        return f"ReasoningGraph({_sizes_of(self)}{name})"

    _repr_html_ = graph_html

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ReasoningGraph):
            return NotImplemented
        ignored = {"provenance": None, "metadata": None}
        if not self.n_claims:  # An empty list of texts is treated as None.
            ignored["claims"] = None
        return self.to_dict() | ignored == other.to_dict() | ignored

    def __hash__(self) -> int:
        key = self.n_claims, self.edges.tobytes(), self.claims or None, self.problem
        return hash(key)

    def replace(self, **changes: Any) -> ReasoningGraph:
        """Return a copy of the graph with some constructor arguments changed.

        Parameters
        ----------
        **changes
            New values of the constructor arguments to change.

        Returns
        -------
        copy : ReasoningGraph
            The copy. All other arguments are copied from this graph.
        """
        values = {name: getattr(self, name) for name in _FIELDS}
        if not self.edges_known:
            values["edges"] = None
        if column_names(changes.get("features")) is not None:
            del values["feature_names"]  # The new table defines the feature names.
        return ReasoningGraph(**values | changes)

    def ancestors(self, v: int) -> NDArray[np.int64]:
        """Return all claims that claim ``v`` depends on, directly or indirectly.

        Parameters
        ----------
        v : int
            Position of the claim.

        Returns
        -------
        ancestors : ndarray of int
            Sorted indices of the ancestors, excluding ``v``.
        """
        if not (is_integer(v) and 0 <= v < self.n_claims):
            raise ValueError(
                f"v must be a claim position from 0 to {self.n_claims - 1}, got {v}"
            )
        starts = self.edges[:, 1].searchsorted(np.arange(self.n_claims + 1))
        found = np.zeros(self.n_claims, bool)
        queue = [v]
        for claim in queue:  # The queue grows during the loop.
            parents = self.edges[starts[claim] : starts[claim + 1], 0]
            queue += parents[~found[parents]].tolist()
            found[parents] = True
        return np.flatnonzero(found)

    def subgraph(self, mask: ArrayLike) -> ReasoningGraph:
        """Return the subgraph of the claims selected by ``mask``, in the same order.

        Parameters
        ----------
        mask : array-like of bool, shape (n_claims,)
            Mask that is True for the claims to keep.

        Returns
        -------
        subgraph : ReasoningGraph
            The subgraph. Edges from or to claims that are not selected are removed.
        """
        mask = np.asarray(mask)
        if mask.dtype != bool or mask.shape != (self.n_claims,):
            raise ValueError(
                f"mask must have {self.n_claims} booleans, got {mask.dtype} of shape {mask.shape}"
            )
        edges = self.edges[mask[self.edges].all(axis=1)]
        features = self.features
        fields = {
            "features": None if features is None else read_only(features[mask]),
            "edges": read_only((mask.cumsum() - 1)[edges]),
            "claims": self.claims and tuple(compress(self.claims, mask)),
            "n_claims": int(np.count_nonzero(mask)),
            "provenance": copy(self.provenance),
            "metadata": copy(self.metadata),
        }
        kept = copy(self)
        for name, value in fields.items():
            object.__setattr__(kept, name, value)
        return kept

    def to_dict(self) -> dict[str, Any]:
        """Return the graph as a dict of JSON-compatible values, which `from_dict` converts back.

        Returns
        -------
        fields : dict
            The values of ``features``, ``edges`` (None if the edges are unknown), and all other
            fields that are set.
        """
        fields: dict[str, Any] = {"features": None, "edges": None}
        for name in _FIELDS:
            value = getattr(self, name)
            if isinstance(value, np.ndarray):
                value = value.tolist()
            if value is not None:
                fields[name] = list(value) if isinstance(value, tuple) else value
        if not self.edges_known:
            fields["edges"] = None
        if self.features is not None and not self.n_claims:
            fields["n_features"] = self.features.shape[1]
        return fields

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ReasoningGraph:
        """Create a graph from a dict, such as one returned by `to_dict`.

        Parameters
        ----------
        data : dict
            Dict returned by `to_dict`, or a parsed line of JSON.

        Returns
        -------
        graph : ReasoningGraph
            The graph, which is validated as in the constructor.
        """
        if not isinstance(data, Mapping):
            raise ValueError(f"data must be a dict, got {type(data).__name__}")
        fields = dict(data)
        width = fields.pop("n_features", 0)
        if unknown := set(fields) - {*_FIELDS}:
            raise ValueError(
                f"the keys {sorted(map(str, unknown))} are unknown. Use only {list(_FIELDS)}, or "
                "convert node-link data with networkx.node_link_graph and from_networkx"
            )
        if fields.get("features") is None and fields.get("claims") is None:
            fields["claims"] = ()
        if fields.get("features") == []:
            fields["features"] = np.empty((0, width))
        return cls(**fields)

    def to_networkx(self) -> Any:
        """Return the structure as a ``networkx.DiGraph`` with edges from parents to children.

        Returns
        -------
        digraph : networkx.DiGraph
            The graph, whose nodes are the claim indices.
        """
        import networkx as nx

        digraph = nx.empty_graph(self.n_claims, nx.DiGraph)
        digraph.add_edges_from(self.edges.tolist())
        return digraph

    @classmethod
    def from_parents(
        cls,
        parents: Sequence[Iterable[int]],
        features: ArrayLike | None = None,
        **fields: Any,
    ) -> ReasoningGraph:
        """Create a graph from a list of the direct parents of each claim.

        Parameters
        ----------
        parents : sequence of sequences of int
            Parents of each claim. ``parents[v]`` contains the indices of the claims on which
            claim v directly depends. Claim indices start at 0.
        features : array-like of shape (n_claims, n_features), optional
            Features of the claims.
        **fields
            Further constructor arguments.

        Returns
        -------
        graph : ReasoningGraph
            The graph, which is validated as in the constructor.
        """
        rows = check_list("parents", parents)
        edges = [
            (u, v) for v, row in enumerate(rows) for u in check_list("parents", row)
        ]
        graph = cls(features, edges, **fields)
        if graph.n_claims != len(rows):
            raise ValueError(
                f"parents must have {graph.n_claims} rows, one per claim, got {len(rows)}"
            )
        return graph

    @classmethod
    def from_adjacency(
        cls, matrix: ArrayLike, features: ArrayLike | None = None, **fields: Any
    ) -> ReasoningGraph:
        """Create a graph from an adjacency matrix.

        Parameters
        ----------
        matrix : array-like of shape (n_claims, n_claims)
            1 in row v and column u if claim v directly depends on claim u, and otherwise 0.
        features : array-like of shape (n_claims, n_features), optional
            Features of the claims.
        **fields
            Further constructor arguments.

        Returns
        -------
        graph : ReasoningGraph
            The graph, which is validated as in the constructor.
        """
        matrix = np.asarray(matrix)
        is_square = matrix.ndim == 2 and len({*matrix.shape}) == 1
        if not (is_square and np.isin(matrix, (0, 1)).all()):
            raise ValueError(
                f"matrix must be square and contain only 0 and 1, got shape {matrix.shape}"
            )
        parents = [np.flatnonzero(row) for row in matrix]
        return cls.from_parents(parents, features, **fields)

    @classmethod
    def from_networkx(
        cls, digraph: Any, features: ArrayLike | None = None, **fields: Any
    ) -> ReasoningGraph:
        """Create a graph from a ``networkx.DiGraph`` with edges from parents to children.

        Parameters
        ----------
        digraph : networkx.DiGraph
            The graph, whose nodes are the claim indices from 0 on.
        features : array-like of shape (n_claims, n_features), optional
            Features of the claims.
        **fields
            Further constructor arguments.

        Returns
        -------
        graph : ReasoningGraph
            The graph, which is validated as in the constructor.

        Warns
        -----
        ParameterWarning
            If the digraph does not contain its nodes in the order of their numbers.
        """
        n = len(digraph)
        if not digraph.is_directed() or {*digraph} != {*range(n)}:
            raise ValueError(
                f"digraph must be directed, with the nodes 0 to {n - 1}, got {digraph}. Rename "
                "the nodes with networkx.convert_node_labels_to_integers"
            )
        if [*digraph] != [*range(n)]:
            warn(
                f"the nodes are 0 to {n - 1}, but in the order {[*digraph][:9]}. Claims, features "
                "and labels must be in the order of the node numbers. Add the nodes in this order, "
                "for example with add_nodes_from(range(n)) before adding the edges",
                ParameterWarning,
            )
        parents = [[*digraph.predecessors(v)] for v in range(n)]
        return cls.from_parents(parents, features, **fields)


# All fields of a graph except `edges_known` and `n_claims` are arguments of the constructor.
_FIELDS = ReasoningGraph.__slots__[:-2]

#: Problems as a list of graphs, as packed graphs, or as a table in which each row is a problem
#: with one claim.
Problems: TypeAlias = GraphBatch | Sequence[ReasoningGraph] | ArrayLike


def as_batch(X: Any) -> GraphBatch:
    """Convert a sequence of graphs or a 2-D array to a GraphBatch.

    Parameters
    ----------
    X : GraphBatch, sequence of ReasoningGraph, or 2-D array-like of numbers
        The problems. Each row of a 2-D array is a problem with a single claim.

    Returns
    -------
    batch : GraphBatch
        The packed problems. A GraphBatch is returned unchanged.

    Raises
    ------
    ValueError
        If X has an unsupported type, if X is empty, or if its graphs have different feature
        columns. The error message contains advice on how to convert X.

    Examples
    --------
    >>> from skdcf.graphs import as_batch
    >>> as_batch([[0.9, 1.0], [0.2, 0.0], [0.7, 0.0]])
    GraphBatch(n_graphs=3, n_claims=3, n_edges=0, n_features=2)
    """
    if (batch := pack_graphs(X)) is not None:
        return batch
    try:
        return GraphBatch.from_arrays(X, np.arange(len(X) + 1), ())
    except (TypeError, ValueError) as error:
        raise ValueError(
            "X must be a GraphBatch, a list of ReasoningGraph or a 2-D array of numbers, got a "
            f"{type(X).__name__}: {error}. skdcf.datasets converts tables and records to graphs"
        ) from None


def pack_graphs(X: Any) -> GraphBatch | None:
    """Return X as a batch if it contains graphs, or None if X may be a table.

    A ValueError is raised if X is an empty list, an iterator or a single graph.
    """
    if isinstance(X, GraphBatch):
        return X
    if isinstance(X, ReasoningGraph):
        raise ValueError(
            "X must be a list of graphs, got a single ReasoningGraph. Pass [graph] instead"
        )
    if isinstance(X, Iterator):
        raise ValueError(
            f"X must support repeated iteration, got a {type(X).__name__}. Pass list(X) instead"
        )
    if getattr(X, "ndim", None) == 1:  # X is an array or a Series (pandas or polars).
        X = list(X)
    is_list = isinstance(X, (list, tuple))
    # `from_graphs` raises an error for an empty list.
    if is_list and (not X or any(isinstance(item, ReasoningGraph) for item in X)):
        return GraphBatch.from_graphs(X)
    return None
