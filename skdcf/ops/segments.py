"""Operations on segments of arrays, with gradients for automatic differentiation.

The array ``offsets``, of shape (n + 1,), contains the bounds of contiguous segments of
``values``. Segments may be empty. The array ``index`` contains the source or target index of each
value. Second derivatives are not defined.
"""

import autograd.numpy as anp
import numpy as np
from autograd.extend import defvjp_argnums, primitive
from autograd.tracer import getval

from . import hard


def with_vjp(vjp):
    """Return a decorator that defines a primitive with a gradient for its first argument.

    The function ``vjp(g, ans, *args)`` returns the gradient, given the gradient g of the result
    and the result.
    """

    def declare(function):
        def pull(argnums, ans, args, settings):
            return lambda g: [vjp(g, ans, *args, **settings)]

        defvjp_argnums(out := primitive(function), pull)
        return out

    return declare


@with_vjp(lambda g, ans, x, result, pull: pull(g))
def with_pull(x, result, pull):
    """Return the result of a function of x, whose gradient g gives the gradient ``pull(g)`` for x.

    Unlike the function of `with_vjp`, ``pull`` can use the intermediate values of the result.
    """
    return result


@with_vjp(lambda g, ans, v, i: np.bincount(i, g, len(v)))
def take(values, index):
    """Return ``values[index]``."""
    return values.take(index)


@with_vjp(lambda g, ans, v, i, n: g.take(i))
def scatter_sum(values, index, n):
    """Sum the values that have the same index, for each index from 0 to n - 1."""
    return np.bincount(index, values, n)


@with_vjp(lambda g, ans, v, offsets: hard.segment_sum(g, offsets))
def spread(per_segment, offsets):
    """Repeat the value of each segment for all elements of the segment."""
    return np.repeat(per_segment, offsets[1:] - offsets[:-1])


segment_sum = with_vjp(lambda g, ans, v, offsets: spread(g, offsets))(hard.segment_sum)


def _pull_min(g, ans, values, offsets):
    """Divide the gradient of each segment equally among the values that are its minimum."""
    is_minimum = values == spread(ans, offsets)
    n_equal = np.maximum(hard.segment_sum(is_minimum, offsets), 1)
    return is_minimum * spread(g / n_equal, offsets)


segment_min = with_vjp(_pull_min)(hard.segment_min)


def segment_logsumexp(values, offsets):
    """Compute ``log(sum(exp(values)))`` for each segment, none of which may be empty.

    The gradient with respect to the values of a segment is their softmax.
    """
    top = hard.segment_max(getval(values), offsets)
    scaled = np.exp(getval(values) - spread(top, offsets))
    sums = hard.segment_sum(scaled, offsets)
    return with_pull(
        values, top + np.log(sums), lambda g: scaled * spread(g / sums, offsets)
    )


def segment_softmax(values, offsets):
    """Compute the softmax of ``values`` within each segment."""
    top = hard.segment_max(getval(values), offsets)
    scaled = anp.exp(values - spread(top, offsets))
    return scaled / spread(segment_sum(scaled, offsets), offsets)


def segment_rescale(values, offsets):
    """Scale each segment from 0 at its first value to 1 at its last, or to 0 if it is constant.

    No segment may be empty.
    """
    low = take(values, offsets[:-1])
    width = take(values, offsets[1:] - 1) - low
    width = anp.where(getval(width) < np.finfo(float).tiny * 1e20, np.inf, width)
    return (values - spread(low, offsets)) / spread(width, offsets)
