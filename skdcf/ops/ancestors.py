"""Sums, maxima and counts over ancestors.

A maximum, a minimum and an "or" need one pass along the edges, which may reach an ancestor twice.
A sum needs every ancestor once. In a problem of at most 64 claims, it is the sum over the list of
ancestors, for all problems together. In a larger problem, it is one pass if every claim has at
most one parent, and otherwise the sum over bits (`GraphBatch.large_ancestors`).

The result for a claim depends only on the problem of the claim, and is bitwise reproducible.
"""

import numpy as np

from ..graphs import GraphBatch
from ..graphs.ragged import pass_all, starts_run
from .hard import Array


def pass_on(ufunc: np.ufunc, values: Array, batch: GraphBatch) -> Array:
    """Combine the value of each claim with the values of its ancestors in a single pass.

    The running time is O(claims + edges) for all graphs together.

    Parameters
    ----------
    ufunc : {numpy.maximum, numpy.minimum, numpy.bitwise_or, numpy.add}
        The operation. With ``numpy.add``, an ancestor is counted once for each path from the
        ancestor to the claim.
    values : ndarray of shape (n_claims,)
        Finite claim values.
    batch : GraphBatch
        The problems.

    Returns
    -------
    combined_values : ndarray of shape (n_claims,)
        The combined value of each claim.

    Examples
    --------
    >>> import numpy as np
    >>> from skdcf import GraphBatch
    >>> from skdcf.ops.ancestors import pass_on, sum_ancestors
    >>> diamond = [(0, 1), (0, 2), (1, 3), (2, 3)]
    >>> batch = GraphBatch.from_arrays(np.zeros((4, 1)), [0, 4], diamond)
    >>> pass_on(np.maximum, np.array([5, 7, 1, 2]), batch)
    array([5, 7, 5, 7])
    >>> sum_ancestors(np.array([5, 7, 1, 2]), batch)
    array([ 5, 12,  6, 15])
    """
    return pass_all(batch.sweep, ufunc, values)


def find_highest(values: Array, batch: GraphBatch) -> Array:
    """For each claim, find the row of the largest value among the claim and its ancestors.

    Parameters
    ----------
    values : ndarray of shape (n_claims,)
        Claim values.
    batch : GraphBatch
        The problems.

    Returns
    -------
    rows : ndarray of int of shape (n_claims,)
        Row index of the largest value for each claim. If several rows have the largest value, the
        index of the last row is returned.
    """
    sweep = batch.sweep
    # A claim can only be the result if no ancestor has a larger value, so few claims need
    # sorting.
    highest = np.flatnonzero(~(values < pass_all(sweep, np.maximum, values)))
    order = highest[np.argsort(values[highest], kind="stable")]
    rank = np.full(len(values), -1)
    rank[order] = np.arange(len(order))
    return order[pass_all(sweep, np.maximum, rank)]


def sum_ancestors(values: Array, batch: GraphBatch) -> Array:
    """For each claim, sum the values of the claim and its ancestors, counting each ancestor once.

    Parameters
    ----------
    values : ndarray of shape (n_claims,)
        Claim values.
    batch : GraphBatch
        The problems.

    Returns
    -------
    sums : ndarray of shape (n_claims,)
        Sum over each claim and its ancestors.
    """
    if not batch.n_claims:
        return np.array(values)
    if len(batch) == 1 and batch.n_claims <= 64 and values.dtype == np.int64:
        return _sum_integers(values, batch.edges)
    indptr, indices = batch.small_closure
    out = np.add.reduceat(values[indices], indptr[:-1])
    trees, others = _split_large(batch)
    if len(trees):
        rows = np.isin(batch.problem_of, trees)
        # If the graph is not a forest, sums over all paths could overflow.
        out[rows] = pass_on(np.add, np.where(rows, values, 0), batch)[rows]
    for i in others.tolist():
        for claim, member in batch.large_pairs(i):
            starts = np.flatnonzero(starts_run(claim))
            out[claim[starts]] = np.add.reduceat(values[member], starts)
    return out


def _sum_integers(values, edges):
    """Sum over ancestors in one small problem, whose closure would take longer to list."""
    n = len(values)
    reached = np.identity(n, dtype=np.int64)
    reached[edges[:, 1], edges[:, 0]] = 1
    # Each round doubles the length of the paths.
    for _ in range(n.bit_length()):
        reached = np.minimum(reached @ reached, 1)
    return reached @ values


def sum_descendants(values: Array, batch: GraphBatch) -> Array:
    """For each claim, sum the values of the claim and its descendants."""
    indptr, indices = batch.small_closure
    repeated = np.repeat(values, np.diff(indptr))
    out = np.bincount(indices, repeated, minlength=batch.n_claims)
    trees, others = _split_large(batch)
    for i in trees.tolist():
        _add_upwards(out, batch, i)
    for i in others.tolist():
        rows = slice(*batch.offsets[i : i + 2])
        out[rows] = 0
        n_claims = batch.sizes[i]
        for claim, member in batch.large_pairs(i):
            member = member - batch.offsets[i]
            out[rows] += np.bincount(member, values[claim], minlength=n_claims)
    return out


def count_ancestors(batch: GraphBatch) -> Array:
    """Return the number of proper ancestors of each claim."""
    out = np.diff(batch.small_closure[0]) - 1
    trees, others = _split_large(batch)
    if len(trees):
        # The longest path to a claim contains all of its ancestors.
        rows = np.isin(batch.problem_of, trees)
        out[rows] = batch.depth[rows]
    for i in others.tolist():
        counts = [bits.bit_count() - 1 for bits in batch.large_ancestors(i)]
        out[slice(*batch.offsets[i : i + 2])] = counts
    return out


def count_descendants(batch: GraphBatch) -> Array:
    """Return the number of descendants of each claim."""
    return sum_descendants(np.ones(batch.n_claims), batch).astype(np.int64) - 1


def _split_large(batch):
    """Return the large problems that are forests, and the other large problems."""
    is_forest = batch.is_forest[batch.large]
    return batch.large[is_forest], batch.large[~is_forest]


def _add_upwards(sums, batch, i):
    """Add the sum of each claim to the sum of its parent, from the deepest claim upwards."""
    a, b = batch.offsets[i : i + 2]
    edges = batch.edges[slice(*batch.edge_offsets[i : i + 2])]
    order = np.argsort(-batch.depth[edges[:, 1]], kind="stable")
    total = sums[a:b].tolist()
    for u, v in (edges[order] - a).tolist():
        total[u] += total[v]
    sums[a:b] = total
