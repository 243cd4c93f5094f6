"""Sums, maxima and counts over ancestors, computed without listing the ancestors.

================================  ===========================================================
maximum, minimum, "or"            one pass along the edges, which may reach an ancestor twice
sum, at most one parent           one pass along the edges, which reaches no ancestor twice
sum, problems of <= 64 claims     sum over the list of ancestors, for all problems together
count, problems of <= 250 claims  sum over the list of ancestors, for all problems together
sum or count, larger problems     rows of bits (`skdcf.graphs.bit_rows`)
================================  ===========================================================

For a problem with n claims, rows of bits require n^2 / 8 steps in total and 1 KB of memory per
claim.

The result for a claim depends only on the problem of the claim, and is bitwise reproducible.
"""

import numpy as np

from ..graphs import GraphBatch
from ..graphs.ragged import pass_all


def pass_on(ufunc: np.ufunc, values: np.ndarray, batch: GraphBatch) -> np.ndarray:
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


def find_highest(values: np.ndarray, batch: GraphBatch) -> np.ndarray:
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
    sweep = batch.short_sweep
    # A claim can only be the result if no ancestor has a larger value, so few claims need
    # sorting.
    highest = np.flatnonzero(~(values < pass_all(sweep, np.maximum, values)))
    order = highest[_sort(values[highest])]
    rank = np.full(len(values), -1)
    rank[order] = np.arange(len(order))
    return order[pass_all(sweep, np.maximum, rank)]


def _sort(values):
    """Return the row indices sorted by value, with equal values in row order."""
    # `argsort` is several times faster than a stable sort.
    order = np.argsort(values)
    ordered = values[order]
    tied = (ordered[1:] == ordered[:-1]).any()
    return np.argsort(values, kind="stable") if tied else order


def sum_ancestors(values: np.ndarray, batch: GraphBatch) -> np.ndarray:
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
    # The rounding error of a floating-point sum depends on the order of its terms. The summation
    # order must never change, not even if the filter is loaded by a later version.
    is_exact = values.dtype.kind == "i"
    unlisted = batch.unlisted if is_exact else batch.large
    indptr, indices = batch.listed_closure if is_exact else batch.small_closure
    out = np.add.reduceat(values[indices], indptr[:-1])
    tree = batch.is_forest[unlisted]
    if tree.any():
        rows = np.isin(batch.problem_of, unlisted[tree])
        # If the graph is not a forest, sums over all paths could overflow.
        out[rows] = pass_on(np.add, np.where(rows, values, 0), batch)[rows]
    for i in unlisted[~tree].tolist():
        a, b = batch.offsets[i : i + 2]
        out[a:b] = batch.lineage(i).sums(values[a:b])
    return out


def sum_descendants(values: np.ndarray, batch: GraphBatch) -> np.ndarray:
    """For each claim, sum the values of the claim and its descendants."""
    indptr, indices = batch.small_closure
    repeated = np.repeat(values, np.diff(indptr))
    out = np.bincount(indices, repeated, minlength=batch.n_claims)
    for i in batch.large.tolist():
        a, b = batch.offsets[i : i + 2]
        out[a:b] = batch.lineage(i).reversed().sums(values[a:b])
    return out


def count_ancestors(batch: GraphBatch) -> np.ndarray:
    """Return the number of proper ancestors of each claim."""
    return sum_ancestors(np.ones(batch.n_claims, dtype=np.int64), batch) - 1


def count_descendants(batch: GraphBatch) -> np.ndarray:
    """Return the number of descendants of each claim."""
    out = np.bincount(batch.listed_closure[1], minlength=batch.n_claims)
    tree = batch.is_forest[batch.unlisted]
    if tree.any():
        rows = np.isin(batch.problem_of, batch.unlisted[tree])
        out[rows] = _count_below(batch, rows)[rows]
    for i in batch.unlisted[~tree].tolist():
        a, b = batch.offsets[i : i + 2]
        ones = np.ones(b - a, dtype=np.int64)
        out[a:b] = batch.lineage(i).reversed().sums(ones)
    return out - 1


def _count_below(batch, rows):
    """Compute the size of the subtree rooted at each claim, by pointer doubling.

    After k rounds, ``jump`` contains the ancestor 2^k edges above each claim, and all descendants
    that are fewer than 2^k edges below a claim have been counted.
    """
    n = batch.n_claims
    edges = batch.edges[rows[batch.edges[:, 1]]]
    jump = np.full(n + 1, n)  # Row n represents the parent of all roots.
    jump[edges[:, 1]] = edges[:, 0]
    count = np.ones(n + 1, dtype=np.int64)
    while (jump < n).any():
        # Sums of integers below 2^53 are exact.
        count += np.bincount(jump, count, minlength=n + 1).astype(np.int64)
        count[n] = 0
        jump = jump[jump]
    return count[:n]
