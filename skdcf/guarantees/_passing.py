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

from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..graphs.ragged import segment_ids
from ..ops.conformal import (
    Jumps,
    conformal_rank,
    passing_count,
    passing_cut,
    problems_needed,
)
from ..ops.hard import segment_min
from ._calibration import Calibration, PathRisks

if TYPE_CHECKING:
    from ._guarantees import Guarantee

#: Shares that ``show="auto"`` tries.
SHARES = tuple(hundredths / 100 for hundredths in range(10, 101))


class ShareChoice(NamedTuple):
    """Results on the training answers for each proportion of answers that may pass.

    Parameters
    ----------
    shares : ndarray of shape (n_shares,)
        The shares.
    passing : ndarray of int of shape (n_shares,)
        Number of training answers that pass the cut at each proportion.
    wrong : ndarray of shape (n_shares,)
        Number of passing answers with a false claim below the cut, or the sum of the losses of
        passing answers.
    chosen : float
        The largest share with (1 + wrong) / (1 + passing) <= level, or 0 if no share satisfies
        this condition.
    """

    shares: NDArray[np.float64]
    passing: NDArray[np.int64]
    wrong: NDArray[np.float64]
    chosen: float

    def no_share(self, level: float, delta: float | None) -> str:
        """Return the reason why the chosen proportion is 0, for use in messages.

        Parameters
        ----------
        level : float
            The guarantee level.
        delta : float or None
            Maximum proportion of calibration sets for which the coverage is too low.

        Returns
        -------
        reason : str
            The reason, followed by advice.
        """
        acceptable = (1 + self.wrong) / (1 + self.passing) <= level
        if acceptable.any():
            share = float(self.shares[acceptable].max())
            needed = problems_needed(level, delta, share)
            return (
                f"on the training answers, at most show = {share:g} is acceptable, and the "
                "calibration answers are too few for this share, so nothing is shown. At least "
                f"{needed} calibration answers are needed for this share. Label more answers, use "
                "better features, or use a larger alpha"
            )
        # If all counts of training answers were multiplied by m, the share would be acceptable if
        # (1 + m wrong) / (1 + m passing) <= level.
        rare = (self.passing > 0) & (self.wrong / np.maximum(self.passing, 1) < level)
        if rare.any():
            spare = float((level * self.passing - self.wrong)[rare].max())
            n_training = int(self.passing[-1])
            needed = ceil(n_training * (1 - level) / spare - 1e-9)
            return (
                f"{n_training} training answers are too few to choose the share of the answers "
                f"that may pass at alpha = {level:g}, so nothing is shown. If further answers are "
                f"like these, about {needed} training answers are needed. Label more answers, set "
                "show=1, or use a larger alpha"
            )
        return (
            f"for every share of passing training answers, at least {level:.0%} of these answers "
            "contain a false claim, so nothing is shown. Use better features or a larger alpha"
        )


def choose_share(
    guarantee: Guarantee,
    path_risk: NDArray[np.float64],
    labels: NDArray[Any],
    offsets: NDArray[np.int64],
    *,
    level: float,
    n_calibration: int | None,
) -> ShareChoice:
    """Choose the proportion of answers that may pass, without using calibration answers.

    If the threshold is at least the cut, every passing answer has a kept claim. A proportion is
    therefore acceptable if few training answers contain a false claim below the cut. Both the
    number of wrong answers and the number of passing answers are increased by one. If there are
    few answers, a proportion is then less likely to be accepted by chance.

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
    level : float
        The guarantee level.
    n_calibration : int or None
        Number of problems held out for calibration. A proportion is considered only if the
        held-out problems suffice for rank 1. None considers all shares.

    Returns
    -------
    choice : ShareChoice
        The chosen proportion, together with the results for all proportions.
    """
    lowest = segment_min(path_risk, offsets)
    jumps = guarantee.jumps(path_risk, labels, offsets)
    shares = np.array(SHARES)
    cuts = np.array([passing_cut(lowest, share) for share in SHARES])
    passing = (lowest < cuts[:, None]).sum(axis=1)
    passing[np.isposinf(cuts)] = len(lowest)
    wrong = ((jumps.position < cuts[:, None]) * jumps.height).sum(axis=1)
    delta = getattr(guarantee, "delta", None)
    reached = [
        n_calibration is None
        or conformal_rank(passing_count(n_calibration, share), level, delta) > 0
        for share in SHARES
    ]
    good = shares[((1 + wrong) / (1 + passing) <= level) & reached]
    return ShareChoice(shares, passing, wrong, float(good.max(initial=0.0)))


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
        if not self.guarantee.show:
            return self.guarantee.no_share or "no answer passes, because show is 0"
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
        return f"of the answers that pass (about {100 * self.passing:.0f} %), {among}"

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
            f"At least one claim is kept in about {100 * shown:.0f} % of the answers that pass, so "
            f"at most about {100 * min(level / shown, 1):.3g} % of the shown texts contain "
            f"{contain}"
        )

    def coverage_law(self, level: float) -> tuple[int, int] | None:
        return self.among.coverage_law(level)
