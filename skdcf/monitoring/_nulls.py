"""Null hypotheses of the monitors.

Each null hypothesis states the error rate or mean loss that a guarantee allows.

In formulas, ``n`` is the number of calibration problems in a group. If the guarantee has
``show=``, only the calibration problems that pass are included. The conformal rank of the group's
threshold is ``k``. The probability that a calibration is worse than the null hypothesis allows is
``calibration_delta``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..ops.mean_bound import largest_mean


@dataclass(frozen=True)
class Urn:
    """Null hypothesis that the errors follow a Pólya urn.

    If e of the first t - 1 new problems were errors, the next problem is an error with probability
    (k + e) / (n + t).

    Parameters
    ----------
    n, rank : int
        Number of calibration problems, and the rank of their threshold.
    threshold : float
        The filter's threshold.
    cut : float
        Answers pass if their smallest path risk is below the cut. Answers that do not pass are
        ignored.
    """

    n: int
    rank: int
    threshold: float
    cut: float

    def chances(self, n_before: int, lost_before: NDArray[Any]) -> NDArray[Any]:
        """Return the largest mean loss that the null allows for each new problem.

        Parameters
        ----------
        n_before : int
            Number of new problems that precede the given problems.
        lost_before : ndarray of shape (n_problems,)
            Number of errors among the new problems that precede each given problem.

        Returns
        -------
        mean_losses : ndarray of shape (n_problems,)
            The mean losses.
        """
        n_drawn = self.n + n_before + 1 + np.arange(len(lost_before))
        return (self.rank + lost_before) / n_drawn


@dataclass(frozen=True)
class MeanLoss:
    """Null hypothesis that the mean loss is at most an upper bound.

    For a calibrated filter, the bound holds with probability 1 - ``calibration_delta``.

    Parameters
    ----------
    mean : float
        Upper bound on the mean loss.
    cut : float
        Answers pass if their smallest path risk is below the cut. Answers that do not pass are
        ignored.
    """

    mean: float
    cut: float

    def chances(self, n_before: int, lost_before: NDArray[Any]) -> NDArray[Any]:
        """Return the largest mean loss that the null allows for each new problem.

        Parameters
        ----------
        n_before : int
            Ignored.
        lost_before : ndarray of shape (n_problems,)
            Array with one entry per problem. The values are ignored.

        Returns
        -------
        mean_losses : ndarray of shape (n_problems,)
            The mean losses.
        """
        return np.full(len(lost_before), self.mean)


def level_of(filter: Any) -> float:
    """Return the level of a filter's guarantee."""
    return filter.calibration_.guarantee.level(None, filter.alpha)


def is_urn(filter: Any) -> bool:
    """Return whether a filter's errors follow a Pólya urn in each group.

    Parameters
    ----------
    filter : fitted filter
        A filter with the attribute ``calibration_``.

    Returns
    -------
    is_urn : bool
        True if the threshold of each group is a score with a known rank.
    """
    return all(steps.is_count for steps in filter.calibration_.steps)


def why_not_watched(filter: Any) -> str | None:
    """Return the reason why the guarantee cannot be monitored, or None if it can be monitored.

    Parameters
    ----------
    filter : fitted filter
        A filter with the attribute ``calibration_``.

    Returns
    -------
    reason : str or None
        The reason as a sentence, or None if the guarantee can be monitored.
    """
    calibration = filter.calibration_
    level = level_of(filter)
    if filter.ties == "include":
        return f"there is no guarantee to monitor, because ties is {filter.ties!r}"
    if calibration.keeps_nothing(level):
        return (
            "there is nothing to monitor, because the filter keeps nothing at its alpha"
        )
    return None


def nulls_of(
    filter: Any, level: float, calibration_delta: float
) -> dict[Any, Urn | MeanLoss]:
    """Return the null hypothesis of each group in which claims may be kept.

    Parameters
    ----------
    filter : fitted filter
        A filter whose guarantee can be monitored.
    level : float
        The filter's current level.
    calibration_delta : float
        Total probability, over all groups, that a calibration is worse than its null hypothesis
        allows.

    Returns
    -------
    nulls : dict of Urn, or of MeanLoss
        Null hypotheses, keyed by group name, or by None if there are no groups.

    Raises
    ------
    ValueError
        If the guarantee cannot be monitored.
    """
    if reason := why_not_watched(filter):
        raise ValueError(reason)
    groups = {
        name: steps
        for name, steps in filter.calibration_.by_group().items()
        if not steps.keeps_nothing(level)
    }
    if is_urn(filter):
        return {
            name: Urn(
                steps.n,
                rank=steps.rank(level),
                threshold=steps.threshold(level),
                cut=steps.cut,
            )
            for name, steps in groups.items()
        }
    nulls: dict[Any, Urn | MeanLoss] = {}
    for name, steps in groups.items():
        # The loss of the new answer is at most 1. All other answers share the rest.
        total = max((steps.n + 1) * level - 1, 0.0)
        mean = largest_mean(total, steps.n, calibration_delta / len(groups))
        nulls[name] = MeanLoss(mean, cut=steps.cut)
    return nulls
