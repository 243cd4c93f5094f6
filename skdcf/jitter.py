"""Break ties with jitter, which is small noise computed from a hash of the problem.

With random noise, the decision about an answer would vary between batches. Because jitter is
computed from a hash, each risk is a fixed function of the problem, so problems remain
exchangeable and the guarantee holds. Exact copies of a problem remain tied.
"""

from __future__ import annotations

import numpy as np

from .guards import single_columns
from .identity import hash_text, mix
from .ops.hard import segment_max, segment_sum


def noise_of(batch, seed, steady=False):
    """Return noise in [0, 1) for each claim, which is multiplied by 1e-8 and added to the risk.

    The noise is computed from a hash of the claim's features, text and position, and of the whole
    problem. The risks are assumed to be of order one. The noise can change the order of risks
    that differ by less than about 1e-8.

    If ``steady`` is True (as in calibration), problems with a feature on a rounding boundary
    receive no noise, because copies of such a problem could have different hashes.
    """
    odd = np.uint64(0x9E3779B97F4A7C15)
    is_on_border = np.zeros(len(batch), bool)
    rows = mix(np.full(batch.n_claims, np.uint64(seed) + odd))
    if batch.features is not None:
        units, is_on_border = _leading_bits(batch, steady)
        for column in units.view(np.uint64).T:
            rows = mix(rows + column)
    if batch.claims is not None:
        codes = [hash_text(text) for text in batch.claims]
        rows = mix(rows + np.array(codes, np.uint64))
    of_problem = segment_sum(rows, batch.offsets)[batch.problem_of]
    mixed = mix(rows + odd * batch.position.astype(np.uint64))
    mixed = mix(mixed + mix(of_problem + odd))
    noise = (mixed >> np.uint64(11)) * 2.0**-53
    noise[is_on_border[batch.problem_of]] = 0.0
    return noise


def _leading_bits(batch, steady):
    """Return the features as integers, so floating-point errors do not change the hash.

    The unit of these integers is 2**-10 times the power of two nearest to the largest feature in
    the problem. The unit is chosen to keep common values such as 1 or 0.5 far from a rounding
    boundary. If ``steady`` is True, also return which problems have a feature or an exponent on
    such a boundary.
    """
    largest = np.abs(batch.features).max(axis=1, initial=0.0)
    top = segment_max(largest, batch.offsets)
    power = np.log2(np.where(top > 0, top, 1.0))
    scale = 10 - np.rint(power)[batch.problem_of].astype(int)
    exact = np.ldexp(batch.features, scale[:, None])
    is_on_border = np.zeros(len(batch), bool)
    if steady:
        width = np.where(single_columns(batch.features), 1e-5, 1e-9)
        is_near = _is_near_half(exact, 2.0**10 * width).any(axis=1)
        is_on_border = _is_near_half(power, width.max(initial=0.0))
        is_on_border[batch.problem_of[is_near]] = True
    return np.rint(exact) + 0.0, is_on_border


def _is_near_half(values, width):
    return np.abs(values - np.floor(values) - 0.5) < width
