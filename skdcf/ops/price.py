"""Price of a claim, which is the risk added by keeping the claim, relative to its value.

======  ========================================================================
h_v     log odds of the hazard, the probability that claim v is false given that all its
        ancestors are true
l_v     -log(1 - hazard) = log(1 + exp(h_v))
m_v     sum of l over v and its ancestors, which are all true with probability exp(-m_v)
q       weight of a true claim below a false one, times the chance of such a claim
g_v     exp(-m_v) + q (1 - exp(-(m_v - l_v))): weighted probability that v is true
w(k)    value of keeping k claims of an answer
======  ========================================================================

Order the claims of an answer by m. Keeping the first k claims adds a false claim with probability
``1 - exp(-(l_1 + ... + l_k))``, and the k-th claim is worth ``g_k (w(k) - w(k - 1))``. The price of
a claim is the slope of the convex minorant of the risk as a function of the worth. For a given
total risk over all answers, the worth is maximal if all claims below a common price are kept
(Neyman-Pearson lemma). m increases along the edges, and the price increases with m, so a claim
never costs less than its ancestors.
"""

import numpy as np

from .._arrays import offsets_of, segment_ids, starts_run
from .ancestors import sum_ancestors


def log_added_worth(before, count, gain):
    """Compute ``log(w(before + count) - w(before))``.

    Parameters
    ----------
    before : ndarray of float
        Number of claims that are already kept.
    count : ndarray of float
        Number of claims to add.
    gain : float
        Exponent of ``w(k) = k**gain``. With 0, ``w(k) = log(1 + k)``.

    Returns
    -------
    log_worths : ndarray
        The log of the added value.
    """
    if gain == 0:
        return np.log(np.log1p(count / (1 + before)))
    k = np.maximum(before, 1)
    added = gain * np.log(k) + np.log(np.expm1(gain * np.log1p(count / k)))
    return np.where(before > 0, added, gain * np.log(count))


def exact_log_price(hazard, batch, q=0.0, gain=1.0):
    """Compute the log price of each claim, which does not depend on the order of the claims.

    The parameters and the result are the same as those of `skdcf.ops.soft_price.log_price`.
    Hazards of shape (n_claims, n_fits) give prices of this shape.
    Hazards, and l, are rounded to 9 decimals, so sums of l are exact. Claims of a problem with
    equal m form one block of the curve. The risk of the block is that of all its claims, its worth
    is the mean weight times the value of adding all of them, and all claims of the block have the
    slope of the block.
    """
    # Log odds of 30 correspond to a probability of 1 - 1e-13.
    hazard = np.clip(hazard.round(9), -30.0, 30.0)
    lone = np.logaddexp(0, hazard)
    units = np.rint(lone * 10**9).astype(np.int64)
    m = sum_ancestors(units, batch)
    shape = m.T.shape
    # Each column of fits has its own copy of the problems.
    offsets = offsets_of(np.tile(batch.sizes, m[:1].size))
    problem_of = segment_ids(offsets)
    hazard, lone, units, m = (each.T.ravel() for each in (hazard, lone, units, m))
    order = _sort(problem_of, m, hazard)
    first = np.flatnonzero(starts_run(m[order]) | starts_run(problem_of))
    problem = problem_of[first]
    start = offsets[problem]
    count = np.diff(first, append=len(order))
    before = offsets_of(units[order])
    # Within a block, the claims are sorted by hazard, so the sums do not depend on their order.
    log_risk = np.log(-np.expm1(-np.add.reduceat(lone[order], first)))
    log_risk -= (before[first] - before[start]) / 10**9
    weights = -1e-9 * m
    if q:
        # g is at least exp(-l) or q (1 - exp(l - m)), so it is never 0.
        weights = np.log(np.exp(weights) - q * np.expm1(units * 1e-9 + weights))
    log_worth = np.logaddexp.reduceat(weights[order], first) - np.log(count)
    log_worth += log_added_worth(first - start, count, gain)
    slopes, _ = pool(log_risk, log_worth, problem)
    price = np.empty(len(order))
    price[order] = slopes.repeat(count)
    return price.reshape(shape).T


def _sort(problem, m, hazard):
    """Return the order by problem, m and hazard."""
    if len(m) < 1000 or (int(problem[-1]) + 1) * (span := int(m.max()) + 1) >= 2**63:
        return np.lexsort((hazard, m, problem))
    # For many claims, sorting one integer per claim takes a tenth of the time of lexsort.
    key = problem * span + m
    order = np.argsort(key)
    new = starts_run(key[order])
    tied = ~(new & np.append(new[1:], True))
    rows = order[tied]
    order[tied] = rows[np.lexsort((hazard[rows], key[rows]))]
    return order


def pool(log_rise, log_run, segment):
    """Compute the convex minorants of piecewise linear curves.

    The pool adjacent violators algorithm is applied to all segments at once. This algorithm
    merges adjacent pieces with decreasing slopes until the slopes no longer decrease. All values
    are logarithms, because the values for curves with many claims exceed the range of
    floating-point numbers.

    Parameters
    ----------
    log_rise, log_run : ndarray of shape (n,)
        Logarithms of the heights and widths of the pieces.
    segment : ndarray of shape (n,)
        Index of the curve to which each piece belongs, in non-decreasing order.

    Returns
    -------
    slope : ndarray of shape (n,)
        The log slope of the minorant at each piece, which never decreases within a segment.
    block : ndarray of int of shape (n,)
        Index of the block into which each piece was merged.

    References
    ----------
    R. E. Barlow et al. Statistical Inference under Order Restrictions. Wiley 1972.
    """
    block = np.arange(len(log_rise))
    while True:
        slope = log_rise - log_run
        is_start = starts_run(segment)
        is_start[1:] |= ~(slope[1:] < slope[:-1])
        if is_start.all():
            return slope[block], block
        block = is_start.cumsum()[block] - 1
        starts = np.flatnonzero(is_start)
        log_rise = np.logaddexp.reduceat(log_rise, starts)
        log_run = np.logaddexp.reduceat(log_run, starts)
        segment = segment[starts]
