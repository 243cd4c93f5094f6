"""Soft order statistics against full matrices, bisection and sorting."""

import numpy as np
import pytest
import reference_grid
import reference_path
from autograd import grad
from autograd.test_util import check_grads

from skdcf.ops.soft import neural_sort, smooth_quantile

SCORES = np.random.RandomState(3).normal(size=17)
TIED = np.repeat([0.5, -1.0, 2.0, 0.5], 3)


@pytest.mark.parametrize("k", [1, 2, 9, 17])
@pytest.mark.parametrize("strength", [0.3, 5.0, 100.0])
def test_neural_sort_equals_the_full_matrix(k, strength):
    i = len(SCORES) + 1 - k
    for scores in (SCORES, 1000 + SCORES):
        value = neural_sort(scores, k, strength)
        np.testing.assert_allclose(
            value, reference_grid.neural_sort(scores, i, strength), rtol=1e-11
        )
        np.testing.assert_allclose(
            grad(neural_sort)(scores, k, strength),
            grad(reference_grid.neural_sort)(scores, i, strength),
            atol=1e-9,
        )


def test_neural_sort_at_ties_agrees_with_the_full_matrix():
    value = neural_sort(TIED, 4, 3.0)
    assert np.isclose(value, reference_grid.neural_sort(TIED, len(TIED) + 1 - 4, 3.0))
    gradient = grad(neural_sort)(TIED, 4, 3.0)
    for same in (TIED == 0.5, TIED == -1.0):
        assert np.ptp(gradient[same]) < 1e-12


@pytest.mark.parametrize("count", [0.4, 1.0, 3.5, 16.6])
@pytest.mark.parametrize("temperature", [0.01, 0.3, 5.0])
def test_smooth_quantile_solves_its_equation(count, temperature):
    t = smooth_quantile(SCORES, count, temperature)
    total = reference_path.sigmoid((t - SCORES) / temperature).sum()
    assert total == pytest.approx(count, abs=1e-9)


def test_smooth_quantile_of_ties_at_a_tiny_temperature_is_their_score():
    t = smooth_quantile(np.array([2.0, 2.0, 2.0, 5.0]), 1.2, 1e-20)
    assert t == pytest.approx(2.0)


def test_smooth_quantile_gradient():
    for count in (0.4, 3.0, 16.6):
        check_grads(
            lambda s, c=count: smooth_quantile(s, c, 0.3), modes=["rev"], order=1
        )(SCORES)


def test_smooth_quantile_between_far_scores_is_their_mean_and_has_a_gradient():
    """A whole count between two far scores leaves all sigmoids at 0 or 1."""
    scores = np.array([0.0, 1e4, 2e4])
    assert smooth_quantile(scores, 1.0, 0.1) == 5e3
    gradient = grad(smooth_quantile)(scores, 1.0, 0.1)
    assert gradient.sum() == pytest.approx(1) and (gradient >= 0).all()


def test_smooth_quantile_of_equal_scores():
    t = smooth_quantile(np.full(4, 2.0), 2.0, 0.3)
    assert t == pytest.approx(2.0)
    np.testing.assert_allclose(grad(smooth_quantile)(np.full(4, 2.0), 2.0, 0.3), 0.25)
    assert smooth_quantile(np.array([7.0]), 0.4, 1.0) == pytest.approx(
        7 + np.log(0.4 / 0.6)
    )
