"""Shares of answers that may pass, which ``show="auto"`` chooses on training problems."""

from __future__ import annotations

import numpy as np

from ..ops.conformal import conformal_rank, passing_count, passing_cut


def share_table(guarantee, risks, labels, groups):
    """Count the training answers that pass, and those of them that are wrong, for each share.

    Parameters
    ----------
    guarantee : Guarantee
        The guarantee whose loss is used.
    risks : PathRisks
        Path risks of training problems, computed by scorers that were not trained on these
        problems.
    labels : ndarray of shape (n_claims,)
        Claim labels (1 true, 0 false, -1 unknown). Unknown labels count as false.
    groups : ndarray of int of shape (n_problems,)
        Group of each problem. Each group has its own cut.

    Returns
    -------
    table : ndarray of shape (n_shares, 3)
        The share, the number of answers whose smallest path risk is below the cut, and the number
        of these with a false claim below the cut, or the sum of their losses there.
    """
    jumps = guarantee.jumps(risks.path_risk, labels, risks.offsets)
    table = np.zeros((91, 3))
    table[:, 0] = np.arange(10, 101) / 100
    for group in np.unique(groups):
        own = np.flatnonzero(groups == group)
        safest = np.sort(risks.lowest[own])
        cuts = np.array([passing_cut(safest, share) for share in table[:, 0]])
        table[:, 1] += np.where(
            np.isposinf(cuts), len(own), np.searchsorted(safest, cuts)
        )
        position, totals = jumps[own].totals()
        table[:, 2] += totals[np.searchsorted(position, cuts)] - 1
    return table


def choose_share(table, level, delta, counts):
    """Choose the share of answers that may pass, without the labels of calibration answers.

    The rate of a share is (1 + wrong) / (1 + passing) on the training answers. The largest share
    is chosen whose rate is at most the level, or at most the smallest rate if no rate is. Shares
    at which no training answer passes are not considered, because of ties.

    Parameters
    ----------
    table : ndarray of shape (n_shares, 3)
        Result of `share_table`.
    level : float
        The guarantee level.
    delta : float or None
        Maximum proportion of calibration sets for which the coverage is too low.
    counts : sequence of int
        Number of questions that calibrate in each group. Only shares are considered at which every
        group has rank 1, apart from groups that are too small for any share.

    Returns
    -------
    share : float
        The chosen share, which is 1 if no share has rank 1.
    """

    def has_rank(share, n):
        return conformal_rank(passing_count(n, share), level, delta) > 0

    able = [n for n in counts if has_rank(1.0, n)]
    if not able:
        return 1.0
    reached = np.array([all(has_rank(share, n) for n in able) for share in table[:, 0]])
    shares, passing, wrong = table[reached & (table[:, 1] > 0)].T
    rate = (1 + wrong) / (1 + passing)
    return float(shares[rate <= max(level, rate.min())].max())
