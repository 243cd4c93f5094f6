"""What all adapters share: broken records, labels, scores, and what is returned.

Its names are meant for the package alone; `skdcf.datasets` reads its files with them.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Bunch

from .._checks import check_choice, check_number, is_missing, printable
from ..graphs import GraphBatch, ReasoningGraph, read_labels

#: What annotations call a rule for edges, labels, and what to put for missing scores.
EdgeRule = Callable[[Sequence[str], str | None], Iterable[tuple[int, int]]]
Labels = Sequence[ArrayLike]
Missing = str | float

_BROKEN = (ValueError, LookupError, TypeError, AttributeError, OverflowError)

# Labels, what was made from labels or by a filter, and positions.
_NAMES = """
label labels gold gold_label annotation manual_annotation correct is_correct truth
ground_truth verdict verdicts is_true optimal-score removed original_response
id problem problem_id claim claim_id claim_idx parents deps index level_0
"""
_NOT_FEATURES = {"unnamed: 0", *_NAMES.split()}


def build_all(records, build, on_invalid="raise"):
    """Turn raw records into graphs and labels.

    Parameters
    ----------
    records : iterable of (id, record)
    build : callable
        ``build(record, id)`` gives (ReasoningGraph, labels or None); it raises
        ValueError, LookupError, TypeError, AttributeError or OverflowError where the
        record is broken.
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
            _check_labels(graph, label)
        except _BROKEN as error:
            reason = _reason(error, name)
            if on_invalid == "raise":
                message = f'problem "{printable(name)}": {reason}'
                raise ValueError(message) from error
            dropped.append((name, reason))
            continue
        graphs.append(graph)
        labels.append(label)
    return graphs, labels, dropped


def _check_labels(graph, label):
    if label is not None and np.shape(label) != (graph.n_claims,):
        raise ValueError(
            f"labels of shape {np.shape(label)} but {graph.n_claims} claims"
        )


def _reason(error, name):
    if isinstance(error, KeyError):
        return f"the field {error.args[0]!r} is missing"
    reason = str(error).removeprefix(f'problem "{name}": ')
    return reason.removeprefix(f'problem "{printable(name)}": ')


def may_be_feature(name):
    """Whether numbers of that name become features without being asked for."""
    return str(name).lower() not in _NOT_FEATURES


def pack(graphs, labels, dropped=()):
    """What an adapter returns."""
    if not graphs:
        if not dropped:
            raise ValueError("there is no problem in the data")
        raise ValueError(
            f"no problem is left: {len(dropped)} were dropped, the first for this reason: "
            f"{dropped[0][1]}"
        )
    batch = GraphBatch.pack(graphs)
    return Bunch(graphs=batch, labels=labels, dropped=list(dropped))


def check_parallel(name, values, n_problems):
    """Raise ValueError unless a list has one entry per problem (or is missing)."""
    if values is None or callable(values):
        return
    if isinstance(values, (str, dict)) or not hasattr(values, "__len__"):
        raise ValueError(
            f"{name}: a list with one entry per problem is expected, not {values!r}"
        )
    if len(values) != n_problems:
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


def label_array(values, place):
    """Labels as an int64 array: 1 true, 0 false, -1 where nobody judged the claim.

    Parameters
    ----------
    values : sequence
        Booleans count as 1 and 0.
    place : callable
        ``place(v)`` names what value v belongs to.
    """
    return read_labels(values, place).astype(np.int64)


def label_arrays(labels, sizes):
    """One array of labels per problem, of as many claims as ``sizes`` says."""
    check_parallel("lists of labels", labels, len(sizes))
    out = []
    for i, (row, n_claims) in enumerate(zip(labels, sizes, strict=True)):
        if np.shape(row) != (n_claims,):
            raise ValueError(
                f"problem {i}: labels of shape {np.shape(row)} but {n_claims} claims"
            )
        out.append(label_array(row, f"problem {i}, claim {{}}".format))
    return out


def per_problem(values, graphs):
    """One flat array over all claims of a batch as one array per problem."""
    flat = isinstance(values, np.ndarray) and values.dtype != object
    if not (flat and values.ndim == 1 and isinstance(graphs, GraphBatch)):
        return values
    if values.shape != (graphs.n_claims,):
        raise ValueError(f"{values.shape} values but {graphs.n_claims} claims")
    return graphs.split(values)


def is_number(value):
    """Whether a value may be a score."""
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_))


def score(value, name, place):
    """A score as a float, NaN where it is missing.

    ``place`` names the claim that it belongs to.
    """
    if is_missing(value):
        return math.nan
    if np.ndim(value) == 0 and hasattr(value, "item"):
        value = value.item()  # of a tensor
    if not is_number(value):
        raise ValueError(f"{place}: {name!r} is {value!r}, but must be a number")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(
            f"{place}: {name!r} is a number too large for a float"
        ) from None


def fill_missing(table, names, missing, place):
    """Replace what is not finite in a table as the caller wants it.

    Parameters
    ----------
    table : ndarray of shape (n_claims, n_features)
    names : sequence of str
    missing : "raise", "mean", "median" or number
        Mean and median are those of the finite values of the column.
    place : callable
        ``place(row)`` names the claim in a row of the table.

    Returns
    -------
    ndarray of shape (n_claims, n_features)
    """
    if is_number(missing):
        check_number("missing", missing, -np.inf)
    else:
        check_choice("missing", missing, ("raise", "mean", "median"))
    absent = ~np.isfinite(table)
    if not absent.any():
        return table
    counts = zip(names, absent.sum(axis=0), strict=True)
    found = ", ".join(f"{n} of {name!r}" for name, n in counts if n)
    if missing == "raise":
        row = int(absent.any(axis=1).argmax())
        raise ValueError(
            f"missing or infinite values: {found}; the first is at {place(row)}. Mend "
            'them, or say missing="median", "mean" or a number to fill them in'
        )
    if is_number(missing):
        return np.where(absent, missing, table)
    if absent.all(axis=0).any():
        name = names[int(absent.all(axis=0).argmax())]
        raise ValueError(f"{name!r} has no finite value, so it has no {missing} either")
    average = np.nanmean if missing == "mean" else np.nanmedian
    return np.where(absent, average(np.where(absent, np.nan, table), axis=0), table)


def claim_places(texts):
    """A function from row numbers to what messages call the claim in the row."""
    rows = enumerate(map(len, texts))
    return [f"problem {i}, claim {v}" for i, n in rows for v in range(n)].__getitem__


def from_scores(
    texts, columns, problems, labels, edges, missing, name, alternatives=None
):
    """Graphs from texts per problem and flat columns of scores, as adapters return."""
    place, names = claim_places(texts), list(columns)
    table = [
        [score(v, key, place(row)) for row, v in enumerate(columns[key])]
        for key in names
    ]
    table = np.array(table, dtype=float).reshape(len(names), -1).T
    table = fill_missing(table, names, missing, place)
    graphs, start = [], 0
    for i, claims in enumerate(texts):
        problem = None if problems is None else problems[i]
        pairs = None
        if edges is not None:
            pairs = edges(claims, problem) if callable(edges) else edges[i]
        graph = ReasoningGraph(
            table[start : start + len(claims)],
            pairs,
            claims=claims,
            problem=problem,
            alternatives=None if alternatives is None else alternatives[i],
            feature_names=names,
            id=f"{name}/{i}",
        )
        graphs.append(graph)
        start += len(claims)
    return pack(graphs, labels)
