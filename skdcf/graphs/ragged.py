"""Ragged arrays, and functions that pass values along edges.

A ragged array consists of flat values and offsets. Segment ``i`` is
``values[offsets[i]:offsets[i + 1]]`` and may be empty.

Values are passed from parents to children, either layer by layer or edge by edge. A batch of
small problems has a few wide layers, and numpy processes each layer in a single call. A long
chain has many narrow layers, and calling numpy for each layer would take longer than processing
the edges one by one. If every claim of a chain has at most one parent, the whole chain is
processed in a single call.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from operator import add, or_
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


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
    dtype = np.result_type(values, empty)
    if len(filled) and filled.all():
        return ufunc.reduceat(values, offsets[:-1], dtype=dtype)
    out = np.full(len(filled), empty, dtype=dtype)
    if filled.any():
        out[filled] = ufunc.reduceat(values, offsets[:-1][filled], dtype=out.dtype)
    return out


def read_only(array: NDArray[Any]) -> Any:
    """Return a read-only view of ``array``."""
    view = array.view()
    view.flags.writeable = False
    return view


def flatten(y: Any, kept: Any) -> Any:
    """Validate labels and masks, and return them as flat arrays with the problem offsets."""
    if len(y) != len(kept):
        raise ValueError(
            f"y and kept must contain the same number of problems, got {len(y)} and "
            f"{len(kept)}"
        )
    if not len(y):
        raise ValueError("y must contain at least one problem, but it is empty")
    (labels, sizes), (masks, n) = _joined(y), _joined(kept)
    wrong = np.flatnonzero(sizes != n)
    if wrong.size:
        i = wrong[0]
        raise ValueError(
            f"y[{i}] and kept[{i}] must have the same length, got {sizes[i]} labels and "
            f"{n[i]} entries"
        )
    for name, values, allowed in (("y", labels, (0, 1, -1)), ("kept", masks, (0, 1))):
        numbers = values.dtype.kind in "biuf"
        if not numbers or not np.isin(values, allowed).all():
            raise ValueError(
                f"{name} must contain only {allowed}, but it contains other values"
            )
    return labels, masks.astype(bool), offsets_of(sizes)


def _joined(rows):
    """Return the concatenated values of all rows, and the length of each row."""
    flat = isinstance(rows, np.ndarray) and rows.ndim == 1 and rows.dtype != object
    if any(np.ma.is_masked(row) for row in ([rows] if flat else rows)):
        raise ValueError(
            "y and kept must not contain masked values. Fill in these values, and use -1 "
            "for unknown labels"
        )
    if flat:
        return rows, np.ones(len(rows), dtype=np.int64)
    rows = [np.ravel(row) for row in rows]
    return np.concatenate(rows), np.array([len(row) for row in rows])


NARROW = 16  # minimum number of edges for which numpy is faster than a Python loop
_LONG = 64  # minimum number of edges in a chain that is processed by a separate call

# Python function that is equivalent to each NumPy ufunc for two scalars.
_OF_TWO: dict[np.ufunc, Callable[[Any, Any], Any]] = {
    np.maximum: max,
    np.minimum: min,
    np.bitwise_or: or_,
    np.add: add,
}


class Layer(NamedTuple):
    """Edges that can be processed in a single call, grouped by child.

    The parents of ``children[i]`` are ``parents[starts[i]:starts[i + 1]]``.
    """

    parents: np.ndarray
    children: np.ndarray
    starts: np.ndarray

    def pass_on(self, ufunc: np.ufunc, values: NDArray[Any]) -> None:
        """Update the values of children with the values of their parents, in place."""
        inherited = ufunc.reduceat(values[self.parents], self.starts)
        values[self.children] = ufunc(values[self.children], inherited)


class Walk(NamedTuple):
    """Edges that are processed one after another, with their ends as positions in ``claims``."""

    claims: np.ndarray
    parents: list[int]
    children: list[int]

    def pass_on(self, ufunc: np.ufunc, values: NDArray[Any]) -> None:
        """Update the values of children with the values of their parents, in place."""
        join = _OF_TWO[ufunc]
        claim_values = values[self.claims].tolist()
        for parent, child in zip(self.parents, self.children, strict=True):
            claim_values[child] = join(claim_values[child], claim_values[parent])
        values[self.claims] = np.array(claim_values, dtype=values.dtype)


class Chain(NamedTuple):
    """Path through ``claims``, in which each edge starts at the end of the previous edge."""

    claims: np.ndarray

    def pass_on(self, ufunc: np.ufunc, values: NDArray[Any]) -> None:
        """Update the value of each claim with the value of the previous claim, in place."""
        values[self.claims] = ufunc.accumulate(values[self.claims])


#: Edges sorted so that values can be passed from parents to children.
Sweep = Sequence[Layer | Walk | Chain]


def pass_all(sweep: Sweep, ufunc: np.ufunc, values: NDArray[Any]) -> NDArray[Any]:
    """Return a copy of ``values`` with each value combined with the values of all ancestors."""
    out = np.array(values)
    for edges in sweep:
        edges.pass_on(ufunc, out)
    return out


def sort_small(numbers: Any) -> Any:
    """Return a stable sort order of small integers, and the offset of each distinct integer."""
    # numpy sorts integers of up to 16 bits in linear time.
    if (most := numbers.max(initial=0)) < 2**15:
        numbers = numbers.astype(np.uint8 if most < 2**8 else np.int16)
    return np.argsort(numbers, kind="stable"), offsets_of(np.bincount(numbers))


def sort_by_rank(edges: NDArray[Any], rank: NDArray[Any]) -> Any:
    """Return parents and children sorted by the child's rank, and the offset of each rank."""
    order, bounds = sort_small(rank)
    return *np.take(edges, order, axis=0).T, bounds


def find_layers(edges: NDArray[Any], rank: NDArray[Any]) -> Any:
    """Return one `Layer` for each rank of a child, given ranks that increase along every edge."""
    if not len(edges):
        return []
    parent, child, bounds = sort_by_rank(edges, rank[edges[:, 1]])
    cuts = pairwise(np.unique(bounds))
    return [make_layer(parent[a:b], child[a:b]) for a, b in cuts]


def find_sweep(
    edges: NDArray[Any], rank: NDArray[Any], offsets: NDArray[np.int64]
) -> Any:
    """Return layers, walks and chains that contain all edges in topological order.

    The argument ``rank`` contains the rank of each edge's child, which increases along every
    path. Adjacent narrow layers are merged. The argument ``offsets`` contains the offsets of the
    problems.
    """
    if not len(edges):
        return []
    parent, child, bounds = sort_by_rank(edges, rank)
    narrow = np.diff(bounds) < NARROW
    first = np.flatnonzero(~(narrow & np.append(False, narrow[:-1])))
    ends = np.append(bounds[first[1:]], bounds[-1:])
    sweep = []
    for a, b, thin in zip(bounds[first], ends, narrow[first], strict=True):
        if thin:
            sweep += _cut_narrow(parent[a:b], child[a:b], offsets)
        elif a < b:
            sweep.append(make_layer(parent[a:b], child[a:b]))
    return sweep


def _cut_narrow(parents, children, offsets):
    """Divide the edges of narrow layers into long chains and the walks between these chains."""
    if not len(parents):
        return []
    problem = np.searchsorted(offsets, children, side="right")
    together = np.argsort(problem, kind="stable")
    parents = parents[together]
    children = children[together]
    starts = np.flatnonzero(np.append(True, parents[1:] != children[:-1]))
    long = np.diff(starts, append=len(parents)) >= _LONG
    first = np.flatnonzero(long | np.append(True, long[:-1]))
    bounds = np.append(starts[first], len(parents))
    return [
        (_make_chain if is_long else _make_walk)(parents[a:b], children[a:b])
        for a, b, is_long in zip(bounds[:-1], bounds[1:], long[first], strict=True)
    ]


def make_layer(parents: Any, children: Any) -> Any:
    """Create a layer from edges that are sorted by child."""
    new = np.flatnonzero(starts_run(children))
    return Layer(parents, children[new], new)


def _make_walk(parents, children):
    parents = parents.tolist()
    children = children.tolist()
    claims = sorted({*parents, *children})
    place = {claim: position for position, claim in enumerate(claims)}
    return Walk(
        np.array(claims),
        parents=[place[claim] for claim in parents],
        children=[place[claim] for claim in children],
    )


def _make_chain(parents, children):
    return Chain(np.append(parents[:1], children))
