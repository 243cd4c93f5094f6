"""Segment operations against loops, and their gradients against differences."""

from itertools import pairwise

import numpy as np
import pytest
from autograd.test_util import check_grads

from skdcf.ops import segments

OFFSETS = np.array([0, 3, 4, 9])
VALUES = np.random.RandomState(0).normal(size=9)
VALUES[[2, 8]] = 3.0  # the last of a segment is above its first


def check(fun, *args):
    check_grads(fun, modes=["rev"], order=1)(*args)


def rescale(x):
    return (x - x[0]) / (x[-1] - x[0]) if x[-1] > x[0] else 0 * x


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("segment_sum", np.sum),
        ("segment_min", np.min),
        ("segment_logsumexp", lambda x: np.log(np.exp(x).sum())),
        ("segment_softmax", lambda x: np.exp(x) / np.exp(x).sum()),
        ("segment_rescale", rescale),
    ],
)
def test_segments(name, expected):
    function = getattr(segments, name)
    by_loop = [np.atleast_1d(expected(VALUES[a:b])) for a, b in pairwise(OFFSETS)]
    np.testing.assert_allclose(function(VALUES, OFFSETS), np.concatenate(by_loop))
    check(lambda x: function(x, OFFSETS), VALUES)


def test_tied_minima_share_the_gradient_and_empty_segments_have_none():
    values, offsets = np.array([2.0, 1.0, 1.0, 5.0]), np.array([0, 0, 3, 4])
    assert segments.segment_min(values, offsets).tolist() == [np.inf, 1, 5]
    gradient = segments._pull_min(
        np.array([7.0, 2.0, 3.0]), np.array([np.inf, 1.0, 5.0]), values, offsets
    )
    assert gradient.tolist() == [0, 1, 1, 3]
