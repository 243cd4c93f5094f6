"""Graph metrics of claims, computed for many acyclic graphs in one call.

The values agree with those of networkx, but are computed from flat arrays. Two quantities are
listed:

=========  ==========================================================================
pair       (s, v): claim s is claim v or one of its ancestors
link       (s, u -> v): an edge reachable from s, which leads from pair (s, u) to (s, v)
=========  ==========================================================================

Shortest paths from different source claims can be computed independently. Links are therefore
processed in blocks of adjacent source claims, which limits the memory usage. A single very large
problem can still require too much memory.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np

from ..graphs import GraphBatch
from ..graphs.ragged import offsets_of, ranges, sort_small
from .ancestors import count_ancestors, count_descendants

# maximum number of links in a problem (processing the maximum takes about ten seconds)
MOST_LINKS = 50_000_000
_BLOCK = (
    2_000_000  # number of links processed at a time (each block requires about 200 MB)
)


def compute_metrics(batch: GraphBatch, names: Sequence[str]) -> np.ndarray:
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
        If a problem is too large for one of the metrics (see `MOST_LINKS`).
    """
    check_size(batch, names)
    paths = {} if _PATHS.isdisjoint(names) else _measure_paths(batch, names)
    columns = []
    for name in names:
        measure = METRICS[name]
        columns.append(paths[name] if measure is None else measure(batch))
    return np.column_stack([np.empty((batch.n_claims, 0)), *columns])


def check_size(batch: GraphBatch, names: Sequence[str]) -> None:
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
        If a problem has more than `MOST_LINKS` links. The error message contains the name of the
        problem.
    """
    parent, child = batch.edges.T
    if "nx_clustering" in names:
        _check_links(batch, _count_parents(batch)[parent], "nx_clustering")
    if not _PATHS.isdisjoint(names):
        has_many_paths = ~batch.is_forest[batch.problem_of[child]]
        what = " and ".join(name for name in METRICS if name in _PATHS & {*names})
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


#: Function that computes each metric. None marks shortest-path metrics, which are computed
#: together.
METRICS: dict[str, Callable[[GraphBatch], np.ndarray] | None] = {
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
#: Metrics of a claim that depend only on its ancestors.
LOOKING_BACK = frozenset(
    ("nx_in_degree", "nx_is_source", "nx_depth_from_sources", "n_ancestors")
)
_PATHS = frozenset(("nx_betweenness", "nx_closeness"))


def _check_links(batch, n_links, name):
    """Raise ValueError if a problem has too many links, given the number of links per edge."""
    problem = batch.problem_of[batch.edges[:, 1]]
    total = np.bincount(problem, n_links, minlength=len(batch))
    if total.max(initial=0) > MOST_LINKS:
        i = int(total.argmax())
        raise ValueError(
            f"{batch.name_of(i)} is too large for {name}, because its {batch.sizes[i]:,} "
            f"claims and {np.diff(batch.edge_offsets)[i]:,} edges require at least "
            f"{total[i]:,.0f} operations, and the limit is {MOST_LINKS:,}. Remove {name} "
            'from the metrics, for example GraphFeatures(["nx_in_degree", '
            '"nx_out_degree", "nx_depth_from_sources"])'
        )


def _cut_blocks(weights) -> Iterator[tuple[int, int]]:
    """Yield ranges of consecutive items, each with a total weight of about `_BLOCK`."""
    total = np.cumsum(weights)
    marks = np.arange(_BLOCK, total.max(initial=0), _BLOCK)
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
        distance[rows], between[rows] = _walk_paths(batch[has_many_paths], with_between)
    size = batch.sizes[batch.problem_of]
    scale = np.maximum(distance * np.maximum(size - 1, 1), 1)
    return {
        "nx_betweenness": between / np.maximum((size - 1) * (size - 2), 1),
        "nx_closeness": n_above**2 / scale,
    }


def _walk_paths(batch, with_between):
    """Return the total distance to each claim and its unnormalised betweenness."""
    n_claims = batch.n_claims
    indptr, source = batch.closure
    n_children = np.repeat(_count_children(batch), np.diff(indptr))
    distance = np.zeros(n_claims, dtype=np.int64)
    between = np.zeros(n_claims)
    for a, b in _cut_blocks(np.bincount(source, n_children, minlength=n_claims)):
        source, target, *links = _find_pairs(batch, a, b)
        length = np.where(source == target, 0, n_claims)
        shorter, longer = links
        _shorten(length, shorter, longer, depth=batch.depth[target])
        np.add.at(distance, target, length)
        if with_between:
            # The terms are added in the order of the sources, so the size of the blocks does not
            # affect the sum.
            np.add.at(between, target, _accumulate(length, shorter, longer))
    return distance, between


def _find_pairs(batch, a, b):
    """Return four arrays with the pairs and links of the source claims in a block.

    The first two arrays contain the claims s and v of each pair. For each link, the last two
    arrays contain the positions of the pair (s, u) at its start and of the pair (s, v) at its
    end.
    """
    i = batch.problem_of[a]
    j = batch.problem_of[b - 1] + 1
    indptr, source = batch.closure
    low, high = batch.offsets[[i, j]]
    target = np.repeat(np.arange(low, high), np.diff(indptr[low : high + 1]))
    source = source[indptr[low] : indptr[high]]
    # A block may contain only part of a large problem.
    inside = (a <= source) & (source < b)
    source = source[inside]
    target = target[inside]
    n_pairs = np.bincount(target - low, minlength=high - low)
    parent, child = batch.edges[slice(*batch.edge_offsets[[i, j]])].T
    n_above = n_pairs[parent - low]
    shorter = ranges(offsets_of(n_pairs)[parent - low], n_above)
    width = np.int64(batch.n_claims)
    pair = np.repeat(child * width, n_above) + source[shorter]
    longer = np.searchsorted(target * width + source, pair)
    return source, target, shorter, longer


def _shorten(distance, shorter, longer, depth):
    """Reduce an upper bound for each pair to the length of its shortest path, in place."""
    for links in _group(depth[longer]):
        np.minimum.at(distance, longer[links], distance[shorter[links]] + 1)


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
