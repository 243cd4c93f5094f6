"""Price of a claim, which is the risk added by keeping the claim.

======  ========================================================================
h_v     hazard: probability that claim v is false, given that all its ancestors are true
l_v     -log(1 - h_v)
m_v     sum of l over v and its ancestors, which are all true with probability exp(-m_v)
q       share of true claims among those below a false one, at half its weight
g_v     exp(-m_v) + q (1 - exp(-(m_v - l_v))): probability that v is true
L_k     sum of l over the first k claims of a problem, in increasing order of m
======  ========================================================================

If the first k claims are kept, the probability that at least one of them is false is 1 -
exp(-L_k). The expected number of true claims among the first k claims is the sum of g_v over
these claims. The price of a claim is a slope of the convex minorant of the risk as a function of
the expected number of true claims. For a given total risk over all problems, the number of kept
true claims is maximal if all claims below a common price are kept (Neyman-Pearson lemma). The
value m_v increases along the edges, and the price increases with m_v. Therefore, a claim is kept
only if all its ancestors are kept.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..graphs import GraphBatch
from .ancestors import sum_ancestors
from .hard import path_risk

# maximum log odds of a hazard, which corresponds to a probability of 1 - 1e-13
CERTAIN = 30.0
# All curves are processed together until one of these numbers of pieces or rounds is reached.
# Curves with more pieces are then processed separately, because the longest curve determines the
# number of rounds.
_TOGETHER = 64


def log_price(hazard: Any, batch: GraphBatch, q: Any = 0.0, worth: Any = None) -> Any:
    """Compute the log price of each claim.

    Parameters
    ----------
    hazard : ndarray of shape (n_claims,)
        Log odds that a claim is false given that all its ancestors are true.
    batch : GraphBatch
        The problems.
    q : float in [0, 1]
        Probability that a claim is true given that one of its ancestors is false.
    worth : callable, optional
        Function that returns the value of keeping a given number of claims, as in the parameter
        ``gain`` of `skdcf.scorers.NeymanPearsonScorer`. If None, the value is the number of kept
        claims.

    Returns
    -------
    log_prices : ndarray of shape (n_claims,)
        The log prices, which are finite and never decrease along the edges.
    """
    hazard = np.clip(hazard, -CERTAIN, CERTAIN)
    cumulative_hazard = np.logaddexp(0, hazard)
    if not len(cumulative_hazard):
        return cumulative_hazard
    # In exact arithmetic, the accumulated hazard never decreases along the edges. Rounding errors
    # could cause a decrease, so the maximum over the ancestors is taken explicitly.
    total_hazard = path_risk(sum_ancestors(cumulative_hazard, batch), batch)
    order = np.lexsort((batch.depth, total_hazard, batch.problem_of))
    sum_before = _sum_before(cumulative_hazard[order], batch.offsets)
    log_risk = hazard[order] - cumulative_hazard[order] - sum_before
    with np.errstate(divide="ignore"):
        log_without = np.log(q) + np.log(
            -np.expm1(-np.maximum(total_hazard - cumulative_hazard, 0))
        )
    log_gain = np.logaddexp(-total_hazard, log_without)
    if worth is not None:
        position = (
            np.arange(len(cumulative_hazard)) - batch.offsets[:-1][batch.problem_of]
        )
        log_gain[order] += np.log(worth(position + 1.0) - worth(position + 0.0))
    price = np.empty(len(cumulative_hazard))
    price[order] = minorant_slopes(log_risk, log_gain[order], batch.problem_of)
    return price


def _sum_before(values, offsets):
    """For each value, compute the sum of all previous values in the same segment."""
    out = np.zeros(len(values))
    large = np.diff(offsets) > _TOGETHER
    for a, b in zip(offsets[:-1][large], offsets[1:][large], strict=True):
        np.cumsum(values[a : b - 1], out=out[a + 1 : b])
    at = offsets[:-1][~large]
    ends = offsets[1:][~large]
    while len(at):
        continues = at + 1 < ends
        at = at[continues] + 1
        ends = ends[continues]
        out[at] = out[at - 1] + values[at - 1]
    return out


def minorant_slopes(log_rise: Any, log_run: Any, segment: Any) -> NDArray[Any]:
    """Compute the log slopes of the convex minorants of piecewise linear curves.

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
    log_slopes : ndarray of shape (n,)
        The log slopes, which are non-decreasing within each segment.

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
    first = np.maximum.accumulate(np.where(head, np.arange(len(head)), 0))
    return slope[first]


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
