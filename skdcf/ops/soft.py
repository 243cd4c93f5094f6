"""Differentiable versions of the functions in `skdcf.ops.hard`, and soft order statistics.

=====  ========================================================================
r_v    risk of claim v
R_v    path risk, the maximum of r over v and its ancestors
s      scores, shape (n,)
k      rank counted from the smallest; n + 1 - k counted from the largest
rho    strength of NeuralSort, one over its temperature
T      temperature of a sigmoid or of a distribution function
=====  ========================================================================

No function in this module adds a small constant inside a logarithm.
"""

import math

import autograd.numpy as anp
import numpy as np
from autograd.tracer import getval

from .ancestors import find_highest
from .segments import segment_softmax, take, with_vjp


@with_vjp(lambda g, ans, x, temperature=1.0: g * np.expm1(ans) / -temperature)
def log_sigmoid(x, temperature=1.0):
    """Compute ``log(sigmoid(x / temperature))`` in a numerically stable way.

    `numpy.logaddexp` computes the same values up to the last bits, but is four times slower.
    """
    # sigmoid(600) equals 1 to the last bit, but its logarithm is -3e-261 instead of 0, so
    # log(1 - q) and all products of gradients are finite.
    x = np.minimum(x / temperature, 600.0)
    return np.minimum(x, 0) - np.log1p(np.exp(-abs(x)))


@with_vjp(lambda g, ans, x: g * np.exp(x) / np.expm1(x))
def log1mexp(x):
    """Compute ``log(1 - exp(x))`` for x < 0 in a numerically stable way."""
    far = np.log1p(-np.minimum(np.exp(x), 0.5))
    return np.where(x > -np.log(2), np.log(-np.expm1(x)), far)


def _pull_standardised(g, ans, scores):
    centred = scores - scores.mean()
    variance = (centred**2).mean()
    scale = np.sqrt(variance)
    slope = (g * centred / scale**2).sum() * variance**-0.5 / len(g)
    g = slope * centred - g / scale
    return g - g.mean()


@with_vjp(_pull_standardised)
def standardised_risk(scores):
    """Compute the negated scores, standardised to mean 0 and standard deviation 1."""
    centred = scores - scores.mean()
    # If all scores are equal, the scale is NaN, and training stops.
    with np.errstate(invalid="ignore"):
        return -centred / np.sqrt((centred**2).mean())


def path_risk(risk, batch):
    """Compute R for each claim. The gradient belongs to the last of several tied claims."""
    return take(risk, find_highest(getval(risk), batch))


def neural_sort(scores, k, strength):
    """Compute a soft version of the k-th smallest score, using one row of NeuralSort.

    As the strength increases, the result converges to the k-th smallest score. The row is
    ``softmax(rho ((n + 1 - 2 i) s_j - sum_l |s_j - s_l|))``, where i = n + 1 - k is the rank
    counted from the largest score. The sums of distances are computed from the sorted scores,
    which reduces the cost from O(n^2) to O(n log n).

    Parameters
    ----------
    scores : ndarray of shape (n,), finite
        The scores.
    k : int, 1 to n
        Rank, counted from the smallest score.
    strength : float > 0
        Strength rho.

    Returns
    -------
    soft_score : float
        The soft version of the k-th smallest score.

    References
    ----------
    Grover et al., Stochastic optimization of sorting networks via continuous
    relaxations, ICLR 2019, equation 4.
    """
    n = len(scores)
    ordered = take(scores, np.argsort(getval(scores)))
    values = getval(ordered)
    below, upto = (np.searchsorted(values, values, side) for side in ("left", "right"))
    above_least = ordered - ordered[0]
    sums = anp.concatenate([np.zeros(1), anp.cumsum(above_least)])
    distance = (below + upto - n) * above_least + sums[-1]
    distance = distance - take(sums, below) - take(sums, upto)
    logits = strength * ((2 * k - n - 1) * above_least - distance)
    return segment_softmax(logits, np.array([0, n])) @ ordered


def _pull_quantile(g, ans, scores, count, temperature):
    """Return the gradient of `smooth_quantile`, whose entries are positive and sum to g."""
    away = abs(scores - ans) / temperature
    weight = np.exp(away.min() - away) / (1 + np.exp(-away)) ** 2
    return g * weight / weight.sum()


@with_vjp(_pull_quantile)
def smooth_quantile(scores, count, temperature):
    """Compute the value t for which the soft count of scores below t equals ``count``.

    The value t solves ``sum_i sigmoid((t - s_i) / T) = count``. As T approaches 0, t converges to
    the ceil(count)-th smallest score.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        The scores. Infinite scores are never counted as below t.
    count : float, strictly between 0 and the number of finite scores
        Target value of the soft count of scores below t.
    temperature : float > 0
        Temperature T.

    Returns
    -------
    t : float
        The value t at which the soft count of smaller scores equals ``count``.

    Notes
    -----
    The equation is solved by Newton's method between two bounds. A bisection step is
    used if Newton's step leaves the bounds or is not shorter than half the previous one. Bisection
    is needed if all scores are many temperatures away. The error after a Newton step is below its
    squared length divided by the temperature, which determines the tolerance. For scores below t, 1
    minus the sigmoid is summed. The precision is then preserved if the count is an integer and t is
    between two distant scores, where only the tails of the sigmoids contribute.
    """
    scores = scores[np.isfinite(scores)]
    shift = temperature * math.log(count / (len(scores) - count))
    low = float(scores.min()) + shift
    high = float(scores.max()) + shift
    if not 0 < high - low < math.inf:
        return high
    t = float(np.clip(np.sort(scores)[int(count)], low, high))
    last = high - low
    while high - low > 1e-15 * abs(t) + 1e-300:
        x = (scores - t) / temperature
        small = np.exp(-abs(x))
        tail = small / (1 + small)
        excess = np.count_nonzero(x < 0) - count + float(np.copysign(tail, x).sum())
        slope = float((tail / (1 + small)).sum())
        if slope == 0 == excess:
            return float(scores[x < 0].max() + scores[x >= 0].min()) / 2
        low, high = (low, t) if excess > 0 else (t, high)
        move = -temperature * excess / slope if slope > 1e-290 else math.inf
        if abs(move) <= 1e-8 * temperature:
            return t + move
        newton = low < t + move < high and abs(move) < last / 2
        last = abs(move) if newton else (high - low) / 2
        t = t + move if newton else (low + high) / 2
    return t
