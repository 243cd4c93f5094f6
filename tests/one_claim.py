"""Problems of one claim each, as many tests need them."""

import numpy as np

from skdcf import GraphBatch

NO_EDGES = np.empty((0, 2), dtype=int)


def one_claim_each(columns, **more):
    columns = np.asarray(columns, dtype=float).reshape(len(columns), -1)
    return GraphBatch.from_arrays(
        columns, np.arange(len(columns) + 1), NO_EDGES, **more
    )


def numbered(n):
    """Random columns and labels of n answers of one claim, with their numbers."""
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.random(n), np.arange(n)])
    return one_claim_each(table), (rng.random((n, 1)) < 0.6).astype(int).tolist()
