"""Seeded tie-breaking that depends on nothing but the problem itself.

Noise drawn afresh would give the same answer another result in another batch. Here it
is a hash of the claim's features, its position and all features of its
problem, so risks stay a fixed function of the problem: exchangeability, and
with it the guarantee, is untouched. Exact copies of a problem still tie.
"""

import numpy as np

from ..ops.hard import segment_sum

_ODD = np.uint64(0x9E3779B97F4A7C15)
SCALE = 1e-9


def jittered(risk, batch, seed):
    """Risk plus noise in [0, 1e-9 (1 + abs(risk))), shape (n_claims,)."""
    with np.errstate(over="ignore"):
        own = _hash_rows(batch.features, batch.n_claims, np.uint64(seed))
        whole = segment_sum(own, batch.offsets)[batch.problem_of]
        position = np.arange(batch.n_claims) - batch.offsets[batch.problem_of]
        mixed = _mix(_mix(own + _ODD * position.astype(np.uint64)) ^ _mix(whole))
    uniform = (mixed >> np.uint64(11)) * 2.0**-53
    return risk + SCALE * (1 + np.abs(risk)) * uniform


def _hash_rows(features, n_claims, seed):
    out = np.full(n_claims, _mix(seed + _ODD), dtype=np.uint64)
    if features is not None:
        for column in (features + 0.0).T:  # no negative zero
            out = _mix(out + np.ascontiguousarray(column).view(np.uint64))
    return out


def _mix(x):
    """Finaliser of splitmix64 (Steele, Lea and Flood 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
