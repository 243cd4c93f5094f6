"""How far a coverage that was observed may lie from the truth, and from the promise."""

from functools import lru_cache

import numpy as np

from .._checks import check_alpha
from ..ops.conformal import conformal_rank


def coverage_interval(
    n_covered: int, n_problems: int, *, confidence: float = 0.95
) -> tuple[float, float]:
    """Clopper-Pearson interval of a coverage that was observed.

    Parameters
    ----------
    n_covered, n_problems : int
        ``n_covered`` of ``n_problems`` test problems had no false claim kept.
    confidence : float, default=0.95
        Chance that such an interval holds the true coverage.

    Returns
    -------
    (low, high) : tuple of float
        The ends of the interval.

    Examples
    --------
    >>> from skdcf.metrics import coverage_interval
    >>> low, high = coverage_interval(90, 100)
    >>> round(low, 3), round(high, 3)
    (0.824, 0.951)
    """
    if not 0 <= n_covered <= n_problems or n_problems < 1:
        raise ValueError(f"{n_covered} of {n_problems} problems covered: impossible")
    _check_confidence(confidence)
    return _clopper_pearson(int(n_covered), int(n_problems), confidence)


def coverage_band(
    n_calibration: int,
    alpha: float,
    *,
    confidence: float = 0.95,
    n_test: int | None = None,
    delta: float | None = None,
) -> tuple[float, float]:
    """Band in which theory puts the coverage after one draw of calibration problems.

    The coverage given the calibration problems follows Beta(n + 1 - k, k), with k the
    conformal rank, where scores have no ties; ties, and problems without a false claim
    where they outnumber the rank, can only raise it.

    Parameters
    ----------
    n_calibration : int
        Number of calibration problems, n.
    alpha : float in (0, 1)
        The level of the filter.
    confidence : float, default=0.95
        Chance that the coverage lies in the band.
    n_test : int, optional
        With a number of test problems, the band of what will be *observed* on them
        (beta-binomial); None is that of the coverage itself.
    delta : float, optional
        As in `skdcf.guarantees.NoFalseClaim`.

    Returns
    -------
    (low, high) : tuple of float
        The ends of the band; (1, 1) where nothing can be kept.

    References
    ----------
    V. Vovk. Conditional validity of inductive conformal predictors. ACML 2012.

    Examples
    --------
    >>> from skdcf.metrics import coverage_band
    >>> low, high = coverage_band(99, 0.1)
    >>> round(low, 3), round(high, 3)
    (0.834, 0.95)
    """
    _check_confidence(confidence)
    k = conformal_rank(n_calibration, check_alpha(alpha), delta)
    return band_of_law((n_calibration + 1 - k, k), confidence, n_test)


@lru_cache(4096)  # a comparison asks for the same few bands again and again
def band_of_law(shape, confidence, n_test=None):
    """The band of a Beta(a, b) coverage; (1, 1) where b = 0, NaN where it is unknown."""
    from scipy.stats import beta, betabinom

    if shape is None or shape[1] == 0:
        return (np.nan, np.nan) if shape is None else (1.0, 1.0)
    tail = (1 - confidence) / 2
    if n_test is None:
        low, high = beta.ppf([tail, 1 - tail], *shape)
    else:
        low, high = betabinom.ppf([tail, 1 - tail], n_test, *shape) / n_test
    return float(low), float(high)


def mean_interval(losses, probability, n_problems, confidence=0.95):
    """Interval of 1 - mean loss, from the mean loss of each question.

    Clopper-Pearson's for questions of which each is lost or not. Where several answers to
    a question were averaged, it is Clopper-Pearson's for the number of problems that would
    vary as much if they were independent (Korn and Graubard 1998). For other losses it is
    Student's.
    """
    from scipy.stats import t

    m, mean = len(losses), float(np.mean(losses))
    if probability and np.isin(losses, (0, 1)).all():
        return coverage_interval(m - round(losses.sum()), m, confidence=confidence)
    variance = np.var(losses, ddof=1) / m if m > 1 else np.inf
    quantile = (1 + confidence) / 2
    if not probability:
        reach = t.ppf(quantile, m - 1) * np.sqrt(variance) if m > 1 else np.inf
        return 1 - mean - reach, 1 - mean + reach
    if not 0 < variance < np.inf:
        return _clopper_pearson((1 - mean) * m, m, confidence)
    few = (t.ppf(quantile, n_problems - 1) / t.ppf(quantile, m - 1)) ** 2
    independent = min(mean * (1 - mean) / variance * few, n_problems)
    return _clopper_pearson((1 - mean) * independent, independent, confidence)


def _clopper_pearson(k, n, confidence):
    """The interval for k of n, which need not be whole numbers."""
    from scipy.special import betaincinv

    tail = (1 - confidence) / 2
    low = betaincinv(k, n - k + 1, tail) if k > 0 else 0.0
    high = betaincinv(k + 1, n - k, 1 - tail) if k < n else 1.0
    return float(low), float(high)


def _check_confidence(confidence):
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence!r}, but must be between 0 and 1")
