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
    # Lists need none of the other checks, which are slow.
    if isinstance(values, list):
        return values
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
