"""Ragged arrays, and functions that pass values along edges.

A ragged array consists of flat values and offsets. Segment ``i`` is
``values[offsets[i]:offsets[i + 1]]`` and may be empty.

Values are passed from parents to children in one sweep over the edges, layer by layer. A batch of
small problems has a few wide layers, which numpy processes in a single call each. A long chain
has many narrow layers, whose edges are processed one by one.
"""

from collections.abc import Callable, Iterator, Sequence
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
    lengths = np.asarray(lengths, dtype=np.int64)
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(starts - (ends - lengths), lengths)


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
    """Edges that are processed in a single call, grouped by child.

    The parents of ``children[i]`` are ``parents[starts[i]:starts[i + 1]]``.
    """

    parents: NDArray[Any]
    children: NDArray[Any]
    starts: NDArray[Any]

    def pass_on(self, ufunc: np.ufunc, values: NDArray[Any]) -> None:
        """Update the values of children with the values of their parents, in place."""
        inherited = ufunc.reduceat(values[self.parents], self.starts)
        values[self.children] = ufunc(values[self.children], inherited)


class Walk(NamedTuple):
    """Edges that are processed one after another, with their ends as positions in ``claims``."""

    claims: NDArray[Any]
    parents: list[int]
    children: list[int]

    def pass_on(self, ufunc: np.ufunc, values: NDArray[Any]) -> None:
        """Update the values of children with the values of their parents, in place."""
        join = _OF_TWO[ufunc]
        of_claim = values[self.claims].tolist()
        for parent, child in zip(self.parents, self.children, strict=True):
            of_claim[child] = join(of_claim[child], of_claim[parent])
        values[self.claims] = np.array(of_claim, dtype=values.dtype)


# Python function that is equivalent to each NumPy ufunc for two scalars.
_OF_TWO: dict[np.ufunc, Callable[[Any, Any], Any]] = {
    np.maximum: max,
    np.minimum: min,
    np.bitwise_or: or_,
    np.add: add,
}


def pass_all(
    sweep: Sequence[Layer | Walk], ufunc: np.ufunc, values: NDArray[Any]
) -> NDArray[Any]:
    """Return a copy of ``values`` with each value combined with the values of all ancestors."""
    out = np.array(values)
    for edges in sweep:
        edges.pass_on(ufunc, out)
    return out


def find_sweep(edges, rank):
    """Group the edges by the rank of their child, and join adjacent narrow groups."""
    if not len(edges):
        return []
    order, bounds = sort_small(rank)
    parent, child = np.take(edges, order, axis=0).T
    narrow = np.diff(bounds) < NARROW
    first = np.flatnonzero(~(narrow & np.append(False, narrow[:-1])))
    ends = np.append(bounds[first[1:]], bounds[-1:])
    return [
        (_make_walk if thin else _make_layer)(parent[a:b], child[a:b])
        for a, b, thin in zip(bounds[first], ends, narrow[first], strict=True)
        if a < b
    ]


def _make_layer(parents, children):
    starts = np.flatnonzero(starts_run(children))
    return Layer(parents, children[starts], starts)


def _make_walk(parents, children):
    claims, ends = np.unique(np.stack([parents, children]), return_inverse=True)
    return Walk(claims, *ends.reshape(2, -1).tolist())


def sort_edges(edges, n_claims):
    """Return the distinct edges, sorted by (child, parent).

    Each edge is encoded as a single integer, with the child in the upper bits.
    """
    shift = int(n_claims).bit_length()
    key = (edges[:, 1] << shift) | edges[:, 0]
    if (key[1:] > key[:-1]).all():
        return edges
    key.sort(kind="stable")
    key = key[starts_run(key)]
    return np.stack([key & ((1 << shift) - 1), key >> shift], axis=1)


def find_depth(edges, n_claims):
    """Return the length of the longest path to each claim, or -1 for claims on or after a cycle.

    Paths start at claims that have no parents. Kahn's algorithm processes one layer of all graphs
    per step while the layers are wide, and then claim by claim.
    """
    parent, child = edges.T
    children = child[np.argsort(parent, kind="stable")]
    count = np.bincount(parent, minlength=n_claims)
    first = offsets_of(count)
    missing = np.bincount(child, minlength=n_claims)
    depth = np.full(n_claims, -1, dtype=np.int32)
    ready = np.flatnonzero(missing == 0)
    depth[ready] = 0
    layer = 0
    mark = np.empty(n_claims, dtype=np.int64)
    while ready.size >= NARROW:
        layer += 1
        reached = children[ranges(first[ready], count[ready])]
        np.subtract.at(missing, reached, 1)
        reached = reached[missing[reached] == 0]
        # A claim with two parents in the layer occurs twice. Only its last occurrence is kept,
        # which does not require sorting.
        position = np.arange(reached.size)
        mark[reached] = position
        ready = reached[mark[reached] == position]
        depth[ready] = layer
    waiting = ready.tolist()
    for u in waiting:
        for v in children[first[u] : first[u + 1]].tolist():
            missing[v] -= 1
            if not missing[v]:
                # The last parent that is reached is one of the deepest.
                depth[v] = depth[u] + 1
                waiting.append(v)
    return depth


def find_cycle(edges, depth):
    """Return the claims of a cycle in dependency order, given the depths from `find_depth`.

    Each claim on or after a cycle has a parent that is also on or after a cycle. Therefore, a
    walk from parent to parent eventually returns to a claim that has already been visited.
    """
    stuck = depth < 0
    # If a claim has several parents, the first parent is used, because it comes last in the
    # reversed order.
    parent_of = dict(edges[stuck[edges].all(axis=1)][::-1, ::-1].tolist())
    place: dict[int, int] = {}
    v = min(parent_of)
    while v not in place:
        place[v] = len(place)
        v = parent_of[v]
    cycle = list(place)[place[v] :][::-1]
    start = cycle.index(min(cycle))
    return cycle[start:] + cycle[:start]


def unpack_bits(bits: NDArray[np.uint8]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the row and the position of each bit that is set, given rows of bytes."""
    n_bits = 8 * bits.shape[1]
    step = max(1, BLOCK // bits.shape[1])
    found = [
        np.flatnonzero(np.unpackbits(bits[a : a + step], axis=1, bitorder="little"))
        + a * n_bits
        for a in range(0, len(bits), step)
    ]
    return np.divmod(np.concatenate([np.empty(0, dtype=np.int64), *found]), n_bits)
