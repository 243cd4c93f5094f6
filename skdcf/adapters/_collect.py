"""Turn records of other formats into graphs, one broken record at a time."""

import numpy as np
from sklearn.utils import Bunch

from .._checks import check_choice
from ..graphs import GraphBatch

_BROKEN = (
    ValueError,
    KeyError,
    TypeError,
    IndexError,
    AttributeError,
    OverflowError,
)

# Labels, what was made from labels or by a filter, and positions.
_NOT_FEATURES = {
    "label",
    "labels",
    "gold",
    "gold_label",
    "annotation",
    "manual_annotation",
    "correct",
    "is_correct",
    "truth",
    "ground_truth",
    "verdict",
    "optimal-score",
    "removed",
    "original_response",
    "problem",
    "problem_id",
    "claim",
    "claim_id",
    "claim_idx",
    "parents",
    "deps",
    "verdicts",
    "is_true",
    "index",
    "level_0",
    "unnamed: 0",
}


def build_all(records, build, on_invalid="raise"):
    """Turn raw records into graphs and labels.

    Parameters
    ----------
    records : iterable of (id, record)
    build : callable
        ``build(record, id)`` gives (ReasoningGraph, 0/1 array or None); it raises
        ValueError, KeyError, TypeError, IndexError, AttributeError or OverflowError
        where the record is broken.
    on_invalid : {"raise", "drop"}
        Stop at the first broken record, or leave it out.

    Returns
    -------
    graphs, labels, dropped : lists
        ``dropped`` holds (id, reason).
    """
    check_choice("on_invalid", on_invalid, ("raise", "drop"))
    graphs, labels, dropped = [], [], []
    for name, record in records:
        try:
            graph, label = build(record, name)
        except _BROKEN as error:
            reason = _reason(error, name)
            if on_invalid == "raise":
                raise ValueError(
                    f'problem "{name}": {reason}; on_invalid="drop" leaves such '
                    "problems out"
                ) from error
            dropped.append((name, reason))
            continue
        graphs.append(graph)
        labels.append(label)
    return graphs, labels, dropped


def _reason(error, name):
    if isinstance(error, KeyError):
        return f"the field {error.args[0]!r} is missing"
    return str(error).removeprefix(f'problem "{name}": ')


def may_be_feature(name):
    """Whether numbers of that name become features without being asked for."""
    return str(name).lower() not in _NOT_FEATURES


def pack(graphs, labels, dropped=()):
    """What an adapter returns."""
    if not graphs:
        raise ValueError(f"no problem is left: {len(dropped)} were dropped")
    batch = GraphBatch.pack(graphs)
    return Bunch(graphs=batch, labels=labels, dropped=list(dropped))


def edges_of(edges, i, claims, problem):
    """Edges of problem i from a function, from one list per problem, or none."""
    if edges is None:
        return ()
    return edges(claims, problem) if callable(edges) else edges[i]


def item_of(values, i):
    """Entry i of a list that may be missing."""
    return None if values is None else values[i]


def check_parallel(name, values, n_problems):
    """Raise ValueError unless a list has one entry per problem (or is missing)."""
    if values is not None and not callable(values) and len(values) != n_problems:
        raise ValueError(f"{len(values)} {name} but {n_problems} problems")


def narwhals():
    """The library that reads data frames of many kinds."""
    try:
        import narwhals as nw
    except ImportError as error:
        raise ImportError(
            "data frames are read and made by narwhals: pip install narwhals"
        ) from error
    return nw


def fill_missing(table, names, missing):
    """Replace NaN in a table, shape (n_claims, n_features), as the caller wants it.

    Parameters
    ----------
    table : ndarray
        Changed in place.
    names : sequence of str
    missing : "raise", "mean", "median" or number
        Mean and median are those of the column, over all claims given.
    """
    if isinstance(missing, str):
        check_choice("missing", missing, ("raise", "mean", "median"))
    rows, columns = np.nonzero(np.isnan(table))
    if not rows.size:
        return table
    if missing == "raise":
        raise ValueError(
            f'{rows.size} missing values, the first is "{names[columns[0]]}" of claim '
            f'{rows[0]} in all: say missing="median", "mean" or a number to fill them'
        )
    if missing in ("mean", "median"):
        empty = np.isnan(table).all(axis=0)
        if empty.any():
            raise ValueError(f'"{names[int(np.argmax(empty))]}" has no value at all')
        average = np.nanmean if missing == "mean" else np.nanmedian
        table[rows, columns] = average(table, axis=0)[columns]
    else:
        table[rows, columns] = float(missing)
    return table
