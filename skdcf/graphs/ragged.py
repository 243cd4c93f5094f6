"""Ragged arrays, and functions that pass values along edges.

A ragged array consists of flat values and offsets. Segment ``i`` is
``values[offsets[i]:offsets[i + 1]]`` and may be empty.

Values are passed from parents to children in one sweep over the edges, layer by layer. A batch of
small problems has a few wide layers, which numpy processes in a single call each. A long chain
has many narrow layers, whose edges are processed one by one.
"""

from collections.abc import Callable, Iterator, Sequence
from graphlib import CycleError
from operator import add, or_
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# Layers with fewer edges are processed by a Python loop, which is faster than numpy.
NARROW = 16
# number of bytes of bits that are unpacked at a time
BLOCK = 2**20


def offsets_of(lengths: Sequence[int] | NDArray[Any]) -> NDArray[Any]:
    """Return the n + 1 offsets of n segments with the given lengths."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def slices(offsets: NDArray[np.int64]) -> Iterator[slice]:
    """Return an iterator over the slices of all segments."""
    bounds = offsets.tolist()
    return map(slice, bounds[:-1], bounds[1:])


def segment_ids(offsets: NDArray[np.int64]) -> NDArray[Any]:
    """Return the index of the segment to which each value belongs."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def ranges(starts: NDArray[Any], lengths: NDArray[Any]) -> NDArray[Any]:
    """Return ``concatenate([arange(s, s + l) for s, l in zip(starts, lengths)])``."""
    offsets = offsets_of(lengths)
    return np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)


def optional_rows(values: Any, rows: Any) -> Any:
    """Return the given rows of a column, or None if the column is None."""
    return None if values is None else values[rows]


def starts_run(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return a mask that is True at the start of each run of equal values."""
    starts = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=starts[1:])
    return starts


def reduce_segments(
    ufunc: np.ufunc, values: NDArray[Any], offsets: NDArray[np.int64], empty: Any
) -> NDArray[Any]:
    """Reduce each segment with ``ufunc``, and return ``empty`` for empty segments.

    The result for a segment depends only on the values of the segment, and is bitwise
    reproducible.
    """
    filled = offsets[:-1] < offsets[1:]
    out = np.full(len(filled), empty, dtype=np.result_type(values, empty))
    if filled.any():
        out[filled] = ufunc.reduceat(values, offsets[:-1][filled], dtype=out.dtype)
    return out


def sort_small(numbers: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return a stable sort order of small integers, and the offset of each distinct integer."""
    # numpy sorts integers of up to 16 bits in linear time.
    if (most := numbers.max(initial=0)) < 2**15:
        numbers = numbers.astype(np.uint8 if most < 2**8 else np.int16)
    return np.argsort(numbers, kind="stable"), offsets_of(np.bincount(numbers))


def read_only(array: NDArray[Any]) -> Any:
    """Return a read-only view of ``array``."""
    view = array.view()
    view.flags.writeable = False
    return view


class Layer(NamedTuple):
    """Edges that are processed together.

    In a wide layer, ``parents[starts[i]:starts[i + 1]]`` are the parents of ``children[i]``. In
    adjacent narrow layers, the edges are processed one after another, and their ends are
    positions in ``claims``.
    """

    parents: Any
    children: Any
    starts: Any = None
    claims: Any = None


# Python function that is equivalent to each NumPy ufunc for two scalars.
_OF_TWO: dict[np.ufunc, Callable[[Any, Any], Any]] = {
    np.maximum: max,
    np.minimum: min,
    np.bitwise_or: or_,
    np.add: add,
}


def pass_all(
    sweep: Sequence[Layer], ufunc: np.ufunc, values: NDArray[Any]
) -> NDArray[Any]:
    """Return a copy of ``values`` with each value combined with the values of all ancestors."""
    out = np.array(values)
    join = _OF_TWO[ufunc]
    for parents, children, starts, claims in sweep:
        if claims is None:
            inherited = ufunc.reduceat(out[parents], starts)
            out[children] = ufunc(out[children], inherited)
        else:
            cells = out[claims].tolist()
            for parent, child in zip(parents, children, strict=True):
                cells[child] = join(cells[child], cells[parent])
            out[claims] = np.array(cells, dtype=out.dtype)
    return out


def find_sweep(edges: NDArray[Any], rank: NDArray[Any]) -> list[Layer]:
    """Group the edges by the rank of their child, and join adjacent narrow groups."""
    order, bounds = sort_small(rank)
    narrow = np.diff(bounds) < NARROW
    first = np.flatnonzero(~(narrow & np.append(False, narrow[:-1])))
    # `take` is faster than an index array for rows.
    groups = np.split(np.take(edges, order, axis=0), bounds[first[1:]])
    sweep = []
    for group, is_narrow in zip(groups, narrow[first], strict=False):
        if is_narrow:
            claims, places = np.unique(group, return_inverse=True)
            parents, children = places.reshape(-1, 2).T.tolist()
            sweep.append(Layer(parents, children, claims=claims))
        else:
            parents, children = group.T
            starts = np.flatnonzero(starts_run(children))
            sweep.append(Layer(parents, children[starts], starts))
    return sweep


def sort_edges(edges: NDArray[Any], n_claims: int) -> NDArray[Any]:
    """Return the distinct edges, sorted by (child, parent)."""
    # Each edge is encoded as a single integer, with the child in the upper bits.
    shift = n_claims.bit_length()
    key = (edges[:, 1] << shift) | edges[:, 0]
    if (key[1:] > key[:-1]).all():
        return edges
    key.sort(kind="stable")
    key = key[starts_run(key)]
    return np.stack([key & ((1 << shift) - 1), key >> shift], axis=1)


def find_depth(edges: NDArray[Any], n_claims: int) -> NDArray[np.int32]:
    """Return the length of the longest path to each claim.

    Raises
    ------
    graphlib.CycleError
        If there is a cycle. The second argument of the error contains its claims.
    """
    depth = np.zeros(n_claims, dtype=np.int32)
    layer = n_before = 0
    # Remove the edges of one layer at a time, if this is a large part of the edges.
    while (len(edges) and len(edges) < 0.98 * n_before) or not layer:
        layer += 1
        n_before = len(edges)
        depth[edges[:, 1]] = layer
        # Only parents that are children of remaining edges have reached this layer.
        edges = edges[depth[edges[:, 0]] == layer]
    # Kahn's algorithm, claim by claim
    parent, child = edges.T
    children = child[np.argsort(parent, kind="stable")]
    first = offsets_of(np.bincount(parent, minlength=n_claims))
    missing = np.bincount(child, minlength=n_claims)
    waiting = np.flatnonzero((np.diff(first) > 0) & (missing == 0)).tolist()
    for u in waiting:
        for v in children[first[u] : first[u + 1]].tolist():
            missing[v] -= 1
            if not missing[v]:
                # The last parent that is reached is one of the deepest.
                depth[v] = depth[u] + 1
                waiting.append(v)
    if missing.any():
        # Each remaining claim has a remaining parent, so the way up ends in a cycle.
        remaining = missing > 0
        inside = edges[remaining[parent] & remaining[child]]
        parent_of = dict(inside[:, ::-1].tolist())
        path = [int(inside[0, 1])]
        places: dict[int, int] = {}
        while path[-1] not in places:
            places[path[-1]] = len(places)
            path.append(parent_of[path[-1]])
        raise CycleError("cycle", path[places[path[-1]] :][::-1])
    return depth


def unpack_bits(bits: NDArray[np.uint8]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the row and the position of each bit that is set, given rows of bytes."""
    n_bits = 8 * bits.shape[1]
    step = max(1, BLOCK // bits.shape[1])
    found = [np.empty(0, dtype=np.int64)]
    for a in range(0, len(bits), step):
        block = np.unpackbits(bits[a : a + step], axis=1, bitorder="little")
        found.append(np.flatnonzero(block) + a * n_bits)
    return np.divmod(np.concatenate(found), n_bits)
