"""What makes a problem wrong, found before anything is computed from it."""

import numpy as np

from ._ragged import read_only, segment_ids
from ._structure import depths, find_cycle, sort_edges


def name_problem(i, ids):
    """How messages name problem i."""
    named = ids is not None and ids[i] is not None
    return f'problem {i} ("{ids[i]}")' if named else f"problem {i}"


def locate(row, offsets, ids):
    """How messages name the claim in a row of a batch."""
    i = np.searchsorted(offsets, row, side="right") - 1
    return f"{name_problem(i, ids)}, claim {row - offsets[i]}"


def check_features(features, where):
    """Features as a read-only float table, or ValueError."""
    if features is None:
        return None
    try:
        features = np.array(features, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{where}features are not a table of numbers: {error}"
        ) from error
    if features.ndim != 2:
        raise ValueError(
            f"{where}features must have shape (n_claims, n_features), "
            f"got {features.shape}"
        )
    check_finite(features, where)
    return read_only(features)


def check_flat_features(features, offsets, ids):
    """Features of a batch as a read-only float table, or ValueError."""
    features = np.ascontiguousarray(features, dtype=np.float64)
    if features.ndim != 2 or len(features) != offsets[-1]:
        raise ValueError(
            f"features have shape {features.shape}, but the offsets end at "
            f"{offsets[-1]} claims"
        )
    check_finite(features, "", lambda row: locate(row, offsets, ids))
    return read_only(features)


def check_finite(features, where, name=lambda row: f"claim {row}"):
    """Raise ValueError at the first NaN or infinite feature."""
    if np.isfinite(features).all():
        return
    row, column = np.argwhere(~np.isfinite(features))[0]
    raise ValueError(
        f"{where}{name(row)}, feature {column} is {features[row, column]}: "
        "features must be finite; impute or drop them first"
    )


def check_names(features, names, where):
    """Raise ValueError unless there is one distinct name per feature column."""
    if names is None:
        return
    if len(set(names)) < len(names):
        twice = sorted({n for n in names if names.count(n) > 1})
        raise ValueError(f"{where}feature names occur more than once: {twice}")
    if features is not None and features.shape[1] != len(names):
        raise ValueError(
            f"{where}{len(names)} feature names but {features.shape[1]} features"
        )


def edge_array(edges, where=""):
    """Edges as an int64 array of shape (n_edges, 2)."""
    if not isinstance(edges, np.ndarray):
        edges = np.array([tuple(e) for e in edges])
    if edges.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu":
        raise ValueError(
            f"{where}edges must be pairs of whole numbers (parent, child), got "
            f"{edges.dtype} of shape {edges.shape}"
        )
    return edges.astype(np.int64)  # a copy: what was passed may change later


def check_edges(edges, n_claims, where):
    """Edges of one graph, sorted and distinct, or ValueError."""
    edges = edge_array(edges, where)
    if len(edges):
        if edges.min() < 0 or edges.max() >= n_claims:
            u, v = edges[((edges < 0) | (edges >= n_claims)).any(axis=1)][0]
            raise ValueError(f"{where}edge ({u}, {v}) but only {n_claims} claims")
        if (edges[:, 0] == edges[:, 1]).any():
            v = edges[edges[:, 0] == edges[:, 1]][0, 0]
            raise ValueError(f"{where}claim {v} is its own parent (a self-loop)")
        edges = sort_edges(edges, n_claims)
        if (edges[:, 0] > edges[:, 1]).any():
            depth = depths(edges, n_claims)
            if (depth < 0).any():
                raise ValueError(where + cycle_message(find_cycle(edges, depth)))
    return read_only(np.ascontiguousarray(edges))


def cycle_message(cycle):
    """Name a cycle."""
    path = " -> ".join(str(v) for v in [*cycle, cycle[0]])
    return f"the claims depend on each other in a cycle: {path}"


def check_texts(claims, problem, where):
    """Claims as a tuple of str, or None; ValueError where a text is none."""
    if problem is not None and not isinstance(problem, str):
        raise ValueError(f"{where}the question is {problem!r}: a str or None expected")
    if claims is None:
        return None
    if isinstance(claims, str):
        raise ValueError(f"{where}claims is one text: pass a list of them")
    claims = tuple(claims)
    for v, text in enumerate(claims):
        if not isinstance(text, str):
            raise ValueError(f"{where}claim {v} is {text!r}: a str expected")
    return claims


def object_column(values, length, name):
    """An object array of the given length, or None, or ValueError."""
    if values is None:
        return None
    values = list(values)
    if len(values) != length:
        raise ValueError(f"{len(values)} {name}, but the offsets say {length}")
    return np.fromiter(values, dtype=object, count=length)


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


def check_flat_edges(edges, offsets, ids):
    """Edges of a batch, sorted and distinct, or ValueError; cycles are not looked for."""
    n_claims = int(offsets[-1])
    if not len(edges):
        return edges
    if edges.min() < 0 or edges.max() >= n_claims:
        u, v = edges[((edges < 0) | (edges >= n_claims)).any(axis=1)][0]
        raise ValueError(f"edge ({u}, {v}) but only {n_claims} claims in all")
    problem_of = segment_ids(offsets)
    home = problem_of[edges]
    bad = np.flatnonzero(home[:, 0] != home[:, 1])
    if bad.size:
        (u, v), (i, j) = edges[bad[0]], home[bad[0]]
        raise ValueError(f"edge ({u}, {v}) goes from problem {i} to problem {j}")
    loop = np.flatnonzero(edges[:, 0] == edges[:, 1])
    if loop.size:
        where = locate(edges[loop[0], 0], offsets, ids)
        raise ValueError(f"{where} is its own parent (a self-loop)")
    return sort_edges(edges, n_claims)
