"""Break ties with jitter, which is small noise computed from a hash of the problem.

With random noise, the decision about an answer would vary between batches. Because jitter is
computed from a hash, each risk is a fixed function of the problem, so problems remain
exchangeable and the guarantee holds. Exact copies of a problem remain tied.
"""

from __future__ import annotations

import numpy as np

from .guards import single_columns
from .identity import hash_text, mix
from .ops.hard import segment_sum

_ODD = np.uint64(0x9E3779B97F4A7C15)
# size of the noise, relative to 1 + abs(risk), which is much larger than the allowance for rounding
# in the thresholds
SCALE = 1e-8
# Features are rounded to this number of bits, relative to the largest feature of the problem,
# before they are hashed.
BITS = 10


def noise_of(batch, seed, steady=False):
    """Return noise in [0, 1) for each claim, which is multiplied by 1e-8 and added to the risk.

    The noise is computed from a hash of the claim's features, text and position, and of the whole
    problem. The risks are assumed to be of order one. The noise can change the order of risks
    that differ by less than about 1e-8.

    If ``steady`` is True (as in calibration), problems with a feature on a rounding boundary
    receive no noise, because copies of such a problem could have different hashes.
    """
    with np.errstate(over="ignore"):
        rows = _hash_rows(batch, np.uint64(seed))
        of_problem = segment_sum(rows, batch.offsets)[batch.problem_of]
        position = np.arange(batch.n_claims) - batch.offsets[batch.problem_of]
        mixed = mix(rows + _ODD * position.astype(np.uint64))
        mixed = mix(mixed + mix(of_problem + _ODD))
    noise = (mixed >> np.uint64(11)) * 2.0**-53
    if steady and batch.features is not None:
        noise[_on_border(batch)[batch.problem_of]] = 0.0
    return noise


def _hash_rows(batch, seed):
    rows = np.full(batch.n_claims, mix(seed + _ODD), dtype=np.uint64)
    if batch.features is not None:
        units, _, _ = _leading_bits(batch)
        for column in units.T:
            rows = mix(rows + np.ascontiguousarray(column).view(np.uint64))
    if batch.claims is not None:
        # The hash of a problem without texts must be the same whether or not other problems have
        # texts.
        with_text = np.flatnonzero([text is not None for text in batch.claims])
        texts = map(hash_text, batch.claims[with_text])
        codes = np.fromiter(texts, dtype=np.uint64, count=len(with_text))
        rows[with_text] = mix(rows[with_text] + codes)
    return rows


def _leading_bits(batch):
    """Return the features as integers, so floating-point errors do not change the hash.

    The unit of these integers is 2**-BITS times the power of two nearest to the largest feature
    in the problem. The unit is chosen to keep common values such as 1 or 0.5 far from a rounding
    boundary. The unrounded features and the unrounded exponent of each problem are also returned.
    """
    largest = np.abs(batch.features).max(axis=1, initial=0.0)
    top = np.zeros(len(batch))
    np.maximum.at(top, batch.problem_of, largest)
    with np.errstate(divide="ignore"):
        power = np.log2(top)
    power = np.where(np.isfinite(power), power, 0.0)
    scale = BITS - np.rint(power)[batch.problem_of].astype(int)
    exact = np.ldexp(batch.features, scale[:, None])
    return np.rint(exact) + 0.0, exact, power


def _on_border(batch):
    """Return whether each problem has a feature or an exponent on a rounding boundary."""
    _, exact, power = _leading_bits(batch)
    width = 2.0**BITS * np.where(single_columns(batch.features), 1e-5, 1e-9)
    near = np.abs(exact - np.floor(exact) - 0.5) < width
    border = np.abs(power - np.floor(power) - 0.5) < width.max(initial=0.0) / 2.0**BITS
    border[batch.problem_of[near.any(axis=1)]] = True
    return border
