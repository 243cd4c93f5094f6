"""Segment operations, each with its gradient on the line above.

``offsets``, shape (n + 1,), bound contiguous segments that fill ``values`` and may be
empty; ``index`` says for each value where it comes from or goes to. Only first
derivatives are defined. Where a minimum or maximum is tied, the tied share its
gradient equally.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from autograd.extend import defvjp, primitive
from numpy.typing import NDArray

from ..graphs.ragged import reduce_segments
from . import hard


def with_vjp(vjp: Any) -> Any:
    """Make a primitive of a function, with its gradient in the first argument."""

    def declare(function):
        defvjp(out := primitive(function), vjp, argnums=(0,))
        return out

    return declare


@with_vjp(lambda ans, v, i: lambda g: np.bincount(i, g, len(v)))
def take(values: NDArray[Any], index: NDArray[Any]) -> Any:
    """Take ``values[index]``."""
    return values.take(index)


@with_vjp(lambda ans, v, i, n: lambda g: g.take(i))
def scatter_sum(values: NDArray[Any], index: NDArray[Any], n: int) -> NDArray[Any]:
    """Shape (n,): sums of the values that share an index; 0 where there are none."""
    return np.bincount(index, values, n)


segment_sum: Callable[..., Any] = with_vjp(lambda ans, v, o: lambda g: _spread(g, o))(
    hard.segment_sum
)
_as_extreme = with_vjp(lambda ans, v, o: lambda g: _share(g, v, ans, o))
segment_max: Callable[..., Any] = _as_extreme(hard.segment_max)
segment_min: Callable[..., Any] = _as_extreme(hard.segment_min)


@with_vjp(lambda ans, v, o: lambda g: _spread(g, o) * np.exp(v - _spread(ans, o)))
def segment_logsumexp(values: NDArray[Any], offsets: NDArray[np.int64]) -> NDArray[Any]:
    """``log(sum(exp(values)))`` per segment, shape (n,); -inf for an empty one."""
    top, _, total = _scale(values, offsets)
    return top + np.log(total)


@with_vjp(lambda ans, v, o: lambda g: ans * (g - _spread(segment_sum(g * ans, o), o)))
def segment_softmax(values: NDArray[Any], offsets: NDArray[np.int64]) -> Any:
    """``exp(values)`` with every segment scaled to sum 1, in the shape of ``values``."""
    _, scaled, total = _scale(values, offsets)
    return scaled / _spread(total, offsets)


def _scale(values, offsets):
    """Compute the largest value of each segment, ``exp(values - largest)``, and its sums."""
    top = hard.segment_max(values, offsets)
    scaled = np.exp(values - _spread(top, offsets))
    return top, scaled, reduce_segments(np.add, scaled, offsets, 1.0)


@with_vjp(lambda ans, v, o: lambda g: _pull_minmax(g, ans, v, o))
def segment_minmax(values: NDArray[Any], offsets: NDArray[np.int64]) -> Any:
    """Move and scale each segment to [0, 1]; a constant one becomes 0."""
    low, scale = _low_and_scale(values, offsets)
    return (values - _spread(low, offsets)) * _spread(scale, offsets)


def _pull_minmax(g, ans, values, offsets):
    """Pass the gradient on through minimum and maximum as well."""
    low, scale = _low_and_scale(values, offsets)
    top = hard.segment_max(values, offsets)
    rest = hard.segment_sum(g * ans, offsets)
    gap = hard.segment_sum(g, offsets) - rest
    out = g * _spread(scale, offsets) - _share(gap * scale, values, low, offsets)
    return out - _share(rest * scale, values, top, offsets)


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

    def __init__(self, offsets: NDArray[np.int64]) -> None:
        self.starts: NDArray[Any] = offsets[:-1]
        self.lengths: NDArray[Any] = np.diff(offsets)
        self.first: NDArray[Any] = offsets[:-1]
        self.last: NDArray[Any] = offsets[1:] - 1

    def reduce(self, ufunc: np.ufunc, values: NDArray[Any]) -> Any:
        """Sum (`numpy.add`), minimum or maximum per segment, shape (n,)."""
        return ufunc.reduceat(values, self.starts)

    def spread(self, per_segment: Any) -> NDArray[Any]:
        """Repeat the value of each segment as often as the segment is long."""
        return np.repeat(per_segment, self.lengths)

    def softmax(self, values: NDArray[Any]) -> Any:
        """``exp(values)`` with every segment scaled to sum 1."""
        top = self.reduce(np.maximum, values)
        out = np.exp(values - self.spread(top))
        out /= self.spread(self.reduce(np.add, out))
        return out

    def hits(self, g: Any, values: NDArray[Any], extreme: Any) -> Any:
        """Where in ``values`` the extremes are, and what each has of ``g``, shape (n,).

        As a rule there is one per segment, which then has all of it.
        """
        hits = np.flatnonzero(values == self.spread(extreme))
        if len(hits) == len(g):
            return hits, g
        count = self.reduce(np.add, np.bincount(hits, minlength=len(values)))
        return hits, np.repeat(g / count, count)
