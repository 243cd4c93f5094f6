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

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..graphs import GraphBatch
from ..graphs.ragged import starts_run
from .ancestors import sum_ancestors

# Maximum log odds of a hazard, which corresponds to a probability of 1 - 1e-13.
CERTAIN = 30.0
# Hazards and their sums are rounded to this number of decimals before claims are compared.
DECIMALS = 9
# All curves are processed together until one of these numbers of pieces or rounds is reached.
# Curves with more pieces are then processed separately, because the longest curve determines the
# number of rounds.
_TOGETHER = 64


def log_added_worth(before: NDArray[Any], count: Any, gain: float) -> NDArray[Any]:
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


def log_weight(m, lone, q):
    """Compute ``log g`` from m and l."""
    with np.errstate(divide="ignore"):
        below_error = np.log(q) + np.log(-np.expm1(-np.maximum(m - lone, 0)))
    return np.logaddexp(-m, below_error)


def exact_log_price(
    hazard: NDArray[Any], batch: GraphBatch, q: float = 0.0, gain: float = 1.0
) -> NDArray[np.float64]:
    """Compute the log price of each claim, which does not depend on the order of the claims.

    The parameters and the result are the same as those of `skdcf.ops.soft_price.log_price`.
    Hazards, and l, are rounded to 9 decimals, so sums of l are exact. Claims of a problem with
    equal m form one block of the curve. The risk of the block is that of all its claims, its worth
    is the mean weight times the value of adding all of them, and all claims of the block have the
    slope of the block.
    """
    if not len(hazard):
        return np.zeros(0)
    hazard = np.clip(np.round(hazard, DECIMALS), -CERTAIN, CERTAIN)
    lone = np.logaddexp(0, hazard)
    units = np.rint(lone * 10**DECIMALS).astype(np.int64)
    m = sum_ancestors(units, batch)
    order = _sort(batch.problem_of, m, hazard)
    problem = batch.problem_of[order]
    first = np.flatnonzero(starts_run(m[order]) | starts_run(problem))
    last = np.append(first[1:], len(order)) - 1
    before = sum_before(units[order], batch.offsets)[first]
    count = (last - first + 1).astype(np.float64)
    # Within a block, the claims are sorted by hazard, so the sums do not depend on their order.
    with np.errstate(divide="ignore"):
        log_risk = np.log(-np.expm1(-np.add.reduceat(lone[order], first)))
    log_risk -= before / 10**DECIMALS
    scale = 10.0**-DECIMALS
    weights = log_weight(m * scale, units * scale, q)[order]
    log_worth = np.logaddexp.reduceat(weights, first) - np.log(count)
    kept_before = first - batch.offsets[problem[first]]
    log_worth += log_added_worth(kept_before, count, gain)
    slopes = minorant_slopes(log_risk, log_worth, problem[first])
    price = np.empty(len(order))
    price[order] = np.repeat(slopes, last - first + 1)
    return price


def _sort(problem, m, hazard):
    """Return the order by problem, m and hazard."""
    span = int(m.max(initial=0)) + 1
    if (int(problem[-1]) + 1) * span >= 2**63:
        return np.lexsort((hazard, m, problem))
    # Sorting one whole number for each claim takes a third of the time.
    key = problem * span + m
    order = np.argsort(key)
    ordered = key[order]
    tied = np.zeros(len(key), dtype=bool)
    tied[1:] = ordered[1:] == ordered[:-1]
    tied[:-1] |= tied[1:]
    rows = order[tied]
    order[tied] = rows[np.lexsort((hazard[rows], key[rows]))]
    return order


def sum_before(values, offsets):
    """For each value, compute the sum of all previous values in the same segment."""
    total = np.concatenate([[0], np.cumsum(values)])
    return total[:-1] - np.repeat(total[offsets[:-1]], np.diff(offsets))


def minorant_slopes(log_rise: Any, log_run: Any, segment: Any) -> NDArray[Any]:
    """Compute the log slopes of the convex minorants of piecewise linear curves.

    See `pooled`.
    """
    slope, head = pooled(log_rise, log_run, segment)
    return slope[np.maximum.accumulate(np.where(head, np.arange(len(head)), 0))]


def pooled(log_rise, log_run, segment):
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
        The log slope of each block, at the first piece of the block.
    head : ndarray of bool of shape (n,)
        Whether a piece is the first of its block. The slopes of the blocks do not decrease within
        a segment.

    References
    ----------
    R. E. Barlow et al. Statistical Inference under Order Restrictions. Wiley 1972.
    """
    head = np.ones(len(log_rise), dtype=bool)
    slope = np.empty(len(log_rise))
    at = np.arange(len(log_rise))
    n_curves = segment.max(initial=-1) + 1
    for _ in range(_TOGETHER):
        slope_now = log_rise - log_run
        slope[at] = slope_now
        curve = segment[at]
        falls = np.zeros(len(at), dtype=bool)
        falls[1:] = (slope_now[1:] < slope_now[:-1]) & (curve[1:] == curve[:-1])
        head[at[falls]] = False
        # Only curves that still have decreasing slopes are processed in the next round.
        is_open = np.zeros(n_curves, dtype=bool)
        is_open[curve[falls]] = True
        open_ = is_open[curve]
        falls = falls[open_]
        at = at[open_]
        log_rise = log_rise[open_]
        log_run = log_run[open_]
        starts = np.flatnonzero(~falls)
        if not len(starts):
            at = at[:0]
            break
        log_rise = np.logaddexp.reduceat(log_rise, starts)
        log_run = np.logaddexp.reduceat(log_run, starts)
        at = at[starts]
    if len(at):
        _pool_one_by_one(log_rise, log_run, segment, at=at, head=head, slope=slope)
    return slope, head


def _pool_one_by_one(log_rise, log_run, segment, at, head, slope):
    """Complete `minorant_slopes` segment by segment, using a stack."""
    stack = []
    last = None
    for piece in zip(at, segment[at], log_rise, log_run, strict=True):
        i, curve, rise, run = (x.item() for x in piece)
        if curve != last:
            stack = []
            last = curve
        # As in `minorant_slopes`, ties are not merged.
        while stack and rise - run < stack[-1][3]:
            head[i] = False
            i, rise_above, run_above, _ = stack.pop()
            rise = _log_add(rise, rise_above)
            run = _log_add(run, run_above)
        stack.append((i, rise, run, rise - run))
        slope[i] = rise - run


def _log_add(a, b):
    high = max(a, b)
    low = min(a, b)
    return high + math.log1p(math.exp(low - high))
