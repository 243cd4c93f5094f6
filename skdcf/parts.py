"""Calibration parts, which store the scores and hashes of calibration problems."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import guards
from .graphs.ragged import starts_run
from .guarantees import Calibration, Jumps
from .identity import Hashes

# If all questions differ and there are this many, all calibrate. The rank is then rounded by at
# most 1 / (n + 1).
MANY = 10_000


def number(groups, n):
    """Return the number of each of n groups in the order of appearance, or zeros without groups."""
    numbers: dict[Any, int] = {}
    return np.array(
        [numbers.setdefault(g, len(numbers)) for g in groups or [None] * n], np.int64
    )


def choose_one_each(
    questions: NDArray[Any], order: NDArray[Any], group_of: NDArray[Any]
) -> NDArray[np.intp]:
    """For each group and question, return the index of the first problem in the given order."""
    # Decreasing negative numbers indicate that each problem has a separate question.
    if (questions[:1] < 0).all() and (questions[1:] < questions[:-1]).all():
        return np.arange(len(questions))
    by = np.lexsort((order, questions, group_of))
    return np.sort(by[starts_run(questions[by]) | starts_run(group_of[by])])


@dataclass(frozen=True)
class CalibrationPart:
    """Scores and hashes of problems that were scored for calibration.

    Parts are created by the method ``calibration_part`` of a filter. To calibrate the filter on
    several parts, pass them to its method ``calibrate_parts``.

    Parameters
    ----------
    jumps : Jumps
        Positions and sizes of the jumps in the loss as the threshold increases. For the default
        guarantee, each problem has a single jump, at its nonconformity score.
    largest : ndarray of shape (n_problems,)
        Largest path risk of each problem, regardless of its labels.
    lowest, lowest_lowered : ndarray of shape (n_problems,)
        Smallest path risk of each problem, before and after being lowered to allow for rounding
        errors.
    hashes : Hashes
        Hashes of the questions and of the problem contents.
    has_texts : ndarray of bool of shape (n_problems,)
        Whether the claims of each problem have texts.
    rows : ndarray of int of shape (n_problems,)
        Indices of the problems in the data passed by the caller. After parts are joined, each row
        contains a part index and the index within the part.
    groups : list of length n_problems, optional
        Group of each problem, if the guarantee has groups.
    origin : dict, optional
        How the problems were made.
    settings : dict, optional
        Settings of the filter that scored the problems, or None if they are unknown.
    probes : tuple, optional
        A few of the problems with their path risks, used to compare scorers, edges and groups.

    Attributes
    ----------
    scores : ndarray of shape (n_problems,)
        Nonconformity scores. A score is +inf if every threshold is safe for the problem.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> graphs, y = make_reasoning_graphs(199, random_state=0, return_X_y=True)
    >>> cf = HardCF("frequency-score").fit(graphs, y)
    >>> parts = [cf.calibration_part(graphs[i : i + 50], y[i : i + 50])
    ...          for i in range(0, 199, 50)]
    >>> cf.calibrate_parts(parts).n_calibration_
    199
    """

    jumps: Jumps
    largest: NDArray[np.float64]
    lowest: NDArray[np.float64]
    lowest_lowered: NDArray[np.float64]
    hashes: Hashes
    has_texts: NDArray[np.bool_]
    rows: NDArray[np.int64]
    groups: list[Any] | None = None
    origin: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] | None = None
    probes: tuple[Any, ...] = ()

    @property
    def scores(self) -> NDArray[np.float64]:
        """Nonconformity score of each problem."""
        return self.jumps.first()

    @cached_property
    def _orders(self):
        """Fixed orders of the answers and of the questions, which are the same for all levels."""
        return self.hashes.orders()

    def __len__(self) -> int:
        """Number of problems."""
        return self.jumps.n

    def __getitem__(self, rows: slice | NDArray[Any]) -> CalibrationPart:
        """Return a part that contains only the given rows."""
        rows = np.arange(len(self))[rows]
        groups = self.groups and [self.groups[i] for i in rows]
        names = ("jumps", "hashes", "rows", *_COLUMNS)
        cut: dict[str, Any] = {name: getattr(self, name)[rows] for name in names}
        return replace(self, groups=groups, **cut)

    def below_copies(self) -> CalibrationPart:
        """Return the part with lower values for all scores that occur more than once."""
        jumps = replace(self.jumps, position=guards.below_copies(self.jumps.position))
        lowest = guards.below_copies(self.lowest_lowered)
        return replace(self, jumps=jumps, lowest_lowered=lowest)

    def calibrate(self, guarantee: Any) -> Calibration:
        """Return the calibration of a guarantee on all problems of the part."""
        lowest = self.lowest, self.lowest_lowered
        return Calibration(guarantee, self.jumps, *lowest, self.groups)

    def choose(
        self,
        guarantee: Any,
        level: Any,
        fewest: Any,
        *,
        in_groups: Any = True,
        ranks: NDArray[np.integer] | None = None,
    ) -> Any:
        """Choose the problems used for calibration.

        One answer to each question is chosen, either within each group or, if ``in_groups`` is
        False, among all problems. If ``fewest`` is True, only the smallest number of questions
        that results in the same rank is used.

        Parameters
        ----------
        guarantee : Guarantee
            The guarantee for which the problems are chosen.
        level : float
            The guarantee level.
        fewest : bool
            Whether to leave out questions that do not increase the rank of the threshold.
        in_groups : bool, default=True
            Whether to choose one answer per question in each group.
        ranks : ndarray of shape (n_problems,), optional
            Ranks of the answers. Among all answers to a question, the answer with the lowest rank
            is chosen. By default, the ranks are derived from hashes of the answers.

        Returns
        -------
        chosen, left_over : ndarray of int
            Indices of problems, sorted.
        """
        group_of = number(self.groups if in_groups else None, len(self))
        each_alone = (self.hashes.question < 0).all()
        if not group_of.any() and each_alone and (len(self) >= MANY or not fewest):
            rows = np.arange(len(self))
            return rows, rows[:0]

        order, order_of_questions = self._orders
        ranks = order if ranks is None else ranks
        rows = choose_one_each(self.hashes.question, ranks, group_of)
        if not fewest:
            return rows, rows[:0]
        chosen = np.zeros(len(self), bool)
        for group in range(group_of.max(initial=0) + 1):
            members = rows[group_of[rows] == group]
            count = guarantee.fewest(len(members), level)
            if each_alone and len(members) >= MANY:
                count = len(members)
            by_hash = np.argsort(order_of_questions[members], kind="stable")
            chosen[members[by_hash[:count]]] = True
        return np.flatnonzero(chosen), rows[~chosen[rows]]

    @classmethod
    def join(cls, parts: Iterable[CalibrationPart]) -> CalibrationPart:
        """Join several parts into one part, in the given order.

        Parameters
        ----------
        parts : iterable of CalibrationPart
            At least one part.

        Returns
        -------
        part : CalibrationPart
            The joined part.

        Raises
        ------
        ValueError
            If there are no parts, or if the parts were computed with different settings.
        """
        parts = list(parts)
        if not parts:
            raise ValueError(
                "parts must contain at least one part returned by calibration_part, got none"
            )
        first = parts[0]
        for part in parts:
            refuse_other_settings(part.settings, first.settings)
        groups = None
        if first.groups is not None:
            groups = [group for part in parts for group in part.groups or ()]
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in _COLUMNS
        }
        numbers = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        rows = np.concatenate([part.rows for part in parts])
        return cls(
            jumps=Jumps.join([part.jumps for part in parts]),
            groups=groups,
            hashes=Hashes.join([part.hashes for part in parts]),
            settings=first.settings,
            origin=guards.join_origins([part.origin for part in parts]),
            probes=tuple(probe for part in parts for probe in part.probes),
            rows=np.stack([numbers, rows], axis=1),
            **columns,
        )


#: Columns of a part that contain one value per problem.
_COLUMNS = ("largest", "lowest", "lowest_lowered", "has_texts")


def refuse_other_settings(settings, expected):
    if settings is None or expected is None:
        raise ValueError(
            "each part must contain the settings with which it was computed, but these "
            "settings are missing. Compute the part again with calibration_part"
        )
    for name, setting in expected.items():
        if settings[name] != setting:
            raise ValueError(
                f"all parts must be computed with the same settings, but {name} is "
                f"{settings[name]} in one part instead of {setting}. Compute the part "
                "again with calibration_part"
            )
