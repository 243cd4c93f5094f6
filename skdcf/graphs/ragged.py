"""Ragged arrays, and how values are passed on along edges: what all other modules rest on.

``offsets`` has one entry more than there are segments; segment ``i`` is
``values[offsets[i]:offsets[i + 1]]`` and may be empty.

Values are passed on parents first, by layers or edge by edge. The layers of a batch of
small problems are few and wide, and one call of numpy serves a whole one. Those of a long
chain are many and narrow: there a call costs more than the edges of the layer do one by
one. A chain without a second parent is one call again.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from operator import add, or_
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


def offsets_of(lengths: Sequence[int] | NDArray[Any]) -> NDArray[Any]:
    """Offsets, shape (n + 1,), of segments with the given lengths, shape (n,)."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def segment_ids(offsets: NDArray[np.int64]) -> NDArray[Any]:
    """The number of the segment that each value belongs to."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def ranges(starts: NDArray[Any], lengths: NDArray[Any]) -> NDArray[Any]:
    """``concatenate([arange(s, s + l) for s, l in zip(starts, lengths)])``."""
    lengths = np.asarray(lengths, dtype=np.int64)
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(starts - (ends - lengths), lengths)


def starts_run(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether each value differs from the one before it; the first one does."""
    starts = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=starts[1:])
    return starts


def reduce_segments(
    ufunc: np.ufunc, values: NDArray[Any], offsets: NDArray[np.int64], empty: Any
) -> NDArray[Any]:
    """``ufunc`` over each segment, shape (n,), and ``empty`` where there is nothing.

    What comes out for a segment depends on its own values alone, to the last bit.
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
    """A view of ``array`` that cannot be written to."""
    view = array.view()
    view.flags.writeable = False
    return view


def flatten(y: Any, kept: Any) -> Any:
    """Labels and masks of all claims, and the offsets of the problems, or ValueError."""
    if len(y) != len(kept):
        raise ValueError(f"y has {len(y)} problems but kept has {len(kept)}")
    if not len(y):
        raise ValueError("no problems: y is empty")
    (labels, sizes), (masks, n) = _joined(y), _joined(kept)
    wrong = np.flatnonzero(sizes != n)
    if wrong.size:
        i = wrong[0]
        raise ValueError(f"problem {i}: {sizes[i]} labels but {n[i]} entries in kept")
    for name, values, allowed in (("y", labels, (0, 1, -1)), ("kept", masks, (0, 1))):
        numbers = values.dtype.kind in "biuf"
        if not numbers or not np.isin(values, allowed).all():
            raise ValueError(f"{name} holds values other than {allowed}")
    return labels, masks.astype(bool), offsets_of(sizes)


def _joined(rows):
    """The values of all rows, and how many there are of each."""
    flat = isinstance(rows, np.ndarray) and rows.ndim == 1 and rows.dtype != object
    if any(np.ma.is_masked(row) for row in ([rows] if flat else rows)):
        raise ValueError(
            "y or kept has values that are hidden by a mask of numpy: fill them in, labels "
            "that nobody knows with -1"
        )
    if flat:
        return rows, np.ones(len(rows), dtype=np.int64)
    rows = [np.ravel(row) for row in rows]
    return np.concatenate(rows), np.array([len(row) for row in rows])


NARROW = 16  # edges; fewer are faster one by one than by calls of numpy
_LONG = 64  # edges of a chain that is worth calls of its own

# For each function of numpy on arrays, the function of Python on two numbers.
_OF_TWO: dict[np.ufunc, Callable[[Any, Any], Any]] = {
    np.maximum: max,
    np.minimum: min,
    np.bitwise_or: or_,
    np.add: add,
}


class Layer(NamedTuple):
    """Edges that can be passed at once; children are distinct.

    The parents of ``children[i]`` are ``parents[starts[i]:starts[i + 1]]``.
    """

    parents: np.ndarray
    children: np.ndarray
    starts: np.ndarray

    def pass_on(self, ufunc: np.ufunc, values: NDArray[Any]) -> None:
        """Join the parents' values to those of their children, in place."""
        inherited = ufunc.reduceat(values[self.parents], self.starts)
        values[self.children] = ufunc(values[self.children], inherited)


class Walk(NamedTuple):
    """Edges to be passed one after the other; ends are positions in ``claims``."""

    claims: np.ndarray
    parents: list[int]
    children: list[int]

    def pass_on(self, ufunc: np.ufunc, values: NDArray[Any]) -> None:
        """Join the parents' values to those of their children, in place."""
        join = _OF_TWO[ufunc]
        claim_values = values[self.claims].tolist()
        for parent, child in zip(self.parents, self.children, strict=True):
            claim_values[child] = join(claim_values[child], claim_values[parent])
        values[self.claims] = np.array(claim_values, dtype=values.dtype)


class Chain(NamedTuple):
    """Edges of which each begins where the last one ends, through ``claims``."""

    claims: np.ndarray

    def pass_on(self, ufunc: np.ufunc, values: NDArray[Any]) -> None:
        """Join the value of each claim to that of the next, in place."""
        values[self.claims] = ufunc.accumulate(values[self.claims])


#: Edges in an order in which values are passed on.
Sweep = Sequence[Layer | Walk | Chain]


def pass_all(sweep: Sweep, ufunc: np.ufunc, values: NDArray[Any]) -> NDArray[Any]:
    """Join the values of ancestors to those of all claims, in a copy."""
    out = np.array(values)
    for edges in sweep:
        edges.pass_on(ufunc, out)
    return out


def sort_small(numbers: Any) -> Any:
    """The stable order of small whole numbers, and where each of 0, 1, 2, ... begins."""
    if (most := numbers.max(initial=0)) < 2**15:  # numpy sorts these in linear time
        numbers = numbers.astype(np.uint8 if most < 2**8 else np.int16)
    return np.argsort(numbers, kind="stable"), offsets_of(np.bincount(numbers))


def sort_by_rank(edges: NDArray[Any], rank: NDArray[Any]) -> Any:
    """Parents and children in the order of the children's ranks, and where each begins."""
    order, bounds = sort_small(rank)
    return *np.take(edges, order, axis=0).T, bounds


def find_layers(edges: NDArray[Any], rank: NDArray[Any]) -> Any:
    """Edges by rank of their child, one `Layer` each; ``rank`` grows along every edge."""
    if not len(edges):
        return []
    parent, child, bounds = sort_by_rank(edges, rank[edges[:, 1]])
    cuts = pairwise(np.unique(bounds))
    return [make_layer(parent[a:b], child[a:b]) for a, b in cuts]


def find_sweep(
    edges: NDArray[Any], rank: NDArray[Any], offsets: NDArray[np.int64]
) -> Any:
    """Layers, walks and chains that visit all edges, parents first.

    ``rank`` is that of the child of each edge, and grows along every path. Neighbouring
    narrow layers are taken together. ``offsets`` are those of the problems' claims.
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
    """Long chains, and walks along what is between them; one problem after the other."""
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
    """The layer of edges that are sorted by child."""
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
