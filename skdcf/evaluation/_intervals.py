"""Confidence intervals of an observed coverage, and bands of the coverage in theory."""

from __future__ import annotations

import numpy as np

from .._checks import check_alpha, check_count
from ..ops.conformal import conformal_rank


def coverage_interval(
    n_covered: int, n_problems: int, *, confidence_level: float = 0.95
) -> tuple[float, float]:
    """Compute the Clopper-Pearson interval for an observed coverage.

    Parameters
    ----------
    n_covered, n_problems : int
        Number of test problems without a kept false claim, and total number of test problems.
    confidence_level : float, default=0.95
        Probability that the interval contains the true coverage.

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
    _check_counts("n_covered", n_covered, "n_problems", n_problems)
    _check_confidence_level(confidence_level)
    return _clopper_pearson(n_covered, n_problems, confidence_level)


def error_rate_upper_bound(
    n_errors: int, n_audited: int, *, confidence_level: float = 0.95
) -> float:
    """Return an upper bound on the proportion of filtered answers that contain a false claim.

    In an audit, a person judges the kept claims of randomly drawn answers. The bound is exact and
    does not depend on the calibration, so it holds for any filter.

    Choose ``n_audited`` before judging the first answer. If an audit is extended until the bound
    is small enough, the bound is wrong in more than 5 % of cases. To compute the bound K
    times during an audit, choose all K sample sizes beforehand and pass ``confidence_level=1 -
    0.05 / K`` each time.

    Parameters
    ----------
    n_errors : int
        Number of audited answers in which a false claim was kept.
    n_audited : int
        Number of answers that were drawn at random and judged. The bound holds for the
        sampled population, which may include or exclude empty answers.
    confidence_level : float in (0, 1), default=0.95
        Probability, over random samples of answers, that the bound holds.

    Returns
    -------
    bound : float
        Clopper-Pearson bound on the proportion.

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
    _check_counts("n_errors", n_errors, "n_audited", n_audited)
    _check_confidence_level(confidence_level)
    # One tail of a two-sided interval is the whole error of this bound.
    return _clopper_pearson(n_errors, n_audited, 2 * confidence_level - 1)[1]


def coverage_band(
    n_calibration: int,
    alpha: float,
    *,
    confidence_level: float = 0.95,
    n_test: int | None = None,
    delta: float | None = None,
) -> tuple[float, float]:
    """Compute the theoretical coverage band for a random sample of calibration problems.

    Without ties, the coverage conditional on the calibration problems follows Beta(n + 1 - k, k),
    where k is the conformal rank. Ties can only raise the coverage. Problems without a false
    claim can also raise the coverage if fewer than k problems have a false claim.

    Parameters
    ----------
    n_calibration : int
        Number of calibration problems, n.
    alpha : float in (0, 1)
        The filter's level.
    confidence_level : float, default=0.95
        Probability that the coverage is in the band.
    n_test : int, optional
        Number of test problems. If given, the band applies to the coverage *observed* on this
        number of problems. The number of covered problems then follows a beta-binomial
        distribution. If None, the band applies to the true coverage.
    delta : float, optional
        The parameter ``delta`` of `skdcf.guarantees.NoFalseClaim`.

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
    _check_confidence_level(confidence_level)
    k = conformal_rank(n_calibration, check_alpha(alpha), delta)
    return band_of_law((n_calibration + 1 - k, k), confidence_level, n_test)


def band_of_law(shape, confidence_level, n_test=None):
    """Compute the band of a coverage that follows Beta(a, b), where ``shape`` is (a, b) or None."""
    from scipy.stats import beta, betabinom

    if shape is None:
        return np.nan, np.nan
    if shape[1] == 0:
        return 1.0, 1.0
    tail = (1 - confidence_level) / 2
    if n_test is None:
        low, high = beta.ppf([tail, 1 - tail], *shape)
    else:
        low, high = betabinom.ppf([tail, 1 - tail], n_test, *shape) / n_test
    return float(low), float(high)


def mean_interval(losses, probability, n_problems):
    """Compute a 95 % confidence interval for 1 - mean loss from the mean loss of each question.

    If each loss is 0 or 1, the result is the Clopper-Pearson interval. If several answers to a
    question were averaged, the Clopper-Pearson interval is computed for the effective number of
    independent problems (Korn and Graubard 1998). For other losses, the result is Student's
    t-interval.
    """
    from scipy.stats import t

    m = len(losses)
    mean = float(np.mean(losses))
    if probability and np.isin(losses, (0, 1)).all():
        return coverage_interval(m - round(losses.sum()), m)
    variance = np.var(losses, ddof=1) / m if m > 1 else np.inf
    if not probability:
        reach = t.ppf(0.975, m - 1) * np.sqrt(variance) if m > 1 else np.inf
        return 1 - mean - reach, 1 - mean + reach
    if not 0 < variance < np.inf:
        return _clopper_pearson((1 - mean) * m, m, 0.95)
    few = (t.ppf(0.975, n_problems - 1) / t.ppf(0.975, m - 1)) ** 2
    independent = min(mean * (1 - mean) / variance * few, n_problems)
    return _clopper_pearson((1 - mean) * independent, independent, 0.95)


def _clopper_pearson(k, n, confidence_level):
    """Compute the Clopper-Pearson interval for k / n, where k and n need not be integers."""
    from scipy.special import betaincinv

    tail = (1 - confidence_level) / 2
    low = betaincinv(k, n - k + 1, tail) if k > 0 else 0.0
    high = betaincinv(k + 1, n - k, 1 - tail) if k < n else 1.0
    return float(low), float(high)


def _check_confidence_level(confidence_level):
    if not 0 < confidence_level < 1:
        raise ValueError(
            "confidence_level must be strictly between 0 and 1, got "
            f"{confidence_level!r}"
        )


def _check_counts(name, count, name_of_all, n):
    check_count(name_of_all, n, 1)
    check_count(name, count, 0)
    if count > n:
        raise ValueError(f"{name} must be at most {name_of_all} = {n}, got {count}")
