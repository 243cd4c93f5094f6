"""Ranks and thresholds of split conformal prediction.

A nonconformity score is the largest safe threshold of a problem, so the filter is the
less cautious the larger the threshold: t_alpha is the k-th *smallest* of n scores,
k = floor(alpha (n + 1)), which is the ceil((1 - alpha)(n + 1))-th largest.
"""

from math import floor, inf

import numpy as np


def conformal_rank(n, alpha):
    """The largest k with k / (n + 1) <= alpha: floor(alpha (n + 1)) without rounding.

    The product is rounded twice (0.29 * 100 gives 28.999...); the quotient, correctly
    rounded, equals the decimal number that the user wrote whenever the two are equal.

    Parameters
    ----------
    n : int
        Number of calibration problems.
    alpha : float
        Miscoverage, in (0, 1).

    Returns
    -------
    int between 0 and n; 0 says that there are too few problems for this alpha.

    Examples
    --------
    >>> from skdcf.ops.conformal import conformal_rank
    >>> conformal_rank(99, 0.29), conformal_rank(8, 0.1)
    (29, 0)
    """
    k = floor(alpha * (n + 1))
    while (k + 1) / (n + 1) <= alpha:
        k += 1
    while k / (n + 1) > alpha:
        k -= 1
    return k


def problems_needed(alpha):
    """The smallest number of calibration problems with which anything can be kept."""
    n = max(floor(1 / alpha) - 2, 0)
    while conformal_rank(n, alpha) == 0:
        n += 1
    return n


def conformal_threshold(scores, alpha):
    """t_alpha of sorted scores, shape (n,); -inf where there are too few."""
    k = conformal_rank(len(scores), alpha)
    return float(scores[k - 1]) if k else -inf


def claim_alpha(scores, path_risk, keep_equal=False):
    """Smallest alpha at which each claim is kept, shape (n_claims,).

    Parameters
    ----------
    scores : ndarray of shape (n,), sorted
        Nonconformity scores of the calibration problems.
    path_risk : ndarray of shape (n_claims,)
    keep_equal : bool
        Whether a claim is kept when its path risk equals the threshold.

    Returns
    -------
    ndarray of shape (n_claims,), multiples of 1 / (n + 1); 1 means never.
    """
    side = "left" if keep_equal else "right"
    below = np.searchsorted(scores, path_risk, side=side)
    return (1 + below) / (len(scores) + 1)


def leave_one_out_alpha(scores, path_risk, problem_of):
    """`claim_alpha` of each claim when all *other* problems calibrate it.

    All alphas and all problems at once, in O(n log n).

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Nonconformity score of each problem, in the order of the problems.
    path_risk, problem_of : ndarray of shape (n_claims,)

    Returns
    -------
    ndarray of shape (n_claims,), multiples of 1 / n.
    """
    below = np.searchsorted(np.sort(scores), path_risk, side="right")
    below -= scores[problem_of] <= path_risk
    return (1 + below) / len(scores)
