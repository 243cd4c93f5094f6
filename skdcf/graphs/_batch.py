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

from ._checks import (
    check_flat_edges,
    check_flat_features,
    check_names,
    check_offsets,
    cycle_message,
    edge_array,
    locate,
    name_problem,
    object_column,
)
from ._graph import ReasoningGraph
from ._pack import packed
from ._ragged import offsets_of, ranges, read_only, segment_ids, split
from ._structure import closure, depths, find_cycle, levels


class GraphBatch(Sequence):
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
        return cls._trusted(**packed(list(graphs)))

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
        problems : sequence of str, length n_graphs, optional
        feature_names : sequence of str, optional
        ids : sequence, length n_graphs, optional

        Returns
        -------
        GraphBatch

        Raises
        ------
        ValueError
            Under the conditions of `ReasoningGraph`, naming problem and claim.
        """
        offsets = check_offsets(offsets)
        n_claims, n_graphs = int(offsets[-1]), len(offsets) - 1
        claims = object_column(claims, n_claims, "claims")
        problems = object_column(problems, n_graphs, "problems")
        ids = object_column(ids, n_graphs, "ids")
        names = None if feature_names is None else tuple(map(str, feature_names))
        if features is not None:
            features = check_flat_features(features, offsets, ids)
        elif claims is None:
            raise ValueError("features and claims are both None: give one")
        check_names(features, names, "")
        edges = check_flat_edges(edge_array(edges), offsets, ids)
        bounds = np.searchsorted(edges[:, 1], offsets)
        batch = cls._trusted(
            features=features,
            offsets=read_only(offsets),
            edges=read_only(edges),
            edge_offsets=read_only(bounds),
            claims=claims,
            problems=problems,
            ids=ids,
            feature_names=names,
        )
        if not batch._forward and (batch.depth < 0).any():
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

    @property
    def _forward(self):
        """Whether every parent stands before its child, so that no cycle can be."""
        return bool((self.edges[:, 0] < self.edges[:, 1]).all())

    @cached_property
    def levels(self):
        """Edges in an order that visits parents first, one ``reduceat`` per level."""
        if not self._forward:
            return levels(self.edges, self.depth)
        position = np.arange(self.n_claims) - self.offsets[:-1][self.problem_of]
        return levels(self.edges, position)

    @cached_property
    def ancestors(self):
        """(indptr, indices): each claim with all its ancestors, as row numbers."""
        return closure(self.levels, self.n_claims)

    def split(self, values):
        """One view of flat values per problem.

        Parameters
        ----------
        values : ndarray of shape (n_claims, ...)

        Returns
        -------
        object ndarray of shape (n_graphs,)
        """
        return split(values, self.offsets)

    def name_of(self, i):
        """How messages name a problem.

        Parameters
        ----------
        i : int
            Position of the problem.

        Returns
        -------
        str
        """
        return name_problem(i, self.ids)

    def locate(self, row):
        """How messages name a claim.

        Parameters
        ----------
        row : int
            Row number of the claim.

        Returns
        -------
        str
        """
        return locate(row, self.offsets, self.ids)

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
            features = check_flat_features(features, self.offsets, self.ids)
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
        if texts and None in texts:
            texts = None
        return ReasoningGraph._trusted(
            None if self.features is None else self.features[a:b],
            read_only(self.edges[c:d] - a),
            texts,
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
            "features": None
            if self.features is None
            else read_only(self.features[claims]),
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
