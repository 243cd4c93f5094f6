"""Soft twins of `skdcf.ops.hard`, without a grid.

=====  ========================================================================
r_v    risk of claim v
R_v    path risk, the maximum of r over v and its ancestors
s_i    nonconformity score, the minimum of R over the false claims of problem i
=====  ========================================================================

A temperature of 0 is the hard maximum, with its subgradient; a tie shares it equally.
"""

from .segments import segment_logsumexp, segment_max, segment_min, take
from .soft import sigmoid


def soft_path_risk(risk, indptr, indices, temperature=0.0):
    """R, shape (n_claims,).

    Parameters
    ----------
    risk : ndarray of shape (n_claims,)
    indptr, indices : ndarray
        Each claim with its ancestors, as in ``GraphBatch.closure``.
    temperature : float
        T in ``T log(sum(exp(r / T)))``; exceeds the maximum by at most T log(#ancestors
        + 1).
    """
    above = take(risk, indices)
    if temperature == 0:
        return segment_max(above, indptr)
    return temperature * segment_logsumexp(above / temperature, indptr)


def soft_nonconformity_scores(path_risk, false_claims, offsets, temperature=0.0):
    """s, shape (n_problems,); +inf where a problem has no false claim.

    Parameters
    ----------
    path_risk : ndarray of shape (n_claims,)
    false_claims : ndarray of int
        Claims to take the minimum over, problem after problem.
    offsets : ndarray of shape (n_problems + 1,)
        Bounds of the problems in ``false_claims``.
    temperature : float
        T in ``-T log(sum(exp(-R / T)))``.
    """
    wrong = take(path_risk, false_claims)
    if temperature == 0:
        return segment_min(wrong, offsets)
    return -temperature * segment_logsumexp(-wrong / temperature, offsets)


def path_retention(path_risk, threshold, temperature):
    """q, shape (n_claims,): ``sigmoid((threshold - R) / temperature)``; hard: R < t."""
    return sigmoid((threshold - path_risk) / temperature)
