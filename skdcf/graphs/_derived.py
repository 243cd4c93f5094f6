"""Properties of a batch that follow from offsets and edges, computed when asked for.

A value is passed on from parents to children, so that all rests on an order in which parents
stand first. Each property below follows from those above it:

=================  ==================================================================
sizes, problem_of  the problem of each claim
depth              the longest path to a claim from one without parents
rank               any number that grows along edges, which is all that an order needs
layers             edges by the rank of their child, for lists of ancestors
sweep              the same for sums and maxima over ancestors, which need no lists
short_sweep        fewer edges, where an ancestor may be counted once or twice
small_closure      ancestors of each claim in problems of at most 64 claims
closure            and in large ones, by rows of bits
=================  ==================================================================

Times in the comments are for 20,000 problems with 148,699 claims in all, on one core.
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

# Claims of a problem. Above, rows of bits are faster than lists of ancestors, and below,
# the lists of all problems at once.
SMALL = 64
LISTED = 250  # and up to so many claims the lists, if the problem has few edges
MOST_PAIRS = 50_000_000  # pairs of claim and ancestor in one problem, which take 0.4 GB
DENSE = 8  # edges per claim; above, few are needed where an ancestor may count twice


class Names:
    """How messages name the problems and the claims of a batch."""

    def __init__(self, ids: Any, offsets: Any) -> None:
        self.ids = ids
        self.offsets = offsets

    def name_of(self, i: int) -> str:
        """How messages name a problem.

        Parameters
        ----------
        i : int
            Position of the problem.

        Returns
        -------
        str
            Such as ``problem 3 ("q7")``.
        """
        named = self.ids is not None and self.ids[i] is not None
        return f"problem {i}" + (f' ("{printable(self.ids[i])}")' if named else "")

    def locate(self, row: int) -> str:
        """How messages name a claim.

        Parameters
        ----------
        row : int
            Row number of the claim.

        Returns
        -------
        str
            Such as ``problem 3 ("q7"), claim 2``.
        """
        i = int(np.searchsorted(self.offsets, row, side="right")) - 1
        return f"{self.name_of(i)}, claim {row - self.offsets[i]}"

    def at(self, i: int | None = None) -> str:
        """How a message begins that is about one problem, or about all of them.

        Parameters
        ----------
        i : int, optional
            Position of the problem.

        Returns
        -------
        str
            The name with a colon behind it; empty where ``i`` is None.
        """
        return "" if i is None else f"{self.name_of(i)}: "


class OneName(Names):
    """How messages name a graph on its own, and its claims."""

    def __init__(self, id):
        self.name = "" if id is None else f'problem "{printable(id)}"'

    def at(self, i=None):
        """The name of the problem, where it has one."""
        return self.name and f"{self.name}: "

    def locate(self, row):
        """The name of a claim."""
        return f"{self.at()}claim {row}"


class Structure(Names):
    """Depth, layers and ancestors of packed problems."""

    features: NDArray[np.float64] | None
    offsets: NDArray[np.int64]
    edges: NDArray[np.int64]
    edge_offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def shape(self) -> tuple[int]:
        """(n_graphs,), so that scikit-learn slices a batch whole."""
        return (len(self),)

    @property
    def n_claims(self) -> int:
        """Number of claims in all problems together."""
        return int(self.offsets[-1])

    @property
    def n_features(self) -> int | None:
        """Number of feature columns; None while only text is known."""
        return None if self.features is None else self.features.shape[1]

    def split(self, values: NDArray[Any]) -> NDArray[np.object_]:
        """One view of flat values per problem.

        Parameters
        ----------
        values : ndarray of shape (n_claims, ...)
            One row per claim, problem after problem.

        Returns
        -------
        object ndarray of shape (n_graphs,)
            Views of ``values``.
        """
        bounds = self.offsets.tolist()
        views = map(values.__getitem__, map(slice, bounds[:-1], bounds[1:]))
        return np.fromiter(views, dtype=object, count=len(bounds) - 1)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Number of claims of each problem, shape (n_graphs,)."""
        return np.diff(self.offsets)

    @cached_property
    def problem_of(self) -> NDArray[np.int64]:
        """Number of the problem that each claim belongs to, shape (n_claims,)."""
        return ragged.segment_ids(self.offsets)

    @cached_property
    def depth(self) -> NDArray[np.int32]:
        """Longest path from a source to each claim, shape (n_claims,)."""
        return find_depth(self.edges, self.n_claims)

    @cached_property
    def rank(self) -> NDArray[Any]:
        """A number per claim that grows along every edge and is small.

        Where parents stand first, the place in the problem will do for the depth. In a
        large problem it may have many more values: a star has two depths.
        """
        # The depth takes 7.3 ms, the place in the problem .7 ms.
        if len(self.large) or (self.edges[:, 0] > self.edges[:, 1]).any():
            return self.depth
        return np.arange(self.n_claims) - self.offsets[:-1][self.problem_of]

    @cached_property
    def layers(self) -> list[Layer]:
        """Edges in an order that visits parents first, all of a layer together."""
        return find_layers(self.edges, self.rank)

    @cached_property
    def sweep(self) -> Sweep:
        """The same order for passing values on, with narrow layers edge by edge.

        ``edges.pass_on(ufunc, values)``, one after the other, joins to the value of each
        claim those of its ancestors; see `skdcf.ops.ancestors.pass_on`.
        """
        # Passing values on takes 1.6 ms, where a list of all ancestors would take 29 ms.
        return find_sweep(self.edges, self.rank[self.edges[:, 1]], self.offsets)

    @cached_property
    def short_sweep(self) -> Sweep:
        """As `sweep`, where it does no harm that an ancestor counts twice, or once.

        In large problems with many edges, those to an ancestor of another parent are
        passed over: of a complete graph hardly more than a chain is left. To find them
        costs more than passing values on once, so that this pays where it is done often.
        """
        # Of a complete graph of 600 claims, values are passed on in .13 ms and not in .87,
        # after the 19 ms that this takes.
        n_edges = np.diff(self.edge_offsets)
        dense = np.flatnonzero((self.sizes > SMALL) & (n_edges > DENSE * self.sizes))
        if not len(dense):
            return self.sweep
        kept = ~np.isin(self.problem_of, dense)[self.edges[:, 1]]
        needed = [self.lineage(i).needed() + self.offsets[i] for i in dense.tolist()]
        edges = np.concatenate([self.edges[kept], *needed])
        edges = edges[np.argsort(edges[:, 1], kind="stable")]
        return find_sweep(edges, self.rank[edges[:, 1]], self.offsets)

    def sweep_of(self, problems: NDArray[np.int64]) -> Sweep:
        """As `sweep`, inside some problems only.

        Parameters
        ----------
        problems : ndarray of int
            Their positions.

        Returns
        -------
        list
            Their edges, parents first.
        """
        # Of every twentieth problem this takes .9 ms, and the sweep of all 3.7 ms.
        n_edges = np.diff(self.edge_offsets)[problems]
        inside = ranges(self.edge_offsets[problems], n_edges)
        edges = np.take(self.edges, inside, axis=0)
        small = (self.sizes[problems] <= SMALL).all()
        if small and (edges[:, 0] < edges[:, 1]).all():
            place = edges[:, 1] - np.repeat(self.offsets[problems], n_edges)
            return find_sweep(edges, place, self.offsets)
        return find_sweep(edges, self.rank[edges[:, 1]], self.offsets)

    @cached_property
    def closure(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Each claim with all its ancestors, as (indptr, indices).

        Those of the claim in row v are the rows ``indices[indptr[v]:indptr[v + 1]]``,
        sorted, and v is one of them. A sum or a maximum over ancestors needs no such
        list: see `skdcf.ops.ancestors`.

        Raises
        ------
        ValueError
            If a problem has more than 50,000,000 pairs of claim and ancestor.
        """
        starts, listed = self.listed_closure
        if not len(self.unlisted):
            return starts, listed

        # The others are listed one by one, and their lists set between those.
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
        """As `closure`, but claims of large problems stand there by themselves."""
        return self._close_without(self.large)

    @cached_property
    def listed_closure(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """As `closure`, but claims of problems that are ``unlisted`` stand there by themselves."""
        if len(self.unlisted) == len(self.large):
            return self.small_closure
        return self._close_without(self.unlisted)

    def _close_without(self, problems):
        """As `closure`, but the claims of some problems stand there by themselves."""
        # All small problems at once take 29 ms; one after the other would take seconds.
        if not len(problems):
            return find_closure(self.layers, self.n_claims)
        inside = ~np.isin(self.problem_of, problems)[self.edges[:, 1]]
        layers = find_layers(self.edges[inside], self.rank)
        return find_closure(layers, self.n_claims)

    @cached_property
    def large(self) -> NDArray[np.int64]:
        """Numbers of the problems with more than 64 claims."""
        return np.flatnonzero(self.sizes > SMALL)

    @cached_property
    def unlisted(self) -> NDArray[np.int64]:
        """Numbers of the large problems whose ancestors are not listed at once.

        These are forests, where no list is needed, and problems with more than 250 claims or
        with many edges.
        """
        has_few_edges = np.diff(self.edge_offsets) <= DENSE * self.sizes
        is_listed = (self.sizes <= LISTED) & has_few_edges & ~self.is_forest
        return self.large[~is_listed[self.large]]

    @cached_property
    def is_forest(self) -> NDArray[np.bool_]:
        """Whether each claim of a problem has one parent at most, shape (n_graphs,)."""
        # This takes 1 ms, and spares such problems the search for other paths.
        has_second_parent = self.edges[1:, 1] == self.edges[:-1, 1]
        problem = self.problem_of[self.edges[1:, 1][has_second_parent]]
        return np.bincount(problem, minlength=len(self.sizes)) == 0

    def lineage(self, i: int) -> Lineage:
        """The edges of one problem, for rows of bits.

        Parameters
        ----------
        i : int
            Position of the problem.

        Returns
        -------
        Lineage
            It is kept, so that asking again costs nothing.
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
        """Claims and their ancestors, if they are listed, in numbers of the problem's own."""
        a, b = self.offsets[i : i + 2]
        if b - a <= SMALL or i in self.unlisted:
            return None
        indptr, indices = self.listed_closure
        claims = np.repeat(np.arange(b - a), np.diff(indptr[a : b + 1]))
        return claims, indices[indptr[a] : indptr[b]] - a

    def _list_pairs(self, i):
        """Claims and their ancestors, in numbers of the problem's own."""
        lineage = self.lineage(i)
        rows = slice(*self.offsets[i : i + 2])
        # Pairs along the longest paths; in a forest, these are all.
        least = lineage.n_claims + int(self.depth[rows].sum(dtype=np.int64))
        if least <= MOST_PAIRS and not self.is_forest[i]:
            least = lineage.sums(np.ones(lineage.n_claims, dtype=np.int64)).sum()
        if least > MOST_PAIRS:
            raise ValueError(
                f"{self.name_of(i)} is too large for a list of all ancestors: "
                f"its {lineage.n_claims:,} claims have {least:,} pairs of claim and "
                f"ancestor or more, and {MOST_PAIRS:,} is the most. The list is needed by "
                "GridRelaxation, PathRelaxation with a max_temperature, FrequencyScorer "
                "over descendants, nx_betweenness and nx_closeness: choose "
                'PathRelaxation(), over="children" or other metrics instead'
            )
        return lineage.pairs()


def sort_edges(edges, n_claims):
    """Distinct edges sorted by (child, parent).

    Each edge is sorted as one whole number, the child in its upper bits: that is faster
    than a sort by two columns, and equal edges stand side by side.
    """
    shift = int(n_claims).bit_length()
    key = (edges[:, 1] << shift) | edges[:, 0]
    if (key[1:] > key[:-1]).all():
        return edges
    key.sort(kind="stable")
    key = key[np.concatenate([[True], key[1:] > key[:-1]])]
    return np.stack([key & ((1 << shift) - 1), key >> shift], axis=1)


def find_depth(edges, n_claims):
    """Longest path from a source to each claim, -1 on and behind a cycle.

    Kahn's algorithm, one layer at a time for all graphs: O(claims + edges).
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
        # A claim that two parents of this layer reach stands here twice. The last to
        # write its position stays, so that each is kept once and nothing is sorted.
        position = np.arange(reached.size)
        mark[reached] = position
        ready = reached[mark[reached] == position]
        layer += 1
    return depth


def _walk(layer, ready, depth, missing, children, first, count):
    """The same, claim by claim, as long as few are ready and they have few children."""
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
    """Claims of one cycle in order of dependence, where ``depth`` has a -1.

    Each claim on or behind a cycle has a parent that is too. From parent to parent, the
    walk therefore comes back to where it was before: O(claims + edges).
    """
    stuck = depth < 0
    # The first of several parents counts, which is the last here.
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
    """Sorted proper ancestors of one claim, without a look at those of the others."""
    upwards = coo_array((np.ones(len(edges)), edges.T[::-1]), shape=(n_claims,) * 2)
    reached = breadth_first_order(upwards.tocsr(), v, return_predecessors=False)
    return np.sort(reached[1:]).astype(np.int64)


def find_closure(layers, n_claims):
    """Each claim with all its ancestors, as (indptr, indices).

    Row v is ``indices[indptr[v]:indptr[v + 1]]``, sorted, and contains v.
    The cost is the number of pairs times the number of direct parents.

    A child's row is the union of its parents' rows, and the rows of a whole layer are
    united at once: a pair (owner, member) becomes the single number owner * n_claims +
    member, so that one sort of numbers brings each owner's members together, in order,
    with the same member of several parents side by side, where only its first is kept.
    Rows are written one behind the other to ``pool``, layer by layer, and are put in
    the order of the claims at the end. A few claims, as of one answer, are sooner done as
    rows of a square.
    """
    if n_claims <= SMALL:
        square = np.eye(n_claims, dtype=bool)
        for parents, children, starts in layers:
            square[children] |= np.logical_or.reduceat(square[parents], starts)
        return offsets_of(square.sum(axis=1)), np.nonzero(square)[1]
    start = np.arange(n_claims)
    length = np.ones(n_claims, dtype=np.int64)
    pool = np.arange(n_claims)
    used = n_claims  # at first, each claim has itself alone
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
