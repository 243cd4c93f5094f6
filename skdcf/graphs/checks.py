"""Checks that find errors in the input before any computation."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .._checks import (
    check_choice,
    is_missing,
    is_number,
    listed,
    other_row,
    printable,
    show,
)

#: Fields of a batch with one value per problem, and their names in a graph.
ROWS = {
    "ids": "id",
    "problems": "problem",
    "alternatives": "alternatives",
    "context": "context",
    "provenance": "provenance",
    "metadata": "metadata",
}


def check_table(features):
    """Return features as an array of floats, in which missing values are NaN."""
    if np.ma.is_masked(features):
        raise ValueError(
            "features must not contain masked entries. Impute these entries first, or drop "
            "their columns"
        )
    if (row := other_row(features)) is not None:
        raise ValueError(
            f"each row of features must be a sequence of numbers, got a {type(row).__name__}"
        )
    try:
        table = np.asarray(features, order="C")
        if table.dtype == object:
            table = np.vectorize(_as_float, otypes=[float])(table)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"features must be a table of numbers: {printable(error)}"
        ) from None
    if table.dtype.kind not in "biuf":
        raise ValueError(f"features must be a table of numbers, got type {table.dtype}")
    return table.astype(np.float64, copy=False)


def _as_float(value):
    if is_missing(value):
        return np.nan
    if not is_number(value):
        raise TypeError(f"one of the values is {show(value)}")
    return float(value)


def column_names(features):
    """Return the column names of a pandas, polars or pyarrow table, or None if there are none.

    As in scikit-learn, the columns are considered unnamed if no column name is a string, for
    example if all names are integers.
    """
    # In pyarrow tables, `columns` contains the values instead of the names.
    names = list(getattr(features, "column_names", getattr(features, "columns", ())))
    not_texts = [name for name in names if not isinstance(name, str)]
    if len(not_texts) == len(names):
        return None
    if not_texts:
        raise ValueError(
            "all column names of the features must be strings if any of them is a string, got "
            f"{show(not_texts[0])}"
        )
    return names


def check_names(feature_names, features, width):
    """Return the names of the columns as a tuple, or None if they have no names."""
    if feature_names is None:
        feature_names = column_names(features)
    if feature_names is None:
        return None
    names = [*map(str, listed(feature_names, "feature_names"))]
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"feature names must be unique, but {twice} are repeated")
    if width not in (None, len(names)):
        raise ValueError(
            f"feature_names must have one name for each of the {width} features, got {len(names)}"
        )
    return tuple(names)


def check_column(values, length, name):
    """Return values as a new object array, or None if all of them are None."""
    if values is None:
        return None
    values = listed(values, name)
    if len(values) != length:
        raise ValueError(f"{name} must have {length} entries, got {len(values)}")
    if values and all(value is None for value in values):
        return None
    return np.fromiter(values, object, length)


def check_value(name, value):
    """Return a copy of the value that a field of `ROWS` has for one problem."""
    if name == "problems" and not isinstance(value, str):
        raise ValueError(f"the question must be a str or None, got {show(value)}")
    if name in ("alternatives", "context"):
        value = tuple(listed(value, name))
        for text in value:
            if not isinstance(text, str):
                raise ValueError(f"{name} must contain only texts, got {show(text)}")
    if name in ("provenance", "metadata"):
        if not isinstance(value, Mapping):
            raise ValueError(f"{name} must be a dict, got {show(value)}")
        value = dict(value)
    if name == "provenance":
        _check_provenance(value)
    return value


def _check_provenance(provenance):
    for key, entry in provenance.items():
        is_flat = isinstance(key, str) and isinstance(entry, (str, int, float))
        if not is_flat or entry != entry:
            raise ValueError(
                "provenance must map strings to strings, numbers or booleans, got "
                f"{show(entry)} under the key {show(key)}. Leave the key out if its value is "
                "unknown"
            )
    order = provenance.get("label_order", "random")
    check_choice("label_order", order, ("random", "doubtful", "review"))
    source = str(provenance.get("label_source", "person"))
    if source != "person" and not source.rstrip().startswith("model "):
        raise ValueError(
            "label_source must be 'person', or 'model ' and the name of the model, got "
            f"{show(source)}"
        )
