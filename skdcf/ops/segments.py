"""Segment operations, each with its gradient on the next line.

``offsets``, shape (n + 1,), bound contiguous segments that fill ``values`` and may be
empty; ``index`` says for each value where it comes from or goes to. Only first
derivatives are defined. Where a minimum or maximum is tied, the tied share its
gradient equally.
"""

import numpy as np
from autograd.extend import defvjp, primitive

from ..graphs.ragged import reduce_segments
from . import hard


@primitive
def take(values, index):
    """Take ``values[index]``."""
    return values.take(index)


defvjp(take, lambda ans, v, i: lambda g: np.bincount(i, g, len(v)), argnums=(0,))


@primitive
def scatter_sum(values, index, n):
    """Shape (n,): sums of the values that share an index; 0 where there are none."""
    return np.bincount(index, values, n)


defvjp(scatter_sum, lambda ans, v, i, n: lambda g: g.take(i), argnums=(0,))


segment_sum = primitive(hard.segment_sum)
defvjp(segment_sum, lambda ans, v, o: lambda g: _spread(g, o), argnums=(0,))


segment_max = primitive(hard.segment_max)


def _segment_extreme_vjp(ans, values, offsets):
    return lambda g: _share(g, values, ans, offsets)


defvjp(segment_max, _segment_extreme_vjp, argnums=(0,))


segment_min = primitive(hard.segment_min)
defvjp(segment_min, _segment_extreme_vjp, argnums=(0,))


@primitive
def segment_logsumexp(values, offsets):
    """``log(sum(exp(values)))`` per segment, shape (n,); -inf for an empty one."""
    top = reduce_segments(np.maximum, values, offsets, -np.inf)
    shifted = np.exp(values - _spread(top, offsets))
    return top + np.log(reduce_segments(np.add, shifted, offsets, 1.0))


def _segment_logsumexp_vjp(ans, values, offsets):
    return lambda g: _spread(g, offsets) * np.exp(values - _spread(ans, offsets))


defvjp(segment_logsumexp, _segment_logsumexp_vjp, argnums=(0,))


@primitive
def segment_softmax(values, offsets):
    """``exp(values)`` with every segment scaled to sum 1, in the shape of ``values``."""
    top = reduce_segments(np.maximum, values, offsets, -np.inf)
    out = np.exp(values - _spread(top, offsets))
    return out / _spread(reduce_segments(np.add, out, offsets, 1.0), offsets)


def _segment_softmax_vjp(ans, values, offsets):
    def vjp(g):
        mean = reduce_segments(np.add, g * ans, offsets, 0.0)
        return ans * (g - _spread(mean, offsets))

    return vjp


defvjp(segment_softmax, _segment_softmax_vjp, argnums=(0,))


@primitive
def segment_minmax(values, offsets):
    """Move and scale each segment to [0, 1]; a constant one becomes 0."""
    low, scale = _low_and_scale(values, offsets)
    return (values - _spread(low, offsets)) * _spread(scale, offsets)


def _segment_minmax_vjp(ans, values, offsets):
    """Pass the gradient on through minimum and maximum as well."""

    def vjp(g):
        low, scale = _low_and_scale(values, offsets)
        top = reduce_segments(np.maximum, values, offsets, -np.inf)
        rest = reduce_segments(np.add, g * ans, offsets, 0.0)
        total = reduce_segments(np.add, g, offsets, 0.0)
        out = g * _spread(scale, offsets)
        out -= _share((total - rest) * scale, values, low, offsets)
        return out - _share(rest * scale, values, top, offsets)

    return vjp


defvjp(segment_minmax, _segment_minmax_vjp, argnums=(0,))


def _low_and_scale(values, offsets):
    """Compute minimum and 1 / range per segment; the latter is 0 where the range is."""
    low = reduce_segments(np.minimum, values, offsets, 0.0)
    width = reduce_segments(np.maximum, values, offsets, 0.0) - low
    flat = width < np.finfo(float).tiny * 1e20
    return low, np.where(flat, 0.0, 1 / np.where(flat, 1.0, width))


def _spread(per_segment, offsets):
    return np.repeat(per_segment, np.diff(offsets))


def _share(g, values, extreme, offsets):
    """Split ``g`` of each segment among the values that equal its ``extreme``."""
    hit = values == _spread(extreme, offsets)
    count = reduce_segments(np.add, hit.astype(np.float64), offsets, 1.0)
    return hit * _spread(g / count, offsets)


class Segments:
    """Operations on the same segments again and again, for gradients written by hand.

    Parameters
    ----------
    offsets : ndarray of shape (n + 1,)
        Bounds of segments, of which none is empty.
    """

    def __init__(self, offsets):
        self.starts, self.lengths = offsets[:-1], np.diff(offsets)
        self.first, self.last = offsets[:-1], offsets[1:] - 1

    def reduce(self, ufunc, values):
        """Sum (`numpy.add`), minimum or maximum per segment, shape (n,)."""
        if not len(self.starts):
            return np.empty(0)
        return ufunc.reduceat(values, self.starts)

    def spread(self, per_segment):
        """Repeat the value of each segment as often as the segment is long."""
        return np.repeat(per_segment, self.lengths)

    def softmax(self, values):
        """``exp(values)`` with every segment scaled to sum 1."""
        top = self.reduce(np.maximum, values)
        out = np.exp(values - self.spread(top))
        out /= self.spread(self.reduce(np.add, out))
        return out

    def hits(self, g, values, extreme):
        """Where in ``values`` the extremes are, and what each has of ``g``, shape (n,).

        As a rule there is one per segment, which then has all of it.
        """
        hits = np.flatnonzero(values == self.spread(extreme))
        if len(hits) == len(g):
            return hits, g
        count = self.reduce(np.add, np.bincount(hits, minlength=len(values)))
        return hits, np.repeat(g / count, count)
