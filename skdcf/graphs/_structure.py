"""What follows from the edges alone: depth, cycles, ancestors.

Edges are an (n_edges, 2) array of (parent, child) claim numbers, distinct and
sorted by (child, parent). All functions work on one graph and on many graphs
laid side by side: a packed batch is one large graph without edges between problems.
"""

import itertools

import numpy as np

from ._ragged import offsets_of, ranges


def sort_edges(edges, n_claims):
    """Distinct edges sorted by (child, parent)."""
    shift = int(n_claims).bit_length()
    key = (edges[:, 1] << shift) | edges[:, 0]
    if (key[1:] > key[:-1]).all():
        return edges
    key.sort()
    key = key[np.concatenate([[True], key[1:] > key[:-1]])]
    return np.stack([key & ((1 << shift) - 1), key >> shift], axis=1)


def depths(edges, n_claims):
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
        depth[ready] = level
        reached = children[ranges(first[ready], n_children[ready])]
        np.subtract.at(missing, reached, 1)
        reached = reached[missing[reached] == 0]
        position = np.arange(reached.size)
        mark[reached] = position
        ready = reached[mark[reached] == position]
        level += 1
    return depth


def find_cycle(edges, depth):
    """Claims of one cycle in order of dependence, where ``depth`` has a -1."""
    stuck = depth < 0
    parent_of = {}
    for parent, child in edges[stuck[edges].all(axis=1)].tolist():
        parent_of.setdefault(child, parent)
    walk = [min(parent_of)]
    while parent_of[walk[-1]] not in walk:
        walk.append(parent_of[walk[-1]])
    cycle = walk[walk.index(parent_of[walk[-1]]) :][::-1]
    start = cycle.index(min(cycle))
    return cycle[start:] + cycle[:start]


def levels(edges, rank):
    """Edges by rank of their child, as (parents, children, starts) per level.

    ``rank`` grows along every edge. ``children`` are distinct, and the parents of
    ``children[i]`` are ``parents[starts[i]:starts[i + 1]]``: what ``reduceat`` needs.
    """
    rank = rank[edges[:, 1]]
    if rank.size and rank.max() < 2**15:
        rank = rank.astype(np.int16)  # radix sort
    order = np.argsort(rank, kind="stable")
    parent, child = edges[order, 0], edges[order, 1]
    bounds = np.unique(offsets_of(np.bincount(rank)))
    out = []
    for a, b in itertools.pairwise(bounds):
        new = np.flatnonzero(np.diff(child[a:b], prepend=-1))
        out.append((parent[a:b], child[a:b][new], new))
    return out


def closure(levels, n_claims):
    """Ancestor lists as (indptr, indices): each claim with all its ancestors.

    Row v is ``indices[indptr[v]:indptr[v + 1]]``, sorted, and contains v.
    The cost is the number of pairs times the number of direct parents.
    """
    start = np.arange(n_claims)
    length = np.ones(n_claims, dtype=np.int64)
    pool, used = np.arange(n_claims), n_claims
    for parents, children, starts in levels:
        n_parents = np.diff(starts, append=len(parents))
        inherited = pool[ranges(start[parents], length[parents])]
        owner = np.repeat(
            np.repeat(np.arange(len(children)), n_parents), length[parents]
        )
        key = np.concatenate([owner, np.arange(len(children))]) * np.int64(n_claims)
        key += np.concatenate([inherited, children])
        key.sort()
        owner, members = np.divmod(key[np.diff(key, prepend=-1) > 0], n_claims)
        length[children] = np.bincount(owner, minlength=len(children))
        start[children] = used + offsets_of(length[children])[:-1]
        if used + members.size > pool.size:
            pool = np.concatenate([pool[:used], np.empty(used + members.size, int)])
        pool[used : used + members.size] = members
        used += members.size
    return offsets_of(length), pool[ranges(start, length)]
