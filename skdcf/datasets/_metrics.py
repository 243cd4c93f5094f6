"""The ten graph metrics of the paper for a whole batch of acyclic graphs at once.

Same numbers as networkx, claim by claim, from flat arrays. The work is done on the
*pairs* (s, v) in which s reaches v: their number is that of claims and ancestors.
"""

from itertools import pairwise

import numpy as np

from ..graphs._ragged import offsets_of, ranges, segment_ids


def graph_metrics(batch):
    """The metrics of every claim.

    Parameters
    ----------
    batch : GraphBatch

    Returns
    -------
    ndarray of shape (n_claims, 10)
        Columns as in `skdcf.features.GraphFeatures`. Reachability counts descendants;
        depth is the longest path from a source; the rest is as networkx defines it for a
        ``DiGraph``.
    """
    parent, child = batch.edges.T
    n_parents = np.bincount(child, minlength=batch.n_claims)
    n_children = np.bincount(parent, minlength=batch.n_claims)
    indptr, source = batch.closure
    distance, shorter, longer = _distances(batch, indptr, source)
    columns = (
        n_parents,
        n_children,
        _pagerank(batch, n_children),
        _betweenness(batch, source, distance, shorter, longer),
        _closeness(batch, indptr, distance),
        _clustering(batch, n_parents, n_parents + n_children),
        n_parents == 0,
        n_children == 0,
        np.bincount(source, minlength=batch.n_claims) - 1,
        batch.depth,
    )
    return np.stack(columns, axis=1).astype(np.float64)


def _pagerank(batch, n_children, damping=0.85, max_iter=100, tol=1e-6):
    """networkx's power iteration; each graph stops where networkx stops."""
    parent, child = batch.edges.T
    size = batch.sizes[batch.problem_of]
    hanging = n_children == 0
    rank = 1.0 / size
    running = np.ones(len(batch), dtype=bool)
    for _ in range(max_iter):
        flow = (rank / np.maximum(n_children, 1))[parent]
        new = np.bincount(child, flow, minlength=batch.n_claims)
        loose = np.bincount(batch.problem_of, rank * hanging, minlength=len(batch))
        new = damping * (new + loose[batch.problem_of] / size) + (1 - damping) / size
        change = np.bincount(batch.problem_of, abs(new - rank), minlength=len(batch))
        rank = np.where(running[batch.problem_of], new, rank)
        running &= change >= batch.sizes * tol
        if not running.any():
            break
    return rank


def _distances(batch, indptr, source):
    """Length of the shortest path of each pair, and the steps that lie on one.

    Returns
    -------
    distance : ndarray of shape (n_pairs,)
    shorter, longer : ndarrays of shape (n_steps,)
        Pairs (s, v) and (s, w) such that v -> w ends a shortest path from s to w.
    """
    parent, child = batch.edges.T
    n_ancestors = np.diff(indptr)
    step = ranges(indptr[parent], n_ancestors[parent])
    target = np.repeat(child, n_ancestors[parent])
    width = np.int64(batch.n_claims)
    key = segment_ids(indptr) * width + source
    reached = np.searchsorted(key, target * width + source[step])
    distance = np.full(len(source), -1, dtype=np.int64)
    front = segment_ids(indptr) == source
    level = 0
    while front.any():
        distance[front] = level
        found = reached[front[step]]
        front = np.zeros(len(source), dtype=bool)
        front[found[distance[found] < 0]] = True
        level += 1
    tight = distance[step] + 1 == distance[reached]
    return distance, step[tight], reached[tight]


def _betweenness(batch, source, distance, shorter, longer):
    """Brandes' accumulation, over all sources of all graphs together."""
    paths = (distance == 0).astype(np.float64)
    bounds, order = _by_distance(distance[longer])
    rounds = [order[a:b] for a, b in pairwise(bounds)]
    for steps in rounds:
        np.add.at(paths, longer[steps], paths[shorter[steps]])
    share = paths[shorter] / paths[longer]
    depend = np.zeros(len(source))
    for steps in rounds[::-1]:
        gain = share[steps] * (1 + depend[longer[steps]])
        np.add.at(depend, shorter[steps], gain)
    target = segment_ids(batch.closure[0])
    total = np.bincount(target, depend * (distance > 0), minlength=batch.n_claims)
    size = batch.sizes[batch.problem_of]
    return total / np.maximum((size - 1) * (size - 2), 1)


def _by_distance(distance):
    order = np.argsort(distance, kind="stable")
    return offsets_of(np.bincount(distance)), order


def _closeness(batch, indptr, distance):
    """Distances *to* a claim, scaled by the share of claims that reach it."""
    n_before = np.diff(indptr) - 1
    total = np.bincount(segment_ids(indptr), distance, minlength=batch.n_claims)
    others = np.maximum(batch.sizes[batch.problem_of] - 1, 1)
    return n_before**2 / np.maximum(total * others, 1)


def _clustering(batch, n_parents, degree):
    """Triangles through a claim; in an acyclic graph at most half the pairs close."""
    parent, child = batch.edges.T
    first = offsets_of(n_parents)[:-1]
    grandparent = parent[ranges(first[parent], n_parents[parent])]
    middle = np.repeat(parent, n_parents[parent])
    last = np.repeat(child, n_parents[parent])
    width = np.int64(batch.n_claims)
    closed = np.isin(last * width + grandparent, child * width + parent)
    corners = np.concatenate([grandparent[closed], middle[closed], last[closed]])
    triangles = np.bincount(corners, minlength=batch.n_claims)
    return triangles / np.maximum(degree * (degree - 1), 1)
