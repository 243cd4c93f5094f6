"""Graph metrics of claims, computed for many acyclic graphs in one call.

The values agree with those of networkx. Shortest paths are counted for all pairs of a claim and
one of its ancestors together, one layer of claims after another.
"""

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from .._arrays import ranges, starts_run
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
    paths = {} if _PATHS.isdisjoint(names) else _measure_paths(batch)
    columns = [paths[n] if n in _PATHS else METRICS[n](batch) for n in names]
    return np.column_stack([np.empty((batch.n_claims, 0)), *columns])


def check_size(batch, names):
    """Raise ValueError if a problem is too large for one of the named metrics."""
    large = sorted({*names} & {*_PATHS, "nx_clustering"})
    size = batch.sizes.max(initial=0)
    # A larger problem may have more paths than a float can count.
    if large and size > 1500:
        raise ValueError(
            f"{batch.name_of(batch.sizes.argmax())} must have at most 1,500 claims for "
            f"{' and '.join(large)}, got {size:,}. Remove these metrics"
        )


def _count_parents(batch):
    return np.bincount(batch.edges[:, 1], minlength=batch.n_claims)


def _count_children(batch):
    return np.bincount(batch.edges[:, 0], minlength=batch.n_claims)


def _rank_pages(batch):
    """Compute PageRank by power iteration, with the settings and stopping rule of networkx."""
    damping = 0.85
    (parent, child), home = batch.edges.T, batch.problem_of
    n_children = _count_children(batch)
    size = batch.sizes[home]
    rank = 1.0 / size
    running = np.ones(len(batch), bool)
    for _ in range(100):
        flow = (rank / np.maximum(n_children, 1))[parent]
        new = np.bincount(child, flow, minlength=batch.n_claims)
        loose = np.bincount(home, rank * (n_children == 0), minlength=len(batch))
        new = damping * (new + loose[home] / size) + (1 - damping) / size
        change = np.bincount(home, abs(new - rank), minlength=len(batch))
        rank = np.where(running[home], new, rank)
        running &= change >= batch.sizes * 1e-6
        if not running.any():
            break
    return rank


def _cluster(batch):
    """Compute clustering coefficients from the number of triangles at each claim."""
    shape = batch.n_claims, batch.n_claims
    links = csr_array((np.ones(len(batch.edges)), batch.edges.T), shape=shape)
    # Each edge that is a shortcut has one triangle for each claim in between.
    shortcuts = (links @ links).multiply(links)
    between = (links.T @ links).multiply(links)
    triangles = shortcuts.sum(axis=0) + shortcuts.sum(axis=1) + between.sum(axis=1)
    degree = _count_parents(batch) + _count_children(batch)
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


def _measure_paths(batch):
    # In a forest, the betweenness of a claim is the number of its ancestors times the number of
    # its descendants.
    n_above = count_ancestors(batch)
    distance = n_above * (n_above + 1) // 2
    between = 1.0 * n_above * count_descendants(batch)
    child = batch.edges[:, 1]
    others = np.unique(batch.problem_of[child[~starts_run(child)]])
    rows = np.isin(batch.problem_of, others)
    if rows.any():
        rest = batch if rows.all() else batch[others]
        distance[rows], between[rows] = _walk(rest)
    size = batch.sizes[batch.problem_of]
    return {
        "nx_betweenness": between / np.maximum((size - 1) * (size - 2), 1),
        "nx_closeness": n_above**2 / np.maximum(distance * (size - 1), 1),
    }


def _walk(batch):
    """Return the total distance of each claim from its ancestors, and the paths through it."""
    n = batch.n_claims
    parent, child = batch.edges.T
    indptr, all_sources = batch.closure
    all_targets = np.repeat(np.arange(n), np.diff(indptr))
    distances = np.zeros(n, np.int64)
    between = np.zeros(n)
    order = np.argsort(batch.depth[child], kind="stable")
    ends = np.cumsum(np.bincount(batch.depth[child]))
    layers = np.split(order, ends[:-1])
    # A link leads from the pair (source, parent) to the pair (source, child). A dense problem has
    # many more links than pairs, so the sources are processed in parts.
    n_links = np.bincount(all_sources, _count_children(batch)[all_targets], n)
    part_size = max(1e6, len(all_sources) / 2)
    part_of = (np.cumsum(n_links) // part_size)[all_sources]
    for part in range(int(part_of.max()) + 1):
        rows = np.flatnonzero(part_of == part)
        source, target = all_sources[rows], all_targets[rows]
        pairs = target * n + source
        first = np.searchsorted(target, np.arange(n + 1))
        n_sources = np.diff(first)
        n_paths = 1.0 * (source == target)
        distance = np.where(source == target, 0, n)
        links = []
        for layer in layers:
            sizes = n_sources[parent[layer]]
            near = ranges(first[parent[layer]], sizes)
            to = np.repeat(child[layer] * n, sizes) + source[near]
            far = np.searchsorted(pairs, to)
            np.minimum.at(distance, far, distance[near] + 1)
            is_shortest = distance[near] < distance[far]
            near, far = near[is_shortest], far[is_shortest]
            np.add.at(n_paths, far, n_paths[near])
            links.append((near, far))
        # The weight of each path is divided among the claims on it. The deepest claims are
        # processed first (Brandes).
        weight = np.zeros(len(source))
        for near, far in links[::-1]:
            np.add.at(weight, near, 1 / n_paths[far] + weight[far])
        weight[source == target] = 0
        # The terms are added one by one, so the sums do not depend on the parts.
        np.add.at(distances, target, distance)
        np.add.at(between, target, weight * n_paths)
    return distances, between
