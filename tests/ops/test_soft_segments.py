"""Segment operations against loops, and their gradients against differences."""

from itertools import pairwise

import numpy as np
import pytest
from autograd.extend import defvjp, primitive
from autograd.test_util import check_grads

from skdcf.ops import segments

OFFSETS = np.array([0, 0, 3, 4, 9, 9])
VALUES = np.random.RandomState(0).normal(size=9)
VALUES[[2, 8]] = 3.0  # the last of a segment is above its first
SLICES = [slice(a, b) for a, b in pairwise(OFFSETS)]


def check(fun, *args):
    check_grads(fun, modes=["rev"], order=1)(*args)


def rescale(x):
    return (x - x[0]) / (x[-1] - x[0]) if len(x) and x[-1] > x[0] else 0 * x


PER_VALUE = {
    "segment_softmax": lambda x: np.exp(x) / np.exp(x).sum(),
    "segment_rescale": rescale,
}


def test_log_sum_exp():
    logs = [
        np.log(np.sum(np.exp(VALUES[s]))) if s.start < s.stop else -np.inf
        for s in SLICES
    ]
    np.testing.assert_allclose(segments.segment_logsumexp(VALUES, OFFSETS), logs)


@pytest.mark.parametrize("name", PER_VALUE)
def test_transformations(name):
    expected = np.concatenate([PER_VALUE[name](VALUES[s]) for s in SLICES])
    np.testing.assert_allclose(getattr(segments, name)(VALUES, OFFSETS), expected)


def test_take_and_scatter():
    index = np.array([3, 0, 3, 8])
    np.testing.assert_array_equal(segments.take(VALUES, index), VALUES[index])
    check(lambda x: segments.take(x, index), VALUES)
    expected = np.zeros(5)
    for i, x in zip([4, 1, 4], [1.0, 2.0, 3.0], strict=True):
        expected[i] += x
    summed = segments.scatter_sum(np.array([1.0, 2.0, 3.0]), np.array([4, 1, 4]), 5)
    np.testing.assert_array_equal(summed, expected)
    weights = np.array([2.0, 0.0, -1.0])
    check(lambda x: segments.scatter_sum(x, index[:3] % 2, 2, weights), VALUES[:3])


def test_no_values_at_all():
    none, offsets = np.empty(0), np.zeros(3, dtype=int)
    assert segments.segment_softmax(none, offsets).shape == (0,)
    assert segments.segment_rescale(none, offsets).shape == (0,)


def test_a_constant_segment_is_zero_and_takes_no_gradient():
    offsets, values = np.array([0, 3]), np.full(3, 2.0)
    rescaled = segments.segment_rescale(values, offsets)
    assert rescaled.tolist() == [0, 0, 0]
    gradient = segments.pull_rescale(np.ones(3), rescaled, values, offsets)
    assert gradient.tolist() == [0, 0, 0]


def test_large_values_do_not_overflow():
    offsets, values = np.array([0, 3]), np.array([1e5, 1e5, -1e5])
    np.testing.assert_allclose(
        segments.segment_softmax(values, offsets), [0.5, 0.5, 0.0]
    )
    np.testing.assert_allclose(
        segments.segment_logsumexp(values, offsets), 1e5 + np.log(2)
    )


def test_the_checker_catches_a_wrong_gradient():
    @primitive
    def wrong(x):
        return x**2

    defvjp(wrong, lambda ans, x: lambda g: g * x)
    with pytest.raises(AssertionError):
        check(wrong, VALUES)
