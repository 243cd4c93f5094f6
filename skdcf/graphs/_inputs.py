"""Checks that find errors in the input before any computation.

The problem and claim names in messages are provided by `skdcf.graphs._derived.Names`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set, ValuesView
from itertools import chain

import numpy as np

from .._checks import is_missing, is_number, other_row, printable
from ._derived import find_cycle, find_depth, sort_edges
from .ragged import read_only, segment_ids

# A string is not accepted as a list of strings. Sets and mappings can be iterated over, but they
# are unordered.
NO_LISTS = (str, bytes, Set, Mapping, ValuesView)


def check_features(features, n_claims, names, copy=False):
    """Return features as a read-only float array, or raise ValueError if they are invalid.

    ``n_claims`` is the expected number of rows, or None if any number of rows is valid.
    """
    if features is None:
        return None
    table = _float_table(features, names.at(), copy)
    if table.ndim != 2 or n_claims not in (None, len(table)):
        due = "" if n_claims is None else f", with n_claims = {n_claims}"
        raise ValueError(
            f"{names.at()}features must have shape (n_claims, n_features){due}, got "
            f"{table.shape}"
        )
    if not np.isfinite(table).all():
        row, column = np.argwhere(~np.isfinite(table))[0]
        raise ValueError(
            f"{names.locate(row)}, feature {column} must be finite, got "
            f"{table[row, column]}. Impute or drop such values first"
        )
    return read_only(table)


def has_masked(values):
    """Return whether an array, or any array in a list, has masked entries."""
    if isinstance(values, (list, tuple)):
        return any(isinstance(x, np.ma.MaskedArray) and has_masked(x) for x in values)
    return isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values)


def _float_table(features, where, copy):
    if has_masked(features):
        raise ValueError(
            f"{where}features must not contain masked entries. Impute these entries "
            "first, or drop their columns"
        )
    if (row := other_row(features)) is not None:
        raise ValueError(
            f"{where}each row of features must be a sequence of numbers, got a "
            f"{type(row).__name__}"
        )
    try:
        table = (np.array if copy else np.asarray)(features, order="C")
        if table.dtype == object:
            table = np.array([*map(_as_float, table.flat)], float).reshape(table.shape)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"{where}features must be a table of numbers: {printable(error)}"
        ) from None
    if table.dtype.kind not in "biuf":
        raise ValueError(
            f"{where}features must be a table of numbers, got type {table.dtype}"
        )
    return table.astype(np.float64, copy=False)


def _as_float(value):
    """Convert an object to a float. Missing values are replaced with NaN."""
    if is_missing(value):
        return np.nan
    if not is_number(value):
        raise TypeError(f"one of the values is {show(value)}")
    return float(value)


def column_names(features, where=""):
    """Return the column names of a pandas, polars or pyarrow table, or None if there are none.

    As in scikit-learn, the columns are considered unnamed if no column name is a string, for
    example if all names are integers.
    """
    # In pyarrow tables, `columns` contains the values instead of the names.
    names = getattr(features, "column_names", getattr(features, "columns", None))
    if names is None:
        return None
    names = list(names)
    not_texts = [name for name in names if not isinstance(name, str)]
    if len(not_texts) == len(names):
        return None
    if not_texts:
        raise ValueError(
            f"{where}all column names of the features must be strings if any of them is a "
            f"string, got {show(not_texts[0])}"
        )
    return names


def check_names(feature_names, features, table, where=""):
    """Return feature names as a tuple of strings, or raise ValueError if they are invalid.

    If ``feature_names`` is None, the column names of ``features`` are used. The argument
    ``table`` contains the converted ``features``.
    """
    names = column_names(features, where)
    if feature_names is not None:
        own_names = names
        names = [*map(str, in_order(feature_names, "feature_names", where))]
        if own_names not in (None, names):
            raise ValueError(
                f"{where}feature_names must match the column names of the features "
                f"({own_names}), got {names}. Omit feature_names, or rename the columns"
            )
    if names is None:
        return None
    if len(set(names)) < len(names):
        twice = sorted({n for n in names if names.count(n) > 1})
        raise ValueError(
            f"{where}feature names must be unique, but {twice} are repeated"
        )
    if table is not None and (width := table.shape[1]) != len(names):
        raise ValueError(
            f"{where}feature_names must have one name for each of the {width} "
            f"features, got {len(names)}"
        )
    return tuple(names)


def in_order(values, name, where=""):
    """Return values as a list, or raise ValueError if their order is undefined."""
    if isinstance(values, NO_LISTS) or not isinstance(values, Iterable):
        is_text = isinstance(values, (str, bytes))
        kind = "one text" if is_text else f"a {type(values).__name__}"
        raise ValueError(f"{where}{name} must be a list, got {kind}")
    return list(values)


def check_texts(texts, name, where):
    """Return claims or alternatives as a tuple, or raise ValueError unless all are strings."""
    if texts is None:
        return None
    texts = tuple(in_order(texts, name, where))
    for k, text in enumerate(texts):
        if not isinstance(text, str):
            singular = name.removesuffix("s")
            raise ValueError(f"{where}{singular} {k} must be a str, got {show(text)}")
    return texts


def check_field(name, value, n_claims, where):
    """Validate the question, texts or dict of a problem, and convert them for storage."""
    if value is None:
        return None
    if name in ("problem", "problems"):
        if not isinstance(value, str):
            raise ValueError(
                f"{where}the question must be a str or None, got {show(value)}"
            )
        return value
    if name not in ("provenance", "metadata"):
        return check_texts(value, name, where)
    if not isinstance(value, Mapping):
        raise ValueError(f"{where}{name} must be a dict, got {show(value)}")
    if name == "provenance":
        return _check_provenance(value, where)
    return dict(value)


def _check_provenance(entries, where):
    """Return a copy of the entries, or raise ValueError unless they are flat."""
    for key, value in entries.items():
        if not (isinstance(key, str) and isinstance(value, (str, bool, int, float))):
            raise ValueError(
                f"{where}provenance must map strings to strings, numbers or booleans, got "
                f"{show(value)} under the key {show(key)}"
            )
        if value != value:
            raise ValueError(
                f"{where}provenance[{key!r}] must not be NaN. Leave the key out if its value is "
                "unknown"
            )
    return dict(entries)


def check_fields(name, values, names):
    """Validate a field of a batch, and return it as an object array or None."""
    values = check_column(values, len(names.offsets) - 1, name)
    if values is None or (name == "problems" and _have_type(values, str)):
        return values
    if name in ("alternatives", "context") and _are_lists_of_texts(values):
        texts = (value if value is None else tuple(value) for value in values)
        return np.fromiter(texts, dtype=object, count=len(values))
    sizes = np.diff(names.offsets).tolist()
    for i, value in enumerate(values):
        if value is not None:
            try:
                values[i] = check_field(name, value, sizes[i], "")
            except ValueError as error:
                raise ValueError(f"{names.at(i)}{error}") from None
    return values


def _have_type(values, *allowed):
    """Return whether all values are None or have one of the types."""
    return {*map(type, values)} <= {*allowed, type(None)}


def _are_lists_of_texts(values):
    """Return whether all values are None or a list or tuple of strings."""
    if not _have_type(values, list, tuple):
        return False
    return {*map(type, chain.from_iterable(filter(None, values)))} <= {str}


def check_flat_claims(claims, names, needed):
    """Return the claim texts of a batch as an object array, or None if no texts are known.

    Within a problem, either all claim texts must be strings, or all of them must be None. If
    ``needed`` is True, all claims must have texts, because there are no features.
    """
    offsets = names.offsets
    claims = check_column(claims, int(offsets[-1]), "claims")
    if claims is None or {*map(type, claims)} == {str}:
        return claims
    has_text = np.array([text is not None for text in claims], dtype=bool)
    is_text = np.array([isinstance(text, str) for text in claims], dtype=bool)
    problem_of = segment_ids(offsets)
    has_texts = np.full(len(offsets) - 1, needed)
    has_texts[problem_of[has_text]] = True
    wrong = np.flatnonzero(has_texts[problem_of] & ~is_text)
    if wrong.size:
        value = claims[wrong[0]]
        raise ValueError(f"{names.locate(wrong[0])} must be a str, got {show(value)}")
    return claims if has_texts.any() else None


def check_column(values, length, name):
    """Return values as a new object array, or raise ValueError if the length does not match.

    If ``values`` is None, or if all of its entries are None, None is returned.
    """
    if values is None:
        return None
    values = in_order(values, name)
    if len(values) != length:
        raise ValueError(
            f"{name} must have {length} entries to match offsets, got {len(values)}"
        )
    if values and all(value is None for value in values):
        return None
    return np.fromiter(values, dtype=object, count=length)


def check_edges(edges, offsets, names):
    """Return the sorted, distinct edges, and the depths of the claims or None.

    If ``edges`` is None, an empty array is returned. A ValueError is raised unless each edge
    connects two claims of the same problem and no claim depends on itself. If all parents precede
    their children, a cycle is impossible, so the depths are not computed and None is returned
    instead.
    """
    pairs = _edge_array(() if edges is None else edges, names)
    n_claims = offsets[-1]
    if not len(pairs):
        return read_only(pairs), None
    if pairs.min() < 0 or pairs.max() >= n_claims:
        u, v = pairs[((pairs < 0) | (pairs >= n_claims)).any(axis=1)][0]
        raise ValueError(
            f"{names.at()}edge ({u}, {v}) is out of range for {n_claims} claims. "
            "Positions start at 0"
        )
    if len(offsets) > 2:
        home = segment_ids(offsets)[pairs]
        if (home[:, 0] != home[:, 1]).any():
            row = np.argmax(home[:, 0] != home[:, 1])
            (u, v), (i, j) = pairs[row], home[row]
            raise ValueError(
                f"edge ({u}, {v}) must connect two claims of the same problem, but it "
                f"connects problems {i} and {j}"
            )
    late = (pairs[:, 0] >= pairs[:, 1]).any()
    if late and (pairs[:, 0] == pairs[:, 1]).any():
        v = pairs[pairs[:, 0] == pairs[:, 1]][0, 0]
        raise ValueError(
            f"{names.locate(v)} must not be its own parent (a self-loop). Positions start "
            "at 0"
        )
    pairs = np.ascontiguousarray(sort_edges(pairs, n_claims))
    depth = None
    if late:
        depth = find_depth(pairs, n_claims)
        if (depth < 0).any():
            cycle = find_cycle(pairs, depth)
            i = np.searchsorted(offsets, cycle[0], side="right") - 1
            cycle_of_problem = [v - offsets[i] for v in cycle]
            raise ValueError(names.at(i) + cycle_message(cycle_of_problem))
    return read_only(pairs), depth


def _edge_array(edges, names):
    """Validate edges, and return them as a new int64 array of shape (n_edges, 2)."""
    try:
        packed = isinstance(edges, np.ndarray)
        pairs = edges if packed else np.array([tuple(e) for e in edges])
    except (
        TypeError,
        ValueError,
    ):  # One of the entries is not a pair, so the entries may differ in length.
        pairs = np.zeros(1)
    if pairs.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if pairs.ndim == 2 and pairs.shape[1] == 2 and pairs.dtype.kind in "iu":
        # Copy the array, because the caller may change the original.
        return pairs.astype(np.int64)
    raise ValueError(
        f"{names.at()}edges must be (parent, child) pairs of integers, got "
        f"{show(edges)}"
    )


def check_edges_known(known, edges, pairs, names):
    """Validate ``known``, and return a boolean array of the problems with known edges.

    The argument ``edges`` contains the edges passed by the caller. If ``known`` is None, the
    edges of all problems are known unless ``edges`` is None.
    """
    n_graphs = len(names.offsets) - 1
    if known is None:
        return read_only(np.full(n_graphs, edges is not None))
    known = np.array(known)
    if known.shape != (n_graphs,) or known.dtype != bool:
        raise ValueError(
            f"edges_known must contain {n_graphs} booleans, one per problem, got "
            f"{known.dtype} of shape {known.shape}"
        )
    home = np.searchsorted(names.offsets, pairs[:, 1], side="right") - 1
    if not known[home].all():
        i = home[np.argmin(known[home])]
        raise ValueError(
            f"{names.at(i)}edges must not be passed if edges_known is False for this "
            "problem"
        )
    return read_only(known)


def check_offsets(offsets):
    """Return offsets as an int64 array, or raise ValueError if they are invalid."""
    offsets = np.asarray(offsets)
    if offsets.ndim != 1 or len(offsets) < 2 or offsets.dtype.kind not in "iu":
        raise ValueError(
            "offsets must be a 1-D integer array with at least two entries, got "
            f"{offsets.dtype} of shape {offsets.shape}"
        )
    offsets = offsets.astype(np.int64)
    if offsets[0] != 0 or (np.diff(offsets) < 0).any():
        raise ValueError("offsets must start at 0 and must never decrease")
    return offsets


LONGEST = 80  # maximum number of characters of a value to show in a message
MOST = 10  # maximum number of claims to list if a cycle is reported


def show(value):
    """Return the ``repr`` of a value on one line, truncated if it is long."""
    text = printable(repr(value))
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def show_count(graph):
    """Return the number of edges of a graph or batch, or "unknown", for use in a ``repr``."""
    return len(graph.edges) if np.any(graph.edges_known) else "unknown"


def cycle_message(cycle):
    """Return an error message that lists the claims of a cycle in dependency order."""
    named = [str(v) for v in cycle]
    if len(named) > MOST:
        named[MOST - 1 :] = [f"... ({len(cycle):,} claims)"]
    arrows = " -> ".join([*named, named[0]])
    return f"the claims depend on each other in a cycle: {arrows}"
