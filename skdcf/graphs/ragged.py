"""Ragged arrays: flat values plus offsets, the vocabulary of everything above.

``offsets`` has one entry more than there are segments; segment ``i`` is
``values[offsets[i]:offsets[i + 1]]`` and may be empty.
"""

import numpy as np


def offsets_of(lengths):
    """Offsets, shape (n + 1,), of segments with the given lengths, shape (n,)."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def segment_ids(offsets):
    """The number of the segment that each value belongs to."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def ranges(starts, lengths):
    """``concatenate([arange(s, s + l) for s, l in zip(starts, lengths)])``."""
    lengths = np.asarray(lengths, dtype=np.int64)
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(starts - (ends - lengths), lengths)


def reduce_segments(ufunc, values, offsets, empty):
    """``ufunc`` over each segment, shape (n,), and ``empty`` where there is nothing.

    What comes out for a segment depends on its own values alone, to the last bit.
    """
    filled = offsets[:-1] < offsets[1:]
    out = np.full(len(filled), empty, dtype=np.result_type(values, empty))
    if filled.any():
        out[filled] = ufunc.reduceat(values, offsets[:-1][filled], dtype=out.dtype)
    return out


def split(values, offsets):
    """Object array, shape (n,), with one view of ``values`` per segment."""
    bounds = offsets.tolist()
    views = map(values.__getitem__, map(slice, bounds[:-1], bounds[1:]))
    return np.fromiter(views, dtype=object, count=len(bounds) - 1)


def read_only(array):
    """A view of ``array`` that cannot be written to."""
    view = array.view()
    view.flags.writeable = False
    return view
