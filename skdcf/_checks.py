"""Argument checks and types shared by several modules.

A failed check raises a ValueError that contains the argument name, the value and the bound.
"""

import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence, Set, ValuesView
from decimal import Decimal
from importlib import import_module
from numbers import Integral, Number, Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
#: Value of the parameter ``random_state``.
Seed: TypeAlias = int | np.random.RandomState | None
#: Fields of a batch with one value per problem, and their names in a graph.
ROWS = {
    "ids": "id",
    "problems": "problem",
    "alternatives": "alternatives",
    "context": "context",
    "provenance": "provenance",
    "metadata": "metadata",
}


def import_extra(module, extra):
    """Import a module of an optional package, or raise an error that shows how to install it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        message = missing_package(error.name, extra)
        raise ModuleNotFoundError(message, name=error.name) from error


def missing_package(package, extra):
    """Return a message with the command that installs an optional package."""
    return (
        f"{package} is not installed. Run this command in the clone of skdcf: "
        f'{sys.executable} -m pip install ".[{extra}]"'
    )


def check_choice(name, value, choices):
    """Raise ValueError unless ``value`` is one of ``choices``, which are strings."""
    if not (isinstance(value, str) and value in choices):
        raise ValueError(f"{name} must be one of {list(choices)}, got {value!r}")


def is_integer(value):
    """Return whether a value is an integer. Booleans are not integers."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def check_count(name, value, low):
    """Raise ValueError unless ``value`` is an integer greater than or equal to ``low``."""
    if not is_integer(value) or value < low:
        raise ValueError(f"{name} must be an integer of at least {low}, got {value!r}")


def check_list(name, value):
    """Return a value, or raise ValueError if it cannot be used as a list."""
    if isinstance(value, (str, bytes)) or not hasattr(value, "__len__"):
        raise ValueError(f"{name} must be a list, got {type(value).__name__}")
    return value


def check_alpha(alpha):
    """Return ``alpha`` as a float, or raise ValueError unless it is in (0, 1).

    The float 1 - 0.9 is slightly smaller than 0.1, although the same level is meant. So a level
    that is smaller than its 12 leading digits by a rounding error only is replaced by these.
    """
    if isinstance(alpha, np.ndarray):
        alpha = alpha[()]  # An array without dimensions becomes a number.
    if not isinstance(alpha, Real) or not 0 < float(alpha) < 1:
        raise ValueError(
            f"alpha must be strictly between 0 and 1, got {alpha!r}. The level alpha is "
            "the maximum proportion of problems in which a false claim is kept"
        )
    alpha = float(alpha)
    rounded = float(f"{alpha:.12g}")
    return rounded if 0 <= rounded - alpha < 1e-15 and rounded < 1 else alpha


def check_alphas(alphas, check=check_alpha):
    """Return ``alphas`` as a 1-D array, or raise ValueError if it is empty or has duplicates."""
    alphas = [check(alpha) for alpha in np.atleast_1d(alphas).tolist()]
    if not 0 < len(alphas) == len({*alphas}):
        raise ValueError(
            f"alphas must contain at least one level and no duplicates, got {alphas}"
        )
    return np.array(alphas)


def check_groups(groups, n):
    """Return the group index of each problem."""
    groups = np.asarray(groups)
    if groups.shape != (n,):
        raise ValueError(
            f"groups must have one value for each of the {n} problems, got shape "
            f"{groups.shape}"
        )
    for i, group in enumerate(groups.tolist()):
        if is_missing(group):
            raise ValueError(f"problem {i} must belong to a group, got {group!r}")
    try:
        return np.unique(groups, return_inverse=True)[1]
    except TypeError as error:
        raise ValueError(f"groups must have values of one type ({error})") from error


def is_missing(value):
    """Return whether a value is None, NaN, ``pandas.NA`` or ``pandas.NaT``."""
    # Comparing the type name avoids importing pandas.
    if value is None or type(value).__name__ == "NAType":
        return True
    differs = value != value
    return isinstance(differs, (bool, np.bool_)) and differs


def is_number(value):
    """Return whether a value is a real number, including booleans of Python and numpy."""
    return isinstance(value, (Real, Decimal, np.bool_))


def other_row(rows):
    """Return the first list item that is neither numeric, array-like nor missing, if any.

    For example, numpy would convert a networkx graph to an array of its nodes.
    """
    for row in rows if isinstance(rows, (list, tuple)) else ():
        is_row = isinstance(row, (Number, Sequence)) or hasattr(row, "__array__")
        if isinstance(row, (str, bytes)) or not (is_row or is_missing(row)):
            return row
    return None


def listed(values, name):
    """Return values as a list, or raise ValueError if their order is undefined."""
    # Lists and tuples need none of the other checks, which are slow.
    if isinstance(values, (list, tuple)):
        return values if isinstance(values, list) else list(values)
    # A string is not accepted as a list of strings. Sets and mappings are unordered.
    other = isinstance(values, (str, bytes, Set, Mapping, ValuesView))
    is_scalar = getattr(values, "ndim", 1) == 0
    if other or is_scalar or not isinstance(values, Iterable):
        raise ValueError(
            f"{name} must be a list, not a string or a set, got a {type(values).__name__}"
        )
    return list(values)


def counted(n, noun):
    """Return a number and a noun with the plural in s, such as "1 claim" or "2 claims"."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def printable(text, also=""):
    """Return a text with all nonprintable characters escaped, for use in messages.

    Line breaks would disrupt tables, and terminals would interpret control characters. The
    characters in ``also`` are not escaped.
    """
    return "".join(
        c if c.isprintable() or c in also else ascii(c)[1:-1] for c in str(text)
    )


def show(value):
    """Return the ``repr`` of a value on one line, truncated if it is long."""
    text = printable(repr(value))
    return text if len(text) <= 80 else text[:77] + "..."


def warn(message, category):
    """Issue a warning whose stack level points to the caller's code outside this package."""
    between = ("skdcf", "sklearn", "joblib", "contextlib")
    frame: Any = sys._getframe()
    depth = 1
    while frame and frame.f_globals.get("__name__", "").partition(".")[0] in between:
        frame = frame.f_back
        depth += 1
    warnings.warn(message, category, stacklevel=depth)


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
    if value is None or name == "ids":
        return value
    if name == "problems":
        if not isinstance(value, str):
            raise ValueError(f"the question must be a str or None, got {show(value)}")
        return value
    if name in ("alternatives", "context"):
        texts = tuple(listed(value, name))
        for text in texts:
            if not isinstance(text, str):
                raise ValueError(f"{name} must contain only texts, got {show(text)}")
        return texts
    if not isinstance(value, Mapping):
        raise ValueError(f"{name} must be a dict, got {show(value)}")
    if name == "provenance":
        _check_provenance(value)
    return dict(value)


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
