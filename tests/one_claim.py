"""Problems of one claim each, as many tests need them."""

import numpy as np

from skdcf import GraphBatch

NO_EDGES = np.empty((0, 2), dtype=int)


def one_claim_each(columns, **more):
    columns = np.asarray(columns, dtype=float).reshape(len(columns), -1)
    return GraphBatch.from_arrays(
        columns, np.arange(len(columns) + 1), NO_EDGES, **more
    )
