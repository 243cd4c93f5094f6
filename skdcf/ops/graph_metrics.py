"""Graph metrics of claims, computed for many acyclic graphs in one call.

The values agree with those of networkx, but are computed from flat arrays. Two quantities are
listed:

=========  ==========================================================================
pair       (s, v): claim s is claim v or one of its ancestors
link       (s, u -> v): an edge reachable from s, which leads from pair (s, u) to (s, v)
=========  ==========================================================================

The problems are processed in blocks, which limits the memory usage.
"""

from itertools import pairwise
from typing import Any

import numpy as np

from ..graphs.ragged import offsets_of, ranges, sort_small
from .ancestors import count_ancestors, count_descendants


def compute_metrics(batch, names):
    """Compute the metrics with the given names for every claim.

    Parameters
    ----------
    batch : GraphBatch
        The problems.
    names : sequence of str
        Names from `METRICS`. Metrics that are not requested are not computed.

    Returns
    -------
    metrics : ndarray of shape (n_claims, n_names)
        The metrics, with one column per name.

    Raises
    ------
    ValueError
        If a problem is too large for one of the metrics.
    """
    paths = {} if _PATHS.isdisjoint(names) else _measure_paths(batch, names)
    columns = [paths[n] if n in _PATHS else METRICS[n](batch) for n in names]
    return np.column_stack([np.empty((batch.n_claims, 0)), *columns])


def check_size(batch, names):
    """Raise ValueError if a problem is too large for one of the metrics.

    Parameters
    ----------
    batch : GraphBatch
        The problems.
    names : sequence of str
        Names from `METRICS`.

    Raises
    ------
    ValueError
        If a problem has more than 20 million links. The error message contains the name of the
        problem.
    """
    parent, child = batch.edges.T
    if "nx_clustering" in names:
        _check_links(batch, _count_parents(batch)[parent], "nx_clustering")
    if what := " and ".join(name for name in names if name in _PATHS):
        has_many_paths = ~batch.is_forest[batch.problem_of[child]]
        # Check the depth first, because it is already known and is at most the number of
        # ancestors.
        _check_links(batch, has_many_paths * (batch.depth[parent] + 1), what)
        _check_links(batch, has_many_paths * (count_ancestors(batch)[parent] + 1), what)


def _count_parents(batch):
    return np.bincount(batch.edges[:, 1], minlength=batch.n_claims)


def _count_children(batch):
    return np.bincount(batch.edges[:, 0], minlength=batch.n_claims)


def _rank_pages(batch, damping=0.85, max_iter=100, tol=1e-6):
    """Compute PageRank by power iteration, with the stopping rule of networkx."""
    (parent, child), home = batch.edges.T, batch.problem_of
    n_children = _count_children(batch)
    size = batch.sizes[home]
    rank = 1.0 / size
    running = np.ones(len(batch), dtype=bool)
    for _ in range(max_iter):
        flow = (rank / np.maximum(n_children, 1))[parent]
        new = np.bincount(child, flow, minlength=batch.n_claims)
        loose = np.bincount(home, rank * (n_children == 0), minlength=len(batch))
        new = damping * (new + loose[home] / size) + (1 - damping) / size
        change = np.bincount(home, abs(new - rank), minlength=len(batch))
        rank = np.where(running[home], new, rank)
        running &= change >= batch.sizes * tol
        if not running.any():
            break
    return rank


def _cluster(batch):
    """Compute clustering coefficients from the number of triangles at each claim."""
    parent, child = batch.edges.T
    n_parents = _count_parents(batch)
    first = offsets_of(n_parents)[:-1]
    width = np.int64(batch.n_claims)
    key = child * width + parent  # `key` is sorted, because the edges are sorted.
    triangles = np.zeros(batch.n_claims, dtype=np.int64)
    for a, b in _cut_blocks(n_parents[parent]):
        n_above = n_parents[parent[a:b]]
        above = parent[ranges(first[parent[a:b]], n_above)]
        shortcut = np.repeat(child[a:b] * width, n_above) + above
        closed = np.append(key, -1)[np.searchsorted(key, shortcut)] == shortcut
        edge = np.repeat(np.arange(a, b), n_above)[closed]
        corners = np.concatenate([above[closed], parent[edge], child[edge]])
        triangles += np.bincount(corners, minlength=batch.n_claims)
    degree = n_parents + _count_children(batch)
    return triangles / np.maximum(degree * (degree - 1), 1)


#: Function that computes each metric. Shortest-path metrics are computed together.
METRICS: dict[str, Any] = {
    "nx_in_degree": _count_parents,
    "nx_out_degree": _count_children,
    "nx_pagerank": _rank_pages,
    "nx_betweenness": None,
    "nx_closeness": None,
    "nx_clustering": _cluster,
    "nx_is_source": lambda batch: _count_parents(batch) == 0,
    "nx_is_sink": lambda batch: _count_children(batch) == 0,
    "nx_reachability": count_descendants,
    "nx_depth_from_sources": lambda batch: batch.depth,
    "n_ancestors": count_ancestors,
}
PAPER_METRICS = tuple(METRICS)[:10]
_PATHS = {"nx_betweenness", "nx_closeness"}


def _check_links(batch, n_links, name):
    """Raise ValueError if a problem has too many links, given the number of links per edge."""
    problem = batch.problem_of[batch.edges[:, 1]]
    total = np.bincount(problem, n_links, minlength=len(batch))
    if total.max(initial=0) > 20_000_000:  # They require about 1 GB.
        i = int(total.argmax())
        raise ValueError(
            f"{batch.name_of(i)} is too large for {name}, because its {batch.sizes[i]:,} "
            f"claims and {np.diff(batch.edge_offsets)[i]:,} edges require at least "
            f"{total[i]:,.0f} operations, and the limit is 20,000,000. Remove {name} "
            'from the metrics, for example GraphFeatures(["nx_in_degree", '
            '"nx_out_degree", "nx_depth_from_sources"])'
        )


def _cut_blocks(weights):
    """Yield ranges of consecutive items, each with a total weight of about 300,000."""
    total = np.cumsum(weights)
    marks = np.arange(300_000, total.max(initial=0), 300_000)
    cuts = np.searchsorted(total, marks, side="right")
    return pairwise(np.unique([0, *cuts, len(weights)]).tolist())


def _measure_paths(batch, names):
    """Compute closeness and, if requested in ``names``, betweenness."""
    # If a problem is not a forest, two claims may be connected by more than one path.
    has_many_paths = ~batch.is_forest
    n_above = count_ancestors(batch)
    # In a forest, the betweenness of a claim is the number of its ancestors times the number of
    # its descendants.
    distance = n_above * (n_above + 1) // 2
    between = n_above * count_descendants(batch).astype(np.float64)
    if has_many_paths.any():
        rows = has_many_paths[batch.problem_of]
        with_between = "nx_betweenness" in names
        paths = _walk_paths(batch[has_many_paths], with_between)
        distance[rows], between[rows] = paths
    size = batch.sizes[batch.problem_of]
    scale = np.maximum(distance * np.maximum(size - 1, 1), 1)
    return {
        "nx_betweenness": between / np.maximum((size - 1) * (size - 2), 1),
        "nx_closeness": n_above**2 / scale,
    }


def _walk_paths(batch, with_between):
    """Return the total distance to each claim and its unnormalised betweenness."""
    parent, child = batch.edges.T
    n_links = count_ancestors(batch)[parent] + 1
    n_links = np.bincount(batch.problem_of[child], n_links, minlength=len(batch))
    parts = [_walk_pairs(batch[a:b], with_between) for a, b in _cut_blocks(n_links)]
    return np.concatenate(parts, axis=1)


def _walk_pairs(batch, with_between):
    """Return the same for a block of problems, as an array of two rows."""
    indptr, source = batch.closure
    n_pairs = np.diff(indptr)
    target = np.repeat(np.arange(batch.n_claims), n_pairs)
    parent, child = batch.edges.T
    # Positions of the pair (s, u) at the start of each link, and of the pair (s, v) at its end.
    shorter = ranges(indptr[parent], n_pairs[parent])
    width = np.int64(batch.n_claims)
    pair = np.repeat(child * width, n_pairs[parent]) + source[shorter]
    longer = np.searchsorted(target * width + source, pair)
    length = np.where(source == target, 0, batch.n_claims)
    for links in _group(batch.depth[target[longer]]):
        np.minimum.at(length, longer[links], length[shorter[links]] + 1)
    passing = length
    if with_between:
        passing = _accumulate(length, shorter, longer)
    return np.bincount(target, length), np.bincount(target, passing)


def _accumulate(distance, shorter, longer):
    """Use Brandes' algorithm to compute the fraction of shortest paths from s that pass through
    v."""
    tight = distance[shorter] + 1 == distance[longer]
    shorter = shorter[tight]
    longer = longer[tight]
    rounds = _group(distance[longer])
    n_paths = (distance == 0).astype(np.float64)
    with np.errstate(over="ignore"):
        for links in rounds:
            np.add.at(n_paths, longer[links], n_paths[shorter[links]])
    if np.isinf(n_paths).any():
        raise ValueError(
            "nx_betweenness supports at most 1e308 shortest paths between two claims, "
            "but one problem has more. Remove nx_betweenness from the metrics"
        )
    share = n_paths[shorter] / n_paths[longer]
    depend = np.zeros(len(distance))
    for links in rounds[::-1]:
        np.add.at(depend, shorter[links], share[links] * (1 + depend[longer[links]]))
    return depend * (distance > 0)


def _group(keys):
    """Return one array of indices per distinct key, in increasing order of keys."""
    order, bounds = sort_small(keys)
    return [order[a:b] for a, b in pairwise(np.unique(bounds))]
