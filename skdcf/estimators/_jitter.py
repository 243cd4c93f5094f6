"""Ties broken by noise that is a hash of the problem.

Noise drawn afresh would give the same answer another result in another batch. Jitter is a
hash of the problem instead, so risks stay a fixed function of it: exchangeability, and
with it the guarantee, is untouched. Exact copies of a problem still tie.
"""

from __future__ import annotations

import numpy as np

from ..graphs.hashes import hash_text, mix
from ..guards.rounding import single_columns
from ..ops.hard import segment_sum

_ODD = np.uint64(0x9E3779B97F4A7C15)
SCALE = 1e-8  # size of the noise, far above what rounding lowers thresholds by
BITS = 10  # bits of a feature in the hash, counted from the largest one of the problem


def jittered(risk, batch, seed, steady=False):
    """Risk plus noise in [0, 1e-8 (1 + abs(risk))), shape (n_claims,).

    The noise is a hash of the claim's features and text, its position, and all of its
    problem. Risks are taken to be of order one: noise may reorder those that are less
    than some 1e-8 apart.

    With ``steady``, as for problems that calibrate, there is no noise in a problem of which
    a copy might get another hash, since a feature lies where rounding would decide.
    """
    with np.errstate(over="ignore"):
        rows = _hash_rows(batch, np.uint64(seed))
        of_problem = segment_sum(rows, batch.offsets)[batch.problem_of]
        position = np.arange(batch.n_claims) - batch.offsets[batch.problem_of]
        mixed = mix(rows + _ODD * position.astype(np.uint64))
        mixed = mix(mixed + mix(of_problem + _ODD))
    uniform = (mixed >> np.uint64(11)) * 2.0**-53
    if steady and batch.features is not None:
        uniform[_on_border(batch)[batch.problem_of]] = 0.0
    return risk + SCALE * (1 + np.abs(risk)) * uniform


def _hash_rows(batch, seed):
    rows = np.full(batch.n_claims, mix(seed + _ODD), dtype=np.uint64)
    if batch.features is not None:
        units, _, _ = _leading_bits(batch)
        for column in units.T:
            rows = mix(rows + np.ascontiguousarray(column).view(np.uint64))
    if batch.claims is not None:
        # A problem without texts must get the same hash next to problems that have some.
        with_text = np.flatnonzero([text is not None for text in batch.claims])
        texts = map(hash_text, batch.claims[with_text])
        codes = np.fromiter(texts, dtype=np.uint64, count=len(with_text))
        rows[with_text] = mix(rows[with_text] + codes)
    return rows


def _leading_bits(batch):
    """Features as whole numbers, such that errors of rounding do not reach the hash.

    The unit is 2**-BITS of the power of two that is nearest to the largest feature of the
    problem. Round values, such as 1 or 0.5, thus lie far from where rounding goes the
    other way, and so does the unit itself. Returns these numbers, and those that were
    rounded: of the features, and of the power of each problem.
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
    """Problems of which a feature lies where rounding would decide about the hash."""
    _, exact, power = _leading_bits(batch)
    width = 2.0**BITS * np.where(single_columns(batch.features), 1e-5, 1e-9)
    near = np.abs(exact - np.floor(exact) - 0.5) < width
    border = np.abs(power - np.floor(power) - 0.5) < width.max(initial=0.0) / 2.0**BITS
    border[batch.problem_of[near.any(axis=1)]] = True
    return border
