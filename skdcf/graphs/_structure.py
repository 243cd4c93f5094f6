"""What follows from the edges alone: depth, cycles, ancestors.

Edges are an (n_edges, 2) array of (parent, child) claim numbers, distinct and
sorted by (child, parent). All functions work on one graph and on many graphs
laid side by side: a packed batch is one large graph without edges between problems.
"""

import itertools

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import breadth_first_order

from .ragged import NARROW, offsets_of, ranges, sort_by_rank


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

    Kahn's algorithm, one level at a time for all graphs: O(claims + edges).
    """
    parent, child = edges[:, 0], edges[:, 1]
    by_parent = np.argsort(parent, kind="stable")
    children = child[by_parent]
    n_children = np.bincount(parent, minlength=n_claims)
    first = offsets_of(n_children)[:-1]
    missing = np.bincount(child, minlength=n_claims)
    depth = np.full(n_claims, -1, dtype=np.int32)
    mark = np.empty(n_claims, dtype=np.int64)
    level, ready = 0, np.flatnonzero(missing == 0)
    while ready.size:
        if n_children[ready].sum() < NARROW and ready.size < NARROW:
            level, ready = _walk(
                level, ready, depth, missing, children, first, n_children
            )
            continue
        depth[ready] = level
        reached = children[ranges(first[ready], n_children[ready])]
        np.subtract.at(missing, reached, 1)
        reached = reached[missing[reached] == 0]
        # A claim that two parents of this level reach stands here twice. The last to
        # write its position stays, so that each is kept once and nothing is sorted.
        position = np.arange(reached.size)
        mark[reached] = position
        ready = reached[mark[reached] == position]
        level += 1
    return depth


def _walk(level, ready, depth, missing, children, first, n_children):
    """The same, claim by claim, as long as few are ready and they have few children."""
    ready = ready.tolist()
    while ready and len(ready) < NARROW:
        reached = []
        for v in ready:
            a = first[v]
            reached += children[a : a + n_children[v]].tolist()
        if len(reached) >= NARROW:
            break
        depth[ready] = level
        ready = []
        for v in reached:
            missing[v] -= 1
            if not missing[v]:
                ready.append(v)
        level += 1
    return level, np.array(ready, dtype=np.int64)


def find_cycle(edges, depth):
    """Claims of one cycle in order of dependence, where ``depth`` has a -1.

    Each claim on or behind a cycle has a parent that is too. From parent to parent, the
    walk therefore comes back to where it was before: O(claims + edges).
    """
    stuck = depth < 0
    parent_of: dict[int, int] = {}
    for parent, child in edges[stuck[edges].all(axis=1)].tolist():
        parent_of.setdefault(child, parent)
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
    found = breadth_first_order(upwards.tocsr(), v, return_predecessors=False)
    return np.sort(found[1:]).astype(np.int64)


def find_levels(edges, rank):
    """Edges by rank of their child, as (parents, children, starts) per level.

    ``rank`` grows along every edge. ``children`` are distinct, and the parents of
    ``children[i]`` are ``parents[starts[i]:starts[i + 1]]``: what ``reduceat`` needs.
    """
    if not len(edges):
        return []
    parent, child, bounds = sort_by_rank(edges, rank[edges[:, 1]])
    out = []
    for a, b in itertools.pairwise(np.unique(bounds)):
        new = np.flatnonzero(np.diff(child[a:b], prepend=-1))
        out.append((parent[a:b], child[a:b][new], new))
    return out


def find_closure(levels, n_claims):
    """Each claim with all its ancestors, as (indptr, indices).

    Row v is ``indices[indptr[v]:indptr[v + 1]]``, sorted, and contains v.
    The cost is the number of pairs times the number of direct parents.

    A child's row is the union of its parents' rows, and the rows of a whole level are
    united at once: a pair (owner, member) becomes the single number owner * n_claims +
    member, so that one sort of numbers brings each owner's members together, in order,
    with the same member of several parents side by side, where only its first is kept.
    Rows are written one behind the other to ``pool``, level by level, and are put in
    the order of the claims at the end.
    """
    start = np.arange(n_claims)
    length = np.ones(n_claims, dtype=np.int64)
    pool, used = np.arange(n_claims), n_claims  # at first, each claim has itself
    for parents, children, starts in levels:
        n_parents = np.diff(starts, append=len(parents))
        inherited = pool[ranges(start[parents], length[parents])]
        owner = np.repeat(
            np.repeat(np.arange(len(children)), n_parents), length[parents]
        )
        key = np.concatenate([owner, np.arange(len(children))]) * np.int64(n_claims)
        key += np.concatenate([inherited, children])
        key.sort(kind="stable")
        owner, members = np.divmod(key[np.diff(key, prepend=-1) > 0], n_claims)
        length[children] = np.bincount(owner, minlength=len(children))
        start[children] = used + offsets_of(length[children])[:-1]
        if used + members.size > pool.size:
            pool = np.concatenate([pool[:used], np.empty(used + members.size, int)])
        pool[used : used + members.size] = members
        used += members.size
    return offsets_of(length), pool[ranges(start, length)]
