"""Many problems laid side by side: the only form that the inside works on.

Fields of a packed batch of n_graphs problems, n_claims claims and n_edges edges:

=============  ========================  ============================================
features       (n_claims, n_features)    one row per claim, problem after problem
offsets        (n_graphs + 1,)           claims of problem i are offsets[i]:offsets[i+1]
edges          (n_edges, 2)              (parent, child) as row numbers of ``features``
edge_offsets   (n_graphs + 1,)           edges of problem i
claims         (n_claims,) object        texts, or None
problems, ids  (n_graphs,) object        questions and names, or None
=============  ========================  ============================================

There are two doors: ``pack`` or ``from_arrays`` in, ``batch[i]`` out.
"""

from collections.abc import Sequence
from functools import cached_property
from numbers import Integral

import numpy as np

from ._graph import (
    ReasoningGraph,
    check_finite,
    check_names,
    cycle_message,
    edge_array,
)
from ._ragged import offsets_of, ranges, read_only, segment_ids, split
from ._structure import closure, depths, find_cycle, levels, sort_edges


class GraphBatch(Sequence):
    """A packed sequence of `ReasoningGraph`, flat inside.

    Made by `pack` or `from_arrays`; ``batch[i]`` is a `ReasoningGraph`, and
    ``batch[slice]``, ``batch[index array]`` and ``batch[boolean mask]`` are batches, made
    without touching single problems. scikit-learn's splitters slice a batch whole.

    Attributes
    ----------
    features : ndarray of shape (n_claims, n_features) or None
        One row per claim, problem after problem.
    offsets : ndarray of shape (n_graphs + 1,)
        Claims of problem i are rows ``offsets[i]:offsets[i + 1]``.
    edges : ndarray of shape (n_edges, 2)
        (parent, child) as row numbers of ``features``, sorted by (child, parent).
    claims, problems, ids : object ndarray or None
        Texts per claim; questions and names per problem.
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

    def __init__(self):
        raise TypeError("use GraphBatch.pack(graphs) or GraphBatch.from_arrays(...)")

    @classmethod
    def _trusted(cls, **fields):
        batch = object.__new__(cls)
        batch.__dict__.update(fields)
        return batch

    @classmethod
    def pack(cls, graphs):
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
        graphs = list(graphs)
        _check_graphs(graphs)
        first = graphs[0]
        offsets = offsets_of(np.array([g.n_claims for g in graphs]))
        edge_offsets = offsets_of(np.array([len(g.edges) for g in graphs]))
        edges = np.concatenate([g.edges for g in graphs])
        edges += np.repeat(offsets[:-1], np.diff(edge_offsets))[:, None]
        features = None
        if first.features is not None:
            features = read_only(np.concatenate([g.features for g in graphs]))
        claims = None
        if any(g.claims is not None for g in graphs):
            texts = (t for g in graphs for t in g.claims or (None,) * g.n_claims)
            claims = np.fromiter(texts, dtype=object, count=offsets[-1])
        return cls._trusted(
            features=features,
            offsets=read_only(offsets),
            edges=read_only(edges),
            edge_offsets=read_only(edge_offsets),
            claims=claims,
            problems=_column(graphs, "problem"),
            ids=_column(graphs, "id"),
            feature_names=first.feature_names,
        )

    @classmethod
    def from_arrays(
        cls,
        features,
        offsets,
        edges=(),
        *,
        claims=None,
        problems=None,
        feature_names=None,
        ids=None,
    ):
        """Build a batch from flat arrays, without a Python loop over problems.

        Parameters
        ----------
        features : array-like of shape (n_claims, n_features) or None
            Used without a copy where it is a float64 array.
        offsets : array-like of int, shape (n_graphs + 1,)
            Starts with 0, does not decrease, ends with n_claims.
        edges : array-like of int, shape (n_edges, 2)
            (parent, child) as row numbers of ``features``; both in one problem.
        claims : sequence of str, length n_claims, optional
        problems, ids : sequence of length n_graphs, optional
        feature_names : sequence of str, optional

        Returns
        -------
        GraphBatch

        Raises
        ------
        ValueError
            Under the conditions of `ReasoningGraph`, naming problem and claim.
        """
        offsets = _check_offsets(offsets)
        n_claims, n_graphs = int(offsets[-1]), len(offsets) - 1
        claims = _objects(claims, n_claims, "claims")
        problems = _objects(problems, n_graphs, "problems")
        ids = _objects(ids, n_graphs, "ids")
        names = None if feature_names is None else tuple(map(str, feature_names))
        if features is not None:
            features = np.ascontiguousarray(features, dtype=np.float64)
            if features.ndim != 2 or len(features) != n_claims:
                raise ValueError(
                    f"features have shape {features.shape}, but the offsets end at "
                    f"{n_claims} claims"
                )
            check_finite(features, "", lambda row: _locate(row, offsets, ids))
        elif claims is None:
            raise ValueError("features and claims are both None: give one")
        check_names(features, names, "")
        edges = _check_flat_edges(edge_array(edges), offsets, ids)
        bounds = np.searchsorted(edges[:, 1], offsets)
        batch = cls._trusted(
            features=None if features is None else read_only(features),
            offsets=read_only(offsets),
            edges=read_only(edges),
            edge_offsets=read_only(bounds),
            claims=claims,
            problems=problems,
            ids=ids,
            feature_names=names,
        )
        if (batch.depth < 0).any():
            cycle = find_cycle(edges, batch.depth)
            i = np.searchsorted(offsets, cycle[0], side="right") - 1
            message = cycle_message([v - offsets[i] for v in cycle])
            raise ValueError(f"{name_problem(i, ids)}: {message}")
        return batch

    def __len__(self):
        return len(self.offsets) - 1

    @property
    def shape(self):
        """(n_graphs,), so that scikit-learn slices a batch whole."""
        return (len(self),)

    @property
    def n_claims(self):
        """Number of claims in all problems together."""
        return int(self.offsets[-1])

    @property
    def n_features(self):
        """Number of feature columns; None while only text is known."""
        return None if self.features is None else self.features.shape[1]

    @cached_property
    def sizes(self):
        """Number of claims of each problem, shape (n_graphs,)."""
        return np.diff(self.offsets)

    @cached_property
    def problem_of(self):
        """Number of the problem that each claim belongs to, shape (n_claims,)."""
        return segment_ids(self.offsets)

    @cached_property
    def depth(self):
        """Longest path from a source to each claim, shape (n_claims,)."""
        return depths(self.edges, self.n_claims)

    @cached_property
    def levels(self):
        """Edges by depth of their child, ready for one ``reduceat`` per level."""
        return levels(self.edges, self.depth)

    @cached_property
    def ancestors(self):
        """(indptr, indices): each claim with all its ancestors, as row numbers."""
        return closure(self.levels, self.n_claims)

    def split(self, values):
        """One view of the flat ``values``, shape (n_claims, ...), per problem."""
        return split(values, self.offsets)

    def name_of(self, i):
        """How messages name problem ``i``."""
        return name_problem(i, self.ids)

    def replace_features(self, features, feature_names=None):
        """The same problems with other features; the structure is shared.

        Parameters
        ----------
        features : array-like of shape (n_claims, n_features) or None
        feature_names : sequence of str, optional

        Returns
        -------
        GraphBatch
        """
        names = None if feature_names is None else tuple(map(str, feature_names))
        if features is not None:
            features = np.ascontiguousarray(features, dtype=np.float64)
            if features.ndim != 2 or len(features) != self.n_claims:
                raise ValueError(
                    f"features have shape {features.shape}, but there are "
                    f"{self.n_claims} claims"
                )
            check_finite(features, "", lambda r: _locate(r, self.offsets, self.ids))
            features = read_only(features)
        check_names(features, names, "")
        fields = self.__dict__ | {"features": features, "feature_names": names}
        return self._trusted(**fields)

    def __repr__(self):
        out = f"n_graphs={len(self)}, n_claims={self.n_claims}, n_edges="
        out += str(len(self.edges))
        if self.features is not None:
            out += f", n_features={self.n_features}"
        return f"GraphBatch({out})"

    def __getitem__(self, key):
        if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis:
            key = key[0]  # as scikit-learn indexes whatever has a shape
        if isinstance(key, Integral) and not isinstance(key, (bool, np.bool_)):
            return self._unpack(range(len(self))[key])
        if not isinstance(key, slice):
            key = np.asarray(key)
            if key.size == 0 and key.dtype != bool:
                key = key.astype(np.int64)
            if key.dtype.kind not in "iub" or key.ndim != 1:
                raise IndexError(
                    "index a GraphBatch by a number, a slice, a 1-D array of whole "
                    f"numbers or a mask, not by {key.dtype} of shape {key.shape}"
                )
        return self._take(np.arange(len(self))[key])

    def __iter__(self):
        return (self._unpack(i) for i in range(len(self)))

    def _unpack(self, i):
        a, b = self.offsets[i : i + 2].tolist()
        c, d = self.edge_offsets[i : i + 2].tolist()
        texts = None if self.claims is None else tuple(self.claims[a:b])
        if texts is None or None in texts:
            texts = None
        return ReasoningGraph._trusted(
            None if self.features is None else self.features[a:b],
            read_only(self.edges[c:d] - a),
            texts or None,
            None if self.problems is None else self.problems[i],
            self.feature_names,
            None if self.ids is None else self.ids[i],
            b - a,
        )

    def _take(self, rows):
        offsets = offsets_of(self.sizes[rows])
        claims = ranges(self.offsets[:-1][rows], self.sizes[rows])
        n_edges = np.diff(self.edge_offsets)[rows]
        shift = np.repeat(offsets[:-1] - self.offsets[:-1][rows], n_edges)
        edges = self.edges[ranges(self.edge_offsets[:-1][rows], n_edges)]
        fields = {
            "features": None if self.features is None else self.features[claims],
            "claims": None if self.claims is None else self.claims[claims],
            "problems": None if self.problems is None else self.problems[rows],
            "ids": None if self.ids is None else self.ids[rows],
            "feature_names": self.feature_names,
            "offsets": read_only(offsets),
            "edges": read_only(edges + shift[:, None]),
            "edge_offsets": read_only(offsets_of(n_edges)),
        }
        if "depth" in self.__dict__:
            fields["depth"] = self.depth[claims]
        return self._trusted(**fields)


def as_batch(X):
    """A sequence of graphs, a GraphBatch or a 2-D array as a GraphBatch.

    In a 2-D array each row is a problem with one claim.
    """
    if isinstance(X, GraphBatch):
        return X
    if not is_graphs(X):
        X = np.asarray(X, dtype=np.float64)
        return GraphBatch.from_arrays(X, np.arange(len(X) + 1))
    return GraphBatch.pack(X)


def is_graphs(X):
    """Whether X is a sequence of reasoning graphs (packed or not), not a table."""
    if isinstance(X, GraphBatch):
        return True
    flat = isinstance(X, (list, tuple)) or (
        isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 1
    )
    return flat and any(isinstance(item, ReasoningGraph) for item in X)


def pack_labels(y, batch):
    """Labels of a batch as a flat boolean array, shape (n_claims,), true = correct.

    Parameters
    ----------
    y : sequence of 1-D 0/1 arrays, one per problem, or one flat 0/1 array
    batch : GraphBatch

    Returns
    -------
    ndarray of bool, shape (n_claims,)

    Raises
    ------
    ValueError
        If numbers of labels and claims differ, or a label is not 0 or 1.
    """
    flat = _flat_labels(y, batch)
    try:
        right = np.isin(flat, (0, 1))
    except TypeError:
        right = np.zeros(len(flat), dtype=bool)
    if flat.dtype.kind not in "biuf" or not right.all():
        row = int(np.argmin(right)) if flat.dtype.kind in "biuf" else 0
        where = _locate(row, batch.offsets, batch.ids)
        raise ValueError(
            f"{where}: the label is {flat[row]!r}; labels are 1 (true) or 0 (false)"
        )
    return flat.astype(bool)


def _flat_labels(y, batch):
    if isinstance(y, np.ndarray) and y.dtype != object and y.ndim == 1:
        if len(y) != batch.n_claims:
            raise ValueError(f"{len(y)} labels but {batch.n_claims} claims")
        return y
    if not hasattr(y, "__len__") or len(y) != len(batch):
        found = f"{len(y)} entries" if hasattr(y, "__len__") else repr(y)
        raise ValueError(
            f"y must hold one array of labels per problem: {len(batch)} problems, "
            f"but y has {found}"
        )
    if len(batch) == batch.n_claims and all(np.ndim(row) == 0 for row in y):
        return np.asarray(y)
    lengths = np.fromiter((np.size(row) for row in y), dtype=np.int64, count=len(y))
    wrong = np.flatnonzero(lengths != batch.sizes)
    if wrong.size:
        i = wrong[0]
        raise ValueError(
            f"{batch.name_of(i)}: {lengths[i]} labels but {batch.sizes[i]} claims"
        )
    return np.concatenate([np.ravel(row) for row in y])


def name_problem(i, ids):
    """How messages name problem i."""
    named = ids is not None and ids[i] is not None
    return f'problem {i} ("{ids[i]}")' if named else f"problem {i}"


def _locate(row, offsets, ids):
    i = np.searchsorted(offsets, row, side="right") - 1
    return f"{name_problem(i, ids)}, claim {row - offsets[i]}"


def _check_graphs(graphs):
    if not graphs:
        raise ValueError("no problems: X is empty, at least one is needed")
    first = graphs[0]
    for i, g in enumerate(graphs):
        if not isinstance(g, ReasoningGraph):
            raise ValueError(
                f"problem {i} is a {type(g).__name__}, not a ReasoningGraph"
            )
        if (g.features is None) != (first.features is None):
            raise ValueError(f"{_name(i, g)}: some problems have features and some have none")
        if g.features is not None and g.features.shape[1] != first.features.shape[1]:
            raise ValueError(
                f"{_name(i, g)}: {g.features.shape[1]} features but "
                f"{first.features.shape[1]} in problem 0"
            )
        if g.feature_names is not first.feature_names and (
            g.feature_names != first.feature_names
        ):
            raise ValueError(
                f"{_name(i, g)}: feature names {g.feature_names} differ from those of "
                f"problem 0, {first.feature_names}"
            )


def _name(i, graph):
    return name_problem(i, {i: graph.id})


def _column(graphs, name):
    values = [getattr(g, name) for g in graphs]
    if all(v is None for v in values):
        return None
    return np.fromiter(values, dtype=object, count=len(values))


def _objects(values, length, name):
    if values is None:
        return None
    values = list(values)
    if len(values) != length:
        raise ValueError(f"{len(values)} {name}, but the offsets say {length}")
    return np.fromiter(values, dtype=object, count=length)


def _check_offsets(offsets):
    offsets = np.asarray(offsets)
    if offsets.ndim != 1 or len(offsets) < 2 or offsets.dtype.kind not in "iu":
        raise ValueError(
            "offsets must be at least two whole numbers, got "
            f"{offsets.dtype} of shape {offsets.shape}"
        )
    offsets = offsets.astype(np.int64)
    if offsets[0] != 0 or (np.diff(offsets) < 0).any():
        raise ValueError("offsets must start with 0 and never decrease")
    return offsets


def _check_flat_edges(edges, offsets, ids):
    n_claims = int(offsets[-1])
    if not len(edges):
        return edges
    if edges.min() < 0 or edges.max() >= n_claims:
        u, v = edges[((edges < 0) | (edges >= n_claims)).any(axis=1)][0]
        raise ValueError(f"edge ({u}, {v}) but only {n_claims} claims in all")
    problem_of = segment_ids(offsets)
    home = problem_of[edges]
    bad = np.flatnonzero(home[:, 0] != home[:, 1])
    if bad.size:
        (u, v), (i, j) = edges[bad[0]], home[bad[0]]
        raise ValueError(f"edge ({u}, {v}) goes from problem {i} to problem {j}")
    loop = np.flatnonzero(edges[:, 0] == edges[:, 1])
    if loop.size:
        where = _locate(edges[loop[0], 0], offsets, ids)
        raise ValueError(f"{where} is its own parent (a self-loop)")
    return sort_edges(edges, n_claims)
