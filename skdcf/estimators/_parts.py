"""Calibration parts, which store the scores and hashes of calibration problems."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import without_places
from ..graphs.hashes import Hashes
from ..graphs.ragged import optional_rows, starts_run
from ..guarantees import Calibration
from ..guards.copies import refuse_copies
from ..guards.provenance import join_origins
from ..guards.rounding import below_copies, nearly_equal
from ..guards.settings import described, described_guarantee
from ..ops.conformal import Jumps
from ._validation import check

#: Names of the settings that are compared, in the order of ``made_as``.
MADE_AS = ("edges", "online", "ties", "guarantee", "scorer", "random_state")
# settings that do not affect the scores
LEVELS = ("delta", "bound", "show")
# All problems are used if there are at least MANY problems and each has a separate question.
MANY = 10_000
# number of problems per part whose path risks are stored to compare scorers
N_PROBES = 8


#: Columns of a part that contain one value per problem.
COLUMNS = ("largest", "lowest", "lowest_lowered", "has_texts")


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
    made_as : tuple, optional
        Settings of the filter that scored the problems, or None if they are unknown.
    origin : dict, optional
        Provenance of the problems.
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
    made_as: tuple[Any, ...] | None = None
    origin: dict[Any, Any] | None = None
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
        names = ("jumps", "hashes", "rows", *COLUMNS)
        cut: dict[str, Any] = {
            name: optional_rows(getattr(self, name), rows) for name in names
        }
        return replace(self, groups=groups, **cut)

    def refuse_copies(self) -> None:
        """Raise ValueError if problems with equal texts may be copies of one answer."""
        refuse_copies(self.hashes, self.has_texts)

    def below_copies(self) -> CalibrationPart:
        """Return the part with lower values for all scores that occur more than once.

        Returns
        -------
        part : CalibrationPart
            The part, in which repeated scores and repeated values of ``lowest_lowered`` are
            lowered.
        """
        jumps = replace(self.jumps, position=below_copies(self.jumps.position))
        lowest = below_copies(self.lowest_lowered)
        return replace(self, jumps=jumps, lowest_lowered=lowest)

    def calibrate(self, guarantee: Any) -> Calibration:
        """Return the calibration of a guarantee on all problems of the part.

        Parameters
        ----------
        guarantee : Guarantee
            The guarantee.

        Returns
        -------
        calibration : Calibration
            The calibration.
        """
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
        groups = (self.groups or ()) if in_groups else ()
        each_alone = (self.hashes.question < 0).all()
        group_of = np.zeros(len(self), np.int64)
        if groups:
            numbers: dict[Any, Any] = {}
            group_of[:] = [numbers.setdefault(group, len(numbers)) for group in groups]
        elif each_alone and (len(self) >= MANY or not fewest):
            rows = np.arange(len(self))  # `arange` is already sorted.
            return rows, rows[:0]

        order, order_of_questions = self._orders
        ranks = order if ranks is None else ranks
        rows = choose_one_each(self.hashes.question, ranks, group_of)
        if not fewest:
            return rows, rows[:0]

        # If there are at least MANY questions, all of them are used, and the rank is rounded by
        # at most 1 / (n + 1).
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
            _refuse_other_settings(part.made_as, first.made_as)
        groups = None
        if first.groups is not None:
            groups = [group for part in parts for group in part.groups or ()]
        origin = join_origins([part.origin for part in parts])
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in COLUMNS
        }
        return cls(
            jumps=Jumps.join([part.jumps for part in parts]),
            groups=groups,
            hashes=Hashes.join([part.hashes for part in parts]),
            made_as=first.made_as,
            origin=origin,
            probes=tuple(probe for part in parts for probe in part.probes),
            rows=np.concatenate([_numbered(i, part) for i, part in enumerate(parts)]),
            **columns,
        )


def _numbered(number, part):
    """Return the part index and row index of each problem."""
    rows = part.rows if part.rows.ndim == 1 else np.arange(len(part))
    return np.stack([np.full(len(part), number), rows], axis=1)


def choose_one_each(questions, order, group_of):
    """For each group and question, return the index of the first problem in the given order.

    Parameters
    ----------
    questions, order, group_of : ndarray of shape (n,)

    Returns
    -------
    rows : ndarray of int
        Sorted indices of the chosen problems.
    """
    # Decreasing negative numbers indicate that each problem has a separate question.
    if (questions[:1] < 0).all() and (questions[1:] < questions[:-1]).all():
        return np.arange(len(questions))
    by = np.lexsort((order, questions, group_of))
    return np.sort(by[starts_run(questions[by]) | starts_run(group_of[by])])


def probes_of(batch, path_risks_alone):
    """Return the problems that a part stores for checks, with risks and groups."""
    n = len(batch)
    rows = np.unique(np.linspace(0, n - 1, min(n, N_PROBES)).astype(int))
    return ((batch[rows], path_risks_alone(batch[rows])),)


def refuse_part(part, fitted):
    """Raise ValueError if the filter would now score the problems in a part differently.

    The settings are compared as strings. Functions and scorers are compared by their results on
    the problems stored in the part.
    """
    _refuse_other_settings(part.made_as, part_settings(fitted))
    for batch, risks_before in part.probes:
        # If ``edges`` is a function, `check` computes the edges again.
        checked = check(fitted, batch)
        risks_now = fitted._path_risks_alone(checked)
        same_edges = np.array_equal(checked.edges, batch.edges)
        if not same_edges or not nearly_equal(
            risks_now.path_risk, risks_before.path_risk
        ):
            raise ValueError(
                "all path risks must be computed with the same scorer and edges, but one "
                "part was computed with a different scorer or different edges. Compute the "
                "part again with calibration_part"
            )
        if risks_now.groups != risks_before.groups:
            raise ValueError(
                "all parts must be computed with the same values of by, but one part was computed "
                "with different values. Compute the part again with calibration_part"
            )


def part_settings(fitted):
    """Return the settings that must stay the same after a part has been scored."""
    guarantee = fitted._resolved_guarantee()
    return (
        described(fitted.edges),
        fitted.online,
        fitted.ties,
        described_guarantee(guarantee, without=LEVELS),
        without_places(repr(fitted.scorer_)),
        fitted._seed if fitted.ties == "jitter" else None,
    )


def _refuse_other_settings(made_as, expected):
    if made_as == expected:
        return
    if made_as is None or expected is None:
        raise ValueError(
            "each part must contain the settings with which it was computed, but these "
            "settings are missing. Compute the part again with calibration_part"
        )
    for name, setting_before, setting_now in zip(
        MADE_AS, made_as, expected, strict=True
    ):
        if setting_before != setting_now:
            raise ValueError(
                f"all parts must be computed with the same settings, but {name} is "
                f"{setting_before} in one part instead of {setting_now}. Compute the part "
                "again with calibration_part"
            )
