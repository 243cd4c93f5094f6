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
        return X  # even an empty one, whose columns are known
    X = as_graphs(X)
    if is_graphs(X):
        return GraphBatch.pack(X)
    try:
        table = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        found = type(X[0] if isinstance(X, (list, tuple)) else X).__name__
        raise ValueError(
            f"X holds {found}: a GraphBatch, a list of ReasoningGraph or a 2-D array of "
            "numbers expected. skdcf.adapters makes graphs from tables and records"
        ) from None
    return GraphBatch.from_arrays(table, np.arange(len(table) + 1))


def as_graphs(X):
    """X as it is, a Series of graphs as a list; ValueError where X is no sequence."""
    if isinstance(X, (list, tuple, GraphBatch)) and not len(X):
        raise ValueError("no problems: X is empty, at least one is needed")
    if isinstance(X, ReasoningGraph):
        raise ValueError("X is a single ReasoningGraph: pass a list of them, [graph]")
    if not is_graphs(X) and getattr(X, "ndim", None) == 1 and is_graphs(list(X)):
        return list(X)  # a pandas or polars Series
    return X


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
    if flat.dtype == object:
        right = np.fromiter(map(_is_label, flat), dtype=bool, count=len(flat))
    else:
        right = np.isin(flat, (0, 1))
    if not right.all():
        row = int(np.argmin(right))
        value = flat[row].item() if hasattr(flat[row], "item") else flat[row]
        where = locate(row, batch.offsets, batch.ids)
        unknown = not isinstance(value, (Real, str, bytes)) or value != value
        raise ValueError(
            f"{where}: the label is {value!r}; labels are 1 (true) or 0 (false)"
            + (", and 0 is the safe one for a claim nobody judged" if unknown else "")
        )
    return flat.astype(bool)


def _is_label(value):
    return isinstance(value, (Real, np.bool_)) and value in (0, 1)


def _column(values):
    """Labels as numbers, or as the objects that they are."""
    column = np.ravel(values)
    if column.dtype.kind in "biuf":
        return column
    return np.ravel(np.array(values, dtype=object))


def _flat_labels(y, batch):
    if isinstance(y, np.ndarray) and y.dtype != object and y.ndim == 1:
        if len(y) != batch.n_claims:
            raise ValueError(f"{len(y)} labels but {batch.n_claims} claims")
        return _column(y)
    flat = isinstance(y, (list, tuple)) and len(y) == batch.n_claims != len(batch)
    if flat and all(np.ndim(value) == 0 for value in y):
        return _column(y)
    if not hasattr(y, "__len__") or len(y) != len(batch):
        found = f"{len(y)} entries" if hasattr(y, "__len__") else repr(y)
        raise ValueError(
            f"y must hold one array of labels per problem: {len(batch)} problems, "
            f"but y has {found}"
        )
    if len(batch) == batch.n_claims and all(np.ndim(row) == 0 for row in y):
        return _column(y)
    lengths = np.fromiter((np.size(row) for row in y), dtype=np.int64, count=len(y))
    wrong = np.flatnonzero(lengths != batch.sizes)
    if wrong.size:
        i = wrong[0]
        raise ValueError(
            f"{batch.name_of(i)}: {lengths[i]} labels but {batch.sizes[i]} claims"
        )
    return np.concatenate([_column(row) for row in y])
