"""Calibrations of guarantees, which compute thresholds and levels for new problems.

The loss of each calibration answer is a step function of the threshold. The mean of these
functions is a step function as well, and everything else follows from it. With R the path risk of
a claim and n the number of calibration answers,

    level(R) = (1 + sum of the losses at or below R) / (n + 1),

and a claim is kept if and only if its level is at most alpha. If only some of the answers may
pass (``show``), n counts those that pass:

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
taxonomy of Vovk (ACML 2012). `skdcf.choosing.release` bounds the error rate among the
shown texts of a batch (Gazin, Heller, Marandon and Roquain, arXiv:2403.12295).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .._checks import counted, warn
from ..exceptions import CalibrationWarning
from ..graphs.ragged import segment_ids
from ..ops.conformal import (
    claim_level,
    conformal_rank,
    mean_level,
    passing_count,
    passing_cut,
)
from ..ops.hard import Array, segment_min


@dataclass(frozen=True)
class PathRisks:
    """Path risks and groups of problems.

    Parameters
    ----------
    path_risk : ndarray of shape (n_claims,)
        Path risk of each claim.
    offsets : ndarray of shape (n_problems + 1,)
        Claims ``offsets[i]:offsets[i + 1]`` belong to problem i.
    groups : list of length n_problems or None
        Group of each problem.
    names : callable, optional
        Function that returns the name of problem i for error messages.
    """

    path_risk: Array
    offsets: Array
    groups: list[Any] | None = None
    names: Callable[[int], str] = "problem {}".format

    @cached_property
    def lowest(self):
        """Smallest path risk of each problem, which is +inf if the problem has no claims."""
        return segment_min(self.path_risk, self.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1


class Steps:
    """The step function of one group: the level of a claim, given its path risk.

    Parameters
    ----------
    guarantee : Guarantee
        The guarantee that defines the losses.
    jumps : Jumps
        Jumps in the losses of the calibration problems.
    lowest, lowered : ndarray of shape (n_problems,)
        Smallest path risk of each problem, before and after being lowered to allow for rounding.

    Attributes
    ----------
    n_all : int
        Number of calibration problems.
    n : int
        Number of these that pass.
    cut : float
        Problems pass if their smallest path risk is below the cut, or if the cut is +inf.
    position : ndarray of shape (n_jumps,), sorted
        Positions of the jumps of the problems that pass.
    level_after : ndarray of shape (n_jumps + 1,), sorted
        Level of the claims after each number of jumps.
    lowest : ndarray of shape (n,)
        Smallest path risk of each problem that passes.
    is_count : bool
        Whether each loss is 0 or 1, so the levels are ranks.
    """

    def __init__(self, guarantee, jumps, lowest, lowered):
        self.n_all = len(lowest)
        self.cut = passing_cut(lowered, float(guarantee.show))
        passing = np.flatnonzero((lowest < self.cut) | np.isposinf(self.cut))
        self.lowest = lowest[passing]
        self.n = len(passing)
        jumps = jumps[passing]
        self.delta = guarantee.delta
        # A share may be below 1 in new problems, even if it was 1 in all calibration problems.
        self.is_count = guarantee.is_probability and jumps.is_count
        self.position, totals = jumps.totals()
        self.level_after = _levels(guarantee, totals, self.n, self.is_count)

    def threshold(self, level):
        """Return the position of the first jump whose level exceeds the given level."""
        n_included = np.searchsorted(self.level_after, level, side="right")
        if n_included > len(self.position):
            return np.inf
        return float(self.position[n_included - 1]) if n_included else -np.inf

    def rank(self, level):
        """Return the rank of the threshold among the scores, if all losses are 0 or 1."""
        return conformal_rank(self.n, level, self.delta)

    def keeps_nothing(self, level):
        """Return whether no claim can be kept at a level."""
        return bool(self.level_after[0] > level)

    def n_shown(self, level):
        """Return the number of calibration answers that have a kept claim."""
        return int(np.sum(self.lowest < self.threshold(level)))

    def n_wrong(self, level):
        """Return the number of calibration answers expected to be shown with a false claim."""
        # If there are ties, fewer scores are below the threshold than the rank of the threshold
        # suggests.
        n_below = np.searchsorted(self.position, self.threshold(level))
        rank = min(self.rank(level), 1 + n_below)
        return min(rank * self.n / (self.n + 1), self.n_shown(level))


def _levels(guarantee, totals, n, is_count):
    """Return the levels of claims from 1 plus the losses that are present."""
    if is_count:
        return claim_level(totals - 1, n, guarantee.delta)
    if guarantee.delta is not None:
        raise ValueError(
            f"delta must be None unless all losses are 0 or 1, got {guarantee!r}"
        )
    return mean_level(totals, n)


class Calibration:
    """Calibration of a guarantee, with a separate step function for each group of problems.

    Without ``by``, all problems are in the group None. In problems whose group has no calibration
    problems, nothing is kept (Mondrian conformal prediction).

    Parameters
    ----------
    guarantee : Guarantee
        The guarantee.
    jumps : Jumps
        Jumps in the losses of the calibration problems.
    lowest : ndarray of shape (n_problems,)
        Smallest path risk of each calibration problem.
    lowered : ndarray of shape (n_problems,)
        Smallest path risk of each calibration problem, lowered to allow for rounding in the same
        way as the positions of the jumps.
    groups : list of length n_problems, optional
        Group of each calibration problem.

    Attributes
    ----------
    n : int
        Number of calibration problems.
    names : list
        The groups.
    steps : list of Steps
        The step function of each group.

    Raises
    ------
    ValueError
        If the guarantee has ``delta``, but not all losses are 0 or 1.
    """

    def __init__(self, guarantee, jumps, lowest, lowered, groups=None):
        rows = {None: np.arange(jumps.n)} if groups is None else rows_of_groups(groups)
        self.guarantee = guarantee
        self.n = jumps.n
        self.names = list(rows)
        self.steps = [
            Steps(guarantee, jumps[own], lowest[own], lowered[own])
            for own in rows.values()
        ]

    def by_group(self):
        """Return the step function of each group.

        Returns
        -------
        steps : dict of Steps
            The step functions, with the key None if there are no groups.
        """
        return dict(zip(self.names, self.steps, strict=True))

    def passing_group(self, risks):
        """Return the index of each problem's group, or -1 if nothing of the problem is kept.

        Parameters
        ----------
        risks : PathRisks
            Path risks of the problems, together with their groups.

        Returns
        -------
        group_of : ndarray of int of shape (n_problems,)
            The indices of the groups in ``names``.
        """
        group_of = np.zeros(len(risks), int)
        if risks.groups is not None:
            number = {name: i for i, name in enumerate(self.names)}
            group_of[:] = [number.get(name, -1) for name in risks.groups]
        unseen = np.flatnonzero(group_of < 0)
        if len(unseen):
            warn(
                f"nothing is kept in {counted(len(unseen), 'problem')}, such as "
                f"{risks.names(unseen[0])}, whose group {risks.groups[unseen[0]]!r} is not one "
                f"of the calibration groups {self.names[:10]}. Calibrate with problems of this "
                "group",
                CalibrationWarning,
            )
        cut = np.array([*(steps.cut for steps in self.steps), -np.inf])[group_of]
        return np.where(np.isposinf(cut) | (risks.lowest < cut), group_of, -1)

    def passes(self, risks):
        """Return which problems pass. If a problem does not pass, none of its claims are kept.

        Parameters
        ----------
        risks : PathRisks or CalibrationPart
            Smallest path risks and groups of the problems.

        Returns
        -------
        passes : ndarray of bool of shape (n_problems,)
            Whether each problem passes. All problems pass if the guarantee has ``show=1``.
        """
        return self.passing_group(risks) >= 0

    def thresholds(self, risks, level):
        """Return the threshold of each problem. Claims with smaller path risks are kept.

        Parameters
        ----------
        risks : PathRisks
            Path risks of the problems, together with their groups.
        level : float
            The requested level.

        Returns
        -------
        thresholds : ndarray of shape (n_problems,)
            The threshold of each problem, which is -inf if the problem does not pass.
        """
        values = [steps.threshold(level) for steps in self.steps]
        return np.array([*values, -np.inf])[self.passing_group(risks)]

    def levels(self, risks, keep_equal=False):
        """Return the smallest level at which each claim is kept.

        Parameters
        ----------
        risks : PathRisks
            Path risks of the problems, together with their groups.
        keep_equal : bool
            Whether to keep a claim if its path risk equals the threshold.

        Returns
        -------
        levels : ndarray of shape (n_claims,)
            The level of each claim, which is +inf if the claim is not kept at any level.
        """
        side = "left" if keep_equal else "right"
        group_of = self.passing_group(risks)[segment_ids(risks.offsets)]
        levels = np.full(len(risks.path_risk), np.inf)
        for number, steps in enumerate(self.steps):
            claims = np.flatnonzero(group_of == number)
            place = steps.position.searchsorted(risks.path_risk[claims], side)
            levels[claims] = steps.level_after[place]
        return levels

    def threshold(self, level):
        """Return the threshold if there is a single group, otherwise NaN.

        Parameters
        ----------
        level : float
            The requested level.

        Returns
        -------
        threshold : float
            The threshold of all problems that pass, or NaN.
        """
        return self.steps[0].threshold(level) if self.names == [None] else np.nan

    def coverage_law(self, level):
        """Return the parameters (a, b) of the coverage's beta distribution if there are no ties.

        Parameters
        ----------
        level : float
            The requested level.

        Returns
        -------
        law : tuple of int or None
            The parameters of the beta distribution. If no claims are kept, b is 0. The result is
            None with several groups, or if the losses are not 0 or 1.
        """
        if self.names != [None] or not self.steps[0].is_count:
            return None
        rank = self.steps[0].rank(level)
        return self.steps[0].n + 1 - rank, rank

    def keeps_nothing(self, level):
        """Return whether the filter cannot keep any claims at a level.

        Parameters
        ----------
        level : float
            The requested level.

        Returns
        -------
        keeps_nothing : bool
            True if the filter cannot keep any claims at this level.
        """
        return all(steps.keeps_nothing(level) for steps in self.steps)

    def shortage(self, level):
        """Return a sentence that explains why no claim can be kept at a level in some group.

        Parameters
        ----------
        level : float
            The requested level.

        Returns
        -------
        sentence : str or None
            The sentence, which also states what is required to keep claims, or None if claims can
            be kept.
        """
        short = [
            f"group {name!r}: {self._lacks(steps, level)}"
            for name, steps in self.by_group().items()
            if steps.keeps_nothing(level)
        ]
        return " ".join(short[:5]).removeprefix("group None: ") or None

    def _lacks(self, steps, level):
        """Return a sentence that states what a group needs to keep claims."""
        n = steps.n_all
        show, delta = float(self.guarantee.show), self.guarantee.delta
        needed = self.guarantee.problems_needed(level)
        if n >= needed:
            return (
                f"only {steps.n} of {n} calibration answers pass with show={show:g}, because "
                "many answers have the same smallest path risk. Nothing can be kept. Use a "
                'finer scorer, or ties="jitter"'
            )
        values = {"alpha": level, "delta": delta, "show": None if show == 1 else show}
        asked = [f"{name} = {value:g}" for name, value in values.items() if value]
        least = claim_level(0, passing_count(n, show), delta)
        return (
            f"{n} calibration problems are too few for {' and '.join(asked)}, so nothing can be "
            f"kept. At least {needed} are needed for calibration, or alpha >= {least:.4g}. All "
            "labelled problems can be used for calibration with a scorer that needs no training, "
            'such as a column. With scorer="linear" and calibration_size="all", n labelled answers '
            "keep claims at alpha >= 1 / (n + 1)"
        )

    # ------------------------------------------------------------------- for reports

    @property
    def n_passing(self):
        """Number of calibration problems that pass."""
        return sum(steps.n for steps in self.steps)

    @property
    def passing(self):
        """Proportion of new answers that pass, which is 1 if the guarantee has ``show=1``."""
        # If the cut is finite, the new answer passes if its rank is among the lowest |B| + 1 of
        # n + 1.
        passing = [
            steps.n_all
            * (1 if np.isposinf(steps.cut) else (steps.n + 1) / (steps.n_all + 1))
            for steps in self.steps
        ]
        return sum(passing) / max(self.n, 1)

    def shown(self, level):
        """Return the proportion of calibration answers that have a kept claim at a level.

        Parameters
        ----------
        level : float
            The requested level.

        Returns
        -------
        proportion : float
            The proportion.
        """
        return sum(steps.n_shown(level) for steps in self.steps) / max(self.n, 1)

    def false_among_shown(self, level):
        """Return the expected proportion of shown texts with a false claim.

        The proportion refers to new answers and is an average over calibration sets. In each
        group, it is at most k / ((n + 1) s). Here, s is the proportion of shown answers, and k is
        the smaller of the rank and 1 + #{scores below the threshold}.

        Parameters
        ----------
        level : float
            The requested level.

        Returns
        -------
        proportion : float or None
            The proportion, or None if nothing is shown, or if the guarantee does not count false
            claims.
        """
        n_shown = sum(steps.n_shown(level) for steps in self.steps)
        if not n_shown or self.guarantee.error is None:
            return None
        return sum(steps.n_wrong(level) for steps in self.steps) / n_shown

    def describe(self, level):
        """Return a sentence that states the guarantee at a level, for use in reports.

        Parameters
        ----------
        level : float
            The requested level.

        Returns
        -------
        sentence : str
            A sentence that states the guarantee.
        """
        shortage = self.shortage(level)
        if self.keeps_nothing(level):
            return f"nothing is kept: {shortage}"
        sentence = self.guarantee.describe(level)
        if self.guarantee.show != 1:
            passing = f"about {100 * self.passing:.0f} % of all"
            sentence = f"of the answers that pass ({passing}), {sentence}"
        return f"{sentence}; {shortage}" if shortage else sentence

    def describe_shown(self, level):
        """Return a sentence that states the proportion of shown texts and their error rate.

        Parameters
        ----------
        level : float
            The requested level.

        Returns
        -------
        sentence : str
            The sentence.
        """
        share = self.shown(level)
        if not share:
            return "At this level, nothing is shown for new answers"
        kept = f"At least one claim is kept in about {share:.0%} of new answers"
        rate = self.false_among_shown(level)
        if rate is None:
            return kept
        return f"{kept}, and about {rate:.0%} of the shown texts contain {self.guarantee.error}"


def rows_of_groups(groups):
    """Return the indices of the members of each group, in order of first occurrence."""
    rows = {}
    for i, group in enumerate(groups):
        rows.setdefault(group, []).append(i)
    return {name: np.array(own) for name, own in rows.items()}


def leave_one_out(guarantee, jumps, risks):
    """Compute the level of each claim after calibration on all other problems of its group.

    The running time is O(n log n) for all levels and problems together. With ``show``, an answer
    passes if the smallest path risks of fewer than k0 = ceil(show n) other answers are at most as
    large as that of the answer, and the other passing answers calibrate.

    Parameters
    ----------
    guarantee : Guarantee
        The guarantee.
    jumps : Jumps
        Jumps in the loss of each problem.
    risks : PathRisks
        Path risks and groups of the problems, in the order of the jumps.

    Returns
    -------
    levels : ndarray of shape (n_claims,)
        The smallest level at which each claim is kept, which is +inf if the answer does not pass.
    """
    levels = np.full(len(risks.path_risk), np.inf)
    problem_of = segment_ids(risks.offsets)
    for rows in rows_of_groups(risks.groups or [None] * len(risks)).values():
        lowest = risks.lowest[rows]
        k0 = passing_count(len(rows) - 1, guarantee.share) + 1
        n_others = np.searchsorted(np.sort(lowest), lowest, side="right") - 1
        passing = rows[(n_others < k0) | (k0 == len(rows))]
        number = np.full(len(risks), -1)
        number[passing] = np.arange(len(passing))
        claims = np.flatnonzero(number[problem_of] >= 0)
        above = np.nextafter(risks.path_risk[claims], np.inf)
        part = jumps[passing]
        position, totals = part.totals()
        total = totals[np.searchsorted(position, above)]
        total -= part.losses(number[problem_of[claims]], above)
        is_count = guarantee.is_probability and part.is_count
        levels[claims] = _levels(guarantee, total, len(passing) - 1, is_count)
    return levels
