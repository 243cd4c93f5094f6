"""Checks that find what is wrong with a problem before anything is computed from it.

The first part says how messages name problems and claims, and show what users wrote.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set, ValuesView

import numpy as np

from .._checks import is_missing, is_number, other_row, printable
from ._derived import find_cycle, find_depth, sort_edges
from .ragged import read_only, segment_ids
from .sources import NEVER_KEPT, is_list_of_claims

# Iterable, but one text is no list of texts, and the others promise no order.
NO_LISTS = (str, bytes, Set, Mapping, ValuesView)


def check_features(features, n_claims, names, copy=False):
    """Features as a read-only float table, or ValueError; None where there are none.

    ``n_claims`` is None where only the features themselves say it.
    """
    if features is None:
        return None
    table = _float_table(features, names.at(), copy)
    if table.ndim != 2 or n_claims not in (None, len(table)):
        due = "" if n_claims is None else f", and the offsets end at {n_claims} claims"
        raise ValueError(
            f"{names.at()}features have shape {table.shape}, but must have "
            f"(n_claims, n_features){due}"
        )
    if not np.isfinite(table).all():
        row, column = np.argwhere(~np.isfinite(table))[0]
        raise ValueError(
            f"{names.locate(row)}, feature {column} is {table[row, column]}: "
            "features must be finite; impute or drop them first"
        )
    return read_only(table)


def has_masked(values):
    """Whether entries are masked, in an array or in one of a list of arrays."""
    if isinstance(values, (list, tuple)):
        return any(isinstance(x, np.ma.MaskedArray) and has_masked(x) for x in values)
    return isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values)


def _float_table(features, where, copy):
    if has_masked(features):
        raise ValueError(
            f"{where}features hold masked entries, which stand for no number: impute "
            "them first, or drop the columns"
        )
    if (row := other_row(features)) is not None:
        raise ValueError(
            f"{where}features hold a {type(row).__name__}, but each row must be a sequence "
            "of numbers"
        )
    try:
        table = (np.array if copy else np.asarray)(features, order="C")
        if table.dtype == object:
            table = np.array([*map(_as_float, table.flat)], float).reshape(table.shape)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"{where}features are not a table of numbers: {printable(error)}"
        ) from None
    if table.dtype.kind not in "biuf":
        raise ValueError(
            f"{where}features are not a table of numbers: they are of type {table.dtype}"
        )
    return table.astype(np.float64, copy=False)


def _as_float(value):
    """An object as a float, NaN where it stands for nothing."""
    if is_missing(value):
        return np.nan
    if not is_number(value):
        raise TypeError(f"one of them is {show(value)}")
    return float(value)


def column_names(features, where=""):
    """Return the column names of a pandas, polars or pyarrow table, or None without names.

    As in scikit-learn, columns that are all named by something else than a str, such as
    their numbers, have no names.
    """
    # The `columns` of pyarrow are values.
    names = getattr(features, "column_names", getattr(features, "columns", None))
    if names is None:
        return None
    names = list(names)
    not_texts = [name for name in names if not isinstance(name, str)]
    if len(not_texts) == len(names):
        return None
    if not_texts:
        raise ValueError(
            f"{where}the column {show(not_texts[0])} of the features has a name that is not a "
            "str, and others have a str: name them all alike"
        )
    return names


def check_names(feature_names, features, table, where=""):
    """Feature names as a tuple, one distinct name per column, or ValueError.

    They are ``feature_names``, or else the column names of the ``features`` that were
    passed and have become ``table``.
    """
    names = column_names(features, where)
    if feature_names is not None:
        own_names = names
        names = [*map(str, in_order(feature_names, "feature_names", where))]
        if own_names not in (None, names):
            raise ValueError(
                f"{where}feature_names are {names}, but the columns of the features are "
                f"named {own_names}: leave feature_names out, or rename the columns"
            )
    if names is None:
        return None
    if len(set(names)) < len(names):
        twice = sorted({n for n in names if names.count(n) > 1})
        raise ValueError(f"{where}feature names occur more than once: {twice}")
    if table is not None and (width := table.shape[1]) != len(names):
        raise ValueError(f"{where}{len(names)} feature names but {width} features")
    return tuple(names)


def in_order(values, name, where=""):
    """Several values as a list, or ValueError if their order cannot be relied on."""
    if isinstance(values, NO_LISTS) or not isinstance(values, Iterable):
        is_text = isinstance(values, (str, bytes))
        kind = "one text" if is_text else f"a {type(values).__name__}"
        raise ValueError(f"{where}{name} is {kind}: a list is expected, with an order")
    return list(values)


def check_texts(texts, name, where):
    """Claims or alternatives as a tuple of str; ValueError where one is no text."""
    if texts is None:
        return None
    texts = tuple(in_order(texts, name, where))
    for k, text in enumerate(texts):
        if not isinstance(text, str):
            singular = name.removesuffix("s")
            raise ValueError(
                f"{where}{singular} {k} is {show(text)}: a str is expected"
            )
    return texts


def check_field(name, value, n_claims, where):
    """Question, metadata or texts of one problem in the form in which they are kept."""
    if value is None:
        return None
    if name in ("problem", "problems"):
        if not isinstance(value, str):
            raise ValueError(
                f"{where}the question is {show(value)}: a str or None is expected"
            )
        return value
    if name != "metadata":
        return check_texts(value, name, where)
    if not isinstance(value, Mapping):
        raise ValueError(f"{where}metadata is {show(value)}: a dict is expected")
    for key in NEVER_KEPT:
        listed = value.get(key, [])
        if not is_list_of_claims(listed, n_claims):
            raise ValueError(
                f"{where}metadata {key!r} is {show(listed)}: a list of positions of "
                f"its {n_claims} claims expected, counted from 0"
            )
    return dict(value)


def check_fields(name, values, names):
    """A field of all problems of a batch as an object array, or None, or ValueError."""
    values = check_column(values, len(names.offsets) - 1, name)
    sizes = np.diff(names.offsets).tolist()
    for i, value in enumerate(() if values is None else values):
        if value is not None:
            values[i] = check_field(name, value, sizes[i], names.at(i))
    return values


def check_flat_claims(claims, names, needed):
    """The claims of a batch as an object array, or None where no text is known.

    A problem has a text for each of its claims, or None for each: its texts are not
    known. Where they are ``needed``, as there are no features, all must be known.
    """
    offsets = names.offsets
    claims = check_column(claims, int(offsets[-1]), "claims")
    if claims is None:
        return None
    has_text = np.array([text is not None for text in claims], dtype=bool)
    is_text = np.array([isinstance(text, str) for text in claims], dtype=bool)
    problem_of = segment_ids(offsets)
    has_texts = np.full(len(offsets) - 1, needed)
    has_texts[problem_of[has_text]] = True
    wrong = np.flatnonzero(has_texts[problem_of] & ~is_text)
    if wrong.size:
        value = claims[wrong[0]]
        raise ValueError(
            f"{names.locate(wrong[0])} is {show(value)}: a str is expected"
        )
    return claims if has_texts.any() else None


def check_column(values, length, name):
    """A new object array of the given length, or None, or ValueError."""
    if values is None:
        return None
    values = in_order(values, name)
    if len(values) != length:
        raise ValueError(f"{len(values)} {name}, but the offsets say {length}")
    return np.fromiter(values, dtype=object, count=length)


def check_edges(edges, offsets, names):
    """Edges, sorted and distinct, and the depths of the claims where they are needed.

    None stands for no edges. ValueError unless each joins two claims of one problem, and
    no claim depends on itself. Where all parents stand before their children there can
    be no cycle, and the depths are None.
    """
    pairs = _edge_array(() if edges is None else edges, names)
    n_claims = offsets[-1]
    if not len(pairs):
        return read_only(pairs), None
    if pairs.min() < 0 or pairs.max() >= n_claims:
        u, v = pairs[((pairs < 0) | (pairs >= n_claims)).any(axis=1)][0]
        raise ValueError(
            f"{names.at()}edge ({u}, {v}) but only {n_claims} claims, counted from 0"
        )
    if len(offsets) > 2:
        home = segment_ids(offsets)[pairs]
        if (home[:, 0] != home[:, 1]).any():
            row = np.argmax(home[:, 0] != home[:, 1])
            (u, v), (i, j) = pairs[row], home[row]
            raise ValueError(f"edge ({u}, {v}) goes from problem {i} to problem {j}")
    late = (pairs[:, 0] >= pairs[:, 1]).any()
    if late and (pairs[:, 0] == pairs[:, 1]).any():
        v = pairs[pairs[:, 0] == pairs[:, 1]][0, 0]
        raise ValueError(
            f"{names.locate(v)} is its own parent (a self-loop); claims are counted from 0"
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
    """Edges as an int64 array of shape (n_edges, 2) of its own, or ValueError."""
    try:
        packed = isinstance(edges, np.ndarray)
        pairs = edges if packed else np.array([tuple(e) for e in edges])
    except (TypeError, ValueError):  # an entry is no pair, or of another length
        pairs = np.zeros(1)
    if pairs.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if pairs.ndim == 2 and pairs.shape[1] == 2 and pairs.dtype.kind in "iu":
        return pairs.astype(np.int64)  # a copy, since what was passed may change later
    raise ValueError(
        f"{names.at()}edges must be pairs of whole numbers (parent, child), got "
        f"{show(edges)}"
    )


def check_edges_known(known, edges, pairs, names):
    """Whether the edges of each problem are known, or ValueError.

    ``edges`` are None or as the user gave them, which by itself says it for all.
    """
    n_graphs = len(names.offsets) - 1
    if known is None:
        return read_only(np.full(n_graphs, edges is not None))
    known = np.array(known)
    if known.shape != (n_graphs,) or known.dtype != bool:
        raise ValueError(
            f"edges_known must be {n_graphs} booleans, one per problem, got "
            f"{known.dtype} of shape {known.shape}"
        )
    home = np.searchsorted(names.offsets, pairs[:, 1], side="right") - 1
    if not known[home].all():
        i = home[np.argmin(known[home])]
        raise ValueError(
            f"{names.at(i)}edges are given, but edges_known says that they are not known"
        )
    return read_only(known)


def check_offsets(offsets):
    """Offsets as int64, or ValueError."""
    offsets = np.asarray(offsets)
    if offsets.ndim != 1 or len(offsets) < 2 or offsets.dtype.kind not in "iu":
        raise ValueError(
            "offsets must be at least two whole numbers, got "
            f"{offsets.dtype} of shape {offsets.shape}"
        )
    offsets = offsets.astype(np.int64)
    if offsets[0] != 0 or (np.diff(offsets) < 0).any():
        raise ValueError("offsets must start with 0 and never decrease")
    return offsets


LONGEST = 80  # characters of a value that a message shows
MOST = 10  # claims of a cycle that a message names


def show(value):
    """A value on one line, cut where it is long."""
    text = printable(repr(value))
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def show_count(graph):
    """The number of edges of a graph or batch for its repr, where any are known."""
    return len(graph.edges) if np.any(graph.edges_known) else "unknown"


def cycle_message(cycle):
    """A sentence on claims that depend on each other, in the order of dependence."""
    named = [str(v) for v in cycle]
    if len(named) > MOST:
        named[MOST - 1 :] = [f"... ({len(cycle):,} claims)"]
    arrows = " -> ".join([*named, named[0]])
    return f"the claims depend on each other in a cycle: {arrows}"
