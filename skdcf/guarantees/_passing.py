"""Guarantee for each passing answer, which is calibrated on passing answers only.

==========  =========================================================================
low_i       smallest path risk of calibration answer i
v           the cut: the k0-th smallest low_i, k0 = ceil(c (n + 1)); +inf if k0 > n
B           {i: low_i < v}, the calibration answers that pass
c           the share of the answers that may pass, ``show``
==========  =========================================================================

A new answer passes if its smallest path risk is below v. Given that the new answer passes, it is
exchangeable with the answers in B. To prove this, let A = {j: #{l != j: low_l <= low_j} < k0}.
The set A is a symmetric function of the n + 1 answers. The set A contains the new answer if and
only if this answer passes, and then A consists of B and the new answer. Calibration on B alone is
therefore valid for each passing answer. Because the cut depends only on the calibration answers,
new answers can be filtered one at a time.

The guarantee is selection-conditional coverage (Jin and Ren, arXiv:2403.03868) with the
taxonomy of Vovk (ACML 2012). `skdcf.monitoring.release` bounds the error rate among the
shown texts of a batch (Gazin, Heller, Marandon and Roquain, arXiv:2403.12295).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..graphs.ragged import segment_ids
from ..ops.conformal import (
    Jumps,
    conformal_rank,
    passing_count,
    passing_cut,
)
from ..ops.hard import segment_min
from ._calibration import Calibration, PathRisks

if TYPE_CHECKING:
    from ._guarantees import Guarantee

#: Shares that ``show="auto"`` tries.
SHARES = tuple(hundredths / 100 for hundredths in range(10, 101))


def share_table(
    guarantee: Guarantee,
    path_risk: NDArray[np.float64],
    labels: NDArray[Any],
    offsets: NDArray[np.int64],
    groups: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Count the training answers that pass, and those of them that are wrong, for each share.

    Parameters
    ----------
    guarantee : Guarantee
        The guarantee whose loss is used.
    path_risk : ndarray of shape (n_claims,)
        Path risks of training problems, computed by scorers that were not trained on these
        problems.
    labels : ndarray of shape (n_claims,)
        Claim labels (1 true, 0 false, -1 unknown). Unknown labels count as false.
    offsets : ndarray of shape (n_problems + 1,)
        Offsets of the problems in the claim arrays.
    groups : ndarray of int of shape (n_problems,)
        Group of each problem. Each group has its own cut.

    Returns
    -------
    table : ndarray of shape (n_shares, 3)
        The share, the number of answers whose smallest path risk is below the cut, and the number
        of these with a false claim below the cut, or the sum of their losses there.
    """
    lowest = segment_min(path_risk, offsets)
    jumps = guarantee.jumps(path_risk, labels, offsets)
    table = np.zeros((len(SHARES), 3))
    table[:, 0] = SHARES
    for group in np.unique(groups):
        mine = groups == group
        below = jumps[np.flatnonzero(mine)]
        for row in table:
            cut = passing_cut(lowest[mine], row[0])
            passes = np.isposinf(cut) | (lowest[mine] < cut)
            row[1] += passes.sum()
            row[2] += below.losses(cut).sum()
    return table


def choose_share(
    table: NDArray[np.float64], level: float, delta: float | None, counts: Sequence[int]
) -> float:
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


class Passing(Calibration):
    """Calibration that uses only the passing answers.

    Parameters
    ----------
    guarantee : Guarantee
        The guarantee, whose ``show`` is the proportion of answers that may pass.
    jumps : Jumps
        Positions and sizes of the jumps in the loss of each calibration problem.
    risks : PathRisks
        Smallest path risks of the calibration problems, before and after being lowered to allow
        for rounding errors.

    Attributes
    ----------
    cut : float
        The cut. An answer passes if its smallest path risk is below the cut.
    among : Calibration
        The calibration on the passing calibration problems.
    """

    def __init__(self, guarantee: Guarantee, jumps: Jumps, risks: PathRisks) -> None:
        self.guarantee = guarantee
        self.n = jumps.n
        self.lowest = risks.lowest
        self.cut = passing_cut(risks.lowered, float(guarantee.show))
        passing = np.flatnonzero(self.passes(risks))
        self.among = guarantee.calibrate_one(jumps[passing], risks.take(passing))

    def passes(self, risks: PathRisks) -> NDArray[np.bool_]:
        return (risks.lowest < self.cut) | np.isposinf(self.cut)

    @property
    def passing(self) -> float:
        """Proportion of new answers that pass."""
        # If the cut is +inf, all calibration answers pass. If the cut is finite, the new answer
        # passes if its rank is among the lowest |B| + 1 of n + 1.
        return 1.0 if np.isposinf(self.cut) else (self.among.n + 1) / (self.n + 1)

    def levels(self, risks: PathRisks, keep_equal: bool = False) -> NDArray[np.float64]:
        levels = self.among.levels(risks, keep_equal)
        passes = self.passes(risks)[segment_ids(risks.offsets)]
        return np.where(passes, levels, np.inf)

    def thresholds(self, risks: PathRisks, level: float) -> NDArray[np.float64]:
        thresholds = self.among.thresholds(risks, level)
        return np.where(self.passes(risks), thresholds, -np.inf)

    def threshold(self, level: float) -> float:
        return self.among.threshold(level)

    def shortage(self, level: float) -> str | None:
        if not self.among.shortage(level):
            return None
        needed = self.guarantee.problems_needed(level)
        if self.n < needed:
            return self.guarantee.needed(self.n, level)
        return (
            f"only {self.among.n} of {self.n} calibration answers pass with "
            f"show={self.guarantee.show:g}, because many answers have the same "
            'smallest path risk. Nothing can be kept. Use a finer scorer, or ties="jitter"'
        )

    def _sentence(self, level):
        among = self.guarantee.describe_passing(level)
        return f"of the answers that pass (about {100 * self.passing:.0f} % of all), {among}"

    def shown(self, level: float) -> float:
        shown = self.among.shown(level)
        return shown * self.among.n / self.n if self.among.n else 0.0

    def false_among_shown(self, level: float) -> tuple[float, float, float] | None:
        return self.among.false_among_shown(level)

    def describe_shown(self, level: float) -> str:
        shown = self.among.shown(level)
        if np.isnan(shown) or not self.guarantee.is_probability:
            return ""
        if not shown:
            return "At this level, nothing is shown for the answers that pass"
        most = getattr(self.guarantee, "max_false", 0)
        contain = (
            f"more than {most} false claim{'s' * (most > 1)}"
            if most
            else "a false claim"
        )
        return (
            f"Something is kept in about {100 * self.shown(level):.0f} % of all answers; of these "
            f"at most {100 * min(level / shown, 1):.3g} % contain {contain}"
        )

    def coverage_law(self, level: float) -> tuple[int, int] | None:
        return self.among.coverage_law(level)
