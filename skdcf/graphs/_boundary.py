"""From what users pass to a batch and flat labels."""

from numbers import Real

import numpy as np

from ._batch import GraphBatch
from ._checks import locate
from ._graph import ReasoningGraph


def as_batch(X):
    """A sequence of graphs, a GraphBatch or a 2-D array as a GraphBatch.

    In a 2-D array each row is a problem with one claim.
    """
    if isinstance(X, GraphBatch):
        return X
    if not is_graphs(X):
        X = np.asarray(X, dtype=np.float64)
        return GraphBatch.from_arrays(X, np.arange(len(X) + 1))
    return GraphBatch.pack(X)


def is_graphs(X):
    """Whether X is a sequence of reasoning graphs (packed or not), not a table."""
    if isinstance(X, GraphBatch):
        return True
    flat = isinstance(X, (list, tuple)) or (
        isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 1
    )
    return flat and any(isinstance(item, ReasoningGraph) for item in X)


def pack_labels(y, batch):
    """Labels of a batch as a flat boolean array, shape (n_claims,), true = correct.

    Parameters
    ----------
    y : sequence of 1-D 0/1 arrays, one per problem, or one flat 0/1 array
    batch : GraphBatch

    Returns
    -------
    ndarray of bool, shape (n_claims,)

    Raises
    ------
    ValueError
        If numbers of labels and claims differ, or a label is not 0 or 1.
    """
    flat = _flat_labels(y, batch)
    if flat.dtype == object and all(isinstance(v, (Real, np.bool_)) for v in flat):
        flat = flat.astype(np.float64)
    try:
        right = np.isin(flat, (0, 1))
    except TypeError:
        right = np.zeros(len(flat), dtype=bool)
    if flat.dtype.kind not in "biuf" or not right.all():
        row = int(np.argmin(right)) if flat.dtype.kind in "biuf" else 0
        value = flat[row].item() if hasattr(flat[row], "item") else flat[row]
        where = locate(row, batch.offsets, batch.ids)
        raise ValueError(
            f"{where}: the label is {value!r}; labels are 1 (true) or 0 (false)"
        )
    return flat.astype(bool)


def _flat_labels(y, batch):
    if isinstance(y, np.ndarray) and y.dtype != object and y.ndim == 1:
        if len(y) != batch.n_claims:
            raise ValueError(f"{len(y)} labels but {batch.n_claims} claims")
        return y
    flat = isinstance(y, (list, tuple)) and len(y) == batch.n_claims != len(batch)
    if flat and all(np.ndim(value) == 0 for value in y):
        return np.array(y)
    if not hasattr(y, "__len__") or len(y) != len(batch):
        found = f"{len(y)} entries" if hasattr(y, "__len__") else repr(y)
        raise ValueError(
            f"y must hold one array of labels per problem: {len(batch)} problems, "
            f"but y has {found}"
        )
    if len(batch) == batch.n_claims and all(np.ndim(row) == 0 for row in y):
        return np.asarray(y)
    lengths = np.fromiter((np.size(row) for row in y), dtype=np.int64, count=len(y))
    wrong = np.flatnonzero(lengths != batch.sizes)
    if wrong.size:
        i = wrong[0]
        raise ValueError(
            f"{batch.name_of(i)}: {lengths[i]} labels but {batch.sizes[i]} claims"
        )
    return np.concatenate([np.ravel(row) for row in y])
