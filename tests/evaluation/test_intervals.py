"""Intervals of observed coverage, bands in theory, and bounds of audits."""

import numpy as np
import pytest
from scipy.stats import beta, binom, binomtest

from skdcf.evaluation import coverage_band, coverage_interval, error_rate_upper_bound


@pytest.mark.parametrize("confidence_level", [0.5, 0.95, 0.999])
def test_intervals_and_bounds_against_the_binomial_distribution(confidence_level):
    options = {"confidence_level": confidence_level}
    for n in (1, 7, 30, 1000):
        for k in {0, 1, n // 3, n - 1, n}:
            test = binomtest(k, n).proportion_ci(confidence_level, method="exact")
            found = coverage_interval(k, n, **options)
            assert found == pytest.approx((test.low, test.high), abs=1e-9)
            bound = error_rate_upper_bound(k, n, **options)
            if k < n:
                assert binom.cdf(k, n, bound) == pytest.approx(1 - confidence_level)
            else:
                assert bound == 1


def test_band_by_simulation():
    rng = np.random.default_rng(0)
    scores = np.sort(rng.random((20000, 50)), axis=1)
    coverage = 1 - scores[:, 4]  # k = floor(0.1 * 51) = 5
    low, high = coverage_band(50, 0.1)
    assert np.mean(coverage < low) == pytest.approx(0.025, abs=0.005)
    assert np.mean(coverage > high) == pytest.approx(0.025, abs=0.005)
    assert (low, high) == pytest.approx(beta.ppf([0.025, 0.975], 46, 5))
    observed = rng.binomial(40, coverage) / 40
    low, high = coverage_band(50, 0.1, n_test=40)
    assert np.mean((observed < low) | (observed > high)) <= 0.05
    assert coverage_band(8, 0.1) == (1.0, 1.0)


@pytest.mark.parametrize("numbers", [(-1, 5), (6, 5), (0, 0), (0.5, 5)])
@pytest.mark.parametrize("function", [coverage_interval, error_rate_upper_bound])
def test_impossible_counts_are_refused(function, numbers):
    with pytest.raises(ValueError, match=r"n_(errors|audited|covered|problems) must"):
        function(*numbers)


@pytest.mark.parametrize("confidence_level", [0, 1, 95, np.nan])
@pytest.mark.parametrize(
    ("function", "numbers"),
    [
        (coverage_interval, (1, 2)),
        (coverage_band, (30, 0.1)),
        (error_rate_upper_bound, (0, 5)),
    ],
)
def test_confidence_is_a_share(function, numbers, confidence_level):
    with pytest.raises(ValueError, match=f"confidence_level .*{confidence_level}"):
        function(*numbers, confidence_level=confidence_level)
