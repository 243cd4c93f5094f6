"""Operations on segments of arrays, with gradients for automatic differentiation.

The array ``offsets``, of shape (n + 1,), contains the bounds of contiguous segments of
``values``. Segments may be empty. The array ``index`` contains the source or target index of each
value. Second derivatives are not defined. If several values are tied for a minimum or maximum,
the gradient is divided equally among them.
"""

from typing import Any

import numpy as np
from autograd.extend import defvjp_argnums, primitive

from ..graphs.ragged import reduce_segments, segment_ids
from . import hard
from .hard import Array


def with_vjps(vjps: Any) -> Any:
    """Return a decorator that defines a primitive with gradients for its first arguments.

    The function ``vjps(g, ans, *args)`` returns the gradients, given the gradient g of the result
    and the result.
    """

    def declare(function):
        def pull(argnums, ans, args, settings):
            def gradients(g):
                each = vjps(g, ans, *args, **settings)
                return [each[i] for i in argnums]

            return gradients

        defvjp_argnums(out := primitive(function), pull)
        return out

    return declare


def with_vjp(vjp: Any) -> Any:
    """Return a decorator that defines a primitive with a gradient for its first argument."""
    return with_vjps(lambda g, *known, **settings: [vjp(g, *known, **settings)])


@with_vjp(lambda g, ans, v, i: np.bincount(i, g, len(v)))
def take(values: Array, index: Array) -> Any:
    """Return ``values[index]``."""
    return values.take(index)


@with_vjp(lambda g, ans, v, i, n, w: g.take(i) * w)
def scatter_sum(values: Array, index: Array, n: int, weights: Any = 1.0) -> Array:
    """Sum the weighted values that have the same index, for each index from 0 to n - 1."""
    return np.bincount(index, values * weights, n)


def segment_logsumexp(values: Array, offsets: Array) -> Array:
    """Compute ``log(sum(exp(values)))`` for each segment, or -inf for an empty segment."""
    top = hard.segment_max(values, offsets)
    scaled = np.exp(values - spread(top, offsets))
    return top + np.log(reduce_segments(np.add, scaled, offsets, 1.0))


def segment_softmax(values: Array, offsets: Array) -> Any:
    """Compute the softmax of ``values`` within each segment."""
    scaled = np.exp(values - spread(hard.segment_max(values, offsets), offsets))
    return scaled / spread(hard.segment_sum(scaled, offsets), offsets)


def pull_softmax(g: Array, softmax: Array, offsets: Any) -> Any:
    """Compute the gradient of `segment_softmax` for its values, given that of the result."""
    return softmax * (g - spread(hard.segment_sum(g * softmax, offsets), offsets))


def segment_rescale(values: Array, offsets: Array) -> Any:
    """Scale each segment to the range from 0 to 1, replacing constant segments with 0."""
    low, scale = _low_and_scale(values, offsets)
    return (values - spread(low, offsets)) * spread(scale, offsets)


def pull_rescale(g: Any, rescaled: Any, values: Any, offsets: Any) -> Array:
    """Compute the gradient of `segment_rescale` for its values, given that of the result."""
    _, scale = _low_and_scale(values, offsets)
    end = hard.segment_sum(g * rescaled, offsets) * scale
    start = hard.segment_sum(g, offsets) * scale - end
    gradient = g * spread(scale, offsets)
    filled = offsets[:-1] < offsets[1:]
    gradient[offsets[:-1][filled]] -= start[filled]
    gradient[offsets[1:][filled] - 1] -= end[filled]
    return gradient


def _low_and_scale(values, offsets):
    """Compute the first value and the scale 1 / (last - first) of each segment."""
    if not len(values):
        return np.zeros((2, len(offsets) - 1))
    low = values.take(offsets[:-1], mode="clip")
    width = values[offsets[1:] - 1] - low
    flat = width < np.finfo(float).tiny * 1e20
    return low, np.where(flat, 0.0, 1 / np.where(flat, 1.0, width))


def spread(per_segment: Array, offsets: Array) -> Array:
    """Repeat the value of each segment for all elements of the segment."""
    return np.repeat(per_segment, np.diff(offsets))


def share(g: Any, values: Any, extreme: Any, offsets: Array) -> Any:
    """Divide the gradient ``g`` of each segment among the values that equal its ``extreme``.

    Returns
    -------
    hits : ndarray of int
        Indices of the values that equal the extreme.
    portions : ndarray of float, in the same shape
        Portion of ``g`` assigned to each index in ``hits``.
    """
    hits = np.flatnonzero(values == spread(extreme, offsets))
    filled = np.flatnonzero(np.diff(offsets))
    if len(hits) == len(filled):  # There are no ties.
        return hits, g[filled]
    segment = segment_ids(offsets)[hits]
    return hits, g[segment] / np.bincount(segment)[segment]
