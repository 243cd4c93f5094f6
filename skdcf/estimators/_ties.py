"""What to do with a claim whose path risk equals the threshold.

Noise drawn afresh would give the same answer another result in another batch. Jitter is a
hash of the problem instead, so risks stay a fixed function of it: exchangeability, and
with it the guarantee, is untouched. Exact copies of a problem still tie.
"""

from dataclasses import dataclass
from zlib import crc32

import numpy as np

from ..ops.hard import segment_sum

_ODD = np.uint64(0x9E3779B97F4A7C15)
SCALE = 1e-8  # of the noise: far above what thresholds are lowered by for rounding
BITS = 10  # of a feature that enter the hash, counted from the problem's largest


@dataclass(frozen=True)
class Ties:
    """A way to treat ties.

    Attributes
    ----------
    keep_equal : bool
        Keep a claim whose path risk equals the threshold, as published code does. This
        loses the guarantee where scores are tied.
    jitter : bool
        Break ties by a seeded hash of the problem.
    """

    keep_equal: bool = False
    jitter: bool = False


TIES = {
    "exclude": Ties(),
    "include": Ties(keep_equal=True),
    "jitter": Ties(jitter=True),
}


def jittered(risk, batch, seed):
    """Risk plus noise in [0, 1e-8 (1 + abs(risk))), shape (n_claims,).

    The noise is a hash of the claim's features and text, its position, and all of its
    problem. Risks are taken to be of order one: noise may reorder those that are less
    than some 1e-8 apart.
    """
    with np.errstate(over="ignore"):
        own = _hash_rows(batch, np.uint64(seed))
        whole = segment_sum(own, batch.offsets)[batch.problem_of]
        position = np.arange(batch.n_claims) - batch.offsets[batch.problem_of]
        mixed = _mix(own + _ODD * position.astype(np.uint64))
        mixed = _mix(mixed + _mix(whole + _ODD))
    uniform = (mixed >> np.uint64(11)) * 2.0**-53
    return risk + SCALE * (1 + np.abs(risk)) * uniform


def _hash_rows(batch, seed):
    out = np.full(batch.n_claims, _mix(seed + _ODD), dtype=np.uint64)
    if batch.features is not None:
        for column in _leading_bits(batch).T:
            out = _mix(out + np.ascontiguousarray(column).view(np.uint64))
    if batch.claims is not None:
        # A problem without texts must get the same hash beside problems that have some.
        known = np.flatnonzero([text is not None for text in batch.claims])
        texts = (crc32(text.encode(errors="replace")) for text in batch.claims[known])
        codes = np.fromiter(texts, dtype=np.uint64, count=len(known))
        out[known] = _mix(out[known] + codes)
    return out


def _leading_bits(batch):
    """Features in whole steps, such that errors of rounding do not reach the hash.

    A step is 2**-BITS of the power of two that is nearest to the largest feature of the
    problem. Round values, such as 1 or 0.5, thus lie far from where rounding goes the
    other way, and so does the step itself.
    """
    largest = np.abs(batch.features).max(axis=1, initial=0.0)
    top = np.zeros(len(batch))
    np.maximum.at(top, batch.problem_of, largest)
    with np.errstate(divide="ignore"):
        power = np.rint(np.log2(top))
    power = np.where(np.isfinite(power), power, 0.0)[batch.problem_of]
    return np.rint(np.ldexp(batch.features, (BITS - power).astype(int)[:, None])) + 0.0


def _mix(x):
    """Finaliser of splitmix64 (Steele, Lea and Flood 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
