"""Ranks and thresholds of split conformal prediction.

A nonconformity score is the largest safe threshold of a problem, so the filter is the
less cautious the larger the threshold: t_alpha is the k-th *smallest* of n scores,
k = floor(alpha (n + 1)), which is the ceil((1 - alpha)(n + 1))-th largest.
"""

from bisect import bisect_left
from math import floor, inf, log, log1p

import numpy as np
from scipy.special import betainccinv

MOST = 2**53  # problems; where more are needed, it is this number that is told
DIGITS = 12  # A level that is no quotient of whole numbers is known to so many digits.


def claim_level(below, n, delta=None):
    """Compute the smallest alpha at which a claim is kept.

    ``below`` of the n calibration scores do not exceed its path risk.

    Without delta it is (1 + below) / (n + 1). With it, the smallest alpha such that
    P(Binomial(n, alpha) <= below) <= delta, rounded up in the twelfth digit: then
    coverage is at least 1 - alpha in a share 1 - delta of all calibration sets.

    Parameters
    ----------
    below : ndarray of int
        Number of calibration scores at or below the path risk, from 0 to n.
    n : int
        Number of calibration problems.
    delta : float, optional

    Returns
    -------
    ndarray of float, in the shape of ``below``; 1 means never.

    References
    ----------
    V. Vovk. Conditional validity of inductive conformal predictors. ACML 2012.
    """
    below = np.asarray(below)
    if delta is None:
        return (1 + below) / (n + 1)
    inside = np.minimum(below, n - 1) if n else below
    level = betainccinv(inside + 1, np.maximum(n - inside, 1), float(delta))
    return np.where(below < n, np.minimum(_round_up(level), 1.0), 1.0)


def _round_up(x):
    """Round x up in its last digit; an excess of rounding errors alone is ignored."""
    with np.errstate(divide="ignore"):
        scale = 10.0 ** (DIGITS - 1 - np.floor(np.log10(x)))
    return np.where(x > 0, np.ceil(x * scale - 1e-2) / scale, 0.0)


def conformal_rank(n, alpha, delta=None):
    """Compute the rank of the threshold among n sorted scores; 0 if there are too few.

    Without delta it is the largest k with k / (n + 1) <= alpha: floor(alpha (n + 1))
    without rounding. The product is rounded twice (0.29 * 100 gives 28.999...); the
    quotient, correctly rounded, equals the decimal number that the user wrote whenever
    the two are equal.

    Parameters
    ----------
    n : int
        Number of calibration problems.
    alpha : float
        Miscoverage, in (0, 1).
    delta : float, optional
        Share of the calibration sets whose coverage may be below 1 - alpha: k is then
        the largest with P(Beta(n + 1 - k, k) >= 1 - alpha) >= 1 - delta.

    Returns
    -------
    int between 0 and n; 0 says that there are too few problems for this alpha.

    Examples
    --------
    >>> from skdcf.ops.conformal import conformal_rank
    >>> conformal_rank(99, 0.29), conformal_rank(8, 0.1), conformal_rank(99, 0.1, 0.05)
    (29, 0, 5)
    """
    if delta is not None:
        return _rank_by_levels(n, alpha, delta)
    k = floor(alpha * (n + 1))
    while (k + 1) / (n + 1) <= alpha:
        k += 1
    while k / (n + 1) > alpha:
        k -= 1
    return k


def _rank_by_levels(n, alpha, delta):
    """Count the levels, for 0, 1, ..., n - 1 scores below, that are at most alpha."""
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if claim_level(middle, n, delta) <= alpha:
            low = middle + 1
        else:
            high = middle
    return low


def problems_needed(alpha, delta=None):
    """Compute the smallest number of calibration problems that can keep anything."""
    few = 1 / alpha - 1 if delta is None else log(delta) / log1p(-alpha)
    if few >= MOST:
        return MOST
    n = max(floor(few) - 1, 0)
    while conformal_rank(n, alpha, delta) == 0:
        n += 1
    return n


def fewest_of_rank(n, alpha, delta=None):
    """Compute the smallest number of problems with the rank of n; n where that is 0."""
    k = conformal_rank(n, alpha, delta)
    if not k:
        return n
    return bisect_left(range(n), k, key=lambda m: conformal_rank(m, alpha, delta))


def conformal_threshold(scores, alpha, delta=None):
    """Compute t_alpha of sorted scores, shape (n,); -inf if there are too few."""
    k = conformal_rank(len(scores), alpha, delta)
    return float(scores[k - 1]) if k else -inf


def claim_alpha(scores, path_risk, keep_equal=False, delta=None):
    """Compute the smallest alpha at which each claim is kept, shape (n_claims,).

    Parameters
    ----------
    scores : ndarray of shape (n,), sorted
        Nonconformity scores of the calibration problems.
    path_risk : ndarray of shape (n_claims,)
    keep_equal : bool
        Whether a claim is kept when its path risk equals the threshold.
    delta : float, optional
        As in `claim_level`.

    Returns
    -------
    ndarray of shape (n_claims,), multiples of 1 / (n + 1); 1 means never.
    """
    side = "left" if keep_equal else "right"
    below = np.searchsorted(scores, path_risk, side=side)
    return claim_level(below, len(scores), delta)


def leave_one_out_alpha(scores, path_risk, problem_of, delta=None):
    """Compute `claim_alpha` of each claim when all *other* problems calibrate it.

    All alphas and all problems at once, in O(n log n).

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Nonconformity score of each problem, in the order of the problems.
    path_risk, problem_of : ndarray of shape (n_claims,)
    delta : float, optional
        As in `claim_level`.

    Returns
    -------
    ndarray of shape (n_claims,), multiples of 1 / n.
    """
    below = np.searchsorted(np.sort(scores), path_risk, side="right")
    below -= scores[problem_of] <= path_risk
    return claim_level(below, len(scores) - 1, delta)
