"""What makes a problem wrong, found before anything is computed from it."""

from collections.abc import Iterable, Mapping, Set, ValuesView

import numpy as np

from .._checks import is_missing, printable
from ._names import cycle_message, locate, name_problem, show
from ._structure import find_cycle, find_depth, sort_edges
from .ragged import read_only, segment_ids
from .sources import NO_VERDICT

# Iterable, but one text is no list of texts, and the others promise no order.
NO_LISTS = (str, bytes, Set, Mapping, ValuesView)


def check_features(features, where):
    """Features of one graph as a read-only float table of its own, or ValueError."""
    if features is None:
        return None
    table = _float_table(features, where, copy=True)
    if table.ndim != 2:
        raise ValueError(
            f"{where}features must have shape (n_claims, n_features), got {table.shape}"
        )
    _check_finite(table, lambda row: f"{where}claim {row}")
    return read_only(table)


def check_flat_features(features, offsets, ids):
    """Features of a batch as a read-only float table, or ValueError."""
    if features is None:
        return None
    table = _float_table(features, "")
    if table.ndim != 2 or len(table) != offsets[-1]:
        raise ValueError(
            f"features have shape {table.shape}, but the offsets end at "
            f"{offsets[-1]} claims"
        )
    _check_finite(table, lambda row: locate(row, offsets, ids))
    return read_only(table)


def has_masked(values):
    """Whether entries are masked, in an array or in one of a list of arrays."""
    if isinstance(values, (list, tuple)):
        return any(isinstance(x, np.ma.MaskedArray) and has_masked(x) for x in values)
    return isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values)


def _float_table(features, where, copy=False):
    if has_masked(features):
        raise ValueError(
            f"{where}features hold masked entries, which stand for no number: impute "
            "them first, or drop the columns"
        )
    try:
        make = np.array if copy else np.asarray
        table = make(features, order="C")
        if table.dtype == object:
            numbers = [_as_float(value) for value in table.flat]
            table = np.reshape(np.array(numbers, dtype=np.float64), table.shape)
    except (TypeError, ValueError, OverflowError) as error:
        reason = printable(error)
    else:
        if table.dtype.kind in "biuf":
            return table.astype(np.float64, copy=False)
        reason = f"they are of type {table.dtype}"
    raise ValueError(f"{where}features are not a table of numbers: {reason}")


def _as_float(value):
    """An object as a float, NaN where it stands for nothing."""
    if is_missing(value):
        return np.nan
    if isinstance(value, (str, bytes, complex, np.complexfloating)):
        raise TypeError(f"one is {show(value)}")
    return float(value)


def _check_finite(table, name):
    if np.isfinite(table).all():
        return
    row, column = np.argwhere(~np.isfinite(table))[0]
    raise ValueError(
        f"{name(row)}, feature {column} is {table[row, column]}: "
        "features must be finite; impute or drop them first"
    )


def check_names(names, features, where=""):
    """Feature names as a tuple, one distinct name per column, or ValueError."""
    if names is None:
        return None
    names = tuple(map(str, in_order(names, "feature_names", where)))
    if len(set(names)) < len(names):
        twice = sorted({n for n in names if names.count(n) > 1})
        raise ValueError(f"{where}feature names occur more than once: {twice}")
    if features is not None and features.shape[1] != len(names):
        raise ValueError(
            f"{where}{len(names)} feature names but {features.shape[1]} features"
        )
    return names


def in_order(values, name, where=""):
    """A list of several values, or ValueError where no order can be relied on."""
    if isinstance(values, NO_LISTS) or not isinstance(values, Iterable):
        one = isinstance(values, (str, bytes))
        found = "one text" if one else f"a {type(values).__name__}"
        raise ValueError(
            f"{where}{name} is {found}: a list expected, whose order is known"
        )
    return list(values)


def check_texts(texts, name, where):
    """Claims or alternatives as a tuple of str; ValueError where one is no text."""
    if texts is None:
        return None
    texts = tuple(in_order(texts, name, where))
    for k, text in enumerate(texts):
        if not isinstance(text, str):
            one = name.removesuffix("s")
            raise ValueError(f"{where}{one} {k} is {show(text)}: a str expected")
    return texts


def check_problem(problem, where):
    """Raise ValueError unless the question is a text, or not known (None)."""
    if problem is not None and not isinstance(problem, str):
        raise ValueError(
            f"{where}the question is {show(problem)}: a str or None expected"
        )


def check_flat_claims(claims, offsets, ids, needed):
    """The claims of a batch as an object array, or None where no text is known.

    A problem has a text for each of its claims, or None for each: its texts are not
    known. Where they are ``needed``, as there are no features, all must be known.
    """
    claims = check_column(claims, int(offsets[-1]), "claims")
    if claims is None:
        return None
    given = np.array([text is not None for text in claims], dtype=bool)
    is_text = np.array([isinstance(text, str) for text in claims], dtype=bool)
    problem_of = segment_ids(offsets)
    has_texts = np.full(len(offsets) - 1, needed)
    has_texts[problem_of[given]] = True
    wrong = np.flatnonzero(has_texts[problem_of] & ~is_text)
    if wrong.size:
        where, value = locate(wrong[0], offsets, ids), claims[wrong[0]]
        raise ValueError(f"{where} is {show(value)}: a str expected")
    return claims if has_texts.any() else None


def check_flat_problems(problems, n_graphs, ids):
    """The questions of a batch as an object array, or None, or ValueError."""
    problems = check_column(problems, n_graphs, "problems")
    for i, problem in enumerate(() if problems is None else problems):
        check_problem(problem, f"{name_problem(i, ids)}: ")
    return problems


def check_flat_texts(texts, name, n_graphs, ids):
    """Several texts of each problem, as tuples in an object array, or None."""
    texts = check_column(texts, n_graphs, name)
    if texts is None:
        return None
    rows = [
        check_texts(some, name, f"{name_problem(i, ids)}: ")
        for i, some in enumerate(texts)
    ]
    return np.fromiter(rows, dtype=object, count=n_graphs)


def check_metadata(metadata, n_claims, where):
    """Metadata of one problem as a dict of its own, or None, or ValueError."""
    if metadata is None:
        return None
    if not isinstance(metadata, Mapping):
        raise ValueError(f"{where}metadata is {show(metadata)}: a dict expected")
    missing = metadata.get(NO_VERDICT, [])
    listed = isinstance(missing, (list, tuple))
    if not listed or any(type(v) is not int or not 0 <= v < n_claims for v in missing):
        raise ValueError(
            f"{where}metadata {NO_VERDICT!r} is {show(missing)}: a list of positions of "
            f"its {n_claims} claims expected, counted from 0"
        )
    return dict(metadata)


def check_flat_metadata(metadata, offsets, ids):
    """Metadata of each problem as dicts in an object array, or None."""
    metadata = check_column(metadata, len(offsets) - 1, "metadata")
    if metadata is None:
        return None
    sizes = np.diff(offsets).tolist()
    rows = [
        check_metadata(one, sizes[i], f"{name_problem(i, ids)}: ")
        for i, one in enumerate(metadata)
    ]
    return np.fromiter(rows, dtype=object, count=len(rows))


def check_column(values, length, name):
    """An object array of the given length, or None, or ValueError."""
    if values is None:
        return None
    values = in_order(values, name)
    if len(values) != length:
        raise ValueError(f"{len(values)} {name}, but the offsets say {length}")
    return np.fromiter(values, dtype=object, count=length)


def edge_array(edges, where=""):
    """Edges as an int64 array of shape (n_edges, 2) of its own, or ValueError."""
    try:
        packed = isinstance(edges, np.ndarray)
        pairs = edges if packed else np.array([tuple(e) for e in edges])
    except (TypeError, ValueError):  # an entry that is no pair, or of another length
        pairs = np.zeros(1)
    if pairs.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if pairs.ndim == 2 and pairs.shape[1] == 2 and pairs.dtype.kind in "iu":
        return pairs.astype(np.int64)  # a copy: what was passed may change later
    raise ValueError(
        f"{where}edges must be pairs of whole numbers (parent, child), got {show(edges)}"
    )


def check_edges(edges, n_claims, where):
    """Edges of one graph, sorted and distinct, or ValueError; none if None."""
    edges = edge_array(() if edges is None else edges, where)
    if len(edges):
        _check_range(edges, n_claims, where, "claims")
        if (edges[:, 0] == edges[:, 1]).any():
            v = edges[edges[:, 0] == edges[:, 1]][0, 0]
            raise ValueError(
                f"{where}claim {v} is its own parent (a self-loop); claims are counted from 0"
            )
        edges = sort_edges(edges, n_claims)
        if (edges[:, 0] > edges[:, 1]).any():
            depth = find_depth(edges, n_claims)
            if (depth < 0).any():
                raise ValueError(where + cycle_message(find_cycle(edges, depth)))
    return read_only(np.ascontiguousarray(edges))


def check_flat_edges(edges, offsets, ids):
    """Edges of a batch, sorted and distinct, or ValueError; cycles are not looked for."""
    edges, n_claims = edge_array(edges), int(offsets[-1])
    if not len(edges):
        return edges
    _check_range(edges, n_claims, "", "claims in all")
    home = segment_ids(offsets)[edges]
    bad = np.flatnonzero(home[:, 0] != home[:, 1])
    if bad.size:
        (u, v), (i, j) = edges[bad[0]], home[bad[0]]
        raise ValueError(f"edge ({u}, {v}) goes from problem {i} to problem {j}")
    loop = np.flatnonzero(edges[:, 0] == edges[:, 1])
    if loop.size:
        where = locate(edges[loop[0], 0], offsets, ids)
        raise ValueError(f"{where} is its own parent (a self-loop)")
    return sort_edges(edges, n_claims)


def check_edges_known(known, edges, offsets, ids):
    """Whether the edges of each problem are known, or ValueError.

    ``edges`` are None or as the user gave them, which by itself says it for all.
    """
    n_graphs = len(offsets) - 1
    if known is None:
        return read_only(np.full(n_graphs, edges is not None))
    known = np.array(known)
    if known.shape != (n_graphs,) or known.dtype != bool:
        raise ValueError(
            f"edges_known must be {n_graphs} booleans, one per problem, got "
            f"{known.dtype} of shape {known.shape}"
        )
    return read_only(known)


def check_unknown_have_none(known, edge_offsets, ids):
    """Raise ValueError where a problem has edges that are said to be unknown."""
    wrong = np.flatnonzero(~known & (np.diff(edge_offsets) > 0))
    if wrong.size:
        raise ValueError(
            f"{name_problem(wrong[0], ids)} has edges, but edges_known says that they "
            "are not known"
        )


def check_no_cycle(edges, depth, offsets, ids):
    """Raise ValueError where claims of a batch are on a cycle, whose depth is -1."""
    if (depth < 0).any():
        cycle = find_cycle(edges, depth)
        i = np.searchsorted(offsets, cycle[0], side="right") - 1
        message = cycle_message([v - offsets[i] for v in cycle])
        raise ValueError(f"{name_problem(i, ids)}: {message}")


def _check_range(edges, n_claims, where, claims):
    if edges.min() < 0 or edges.max() >= n_claims:
        u, v = edges[((edges < 0) | (edges >= n_claims)).any(axis=1)][0]
        raise ValueError(
            f"{where}edge ({u}, {v}) but only {n_claims} {claims}, counted from 0"
        )


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
