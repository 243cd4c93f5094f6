"""Price of a claim for training, with its gradient with respect to the hazards.

The letters are those of `skdcf.ops.price`, which computes the price for filters.
"""

import autograd.numpy as anp
import numpy as np
from autograd.tracer import getval

from .._arrays import offsets_of
from .ancestors import sum_ancestors, sum_descendants
from .price import log_added_worth, pool
from .segments import segment_logsumexp, spread, take, with_vjp

_sum_above = with_vjp(lambda g, ans, v, batch: sum_descendants(g, batch))(sum_ancestors)


def log_price(hazard, batch, q=0.0, gain=1.0):
    hazard = anp.clip(hazard, -30.0, 30.0)
    lone = anp.logaddexp(0, hazard)
    m = _sum_above(lone, batch)
    order = np.lexsort((batch.depth, getval(m), batch.problem_of))
    # g = exp(-m) + q (1 - exp(l - m))
    log_weight = anp.log(anp.exp(-m) - q * anp.expm1(lone - m)) if q else -m
    own = take(lone, order)
    total = anp.concatenate([np.zeros(1), anp.cumsum(own)])
    before = total[:-1] - spread(take(total, batch.offsets[:-1]), batch.offsets)
    log_risk = take(hazard, order) - own - before
    log_worth = take(log_weight, order) + log_added_worth(batch.position, 1.0, gain)
    _, block = pool(getval(log_risk), getval(log_worth), batch.problem_of)
    # The price of a pooled block is log(sum of risks) - log(sum of worths).
    ends = offsets_of(np.bincount(block))
    price = segment_logsumexp(log_risk, ends) - segment_logsumexp(log_worth, ends)
    return take(spread(price, ends), np.argsort(order))
