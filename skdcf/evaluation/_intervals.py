"""Confidence intervals for an observed coverage, and theoretical coverage bands."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.special import betaincinv, stdtrit

from .._checks import check_alpha, check_count
from ..ops.conformal import conformal_rank


def error_rate_upper_bound(
    n_errors: int, n_audited: int, *, confidence_level: float = 0.95
) -> float:
    """Return an upper bound on the proportion of filtered answers that contain a false claim.

    In an audit, a person judges the kept claims of answers drawn at random. The bound of Clopper
    and Pearson does not depend on the calibration, so it holds for any filter.

    Choose ``n_audited`` before judging the first answer. If an audit is extended until the bound
    looks good, it is wrong in 18 % instead of 5 % of cases. To look K times, choose all K sample
    sizes beforehand, and pass ``confidence_level=1 - 0.05 / K`` each time.

    Parameters
    ----------
    n_errors : int
        Number of audited answers in which a false claim was kept.
    n_audited : int
        Number of answers that were drawn at random and judged.
    confidence_level : float in (0, 1), default=0.95
        Probability, over random samples of answers, that the bound holds.

    Returns
    -------
    bound : float
        The upper bound, which is 1 if all audited answers contain an error.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> from skdcf.evaluation import error_rate_upper_bound
    >>> [round(error_rate_upper_bound(*audit), 3) for audit in [(0, 50), (1, 50), (3, 100)]]
    [0.058, 0.091, 0.076]
    """
    check_count("n_audited", n_audited, 1)
    check_count("n_errors", n_errors, 0)
    if n_errors > n_audited or not 0 < confidence_level < 1:
        raise ValueError(
            f"n_errors must be at most n_audited = {n_audited}, got {n_errors}, and "
            f"confidence_level must be strictly between 0 and 1, got {confidence_level!r}"
        )
    if n_errors == n_audited:
        return 1.0
    return float(betaincinv(n_errors + 1, n_audited - n_errors, confidence_level))


def coverage_interval(n_covered: int, n_problems: int) -> tuple[float, float]:
    """Compute the 95 % Clopper-Pearson interval for an observed coverage.

    Parameters
    ----------
    n_covered, n_problems : int
        Number of test problems without a kept false claim, and total number of test problems.

    Returns
    -------
    low, high : float
        Lower and upper limits of the interval.

    Examples
    --------
    >>> from skdcf.evaluation import coverage_interval
    >>> low, high = coverage_interval(90, 100)
    >>> round(low, 3), round(high, 3)
    (0.824, 0.951)
    """
    check_count("n_problems", n_problems, 1)
    check_count("n_covered", n_covered, 0)
    n_missed = n_problems - n_covered
    if n_missed < 0:
        raise ValueError(
            f"n_covered must be at most n_problems = {n_problems}, got {n_covered}"
        )
    low, high = (
        error_rate_upper_bound(n, n_problems, confidence_level=0.975)
        for n in (n_missed, n_covered)
    )
    return 1 - low, high


def coverage_band(
    n_calibration: int, alpha: float, *, n_test: int | None = None
) -> tuple[float, float]:
    """Compute the theoretical 95 % coverage band for a random sample of calibration problems.

    Without ties, the coverage conditional on the calibration problems follows Beta(n + 1 - k, k),
    where k is the conformal rank. Ties can only raise the coverage. Problems without a false
    claim can also raise the coverage if fewer than k problems have a false claim.

    Parameters
    ----------
    n_calibration : int
        Number of calibration problems, n.
    alpha : float in (0, 1)
        The filter's level.
    n_test : int, optional
        Number of test problems. If given, the band applies to the coverage *observed* on this
        number of problems. The number of covered problems then follows a beta-binomial
        distribution. If None, the band applies to the true coverage.

    Returns
    -------
    low, high : float
        The lower and upper limits of the band, or (1, 1) if no claim can be kept.

    References
    ----------
    V. Vovk. Conditional validity of inductive conformal predictors. ACML 2012.

    Examples
    --------
    >>> from skdcf.evaluation import coverage_band
    >>> low, high = coverage_band(99, 0.1)
    >>> round(low, 3), round(high, 3)
    (0.834, 0.95)
    """
    k = conformal_rank(n_calibration, check_alpha(alpha))
    return band_of_law((n_calibration + 1 - k, k), n_test)


@lru_cache
def band_of_law(shape, n_test):
    """Compute the 95 % band of a coverage with the law Beta(a, b), where ``shape`` is (a, b)."""
    from scipy.stats import beta, betabinom

    if shape is None:
        return np.nan, np.nan
    if shape[1] == 0:
        return 1.0, 1.0
    if n_test is None:
        low, high = beta.ppf([0.025, 0.975], *shape)
    else:
        low, high = betabinom.ppf([0.025, 0.975], n_test, *shape) / n_test
    return float(low), float(high)


def rate_interval(hits, sizes):
    """Return sum(hits) / sum(sizes) and its 95 % interval, given sums for each question.

    If each size is 1 and each hit is 0 or 1, the interval is that of Clopper and Pearson.
    Otherwise, it is Student's t-interval of the linearised ratio, after one question without and
    one with only hits were added. If all sizes are 0, the rate is NaN.
    """
    hits = hits[sizes > 0]
    sizes = sizes[sizes > 0]
    n = len(sizes)
    if n == 0:
        return np.nan, 0.0, 1.0
    rate = hits.sum() / sizes.sum()
    if np.isin(hits, (0, 1)).all() and (sizes == 1).all():
        return rate, *coverage_interval(int(hits.sum()), n)
    hits = np.append(hits, [0, sizes.mean()])
    sizes = np.append(sizes, [sizes.mean()] * 2)
    centre = hits.sum() / sizes.sum()
    reach = stdtrit(n, 0.975) * np.sqrt(ratio_variance(hits, sizes) / (n + 2))
    return rate, max(centre - reach, 0.0), min(centre + reach, 1.0)


def ratio_variance(hits, sizes):
    """Return the variance of sum(hits) / sum(sizes) times the number of questions."""
    rate = hits.sum() / sizes.sum()
    return np.var((hits - rate * sizes) / sizes.mean(), ddof=1)
