"""Intervals of observed coverage and of ratios, and bands in theory."""

import numpy as np
import pytest
from scipy.stats import binomtest

from skdcf.evaluation import coverage_band, coverage_interval
from skdcf.evaluation._intervals import rate_interval


@pytest.mark.parametrize("confidence_level", [0.5, 0.95, 0.999])
def test_intervals_are_those_of_scipy(confidence_level):
    for n in (1, 7, 30, 1000):
        for k in {0, 1, n // 3, n - 1, n}:
            test = binomtest(k, n).proportion_ci(confidence_level, method="exact")
            found = coverage_interval(k, n, confidence_level=confidence_level)
            assert found == pytest.approx((test.low, test.high), abs=1e-9)
    with pytest.raises(ValueError, match=r"confidence_level .*95"):
        coverage_interval(1, 2, confidence_level=95)


@pytest.mark.parametrize("numbers", [(-1, 5), (6, 5), (0, 0), (0.5, 5)])
def test_impossible_counts_are_refused(numbers):
    with pytest.raises(ValueError, match=r"n_(covered|problems) must"):
        coverage_interval(*numbers)


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
