"""What adapters share: scores, the other fields of a problem, and what is returned."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from numbers import Real
from typing import Any, TypedDict

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Bunch

from .._checks import check_choice, check_number, is_missing
from ..datasets.records import build_dataset
from ..edges import no_edges

#: What annotations call a rule for edges, labels, and what to put for missing scores.
EdgeRule = Callable[[Sequence[str], str | None], Iterable[tuple[int, int]]]
Labels = Sequence[ArrayLike]
Missing = str | float

# Labels, what was made from labels or by a filter, positions, and what is told apart.
_NAMES = """
label labels gold gold_label annotation manual_annotation correct is_correct truth
ground_truth verdict verdicts is_true optimal-score removed original_response
id problem problem_id claim claim_id claim_idx parents deps index level_0 group
"""
_NOT_FEATURES = {"unnamed: 0", *_NAMES.split()}


def may_be_feature(name):
    """Whether numbers of that name become features without being asked for."""
    return str(name).lower() not in _NOT_FEATURES


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


class Given(TypedDict, total=False):
    """What adapters take with one entry per problem, besides what is their own."""

    edges: EdgeRule | Sequence | None
    problems: Sequence[str | None] | None
    alternatives: Sequence[Sequence[str] | None] | None
    context: Sequence[str | Sequence[str] | None] | None
    groups: Sequence[str | int | None] | None
    metadata: Sequence[Mapping[str, Any] | None] | None


def make_problems(texts, columns, given, name, missing="raise") -> Bunch:
    """What an adapter returns, from texts per problem and flat columns of scores.

    ``given`` holds the lists of `Given` and ``labels``; problems are called ``name/0``,
    ``name/1``, ...
    """
    table = _table(columns or {}, texts, missing)
    bounds = np.cumsum([len(claims) for claims in texts])
    table = [
        table[b - len(claims) : b] for b, claims in zip(bounds, texts, strict=True)
    ]
    records: dict[str, dict] = {f"{name}/{i}": {} for i in range(len(texts))}
    for key, values in given.items():
        noun = "problems" if key == "problems" else f"lists of {key}"
        check_parallel(noun, values, len(texts))
        key = {"problems": "problem", "groups": "group"}.get(key, key)
        if values is not None and not callable(values):
            for record, value in zip(records.values(), values, strict=True):
                record[key] = value
    for record, claims, rows in zip(records.values(), texts, table, strict=True):
        record["claims"] = claims
        if columns is not None:
            record["feature_names"], record["features"] = list(columns), rows
            record["n_features"] = len(columns)
    return build_dataset(records, partial(add_edges, given.get("edges")))


def add_edges(edges, record):
    """The record with the edges that a rule gives it."""
    if not callable(edges):
        return record
    claims = record.get("claims")
    if edges is not no_edges and (claims is None or None in claims):
        raise ValueError(
            "edges are to be made from the texts of claims, but not all have one: pass "
            "edges=no_edges where no claim builds on another"
        )
    found = [] if claims is None else edges(claims, record.get("problem"))
    return record | {"edges": found, "parents": None}


def _table(columns, texts, missing):
    place = claim_places(texts)
    table = [
        [read_score(v, key, place(row)) for row, v in enumerate(column)]
        for key, column in columns.items()
    ]
    table = np.array(table, dtype=float).reshape(len(columns), sum(map(len, texts))).T
    return fill_missing(table, list(columns), missing, place)


def claim_places(texts):
    """A function from row numbers to what messages call the claim in the row."""
    rows = enumerate(map(len, texts))
    return [f"problem {i}, claim {v}" for i, n in rows for v in range(n)].__getitem__


def is_number(value):
    """Whether a value may be a score."""
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_))


def read_score(value, name, place):
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
