"""Passing values on along the edges, parents first: by levels, or edge by edge.

The levels of a batch of small problems are few and wide, and one call of numpy serves a
whole one. Those of a long chain are many and narrow: there a call costs more than the
edges of the level do one by one.
"""

import operator
from dataclasses import dataclass

import numpy as np

from .ragged import offsets_of

NARROW = 16  # edges; below, one by one is faster than by calls of numpy

# What does to two numbers of Python what the function of numpy does to arrays.
_OF_TWO = {
    np.maximum: max,
    np.minimum: min,
    np.bitwise_or: operator.or_,
    np.add: operator.add,
}


@dataclass(frozen=True)
class Level:
    """Edges that can be passed at once; children are distinct.

    The parents of ``children[i]`` are ``parents[starts[i]:starts[i + 1]]``.
    """

    parents: np.ndarray
    children: np.ndarray
    starts: np.ndarray

    def pass_on(self, ufunc, values):
        """Join the parents' values to those of their children, in place."""
        inherited = ufunc.reduceat(values[self.parents], self.starts)
        values[self.children] = ufunc(values[self.children], inherited)


@dataclass(frozen=True)
class Walk:
    """Edges to be passed one after the other; ends are positions in ``claims``."""

    claims: np.ndarray
    parents: list[int]
    children: list[int]

    def pass_on(self, ufunc, values):
        """Join the parents' values to those of their children, in place."""
        join, own = _OF_TWO[ufunc], values[self.claims].tolist()
        for parent, child in zip(self.parents, self.children, strict=True):
            own[child] = join(own[child], own[parent])
        values[self.claims] = np.array(own, dtype=values.dtype)


def find_steps(edges, rank):
    """Levels and walks that visit all edges, parents first.

    ``rank``, of the child of each edge, grows along every path. Neighbouring narrow
    levels are one walk.
    """
    if not len(edges):
        return []
    if rank.max() < 2**15:  # numpy sorts these in linear time (radix sort)
        rank = rank.astype(np.uint8 if rank.max() < 2**8 else np.int16)
    order = np.argsort(rank, kind="stable")
    parent, child = np.take(edges, order, axis=0).T
    count = np.bincount(rank)
    bounds, narrow = offsets_of(count), count < NARROW
    first = np.flatnonzero(~(narrow & np.append(False, narrow[:-1])))
    ends = np.append(bounds[first[1:]], bounds[-1:])
    return [
        (_make_walk if thin else _make_level)(parent[a:b], child[a:b])
        for a, b, thin in zip(bounds[first], ends, narrow[first], strict=True)
        if a < b
    ]


def _make_level(parents, children):
    new = np.flatnonzero(np.diff(children, prepend=-1))
    return Level(parents, children[new], new)


def _make_walk(parents, children):
    claims, place = np.unique(np.stack([parents, children]), return_inverse=True)
    return Walk(claims, *place.reshape(2, -1).tolist())
