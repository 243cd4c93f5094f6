"""Batches of packed problems, which are used in all computations.

A batch is created with ``from_graphs`` or ``from_arrays``, and ``batch[i]`` returns problem i as
a `ReasoningGraph`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import is_integer
from .._html import batch_html
from . import _inputs
from ._derived import Names, Structure
from ._graph import ReasoningGraph
from .ragged import (
    offsets_of,
    optional_rows,
    ranges,
    read_only,
    slices,
)

# Fields with one value per problem. The corresponding field of a graph has the same name in the
# singular.
_ROWS = {"problems": "problem", "alternatives": "alternatives", "context": "context"}
_ROWS |= {"ids": "id", "provenance": "provenance", "metadata": "metadata"}


class GraphBatch(Structure, Sequence[ReasoningGraph]):
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

    claims: NDArray[np.object_] | None
    problems: NDArray[np.object_] | None
    alternatives: NDArray[np.object_] | None
    context: NDArray[np.object_] | None
    edges_known: NDArray[np.bool_]
    ids: NDArray[np.object_] | None
    provenance: NDArray[np.object_] | None
    metadata: NDArray[np.object_] | None
    feature_names: tuple[str, ...] | None

    #: Columns that filters computed for the problems, keyed by transformer.
    tables = None

    def __init__(self) -> None:
        raise TypeError(
            "a GraphBatch must not be constructed directly. Use "
            "GraphBatch.from_graphs(graphs) or GraphBatch.from_arrays(...)"
        )

    @classmethod
    def _trusted(cls, **fields):
        batch = object.__new__(cls)
        batch.__dict__.update(fields)
        return batch

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
        if isinstance(graphs, GraphBatch):
            return graphs
        return cls._trusted(**_pack(list(graphs)))

    @classmethod
    def concatenate(cls, batches: Iterable[GraphBatch]) -> GraphBatch:
        """Join batches into one batch, with their problems in the same order.

        Parameters
        ----------
        batches : sequence of GraphBatch
            Batches that all have the same feature columns.

        Returns
        -------
        batch : GraphBatch
            The problems of all batches, as packed by `from_graphs`.

        Raises
        ------
        ValueError
            If the sequence is empty, or if the batches have different feature columns.
        """
        batches = list(batches)
        if len({(batch.n_features, batch.feature_names) for batch in batches}) != 1:
            return cls.from_graphs(chain.from_iterable(batches))
        return cls._trusted(**_concatenate(batches))

    @classmethod
    def from_arrays(
        cls,
        features: ArrayLike | None,
        offsets: ArrayLike,
        edges: ArrayLike | None = None,
        *,
        edges_known: ArrayLike | None = None,
        claims: Iterable[str | None] | None = None,
        problems: Iterable[str | None] | None = None,
        alternatives: Iterable[Iterable[str] | None] | None = None,
        context: Iterable[Iterable[str] | None] | None = None,
        feature_names: Iterable[str] | None = None,
        ids: Iterable[Any] | None = None,
        provenance: Iterable[Mapping[str, str | float | bool] | None] | None = None,
        metadata: Iterable[Mapping[str, Any] | None] | None = None,
    ) -> GraphBatch:
        """Create a batch from flat arrays, without a Python loop over problems.

        Parameters
        ----------
        features : array-like of shape (n_claims, n_features) or None
            Features of the claims. Arrays of dtype float64 are not copied.
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
        bounds = _inputs.check_offsets(offsets)
        names = Names(_inputs.check_column(ids, len(bounds) - 1, "ids"), bounds)
        texts = _inputs.check_flat_claims(claims, names, needed=features is None)
        if features is None and texts is None:
            raise ValueError(
                "features and claims cannot both be None. Pass at least one of them"
            )
        table = _inputs.check_features(features, int(bounds[-1]), names)
        return cls._trusted(
            features=table,
            offsets=read_only(bounds),
            claims=texts,
            problems=_inputs.check_fields("problems", problems, names),
            alternatives=_inputs.check_fields("alternatives", alternatives, names),
            context=_inputs.check_fields("context", context, names),
            provenance=_inputs.check_fields("provenance", provenance, names),
            metadata=_inputs.check_fields("metadata", metadata, names),
            ids=names.ids,
            feature_names=_inputs.check_names(feature_names, features, table),
            **_edge_fields(edges, edges_known, names),
        )

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
        table = _inputs.check_features(features, self.n_claims, self)
        names = _inputs.check_names(feature_names, features, table)
        new = {"features": table, "feature_names": names, "tables": None}
        return self._trusted(**self.__dict__ | new)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickling, without cached columns."""
        return self.__dict__ | {"tables": None}

    def carry_table(
        self, key: bytes, features: NDArray[Any], feature_names: tuple[str, ...] | None
    ) -> GraphBatch:
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
        tables = (self.tables or {}) | {key: (features, feature_names)}
        return self._trusted(**self.__dict__ | {"tables": tables})

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
        # Only declared fields are copied, so values that were computed from the old edges are
        # dropped.
        declared = Structure.__annotations__ | GraphBatch.__annotations__
        fields = {name: self.__dict__[name] for name in declared}
        new = _edge_fields(edges, np.ones(len(self), dtype=bool), self)
        return self._trusted(**fields | new)

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
        fields: dict[str, Any] = {
            name: _inputs.check_fields(name, values, self)
            for name, values in rows.items()
        }
        return self._trusted(**self.__dict__ | fields | {"tables": None})

    def without_edges(self) -> GraphBatch:
        """Return the same problems with independent claims.

        Returns
        -------
        new_batch : GraphBatch
            The problems without edges, with the features and texts of this batch.
        """
        return self.replace_edges(())

    @property
    def provenance_rows(self) -> list[dict[str, Any]]:
        """Provenance of each problem, or an empty list if no problem has provenance."""
        return [] if self.provenance is None else [row or {} for row in self.provenance]

    @property
    def metadata_rows(self) -> list[dict[str, Any]]:
        """Metadata of each problem, or an empty list if no problem has metadata."""
        return [] if self.metadata is None else [row or {} for row in self.metadata]

    def __repr__(self) -> str:
        out = f"n_graphs={len(self)}, n_claims={self.n_claims}"
        out += f", n_edges={_inputs.show_count(self)}"
        if self.features is not None:
            out += f", n_features={self.n_features}"
        return f"GraphBatch({out})"

    @overload
    def __getitem__(self, key: int | np.integer) -> ReasoningGraph: ...
    @overload
    def __getitem__(self, key: slice | ArrayLike) -> GraphBatch: ...

    def __getitem__(self, key):
        if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis:
            # scikit-learn uses a tuple to index objects that have a shape.
            key = key[0]
        if is_integer(key):
            i = range(len(self))[key]
            a, b = self.offsets[i : i + 2].tolist()
            edges = self.edges[slice(*self.edge_offsets[i : i + 2])]
            return self._unpack(i, slice(a, b), read_only(edges - a))
        return self._trusted(**_take(self, _positions(self, key)))

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        if dtype is None or np.dtype(dtype) != object:
            raise TypeError(
                "a GraphBatch cannot be converted to a numeric array. Use "
                "make_pipeline(GraphFeatures(), TextFeatures()) instead of a FeatureUnion to "
                "add columns. Pass estimators for tables to the filter, for example "
                "HardCF(features=StandardScaler()) or HardCF(BaggingClassifier()). Use "
                "skdcf.inspection.permutation_importance to shuffle columns, and list(batch) "
                "to get a list of graphs"
            )
        return np.fromiter(self, dtype=object, count=len(self))

    def __iter__(self) -> Iterator[ReasoningGraph]:
        shift = np.repeat(self.offsets[:-1], np.diff(self.edge_offsets))
        edges = read_only(self.edges - shift[:, None])
        of_problem = map(edges.__getitem__, slices(self.edge_offsets))
        return map(self._unpack, range(len(self)), slices(self.offsets), of_problem)

    def _unpack(self, i, claims, edges):
        """Return problem ``i`` as a graph whose features are a view of the batch features."""
        texts = None if self.claims is None else tuple(self.claims[claims])
        # If the first text is None, all texts of the problem are None.
        if texts and texts[0] is None:
            texts = None
        columns = {single: getattr(self, name) for name, single in _ROWS.items()}
        return ReasoningGraph._trusted(
            features=optional_rows(self.features, claims),
            edges=edges,
            claims=texts,
            feature_names=self.feature_names,
            edges_known=bool(self.edges_known[i]),
            n_claims=claims.stop - claims.start,
            **{name: optional_rows(column, i) for name, column in columns.items()},
        )

    _repr_html_ = batch_html


def _edge_fields(edges, known, names):
    """Return the edge fields of a `GraphBatch`, including the depth if it was computed."""
    pairs, depth = _inputs.check_edges(edges, names.offsets, names)
    fields = {"edges": pairs} | ({} if depth is None else {"depth": depth})
    fields["edge_offsets"] = read_only(np.searchsorted(pairs[:, 1], names.offsets))
    known = _inputs.check_edges_known(known, edges, pairs, names)
    return fields | {"edges_known": known}


def _pack(graphs):
    """Create the fields of a `GraphBatch` from a list of graphs."""
    if not graphs:
        raise ValueError("X must contain at least one problem, but it is empty")
    # An answer without claims takes its column names from an answer with claims.
    first = next((g for g in graphs if getattr(g, "n_claims", 0)), graphs[0])
    graphs = [_with_columns(graph, first) for graph in graphs]
    for i, graph in enumerate(graphs):
        if reason := _find_difference(graph, first):
            names = Names({i: getattr(graph, "id", None)}, None)
            raise ValueError(f"{names.at(i)}{reason}")
    offsets = offsets_of([g.n_claims for g in graphs])
    edge_offsets = offsets_of([len(g.edges) for g in graphs])
    edges = np.concatenate([g.edges for g in graphs])
    edges += np.repeat(offsets[:-1], np.diff(edge_offsets))[:, None]
    features = claims = None
    if first.features is not None:
        features = read_only(np.concatenate([g.features for g in graphs]))
    if features is None or any(g.claims for g in graphs):
        texts = (t for g in graphs for t in g.claims or (None,) * g.n_claims)
        claims = np.fromiter(texts, dtype=object, count=offsets[-1])
    fields = {
        "features": features,
        "offsets": read_only(offsets),
        "edges": read_only(edges),
        "edge_offsets": read_only(edge_offsets),
        "edges_known": read_only(np.array([g.edges_known for g in graphs])),
        "claims": claims,
        "feature_names": first.feature_names,
    }
    for name, single in _ROWS.items():
        values = np.fromiter((getattr(g, single) for g in graphs), object, len(graphs))
        fields[name] = None if all(value is None for value in values) else values
    return fields


def _concatenate(batches):
    """Create the fields of a `GraphBatch` from batches with the same columns."""

    def joined(name):
        columns = [getattr(batch, name) for batch in batches]
        if all(column is None for column in columns):
            return None
        lengths = [b.n_claims if name == "claims" else len(b) for b in batches]
        return np.concatenate(
            [
                np.full(length, None) if column is None else column
                for column, length in zip(columns, lengths, strict=True)
            ]
        )

    n_edges = np.concatenate([np.diff(batch.edge_offsets) for batch in batches])
    first_claims = offsets_of([batch.n_claims for batch in batches])[:-1]
    shift = np.repeat(first_claims, [len(batch.edges) for batch in batches])
    features = joined("features")
    return {
        "features": None if features is None else read_only(features),
        "offsets": read_only(offsets_of(joined("sizes"))),
        "edges": read_only(joined("edges") + shift[:, None]),
        "edge_offsets": read_only(offsets_of(n_edges)),
        "edges_known": read_only(joined("edges_known")),
        "feature_names": batches[0].feature_names,
        **{name: joined(name) for name in ("claims", *_ROWS)},
    }


def _with_columns(graph, first):
    """Add the columns of the first graph to a graph that has neither claims nor columns."""
    is_empty = isinstance(graph, ReasoningGraph) and not graph.n_claims
    if not is_empty or graph.features is not None:
        return graph
    if getattr(first, "features", None) is None:
        return graph
    table = np.empty((0, first.features.shape[1]))
    return graph.replace(features=table, feature_names=first.feature_names)


def _find_difference(graph, first):
    """Explain why a graph cannot be packed with the first graph, or return None if it can."""
    if not isinstance(graph, ReasoningGraph):
        return f"expected a ReasoningGraph, got {type(graph).__name__}{_advise(graph)}"
    table = graph.features
    due = first.features
    if (table is None) != (due is None):
        return (
            "some problems have features and others do not. Separate them with\n"
            "    with_features = [g for g in graphs if g.features is not None]\n"
            "    without_features = [g for g in graphs if g.features is None]"
        )
    if table is not None and table.shape[1] != due.shape[1]:
        return f"{table.shape[1]} features, but problem 0 has {due.shape[1]}"
    names = graph.feature_names
    due = first.feature_names
    if names is not due and names != due:
        return f"feature names {names} differ from those of problem 0, {due}"
    return None


def _advise(found):
    """Return advice on how to convert a dict or string to a graph, or an empty string."""
    if isinstance(found, Mapping):
        return ". Use ReasoningGraph.from_dict to convert a dictionary"
    if isinstance(found, str):
        return (
            ". Use ReasoningGraph.from_dict(json.loads(line)) to convert a line of JSON"
        )
    return ""


def _take(batch, rows):
    """Return the fields of a `GraphBatch` for the problems selected by ``rows``.

    Edges are stored as row indices, so the edges of the selected problems are renumbered.
    """
    offsets = offsets_of(batch.sizes[rows])
    claims = ranges(batch.offsets[:-1][rows], batch.sizes[rows])
    n_edges = np.diff(batch.edge_offsets)[rows]
    shift = np.repeat(offsets[:-1] - batch.offsets[:-1][rows], n_edges)
    edges = batch.edges[ranges(batch.edge_offsets[:-1][rows], n_edges)]
    features = batch.features
    fields = {
        "features": None if features is None else read_only(features[claims]),
        "claims": optional_rows(batch.claims, claims),
        "feature_names": batch.feature_names,
        "offsets": read_only(offsets),
        "edges": read_only(edges + shift[:, None]),
        "edge_offsets": read_only(offsets_of(n_edges)),
        "edges_known": read_only(batch.edges_known[rows]),
    }
    for name in _ROWS:
        column = getattr(batch, name)
        fields[name] = optional_rows(column, rows)
    tables = (batch.tables or {}).items()
    fields["tables"] = {k: (read_only(t[claims]), names) for k, (t, names) in tables}
    # Keep a depth that was already computed, because the depth does not depend on the other
    # problems.
    if "depth" in batch.__dict__:
        fields["depth"] = batch.depth[claims]
    return fields


def _positions(batch, key):
    """Return the indices of the problems selected by a slice, a mask or an index array."""
    if not isinstance(key, slice):
        key = np.asarray(key)
        if key.size == 0 and key.dtype != bool:
            # numpy converts an empty list to an array of floats.
            key = key.astype(np.int64)
        if key.dtype.kind not in "iub" or key.ndim != 1:
            raise IndexError(
                "the index of a GraphBatch must be an integer, a slice, a 1-D array of "
                f"integers or a boolean mask, got an array of dtype {key.dtype} and shape "
                f"{key.shape}"
            )
    return np.arange(len(batch))[key]
