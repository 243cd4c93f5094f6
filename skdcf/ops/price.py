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
from .ancestors import sum_ancestors, sum_descendants
from .segments import with_vjp

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


def _log_weight(m, lone, q):
    """Compute ``log g`` from m and l."""
    with np.errstate(divide="ignore"):
        below_error = np.log(q) + np.log(-np.expm1(-np.maximum(m - lone, 0)))
    return np.logaddexp(-m, below_error)


def _curve(hazard, batch, q, gain):
    """Return l, m, the order of the claims, and their log risks and log worths in this order."""
    lone = np.logaddexp(0, hazard)
    m = sum_ancestors(lone, batch)
    order = np.lexsort((batch.depth, m, batch.problem_of))
    log_risk = hazard[order] - lone[order] - _sum_before(lone[order], batch.offsets)
    position = np.arange(len(m)) - batch.offsets[batch.problem_of]
    log_worth = _log_weight(m, lone, q)[order] + log_added_worth(position, 1.0, gain)
    return lone, m, order, log_risk, log_worth


def _pull_price(ans, hazard, batch, q, gain):
    """Return the function that computes the gradient for the hazards.

    The price of a pooled block is ``log(sum of risks) - log(sum of worths)``, so its gradient is
    the difference of two softmax functions.
    """
    clipped = np.clip(hazard, -CERTAIN, CERTAIN)
    lone, m, order, log_risk, log_worth = _curve(clipped, batch, q, gain)
    block = np.cumsum(pooled(log_risk, log_worth, batch.problem_of)[1]) - 1

    def pull(g):
        total = np.bincount(block, g[order])[block]
        of_risk = total * _softmax(log_risk, block)
        to_claims = np.argsort(order)
        # log_risk = h - l - (sum of l over the claims before it)
        after = _sum_before(of_risk[::-1], (len(g) - batch.offsets)[::-1])[::-1]
        of_lone = (-of_risk - after)[to_claims]
        # log_worth depends on l and on m, the sum of l over the claim and its ancestors.
        of_worth = (-total * _softmax(log_worth, block))[to_claims]
        above = q * np.exp(lone - m)
        weight = np.exp(-m) + q - above
        tiny = weight == 0
        share = above / np.where(tiny, 1, weight)
        of_lone -= of_worth * share
        of_m = of_worth * np.where(
            tiny, -1, share - np.exp(-m) / np.where(tiny, 1, weight)
        )
        of_lone += sum_descendants(of_m, batch)
        slope = of_risk[to_claims] + of_lone * np.exp(clipped - lone)
        return np.where(clipped == hazard, slope, 0)

    return pull


@with_vjp(_pull_price)
def log_price(
    hazard: NDArray[Any], batch: GraphBatch, q: float = 0.0, gain: float = 1.0
) -> NDArray[np.float64]:
    """Compute the log price of each claim for training, with a gradient for the hazards.

    Claims with equal sums m are priced in the order in which they are stored.

    Parameters
    ----------
    hazard : ndarray of shape (n_claims,)
        Log odds that a claim is false given that all its ancestors are true.
    batch : GraphBatch
        The problems.
    q : float in [0, 1], default=0.0
        Weight of a true claim below a false one, times the chance of such a claim.
    gain : float, default=1.0
        Exponent of the number of kept claims, which is 0 or between 0.01 and 1.

    Returns
    -------
    log_prices : ndarray of shape (n_claims,)
        The log prices, which never decrease along the edges.
    """
    clipped = np.clip(hazard, -CERTAIN, CERTAIN)
    *_, order, log_risk, log_worth = _curve(clipped, batch, q, gain)
    price = np.empty(len(order))
    price[order] = minorant_slopes(log_risk, log_worth, batch.problem_of)
    return price


def exact_log_price(
    hazard: NDArray[Any], batch: GraphBatch, q: float = 0.0, gain: float = 1.0
) -> NDArray[np.float64]:
    """Compute the log price of each claim, which does not depend on the order of the claims.

    The parameters and the result are the same as those of `log_price`. Hazards, and l, are
    rounded to 9 decimals, so sums of l are exact. Claims of a problem with equal m form one block
    of the curve. The risk of the block is that of all its claims, its worth is the mean weight
    times the value of adding all of them, and all claims of the block have the slope of the block.
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
    before = _sum_before(units[order], batch.offsets)[first]
    count = (last - first + 1).astype(np.float64)
    # Within a block, the claims are sorted by hazard, so the sums do not depend on their order.
    with np.errstate(divide="ignore"):
        log_risk = np.log(-np.expm1(-np.add.reduceat(lone[order], first)))
    log_risk -= before / 10**DECIMALS
    scale = 10.0**-DECIMALS
    log_weight = _log_weight(m * scale, units * scale, q)[order]
    log_worth = np.logaddexp.reduceat(log_weight, first) - np.log(count)
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


def _softmax(values, block):
    """Return the softmax of the values within each block."""
    highest = np.full(block.max(initial=-1) + 1, -np.inf)
    np.maximum.at(highest, block, values)
    exponentials = np.exp(values - highest[block])
    return exponentials / np.bincount(block, exponentials)[block]


def _sum_before(values, offsets):
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
