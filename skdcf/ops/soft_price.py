"""Price of a claim for training, with its gradient for the hazards.

The letters are those of `skdcf.ops.price`, which computes the price for filters.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..graphs import GraphBatch
from .ancestors import sum_ancestors, sum_descendants
from .price import (
    CERTAIN,
    log_added_worth,
    log_weight,
    pool,
    sum_before,
)
from .segments import with_vjp


def _curve(hazard, batch, q, gain):
    """Return l, m, the order of the claims, and their log risks and log worths in this order."""
    lone = np.logaddexp(0, hazard)
    m = sum_ancestors(lone, batch)
    order = np.lexsort((batch.depth, m, batch.problem_of))
    log_risk = hazard[order] - lone[order] - sum_before(lone[order], batch.offsets)
    position = np.arange(len(m)) - batch.offsets[batch.problem_of]
    log_worth = log_weight(m, lone, q)[order] + log_added_worth(position, 1.0, gain)
    return lone, m, order, log_risk, log_worth


def _pull_price(g, ans, hazard, batch, q, gain):
    """Return the function that computes the gradient for the hazards.

    The price of a pooled block is ``log(sum of risks) - log(sum of worths)``, so its gradient is
    the difference of two softmax functions.
    """
    clipped = np.clip(hazard, -CERTAIN, CERTAIN)
    lone, m, order, log_risk, log_worth = _curve(clipped, batch, q, gain)
    _, block = pool(log_risk, log_worth, batch.problem_of)
    total = np.bincount(block, g[order])[block]
    of_risk = total * _softmax(log_risk, block)
    to_claims = np.argsort(order)
    # log_risk = h - l - (sum of l over the claims before it)
    after = sum_before(of_risk[::-1], (len(g) - batch.offsets)[::-1])[::-1]
    of_lone = (-of_risk - after)[to_claims]
    # log_worth depends on l and on m, the sum of l over the claim and its ancestors.
    of_worth = (-total * _softmax(log_worth, block))[to_claims]
    above = q * np.exp(lone - m)
    weight = np.exp(-m) + q - above
    tiny = weight == 0
    share = above / np.where(tiny, 1, weight)
    of_lone -= of_worth * share
    of_m = of_worth * np.where(tiny, -1, share - np.exp(-m) / np.where(tiny, 1, weight))
    of_lone += sum_descendants(of_m, batch)
    slope = of_risk[to_claims] + of_lone * np.exp(clipped - lone)
    return np.where(clipped == hazard, slope, 0)


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
    price[order], _ = pool(log_risk, log_worth, batch.problem_of)
    return price


def _softmax(values, block):
    """Return the softmax of the values within each block."""
    highest = np.full(block.max(initial=-1) + 1, -np.inf)
    np.maximum.at(highest, block, values)
    exponentials = np.exp(values - highest[block])
    return exponentials / np.bincount(block, exponentials)[block]
