"""Batch properties that are derived from offsets and edges, and computed on first use.

Values are propagated from parents to children, so all computations require an order in which
parents precede their children. Each property in the table depends on the properties above it:

=================  ==================================================================
sizes, problem_of  number of claims of each problem, and the problem of each claim
depth              the longest path to a claim from a claim without parents
rank               any number that increases along edges, which defines an order
layers             edges by the rank of their child, to list ancestors
sweep              edges to compute sums and maxima over ancestors without lists
short_sweep        fewer edges, if counting an ancestor twice has no effect
small_closure      ancestors of each claim in problems of at most 64 claims
closure            ancestors of each claim in all problems, using rows of bits
=================  ==================================================================

The running times in the comments refer to 20,000 problems with 148,699 claims in total, on a
single core.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import breadth_first_order

from .._checks import printable
from . import ragged
from .bit_rows import Lineage
from .ragged import (
    Layer,
    Sweep,
    find_layers,
    find_sweep,
    offsets_of,
    ranges,
    starts_run,
)

# In problems with more than SMALL claims, ancestors are stored as rows of bits. For smaller
# problems, computing lists of ancestors for all problems at once is faster.
SMALL = 64
# maximum number of claims for which lists of ancestors are used if the problem has few edges
LISTED = 250
# maximum number of pairs of a claim and an ancestor in a problem (the maximum takes 0.4 GB)
MOST_PAIRS = 50_000_000
# Number of edges per claim above which skipping edges saves time. Only computations that allow an
# ancestor to be counted twice may skip edges.
DENSE = 8


class Names:
    """Problem and claim names of a batch, for use in messages."""

    def __init__(self, ids: Any, offsets: Any) -> None:
        self.ids = ids
        self.offsets = offsets

    def name_of(self, i: int) -> str:
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
        named = self.ids is not None and self.ids[i] is not None
        return f"problem {i}" + (f' ("{printable(self.ids[i])}")' if named else "")

    def locate(self, row: int) -> str:
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
        i = int(np.searchsorted(self.offsets, row, side="right")) - 1
        return f"{self.name_of(i)}, claim {row - self.offsets[i]}"

    def at(self, i: int | None = None) -> str:
        """Return the message prefix for one problem or for all problems.

        Parameters
        ----------
        i : int, optional
            Problem index. None means all problems.

        Returns
        -------
        prefix : str
            The name of the problem followed by a colon, or an empty string if ``i`` is None.
        """
        return "" if i is None else f"{self.name_of(i)}: "


class OneName(Names):
    """Names of a single graph and its claims, for use in messages."""

    def __init__(self, id):
        self.name = "" if id is None else f'problem "{printable(id)}"'

    def at(self, i=None):
        """Return a message prefix, which is empty if the problem has no name."""
        return self.name and f"{self.name}: "

    def locate(self, row):
        """Return a claim's name."""
        return f"{self.at()}claim {row}"


class Structure(Names):
    """Depth, layers and ancestors of the claims in packed problems."""

    features: NDArray[np.float64] | None
    offsets: NDArray[np.int64]
    edges: NDArray[np.int64]
    edge_offsets: NDArray[np.int64]

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
        views = map(values.__getitem__, ragged.slices(self.offsets))
        return np.fromiter(views, dtype=object, count=len(self))

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Number of claims in each problem, as an array of shape (n_graphs,)."""
        return np.diff(self.offsets)

    @cached_property
    def problem_of(self) -> NDArray[np.int64]:
        """Problem index of each claim, as an array of shape (n_claims,)."""
        return ragged.segment_ids(self.offsets)

    @cached_property
    def depth(self) -> NDArray[np.int32]:
        """Length of the longest path that ends at each claim, as an array of shape (n_claims,)."""
        return find_depth(self.edges, self.n_claims)

    @cached_property
    def rank(self) -> NDArray[Any]:
        """Small integer for each claim, which is larger for children than for their parents.

        If all problems are small and parents precede their children, the rank of a claim is its
        index in the problem. Otherwise, the rank of a claim is its depth. In a large problem,
        indices can have many more distinct values than depths. For example, a star graph has only
        two distinct depths.
        """
        # For the benchmark batch, computing the depth takes 7.3 ms, and computing the position in
        # the problem takes 0.7 ms.
        if len(self.large) or (self.edges[:, 0] > self.edges[:, 1]).any():
            return self.depth
        return np.arange(self.n_claims) - self.offsets[:-1][self.problem_of]

    @cached_property
    def layers(self) -> list[Layer]:
        """Edges grouped into layers, ordered so that parents precede their children."""
        return find_layers(self.edges, self.rank)

    @cached_property
    def sweep(self) -> Sweep:
        """Edges in the order of `layers`, in a format that is fast for both wide and narrow layers.

        To combine the value of each claim with the values of its ancestors, call
        ``edges.pass_on(ufunc, values)`` for each element of the sweep in turn (see
        `skdcf.ops.ancestors.pass_on`).
        """
        # For the benchmark batch, propagating the values takes 1.6 ms. Listing all ancestors
        # would take 29 ms.
        return find_sweep(self.edges, self.rank[self.edges[:, 1]], self.offsets)

    @cached_property
    def short_sweep(self) -> Sweep:
        """Reduced `sweep` for idempotent operations, such as maxima.

        In large problems with many edges, an edge is skipped if its parent is also an ancestor of
        another parent of the same child. For example, a complete graph is reduced to a chain and
        the edges from its first claim. The reduction takes longer than a single pass, so it is
        worthwhile only for many passes.
        """
        # For a complete graph of 600 claims, one pass takes 0.13 ms instead of 0.87 ms, after 19
        # ms of preparation.
        n_edges = np.diff(self.edge_offsets)
        dense = np.flatnonzero((self.sizes > SMALL) & (n_edges > DENSE * self.sizes))
        if not len(dense):
            return self.sweep
        kept = ~np.isin(self.problem_of, dense)[self.edges[:, 1]]
        needed = [self.lineage(i).needed() + self.offsets[i] for i in dense.tolist()]
        edges = np.concatenate([self.edges[kept], *needed])
        edges = edges[np.argsort(edges[:, 1], kind="stable")]
        return find_sweep(edges, self.rank[edges[:, 1]], self.offsets)

    @cached_property
    def closure(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Each claim together with its ancestors, as (indptr, indices).

        For the claim in row v, ``indices[indptr[v]:indptr[v + 1]]`` contains the sorted row
        indices of the claim and its ancestors. The functions of `skdcf.ops.ancestors` compute
        sums and maxima over ancestors without listing the ancestors.

        Raises
        ------
        ValueError
            If a problem has more than 50,000,000 claim-ancestor pairs.
        """
        starts, listed = self.listed_closure
        if not len(self.unlisted):
            return starts, listed

        # List the missing pairs one problem at a time, and insert them.
        pairs = {int(i): self._list_pairs(int(i)) for i in self.unlisted}
        length = np.diff(starts)
        for i, (owner, _) in pairs.items():
            length[self.offsets[i] : self.offsets[i + 1]] = np.bincount(owner)
        indptr = offsets_of(length)
        indices = np.empty(indptr[-1], dtype=np.int64)
        is_listed = ~np.isin(self.problem_of, self.unlisted)
        positions = ranges(indptr[:-1][is_listed], length[is_listed])
        indices[positions] = listed[np.repeat(is_listed, np.diff(starts))]
        for i, (_, member) in pairs.items():
            a, b = self.offsets[i : i + 2]
            indices[indptr[a] : indptr[b]] = member + a
        return indptr, indices

    @cached_property
    def small_closure(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Reduced `closure` that omits the ancestors of claims in large problems."""
        return self._close_without(self.large)

    @cached_property
    def listed_closure(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Reduced `closure` that omits the ancestors of claims in ``unlisted`` problems."""
        if len(self.unlisted) == len(self.large):
            return self.small_closure
        return self._close_without(self.unlisted)

    def _close_without(self, problems):
        """Return a closure that omits the ancestors of claims in the given problems."""
        # Processing all small problems together takes 29 ms, whereas processing them one by one
        # would take several seconds.
        if not len(problems):
            return find_closure(self.layers, self.n_claims)
        inside = ~np.isin(self.problem_of, problems)[self.edges[:, 1]]
        layers = find_layers(self.edges[inside], self.rank)
        return find_closure(layers, self.n_claims)

    @cached_property
    def large(self) -> NDArray[np.int64]:
        """Indices of the problems with more than 64 claims."""
        return np.flatnonzero(self.sizes > SMALL)

    @cached_property
    def unlisted(self) -> NDArray[np.int64]:
        """Indices of the large problems that are excluded from `listed_closure`.

        A large problem is excluded if it is a forest, has more than 250 claims, or has many
        edges.
        """
        has_few_edges = np.diff(self.edge_offsets) <= DENSE * self.sizes
        is_listed = (self.sizes <= LISTED) & has_few_edges & ~self.is_forest
        return self.large[~is_listed[self.large]]

    @cached_property
    def is_forest(self) -> NDArray[np.bool_]:
        """Whether each problem is a forest, in which every claim has at most one parent."""
        # Test for a second parent, which takes 1 ms and avoids the search for other paths in
        # forests.
        has_second_parent = self.edges[1:, 1] == self.edges[:-1, 1]
        problem = self.problem_of[self.edges[1:, 1][has_second_parent]]
        return np.bincount(problem, minlength=len(self.sizes)) == 0

    def lineage(self, i: int) -> Lineage:
        """Return a `Lineage`, which computes ancestors in one problem as rows of bits.

        Parameters
        ----------
        i : int
            Problem index.

        Returns
        -------
        lineage : Lineage
            The lineage of the problem. The result is cached.
        """
        lineages = vars(self).setdefault("_lineages", {})
        if i not in lineages:
            a, b = self.offsets[i : i + 2]
            edges = self.edges[slice(*self.edge_offsets[i : i + 2])] - a
            rank = np.empty(b - a, dtype=np.int64)
            rank[np.argsort(self.rank[a:b], kind="stable")] = np.arange(b - a)
            lineages[i] = Lineage(edges, rank, self._ancestors_of(i))
        return lineages[i]

    def _ancestors_of(self, i):
        """Return the claim-ancestor pairs of one problem, or None if the pairs are not listed."""
        a, b = self.offsets[i : i + 2]
        if b - a <= SMALL or i in self.unlisted:
            return None
        indptr, indices = self.listed_closure
        claims = np.repeat(np.arange(b - a), np.diff(indptr[a : b + 1]))
        return claims, indices[indptr[a] : indptr[b]] - a

    def _list_pairs(self, i):
        """Return all claim-ancestor pairs of one problem, as claim indices within the problem."""
        lineage = self.lineage(i)
        rows = slice(*self.offsets[i : i + 2])
        # Number of claim-ancestor pairs in which the ancestor is on the longest path to the
        # claim. In a forest, the longest path to a claim contains every ancestor of the claim.
        least = lineage.n_claims + int(self.depth[rows].sum(dtype=np.int64))
        if least <= MOST_PAIRS and not self.is_forest[i]:
            least = lineage.sums(np.ones(lineage.n_claims, dtype=np.int64)).sum()
        if least > MOST_PAIRS:
            raise ValueError(
                f"{self.name_of(i)} must have at most {MOST_PAIRS:,} claim-ancestor pairs to "
                f"list all ancestors, but its {lineage.n_claims:,} claims have at least "
                f"{least:,} pairs. This list is needed by GridRelaxation, PathRelaxation with "
                "max_temperature, FrequencyScorer over descendants, nx_betweenness and "
                'nx_closeness. Use PathRelaxation(), over="children" or other metrics instead'
            )
        return lineage.pairs()


def sort_edges(edges, n_claims):
    """Return the distinct edges, sorted by (child, parent).

    Each edge is encoded as a single integer, with the child in the upper bits. Sorting integers
    is faster than sorting by two columns, and makes equal edges adjacent.
    """
    shift = int(n_claims).bit_length()
    key = (edges[:, 1] << shift) | edges[:, 0]
    if (key[1:] > key[:-1]).all():
        return edges
    key.sort(kind="stable")
    key = key[starts_run(key)]
    return np.stack([key & ((1 << shift) - 1), key >> shift], axis=1)


def find_depth(edges, n_claims):
    """Return the length of the longest path to each claim, or -1 for claims on or after a cycle.

    Paths start at claims that have no parents. Kahn's algorithm processes one layer of all graphs
    per step, in O(claims + edges) time.
    """
    parent = edges[:, 0]
    child = edges[:, 1]
    by_parent = np.argsort(parent, kind="stable")
    children = child[by_parent]
    count = np.bincount(parent, minlength=n_claims)
    first = offsets_of(count)[:-1]
    missing = np.bincount(child, minlength=n_claims)
    depth = np.full(n_claims, -1, dtype=np.int32)
    mark = np.empty(n_claims, dtype=np.int64)
    layer = 0
    ready = np.flatnonzero(missing == 0)
    while ready.size:
        if count[ready].sum() < ragged.NARROW and ready.size < ragged.NARROW:
            layer, ready = _walk(
                layer,
                ready,
                depth=depth,
                missing=missing,
                children=children,
                first=first,
                count=count,
            )
            continue
        depth[ready] = layer
        reached = children[ranges(first[ready], count[ready])]
        np.subtract.at(missing, reached, 1)
        reached = reached[missing[reached] == 0]
        # A claim with two parents in the layer occurs twice in `reached`. Only the last
        # occurrence of a claim is kept, which does not require sorting.
        position = np.arange(reached.size)
        mark[reached] = position
        ready = reached[mark[reached] == position]
        layer += 1
    return depth


def _walk(layer, ready, depth, missing, children, first, count):
    """Continue `find_depth` claim by claim while the layers are narrow."""
    ready = ready.tolist()
    while ready and len(ready) < ragged.NARROW:
        reached = []
        for v in ready:
            a = first[v]
            reached += children[a : a + count[v]].tolist()
        if len(reached) >= ragged.NARROW:
            break
        depth[ready] = layer
        ready = []
        for v in reached:
            missing[v] -= 1
            if not missing[v]:
                ready.append(v)
        layer += 1
    return layer, np.array(ready, dtype=np.int64)


def find_cycle(edges, depth):
    """Return the claims of a cycle in dependency order, given the depths from `find_depth`.

    Each claim on or after a cycle has a parent that is also on or after a cycle. Therefore, a
    walk from parent to parent eventually returns to a claim that has already been visited. The
    running time is O(claims + edges).
    """
    stuck = depth < 0
    # If a claim has several parents, the first parent is used, because it comes last in the
    # reversed order.
    parent_of = dict(edges[stuck[edges].all(axis=1)][::-1, ::-1].tolist())
    place: dict[int, int] = {}
    v = min(parent_of)
    while v not in place:
        place[v] = len(place)
        v = parent_of[v]
    cycle = list(place)[place[v] :][::-1]
    start = cycle.index(min(cycle))
    return cycle[start:] + cycle[:start]


def find_ancestors(edges, n_claims, v):
    """Return the sorted proper ancestors of a single claim."""
    upwards = coo_array((np.ones(len(edges)), edges.T[::-1]), shape=(n_claims,) * 2)
    reached = breadth_first_order(upwards.tocsr(), v, return_predecessors=False)
    return np.sort(reached[1:]).astype(np.int64)


def find_closure(layers, n_claims):
    """Return each claim together with its ancestors, as (indptr, indices).

    Row v is ``indices[indptr[v]:indptr[v + 1]]``, which is sorted and contains v itself. The
    running time is proportional to the number of claim-ancestor pairs times the number of parents
    per claim.

    The row of a child is the union of its parents' rows, and all claims of a layer are merged in
    one step. Each pair (owner, member) is encoded as the single number owner * n_claims + member.
    Sorting these numbers groups the members of each owner. A member that is inherited from
    several parents occurs several times among the pairs of its owner, and only the first
    occurrence is kept. The rows are appended to ``pool`` layer by layer, and reordered by claim
    at the end. For a small number of claims, such as those of a single answer, a square boolean
    matrix is faster.
    """
    if n_claims <= SMALL:
        square = np.eye(n_claims, dtype=bool)
        for parents, children, starts in layers:
            square[children] |= np.logical_or.reduceat(square[parents], starts)
        return offsets_of(square.sum(axis=1)), np.nonzero(square)[1]
    start = np.arange(n_claims)
    length = np.ones(n_claims, dtype=np.int64)
    pool = np.arange(n_claims)
    used = n_claims  # Initially, the row of a claim contains only the claim itself.
    for parents, children, starts in layers:
        degree = np.append(starts[1:], len(parents)) - starts
        inherited = pool[ranges(start[parents], length[parents])]
        owner = np.repeat(np.repeat(np.arange(len(children)), degree), length[parents])
        key = np.concatenate([owner, np.arange(len(children))]) * np.int64(n_claims)
        key += np.concatenate([inherited, children])
        key.sort(kind="stable")
        owner, members = np.divmod(key[starts_run(key)], n_claims)
        length[children] = np.bincount(owner, minlength=len(children))
        start[children] = used + offsets_of(length[children])[:-1]
        if used + members.size > pool.size:
            pool = np.concatenate([pool[:used], np.empty(used + members.size, int)])
        pool[used : used + members.size] = members
        used += members.size
    return offsets_of(length), pool[ranges(start, length)]
