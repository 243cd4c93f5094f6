"""Ragged arrays, and functions that pass values along edges.

A ragged array consists of flat values and offsets. Segment ``i`` is
``values[offsets[i]:offsets[i + 1]]`` and may be empty.

Values are passed from parents to children in one sweep over the edges, layer by layer. A batch of
small problems has a few wide layers, which numpy processes in a single call each. A long chain
has many narrow layers, whose edges are processed one by one.
"""

from collections import defaultdict
from graphlib import TopologicalSorter
from operator import add, or_
from typing import Any

import numpy as np


def offsets_of(lengths):
    """Return the n + 1 offsets of n segments with the given lengths."""
    return np.append(0, np.cumsum(lengths, dtype=np.int64))


def slices(offsets):
    """Return an iterator over the slices of all segments."""
    bounds = offsets.tolist()
    return map(slice, bounds[:-1], bounds[1:])


def segment_ids(offsets):
    """Return the index of the segment to which each value belongs."""
    return np.repeat(np.arange(len(offsets) - 1), offsets[1:] - offsets[:-1])


def ranges(starts, lengths):
    """Return ``concatenate([arange(s, s + l) for s, l in zip(starts, lengths)])``."""
    offsets = offsets_of(lengths)
    return np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)


def optional_rows(values, rows):
    """Return the given rows of a column, or None if the column is None."""
    return None if values is None else values[rows]


def number_groups(groups):
    """Return the group index of each problem, with groups numbered in order of appearance."""
    _, first, code = np.unique(groups, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[code]


def starts_run(values):
    """Return a mask that is True at the start of each run of equal values."""
    return np.concatenate([[True], values[1:] != values[:-1]])[: len(values)]


def reduce_segments(ufunc, values, offsets, empty):
    """Reduce each segment with ``ufunc``, and return ``empty`` for empty segments.

    The result for a segment depends only on the values of the segment, and is bitwise
    reproducible.
    """
    filled = offsets[:-1] < offsets[1:]
    out = np.full(
        (len(filled), *values.shape[1:]), empty, np.result_type(values, empty)
    )
    out[filled] = ufunc.reduceat(values, offsets[:-1][filled], dtype=out.dtype)
    return out


def in_blocks(function, table):
    """Apply a function to blocks of rows that fit in the cache, which is several times faster.

    Overflow, for example in a conversion to float32, is ignored.
    """
    size = 1 + 60_000 // (1 + table.shape[1])
    starts = range(0, len(table) or 1, size)
    with np.errstate(over="ignore"):
        return np.concatenate([function(table[i : i + size]) for i in starts])


def read_only(array):
    """Return a read-only view of ``array``."""
    view = array.view()
    view.flags.writeable = False
    return view


def pass_on(ufunc, values, batch):
    """Combine the value of each claim with the values of its ancestors in a single pass.

    The running time is O(claims + edges) for all graphs together. ``ufunc`` is numpy's maximum,
    minimum, bitwise_or or add, which counts an ancestor once for each path to the claim.

    Examples
    --------
    >>> import numpy as np
    >>> from skdcf import GraphBatch
    >>> from skdcf.graphs.ragged import pass_on
    >>> from skdcf.ops.ancestors import sum_ancestors
    >>> diamond = [(0, 1), (0, 2), (1, 3), (2, 3)]
    >>> batch = GraphBatch.from_arrays(np.zeros((4, 1)), [0, 4], diamond)
    >>> pass_on(np.maximum, np.array([5, 7, 1, 2]), batch)
    array([5, 7, 5, 7])
    >>> sum_ancestors(np.array([5, 7, 1, 2]), batch)
    array([ 5, 12,  6, 15])
    """
    out = np.array(values)
    for parents, children, starts in batch.sweep:
        if starts is None:
            # The Python function that does the same to two numbers is faster.
            joins = {np.maximum: max, np.minimum: min, np.bitwise_or: or_, np.add: add}
            join: Any = ufunc if out.ndim > 1 else joins[ufunc]
            cells = out.tolist() if out.ndim == 1 else [*out]
            for parent, child in zip(parents, children, strict=True):
                cells[child] = join(cells[child], cells[parent])
            return np.array(cells, out.dtype)
        inherited = ufunc.reduceat(out[parents], starts)
        out[children] = ufunc(out[children], inherited)
    return out


def find_sweep(edges, rank):
    """Group the edges by the rank of their child.

    Returns a list of (parents, children, starts), in which the parents of ``children[i]`` are
    ``parents[starts[i]:starts[i + 1]]``. The last item may contain the edges of many narrow groups,
    which are processed one after another. In this case, ``starts`` is None.
    """
    # With kind="stable", numpy sorts 16-bit integers in linear time.
    order = np.argsort(
        rank.astype(np.int16) if rank.max() < 2**15 else rank, kind="stable"
    )
    # `take` is faster than an index array for rows.
    edges = np.take(edges, order, axis=0)
    sizes = np.bincount(rank)
    sizes = sizes[sizes > 0]
    # A Python loop processes 64 edges in the time of one call of numpy, but first has to convert
    # the values of all claims.
    n_groups = offsets_of(sizes - 64).argmax()
    if 0 < n_groups > len(sizes) - 64:
        n_groups = len(sizes)
    *groups, rest = np.split(edges, np.cumsum(sizes[:n_groups]))
    sweep = []
    for group in groups:
        parents, children = group.T
        starts = np.flatnonzero(starts_run(children))
        sweep.append((parents, children[starts], starts))
    if len(rest):
        sweep.append((*rest.T.tolist(), None))
    return sweep


def sort_edges(edges, ends, n_claims):
    """Return the distinct edges, sorted by (child, parent), in a new array.

    The rows of ``ends`` are the parents and the children of the edges.
    """
    key = ends[1] * n_claims + ends[0]
    if (key[1:] > key[:-1]).all():
        return edges.astype(np.int64, order="C")
    key.sort(kind="stable")  # np.unique is much slower.
    key = key[starts_run(key)]
    child = key // n_claims
    return np.stack([key - child * n_claims, child], axis=1)


def find_depth(edges, n_claims):
    """Return the length of the longest path to each claim. The edges are sorted by child.

    Raises
    ------
    graphlib.CycleError
        If there is a cycle. The second argument of the error contains its claims.
    """
    depth = np.zeros(n_claims, np.int32)
    layer = n_before = 0
    # Remove the edges of one layer at a time, while a layer has more than 2 % of the edges.
    while (len(edges) and len(edges) < 0.98 * n_before) or not layer:
        layer += 1
        n_before = len(edges)
        depth[edges[:, 1]] = layer
        # Only parents that are children of remaining edges have reached this layer.
        edges = edges[depth[edges[:, 0]] == layer]
    if not len(edges):
        return depth
    if (edges[:, 0] >= edges[:, 1]).any():
        parents = defaultdict(list)
        for parent, child in edges.tolist():
            parents[child].append(parent)
        place = {c: i for i, c in enumerate(TopologicalSorter(parents).static_order())}
        edges = edges[np.argsort([place[child] for child in edges[:, 1].tolist()])]
    # Now all edges to a parent precede the edges from it.
    cells = depth.tolist()
    for parent, child in zip(*edges.T.tolist(), strict=True):
        if cells[child] <= cells[parent]:
            cells[child] = cells[parent] + 1
    return np.array(cells, np.int32)
