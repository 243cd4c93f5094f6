"""Many problems laid side by side: the only form that the inside works on.

The fields are the attributes of `GraphBatch`.
There are two doors: ``pack`` or ``from_arrays`` in, ``batch[i]`` out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Integral
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._drawing import batch_html
from ._derived import Structure
from ._graph import ReasoningGraph
from ._inputs import (
    check_column,
    check_edges_known,
    check_flat_claims,
    check_flat_edges,
    check_flat_features,
    check_flat_metadata,
    check_flat_problems,
    check_flat_texts,
    check_names,
    check_no_cycle,
    check_offsets,
    check_unknown_have_none,
)
from ._names import Names
from ._pack import pack_fields, positions, take_fields, unpack
from .ragged import read_only, split


class GraphBatch(Structure, Names, Sequence[ReasoningGraph]):
    """A packed sequence of `ReasoningGraph`, flat inside.

    Made by `pack` or `from_arrays`; ``batch[i]`` is a `ReasoningGraph`, and
    ``batch[slice]``, ``batch[index array]`` and ``batch[boolean mask]`` are batches,
    made without touching single problems: scikit-learn's splitters slice a batch whole.

    Attributes
    ----------
    features : ndarray of shape (n_claims, n_features) or None
        One row per claim, problem after problem.
    offsets : ndarray of shape (n_graphs + 1,)
        Claims of problem i are rows ``offsets[i]:offsets[i + 1]``.
    edges : ndarray of shape (n_edges, 2)
        (parent, child) as row numbers of ``features``, sorted by (child, parent).
    edge_offsets : ndarray of shape (n_graphs + 1,)
        Edges of problem i are rows ``edge_offsets[i]:edge_offsets[i + 1]``.
    edges_known : ndarray of bool, shape (n_graphs,)
        Whether the edges of each problem are known; where they are not, it has none here.
    claims, problems, ids : object ndarray or None
        Texts per claim; questions and names per problem.
    alternatives, context, metadata : object ndarray or None
        Per problem a tuple of other answers' texts, a tuple of the texts that the answer
        has to be supported by, and a dict; or None.
    feature_names : tuple of str or None

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

    features: NDArray[np.float64] | None
    offsets: NDArray[np.int64]
    edges: NDArray[np.int64]
    edge_offsets: NDArray[np.int64]
    claims: NDArray[np.object_] | None
    problems: NDArray[np.object_] | None
    alternatives: NDArray[np.object_] | None
    context: NDArray[np.object_] | None
    edges_known: NDArray[np.bool_]
    ids: NDArray[np.object_] | None
    metadata: NDArray[np.object_] | None
    feature_names: tuple[str, ...] | None

    def __init__(self) -> None:
        raise TypeError("use GraphBatch.pack(graphs) or GraphBatch.from_arrays(...)")

    @classmethod
    def _trusted(cls, **fields):
        batch = object.__new__(cls)
        batch.__dict__.update(fields)
        return batch

    @classmethod
    def pack(cls, graphs: Iterable[ReasoningGraph]) -> GraphBatch:
        """Pack a sequence of graphs.

        Parameters
        ----------
        graphs : sequence of ReasoningGraph
            With the same feature columns; a GraphBatch is returned as it is.

        Returns
        -------
        GraphBatch

        Raises
        ------
        ValueError
            If the sequence is empty or its graphs disagree about their features.
        """
        if isinstance(graphs, GraphBatch):
            return graphs
        return cls._trusted(**pack_fields(list(graphs)))

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
        metadata: Iterable[Mapping[str, Any] | None] | None = None,
    ) -> GraphBatch:
        """Build a batch from flat arrays, without a Python loop over problems.

        Parameters
        ----------
        features : array-like of shape (n_claims, n_features) or None
            Used without a copy where it is a float64 array.
        offsets : array-like of int, shape (n_graphs + 1,)
            Starts with 0, does not decrease, ends with n_claims.
        edges : array-like of int, shape (n_edges, 2), optional
            (parent, child) as row numbers of ``features``; both in one problem. None says
            that no problem's edges are known, an empty list that no problem has any.
        edges_known : array-like of bool, shape (n_graphs,), optional
            For each problem whether its edges are known, where some are and some are not.
        claims : sequence of str or None, length n_claims, optional
            None where the text is not known, for all claims of a problem together.
        problems : sequence of str or None, length n_graphs, optional
        alternatives, context : sequence, length n_graphs, optional
            A sequence of str for each problem, or None where it is not known.
        feature_names : sequence of str, optional
        ids, metadata : sequence, length n_graphs, optional

        Returns
        -------
        GraphBatch

        Raises
        ------
        ValueError
            Under the conditions of `ReasoningGraph`, naming problem and claim.
        """
        bounds = check_offsets(offsets)
        n_graphs = len(bounds) - 1
        ids = check_column(ids, n_graphs, "ids")
        texts = check_flat_claims(claims, bounds, ids, needed=features is None)
        if features is None and texts is None:
            raise ValueError("features and claims are both None: give one")
        table = check_flat_features(features, bounds, ids)
        known = check_edges_known(edges_known, edges, bounds, ids)
        pairs = check_flat_edges(() if edges is None else edges, bounds, ids)
        batch = cls._trusted(
            features=table,
            offsets=read_only(bounds),
            edges=read_only(pairs),
            edge_offsets=read_only(np.searchsorted(pairs[:, 1], bounds)),
            claims=texts,
            problems=check_flat_problems(problems, n_graphs, ids),
            alternatives=check_flat_texts(alternatives, "alternatives", n_graphs, ids),
            context=check_flat_texts(context, "context", n_graphs, ids),
            edges_known=known,
            ids=ids,
            metadata=check_flat_metadata(metadata, bounds, ids),
            feature_names=check_names(feature_names, table),
        )
        check_unknown_have_none(known, batch.edge_offsets, ids)
        if not batch._forward:
            check_no_cycle(pairs, batch.depth, bounds, ids)
        return batch

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def shape(self) -> tuple[int]:
        """(n_graphs,), so that scikit-learn slices a batch whole."""
        return (len(self),)

    @property
    def n_features(self) -> int | None:
        """Number of feature columns; None while only text is known."""
        return None if self.features is None else self.features.shape[1]

    def split(self, values: NDArray) -> NDArray[np.object_]:
        """One view of flat values per problem.

        Parameters
        ----------
        values : ndarray of shape (n_claims, ...)

        Returns
        -------
        object ndarray of shape (n_graphs,)
        """
        return split(values, self.offsets)

    def replace_features(
        self, features: ArrayLike | None, feature_names: Iterable[str] | None = None
    ) -> GraphBatch:
        """The same problems with other features; the structure is shared.

        Parameters
        ----------
        features : array-like of shape (n_claims, n_features) or None
        feature_names : sequence of str, optional

        Returns
        -------
        GraphBatch
        """
        table = check_flat_features(features, self.offsets, self.ids)
        names = check_names(feature_names, table)
        return self._trusted(
            **self.__dict__ | {"features": table, "feature_names": names}
        )

    def replace_metadata(
        self, metadata: Iterable[Mapping[str, Any] | None] | None
    ) -> GraphBatch:
        """The same problems with other metadata; all else is shared.

        Parameters
        ----------
        metadata : sequence of (dict or None), length n_graphs, or None

        Returns
        -------
        GraphBatch
        """
        more = check_flat_metadata(metadata, self.offsets, self.ids)
        return self._trusted(**self.__dict__ | {"metadata": more})

    def without_edges(self) -> GraphBatch:
        """The same problems, in which it is known that no claim builds on another.

        Returns
        -------
        GraphBatch
            Features and texts are shared.
        """
        # What is worked out from the edges is left behind: only declared fields go on.
        fields = {name: self.__dict__[name] for name in GraphBatch.__annotations__}
        fields["edges"] = read_only(np.empty((0, 2), dtype=np.int64))
        fields["edge_offsets"] = read_only(np.zeros_like(self.offsets))
        fields["edges_known"] = read_only(np.ones(len(self), dtype=bool))
        return self._trusted(**fields)

    def __repr__(self) -> str:
        n_edges = len(self.edges) if self.edges_known.any() else "unknown"
        out = f"n_graphs={len(self)}, n_claims={self.n_claims}, n_edges={n_edges}"
        if self.features is not None:
            out += f", n_features={self.n_features}"
        return f"GraphBatch({out})"

    @overload
    def __getitem__(self, key: int | np.integer) -> ReasoningGraph: ...
    @overload
    def __getitem__(self, key: slice | ArrayLike) -> GraphBatch: ...

    def __getitem__(self, key):
        if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis:
            key = key[0]  # as scikit-learn indexes whatever has a shape
        if isinstance(key, Integral) and not isinstance(key, (bool, np.bool_)):
            return self._unpack(range(len(self))[key])
        return self._trusted(**take_fields(self, positions(self, key)))

    def __array__(self, dtype=None, copy=None):
        if dtype is not None and np.dtype(dtype) != object:
            raise TypeError(
                "a GraphBatch is no table of numbers. Wrap transformers of scikit-learn: "
                "ClaimTransformer(StandardScaler()) works on the claims"
            )
        return np.fromiter(self, dtype=object, count=len(self))

    def __iter__(self) -> Iterator[ReasoningGraph]:
        return (self._unpack(i) for i in range(len(self)))

    _unpack, _repr_html_ = unpack, batch_html
