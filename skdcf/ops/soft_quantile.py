"""Two differentiable order statistics, both from the k-th smallest of n scores.

=====  =====================================================================
s      scores, shape (n,)
k      rank counted from the smallest; n + 1 - k counted from the largest
rho    strength of NeuralSort, one over its temperature
T      temperature of the smooth distribution function
=====  =====================================================================
"""

import numpy as np
from autograd.extend import defvjp, primitive
from scipy.optimize import brentq
from scipy.special import expit, log_expit, logit, softmax


@primitive
def neural_sort(scores, k, strength):
    """k-th smallest score through one row of NeuralSort; exact as strength grows.

    The row is ``softmax(rho ((n + 1 - 2 i) s_j - sum_l |s_j - s_l|))`` with
    i = n + 1 - k, the rank from the largest. Sorting gives the sums of distances, so
    the cost is O(n log n) and not O(n^2).

    Parameters
    ----------
    scores : ndarray of shape (n,), finite
    k : int, 1 to n
    strength : float > 0

    Returns
    -------
    float

    References
    ----------
    Grover et al., Stochastic optimization of sorting networks via continuous
    relaxations, ICLR 2019, equation 4.
    """
    return _sort_row(scores, k, strength) @ scores


def _neural_sort_vjp(ans, scores, k, strength):
    def vjp(g):
        row = _sort_row(scores, k, strength)
        slope = strength * row * (scores - ans)  # of the answer in each logit
        ordered = np.sort(scores)
        below = np.searchsorted(ordered, scores, side="left")
        upto = np.searchsorted(ordered, scores, side="right")
        total = np.concatenate([[0.0], np.cumsum(slope[np.argsort(scores)])])
        sign_sum = below - (len(scores) - upto)
        from_others = total[-1] - total[upto] - total[below]
        own = (2 * k - len(scores) - 1 - sign_sum) * slope
        return g * (row + own + from_others)

    return vjp


defvjp(neural_sort, _neural_sort_vjp, argnums=(0,))


def _sort_row(scores, k, strength):
    n = len(scores)
    order = np.argsort(scores)
    ordered = scores[order] - scores[order[0]]
    before = np.cumsum(ordered) - ordered
    distance = (2 * np.arange(n) - n) * ordered + ordered.sum() - 2 * before
    row = np.empty(n)
    row[order] = softmax(strength * ((2 * k - n - 1) * ordered - distance))
    return row


@primitive
def smooth_quantile(scores, count, temperature):
    """The t below which about ``count`` of the scores lie, softly counted.

    Solves ``sum_i sigmoid((t - s_i) / T) = count``. As T falls it becomes the
    ceil(count)-th smallest score. The gradient is that of the implicit function.

    Parameters
    ----------
    scores : ndarray of shape (n,), finite
    count : float, strictly between 0 and n
    temperature : float > 0

    Returns
    -------
    float
    """
    shift = temperature * logit(count / len(scores))
    low, high = scores.min() + shift, scores.max() + shift
    if not low < high or not np.isfinite(high - low):
        return high

    def excess(t):
        return expit((t - scores) / temperature).sum() - count

    # At the ends the sum is right up to rounding, so its sign there is not to be asked.
    step = 1e-9 * (high - low) + 1e-12 * temperature
    return brentq(excess, low - step, high + step, xtol=1e-14, rtol=1e-15)


def _smooth_quantile_vjp(ans, scores, count, temperature):
    def vjp(g):
        x = (ans - scores) / temperature
        return g * softmax(log_expit(x) + log_expit(-x))

    return vjp


defvjp(smooth_quantile, _smooth_quantile_vjp, argnums=(0,))
