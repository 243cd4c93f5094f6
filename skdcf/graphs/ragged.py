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


def flatten(y, kept):
    """Labels and masks of all claims, and the offsets of the problems, or ValueError."""
    if len(y) != len(kept):
        raise ValueError(f"y has {len(y)} problems but kept has {len(kept)}")
    if not len(y):
        raise ValueError("no problems: y is empty")
    (labels, sizes), (masks, n_kept) = _joined(y), _joined(kept)
    wrong = np.flatnonzero(sizes != n_kept)
    if wrong.size:
        i = wrong[0]
        raise ValueError(
            f"problem {i}: {sizes[i]} labels but {n_kept[i]} entries in kept"
        )
    for name, values, known in (("y", labels, (0, 1, -1)), ("kept", masks, (0, 1))):
        numbers = values.dtype.kind in "biuf"
        if not numbers or not np.isin(values, known).all():
            raise ValueError(f"{name} holds values other than {known}")
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
