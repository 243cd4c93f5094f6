"""Intervals of observed coverage and of ratios, and bands in theory."""

import numpy as np
import pytest
from scipy.stats import binomtest

from skdcf.evaluation import coverage_band, coverage_interval, error_rate_upper_bound
from skdcf.evaluation._intervals import rate_interval


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_intervals_and_bounds_are_those_of_scipy(level):
    for n in (1, 7, 30, 1000):
        for k in {0, 1, n // 3, n - 1, n}:
            exact = binomtest(k, n).proportion_ci()
            assert coverage_interval(k, n) == pytest.approx(exact, abs=1e-9)
            bound = binomtest(k, n, alternative="less").proportion_ci(level).high
            found = error_rate_upper_bound(k, n, confidence_level=level)
            assert found == pytest.approx(bound, abs=1e-9)
    with pytest.raises(ValueError, match=r"confidence_level .*95"):
        error_rate_upper_bound(1, 2, confidence_level=95)


@pytest.mark.parametrize("numbers", [(-1, 5), (6, 5), (0, 0), (0.5, 5)])
def test_impossible_counts_are_refused(numbers):
    for function, match in (
        (coverage_interval, r"n_(covered|problems) must"),
        (error_rate_upper_bound, r"n_(errors|audited) must"),
    ):
        with pytest.raises(ValueError, match=match):
            function(*numbers)


def test_band_by_simulation():
    rng = np.random.default_rng(0)
    scores = np.sort(rng.random((20000, 50)), axis=1)
    coverage = 1 - scores[:, 4]  # k = floor(0.1 * 51) = 5
    low, high = coverage_band(50, 0.1)
    assert np.mean(coverage < low) == pytest.approx(0.025, abs=0.005)
    assert np.mean(coverage > high) == pytest.approx(0.025, abs=0.005)
    observed = rng.binomial(40, coverage) / 40
    low, high = coverage_band(50, 0.1, n_test=40)
    assert np.mean((observed < low) | (observed > high)) <= 0.05
    assert coverage_band(8, 0.1) == (1.0, 1.0)


@pytest.mark.parametrize("rate", [0.02, 0.15])
def test_intervals_of_ratios_contain_the_truth(rate):
    """Several answers to each question that are often wrong together, and some do not pass."""
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(2000):
        own = rng.random((40, 1)) < rate
        lost = np.where(rng.random((40, 5)) < 0.8, own, rng.random((40, 5)) < rate)
        passes = rng.random((40, 5)) < 0.6
        found = rate_interval((lost & passes).mean(axis=1), passes.mean(axis=1))
        inside.append(found[1] <= rate <= found[2])
    assert np.mean(inside) >= 0.94
