"""Calibrations of guarantees, which compute thresholds and levels for new problems.

The threshold may differ between groups of problems.
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from .._checks import counted, warn
from ..exceptions import CalibrationWarning
from ..graphs.ragged import offsets_of, ranges
from ..ops import conformal
from ..ops.conformal import Jumps, conformal_rank, conformal_threshold
from ..ops.hard import segment_min

if TYPE_CHECKING:
    from ._guarantees import Guarantee


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
    smallest : ndarray of shape (n_problems,), optional
        Smallest path risk of each problem, used if the path risks of the claims are unavailable.
    smallest_lowered : ndarray of shape (n_problems,), optional
        Smallest path risk of each problem, lowered to allow for rounding errors in the same way
        as the nonconformity scores.
    """

    path_risk: np.ndarray
    offsets: np.ndarray
    groups: list[Any] | None = None
    names: Callable[[int], str] = field(default_factory=lambda: "problem {}".format)
    smallest: np.ndarray | None = None
    smallest_lowered: np.ndarray | None = None

    @cached_property
    def lowest(self) -> NDArray[np.float64]:
        """Smallest path risk of each problem, which is +inf if the problem has no claims."""
        if self.smallest is not None:
            return self.smallest
        return segment_min(self.path_risk, self.offsets)

    @property
    def lowered(self) -> NDArray[np.float64]:
        """Smallest path risk of each problem, lowered to allow for rounding errors."""
        if self.smallest_lowered is None:
            return self.lowest
        return self.smallest_lowered

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def rows(self, problems: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the indices of the claims in the given problems.

        Parameters
        ----------
        problems : ndarray of int
            Indices of the problems.

        Returns
        -------
        rows : ndarray of int
            Claim indices, concatenated over the problems.
        """
        return ranges(self.offsets[:-1][problems], np.diff(self.offsets)[problems])

    def take(self, problems: NDArray[np.intp]) -> PathRisks:
        """Return the path risks of the given problems, without their groups.

        Parameters
        ----------
        problems : ndarray of int
            Indices of the problems.

        Returns
        -------
        risks : PathRisks
            The path risks of the selected problems.
        """
        return PathRisks(
            self.path_risk[self.rows(problems)],
            offsets_of(np.diff(self.offsets)[problems]),
            names=lambda i: self.names(problems[i]),
            smallest=self.lowest[problems],
            smallest_lowered=self.lowered[problems],
        )


class Calibration(metaclass=ABCMeta):
    """Base class for calibrations, which compute thresholds and levels from path risks.

    Attributes
    ----------
    n : int
        Number of calibration problems.
    guarantee : Guarantee
        The calibrated guarantee.
    scores : ndarray of shape (n,) or None
        The sorted nonconformity scores, or None if the calibration also depends on other values.
    lowest : ndarray of shape (n,)
        Smallest path risk of each calibration problem. A problem has a kept claim if its smallest
        path risk is below the threshold.
    """

    n: int
    guarantee: Guarantee
    lowest: np.ndarray
    scores: np.ndarray | None = None

    @abstractmethod
    def levels(self, risks: PathRisks, keep_equal: bool = False) -> NDArray[np.float64]:
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

    @abstractmethod
    def thresholds(self, risks: PathRisks, level: float) -> NDArray[np.float64] | float:
        """Return the threshold of each problem. Claims with smaller path risks are kept.

        Parameters
        ----------
        risks : PathRisks
            Path risks of the problems, together with their groups.
        level : float
            The requested level.

        Returns
        -------
        thresholds : ndarray of shape (n_problems,) or float
            The threshold of each problem, or a single threshold for all problems.
        """

    def passes(self, risks: PathRisks) -> NDArray[np.bool_]:
        """Return which problems pass. If a problem does not pass, none of its claims are kept.

        Parameters
        ----------
        risks : PathRisks
            Path risks of the problems, together with their groups.

        Returns
        -------
        passes : ndarray of bool of shape (n_problems,)
            Whether each problem passes. All problems pass if the guarantee has ``show=1``.
        """
        return np.ones(len(risks), dtype=bool)

    def by_group(self) -> dict[Any, Calibration]:
        """Return a dict of calibrations keyed by group. Without groups, the only key is None.

        Returns
        -------
        calibrations : dict
            The calibrations, keyed by group.
        """
        return {None: self}

    @abstractmethod
    def shortage(self, level: float) -> str | None:
        """Return a sentence that explains why no claim can be kept at a level.

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

    def threshold(self, level: float) -> float:
        """Return the threshold if all problems have the same threshold, otherwise NaN.

        Parameters
        ----------
        level : float
            The requested level.

        Returns
        -------
        threshold : float
            The threshold that all problems share, or NaN.
        """
        return np.nan

    @property
    def passing(self) -> float:
        """Proportion of new answers that pass, which is 1 if the guarantee has ``show=1``."""
        return 1.0

    def describe(self, level: float) -> str:
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
        short = self.shortage(level)
        needed = self.guarantee.problems_needed(level)
        sentence = self._sentence(level)
        if not short:
            return sentence
        if not self.keeps_nothing(level):
            fewer = f"fewer than {needed} calibration problems"
            return f"{sentence}; nothing is kept in groups with {fewer}"
        if self.n < needed:
            return (
                f"nothing is kept, because {needed} calibration problems are needed, got "
                f"{self.n}"
            )
        return f"nothing is kept: {short}"

    def _sentence(self, level):
        """Return a sentence that states the guarantee, including details of the calibration."""
        return self.guarantee.describe(level)

    def keeps_nothing(self, level: float) -> bool:
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
        return self.shortage(level) is not None

    def shown(self, level: float) -> float:
        """Return the proportion of calibration answers that have a kept claim at a level.

        Parameters
        ----------
        level : float
            The requested level.

        Returns
        -------
        proportion : float
            The proportion, or NaN if it is unknown.
        """
        threshold = self.threshold(level)
        if np.isnan(threshold):
            return np.nan
        return float(np.sum(self.lowest < threshold) / max(len(self.lowest), 1))

    def false_among_shown(self, level: float) -> tuple[float, float, float] | None:
        """Return the expected proportion of shown texts with a false claim, and its interval.

        The proportion refers to new answers and is an average over calibration sets. The
        proportion equals k / ((n + 1) s). Here, s is the proportion of shown answers, and k is
        the smaller of the rank and 1 + #{scores below the threshold}.

        Parameters
        ----------
        level : float
            The requested level.

        Returns
        -------
        estimate : tuple of float or None
            The proportion, followed by the bounds of an interval that contains the proportion for
            90 % of the calibration sets. Unknown bounds are NaN. The result is None if nothing is
            shown or if the proportion is unknown.
        """
        return None

    def describe_shown(self, level: float) -> str:
        """Return a sentence that states the proportion of shown texts and their error rate.

        Parameters
        ----------
        level : float
            The requested level.

        Returns
        -------
        sentence : str
            The sentence, or an empty string if the proportions are unknown.
        """
        share = self.shown(level)
        if np.isnan(share):
            return ""
        if not share:
            return "At this level, nothing is shown for new answers"
        kept = f"At least one claim is kept in about {share:.0%} of new answers"
        rate = self.false_among_shown(level)
        if rate is None:
            return kept
        of_them, low, high = rate
        most = getattr(self.guarantee, "max_false", 0)
        errors = (
            f"more than {most} false claim{'s' * (most > 1)}"
            if most
            else "a false claim"
        )
        sentence = (
            f"{kept}, and about {of_them:.0%} of the shown texts contain {errors}"
        )
        if np.isnan(low):
            return sentence
        return f"{sentence} ({low:.0%} to {high:.0%} for 90% of all calibration sets)"

    def coverage_law(self, level: float) -> tuple[int, int] | None:
        """Return the parameters (a, b) of the coverage's beta distribution if there are no ties.

        Parameters
        ----------
        level : float
            The requested level.

        Returns
        -------
        law : tuple of int or None
            The parameters of the beta distribution. If no claims are kept, b is 0. The result is
            None if the distribution is unknown.
        """
        return None


class OneThreshold(Calibration):
    """Calibration with a single threshold for all problems, which is the k-th smallest score.

    Parameters
    ----------
    scores : ndarray of shape (n_problems,)
        Nonconformity score of each calibration problem.
    lowest : ndarray of shape (n_problems,)
        Smallest path risk of each calibration problem.
    guarantee : NoFalseClaim
        The guarantee that defines the scores.
    """

    scores: np.ndarray

    def __init__(
        self, scores: np.ndarray, lowest: np.ndarray, guarantee: Guarantee
    ) -> None:
        self.scores = np.sort(scores)
        self.lowest = lowest
        self.n = len(scores)
        self.guarantee = guarantee
        self.delta = guarantee.delta

    def levels(self, risks: PathRisks, keep_equal: bool = False) -> NDArray[np.float64]:
        return conformal.claim_alpha(
            self.scores, risks.path_risk, keep_equal, self.delta
        )

    def thresholds(self, risks: PathRisks, level: float) -> float:
        return self.threshold(level)

    def threshold(self, level: float) -> float:
        return conformal_threshold(self.scores, level, self.delta)

    def shortage(self, level: float) -> str | None:
        if conformal_rank(self.n, level, self.delta):
            return None
        return self.guarantee.needed(self.n, level)

    def false_among_shown(self, level: float) -> tuple[float, float, float] | None:
        share = self.shown(level)
        rank = conformal_rank(self.n, level, self.delta)
        if not share > 0 or not rank:
            return None
        # If there are ties, fewer scores are below the threshold than the rank of the threshold
        # suggests.
        n_below = int(np.searchsorted(self.scores, self.threshold(level)))
        rank = min(rank, 1 + n_below)
        rate = rank / ((self.n + 1) * share)
        low, high = _interval_among_shown(
            rank=rank, n=self.n, n_shown=round(share * self.n)
        )
        return min(rate, 1.0), low, high

    def coverage_law(self, level: float) -> tuple[int, int] | None:
        k = conformal_rank(self.n, level, self.delta)
        return self.n + 1 - k, k


@lru_cache
def _interval_among_shown(rank, n, n_shown):
    """Return a 90 % interval for the proportion of shown texts that contain a false claim.

    The distribution of the proportion of answers with a kept false claim is Beta(rank, n + 1 -
    rank). The distribution of the proportion of shown answers is approximately Beta(shown + 1/2,
    not shown + 1/2). The distribution of the ratio of these proportions is computed on a grid.
    """
    chance = (np.arange(400) + 0.5) / 400
    wrong = betaincinv(rank, n + 1 - rank, chance)
    shown = betaincinv(n_shown + 0.5, n - n_shown + 0.5, chance)
    low, high = np.quantile(np.divide.outer(wrong, shown), [0.05, 0.95])
    return float(min(low, 1.0)), float(min(high, 1.0))


class Controlled(Calibration):
    """Calibration for losses between 0 and 1 with jumps of any height.

    Parameters
    ----------
    jumps : Jumps
        Jumps in the losses of the calibration problems.
    risks : PathRisks
        Smallest path risks of the calibration problems.
    guarantee : Guarantee
        The guarantee that defines the jumps.

    Raises
    ------
    ValueError
        If a loss is negative, decreases or exceeds 1.
    """

    def __init__(self, jumps: Jumps, risks: PathRisks, guarantee: Guarantee) -> None:
        loss = jumps.loss
        later = np.flatnonzero(jumps.problem[1:] == jumps.problem[:-1]) + 1
        if (
            not ((loss >= 0) & (loss <= 1)).all()
            or (loss[later] < loss[later - 1]).any()
        ):
            raise ValueError(
                f"the losses of {guarantee!r} must grow from 0 to at most 1 in each problem, but "
                f"lie between {loss.min():g} and {loss.max():g}, or decrease. Divide the loss by "
                "its largest value, and take its running maximum"
            )
        self.lowest = risks.lowest
        self.position, self.level_after = conformal.levels_after(jumps)
        self.n = jumps.n
        self.guarantee = guarantee

    def levels(self, risks: PathRisks, keep_equal: bool = False) -> NDArray[np.float64]:
        below = np.searchsorted(self.position, risks.path_risk, side="right")
        return self.level_after[below]

    def thresholds(self, risks: PathRisks, level: float) -> float:
        return self.threshold(level)

    def threshold(self, level: float) -> float:
        # The level never decreases from one jump to the next.
        n_included = np.count_nonzero(self.level_after <= level)
        return float(np.concatenate([[-np.inf], self.position, [np.inf]])[n_included])

    def shortage(self, level: float) -> str | None:
        if self.n and self.level_after[0] <= level:
            return None
        return self.guarantee.needed(self.n, level)


class PerGroup(Calibration):
    """Separate calibrations for disjoint groups (Mondrian conformal prediction).

    In problems whose group has no calibration problems, nothing is kept.

    Parameters
    ----------
    guarantee : Guarantee
        The guarantee.
    jumps : Jumps
        Positions and sizes of the jumps in the loss of each calibration problem.
    risks : PathRisks
        Groups of the calibration problems.
    """

    def __init__(self, guarantee: Guarantee, jumps: Jumps, risks: PathRisks) -> None:
        places = rows_of_groups(risks.groups)
        self.n = jumps.n
        self.guarantee = guarantee
        self.names = list(places)
        self.lowest = risks.lowest
        self.parts = [
            guarantee.calibrate_group(jumps[rows], risks.take(rows))
            for rows in places.values()
        ]

    def shown(self, level: float) -> float:
        return float(self._mean([part.shown(level) for part in self.parts]))

    def false_among_shown(self, level: float) -> tuple[float, float, float] | None:
        share = self.shown(level)
        if not share > 0:
            return None
        # If the filter keeps nothing in a group, the group does not contribute any errors.
        wrong = np.zeros(len(self.parts))
        for i, part in enumerate(self.parts):
            share_of_part = part.shown(level)
            rate = part.false_among_shown(level)
            if share_of_part > 0 and rate is None:
                return None
            wrong[i] = rate[0] * share_of_part if rate else 0.0
        return min(float(self._mean(wrong)) / share, 1.0), np.nan, np.nan

    def _mean(self, values):
        """Return the mean of the groups' values, weighted by group size."""
        sizes = [part.n for part in self.parts]
        return np.average(values, weights=sizes) if np.sum(sizes) > 0 else 0.0

    def levels(self, risks: PathRisks, keep_equal: bool = False) -> NDArray[np.float64]:
        # If no alpha keeps a claim, the smallest alpha for the claim is infinite.
        out = np.full(len(risks.path_risk), np.inf)
        for part, rows in self._divided(risks):
            out[risks.rows(rows)] = part.levels(risks.take(rows), keep_equal)
        return out

    def thresholds(self, risks: PathRisks, level: float) -> NDArray[np.float64]:
        out = np.full(len(risks), -np.inf)
        for part, rows in self._divided(risks):
            out[rows] = part.thresholds(risks.take(rows), level)
        return out

    def passes(self, risks: PathRisks) -> NDArray[np.bool_]:
        out = np.zeros(len(risks), dtype=bool)
        for part, rows in self._divided(risks):
            out[rows] = part.passes(risks.take(rows))
        return out

    def by_group(self) -> dict[Any, Calibration]:
        return dict(zip(self.names, self.parts, strict=True))

    def shortage(self, level: float) -> str | None:
        parts = self.by_group().items()
        shortages = [(name, part.shortage(level)) for name, part in parts]
        short = [f"group {name!r}: {text}" for name, text in shortages if text]
        if not short:
            return None
        if self.guarantee.show == 0:  # The same share applies to all groups.
            return shortages[0][1]
        shown = short[:5]
        rest = f" ({len(short) - 5} more groups)" if len(short) > 5 else ""
        return " ".join(shown) + rest

    def _sentence(self, level):
        sentence = super()._sentence(level)
        if self.guarantee.show != 1:
            passing = self._mean([part.passing for part in self.parts])
            among = self.guarantee.describe_passing(level)
            sentence = f"of the answers that pass (about {100 * passing:.0f} % of all), {among}"
        n_groups = len(self.names)
        delta = getattr(self.guarantee, "delta", None) or 1.0
        share = 1 - n_groups * delta
        if n_groups == 1 or share < 1e-9:
            return sentence
        return (
            f"{sentence}; in all {n_groups} groups simultaneously, for at least "
            f"{100 * share:g} % of all calibration sets"
        )

    def keeps_nothing(self, level: float) -> bool:
        return all(part.shortage(level) for part in self.parts)

    def _divided(self, risks):
        """Yield the calibration and the problems of each group, and warn of unseen groups."""
        parts = self.by_group()
        places = rows_of_groups(risks.groups)
        unseen = [name for name in places if name not in parts]
        if unseen:
            n = sum(len(places[name]) for name in unseen)
            warn(
                f"nothing is kept in {counted(n, 'problem')}, such as "
                f"{risks.names(places[unseen[0]][0])}, whose group {unseen[0]!r} is not one of "
                f"the calibration groups {self.names[:10]}. Calibrate with problems of this group",
                CalibrationWarning,
            )
        return [(parts[name], places[name]) for name in places if name in parts]


def rows_of_groups(groups):
    """Return the indices of the problems in each group, in order of first occurrence."""
    places: dict[Any, list[int]] = {}
    for i, group in enumerate(groups):
        places.setdefault(group, []).append(i)
    return {name: np.array(rows) for name, rows in places.items()}
