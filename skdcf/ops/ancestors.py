"""Sums, maxima and counts over ancestors.

A maximum, a minimum and an "or" need one pass along the edges, which may reach an ancestor twice.
A sum needs every ancestor once. It is the sum over the list of ancestors (`GraphBatch.closure`), or
one pass if problems are large and every claim has at most one parent.

The result for a claim depends only on the problem of the claim, and is bitwise reproducible.
"""

import numpy as np

from .._arrays import starts_run
from ..graphs import pass_on


def find_highest(values, batch):
    """For each claim, find the last row of the largest value among the claim and its ancestors."""
    # Complex numbers are compared by their real parts first.
    pairs = values + 1j * np.arange(len(values))
    return pass_on(np.maximum, pairs, batch).imag.astype(int)


def sum_ancestors(values, batch):
    """For each claim, sum the values of the claim and its ancestors, each counted once."""
    if _is_long_forest(batch):
        return pass_on(np.add, values, batch)
    indptr, rows = batch.closure
    return np.add.reduceat(values[rows], indptr[:-1])


def sum_descendants(values, batch):
    """For each claim, sum the values of the claim and its descendants."""
    if not _is_long_forest(batch):
        indptr, rows = batch.closure
        return np.bincount(rows, np.repeat(values, np.diff(indptr)), batch.n_claims)
    # Each claim is added to its only parent, from the deepest claim upwards.
    sums = values.tolist()
    upwards = np.argsort(-batch.depth[batch.edges[:, 1]], kind="stable")
    for parent, child in batch.edges[upwards].tolist():
        sums[parent] += sums[child]
    return np.array(sums)


def count_ancestors(batch):
    """Return the number of proper ancestors of each claim."""
    return sum_ancestors(np.ones(batch.n_claims, np.int64), batch) - 1


def count_descendants(batch):
    """Return the number of descendants of each claim."""
    return sum_descendants(np.ones(batch.n_claims), batch).astype(np.int64) - 1


def _is_long_forest(batch):
    """Return whether no path has to be found twice, but there are too many to list."""
    return batch.sizes.max(initial=0) > 64 and starts_run(batch.edges[:, 1]).all()
