"""Seeded tie-breaking that depends on nothing but the problem itself.

Noise drawn afresh would give the same answer another result in another batch. Here it
is a hash of the claim's features and text, its position and all of its
problem, so risks stay a fixed function of the problem: exchangeability, and
with it the guarantee, is untouched. Exact copies of a problem still tie. Risks are taken to be
of order one: noise may reorder those that are less than some 1e-9 apart.
"""

from zlib import crc32

import numpy as np

from ..ops.hard import segment_sum

_ODD = np.uint64(0x9E3779B97F4A7C15)
SCALE = 1e-9


def jittered(risk, batch, seed):
    """Risk plus noise in [0, 1e-9 (1 + abs(risk))), shape (n_claims,)."""
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
        for column in (batch.features + 0.0).T:  # no negative zero
            out = _mix(out + np.ascontiguousarray(column).view(np.uint64))
    if batch.claims is not None:
        texts = (crc32(str(text).encode(errors="replace")) for text in batch.claims)
        out = _mix(out + np.fromiter(texts, dtype=np.uint64, count=batch.n_claims))
    return out


def _mix(x):
    """Finaliser of splitmix64 (Steele, Lea and Flood 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
