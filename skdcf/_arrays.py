"""Functions of ragged arrays, which consist of flat values and offsets.

Segment ``i`` is ``values[offsets[i]:offsets[i + 1]]`` and may be empty.
"""

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


def find_bits(packed):
    """Return the positions of the bits of a bytes object that are set, from the lowest bit on."""
    places = []
    # The bytes are unpacked in parts, because each bit becomes a byte.
    for start in range(0, len(packed), 2**20):
        part = np.frombuffer(packed[start : start + 2**20], np.uint8)
        filled = np.flatnonzero(part)
        bits = np.flatnonzero(np.unpackbits(part[filled], bitorder="little"))
        places.append(8 * (start + filled[bits >> 3]) + (bits & 7))
    return np.concatenate(places)


def read_only(array):
    """Return a read-only view of ``array``."""
    view = array.view()
    view.flags.writeable = False
    return view
