"""Hard coherent factuality in closed form (Rubin-Toles et al., ICLR 2025).

=====  ========================================================================
r_v    risk of claim v
R_v    path risk, the maximum of r over v and all its ancestors
s_i    nonconformity score, the minimum of R over the false claims of problem i
=====  ========================================================================

For any threshold t, the set of claims with R_v < t contains all ancestors of its members. All
claims of problem i with R_v < t are true if and only if t <= s_i. Therefore, the closed form
requires neither a grid of thresholds nor a list of subgraphs.
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._arrays import reduce_segments, segment_ids
from ..graphs import pass_on

Array: TypeAlias = NDArray[Any]


def path_risk(risk, batch):
    """For each claim, compute the maximum of ``risk`` over the claim and its ancestors.

    The maximum is computed in a single pass over the edges by depth, in O(claims + edges) time.
    """
    return pass_on(np.maximum, np.asarray(risk, float), batch)


def segment_min(values, offsets):
    """Compute the minimum of each segment, or +inf for an empty segment."""
    return reduce_segments(np.minimum, values, offsets, np.inf)


def segment_max(values, offsets):
    """Compute the maximum of each segment, or -inf for an empty segment."""
    return reduce_segments(np.maximum, values, offsets, -np.inf)


def segment_sum(values, offsets):
    """Compute the sum of each segment, or 0 for an empty segment."""
    return reduce_segments(np.add, values, offsets, 0)


def nonconformity_scores(path_risk, labels, offsets, max_false=0):
    """Compute the (max_false + 1)-th smallest path risk of the false claims in each problem.

    At most ``max_false`` false claims are kept at a threshold t if and only if t does not exceed
    the score. Unknown labels are treated as false, so the guarantee holds whatever the true
    labels are.

    Parameters
    ----------
    path_risk : ndarray of shape (n_claims,)
        Path risk of each claim.
    labels : ndarray of shape (n_claims,)
        Claim labels (1 for true, 0 for false, -1 for unknown), or booleans.
    offsets : ndarray of shape (n_graphs + 1,)
        Claims ``offsets[i]:offsets[i + 1]`` belong to problem i.
    max_false : int, default=0
        Number of false claims that may be kept.

    Returns
    -------
    scores : ndarray of shape (n_graphs,)
        The scores, which are +inf for problems with at most ``max_false`` false claims.
    """
    risk = np.where(labels != 1, path_risk, np.inf)
    if max_false == 0:
        return segment_min(risk, offsets)
    ordered = risk[np.lexsort((risk, segment_ids(offsets)))]
    place = offsets[:-1] + max_false
    enough = place < offsets[1:]
    scores = np.full(len(place), np.inf)
    scores[enough] = ordered[place[enough]]
    return scores


def coherent_labels(labels, batch):
    """Return whether each claim and all its ancestors are known to be true.

    Parameters
    ----------
    labels : ndarray of shape (n_claims,)
        Claim labels (1 for true, 0 for false, -1 for unknown), or booleans.
    batch : GraphBatch
        The problems.

    Returns
    -------
    coherent_labels : ndarray of bool of shape (n_claims,)
        Whether each claim and all its ancestors are known to be true.
    """
    return path_risk(labels != 1, batch) == 0


def below_true_claims(labels, batch):
    """Return whether all proper ancestors of each claim are known to be true.

    The parameters are the same as those of `coherent_labels`.
    """
    above = ~coherent_labels(labels, batch)
    parent, child = batch.edges.T
    return np.bincount(child, above[parent], batch.n_claims) == 0


def targets_of(kind, labels, batch):
    """Return what a classifier learns about each claim, and for which claims it is known.

    The target is whether a claim is true. If ``kind`` is "coherent", it is whether the claim and
    all its ancestors are true. If it is "hazard", claims below false ones are left out.
    """
    target = labels == 1
    is_known = labels >= 0
    if kind == "coherent":  # A single false ancestor determines the target.
        target = coherent_labels(labels, batch)
        is_known = target | ~coherent_labels(labels != 0, batch)
    if kind == "hazard":
        is_known &= below_true_claims(labels, batch)
    return target, is_known
