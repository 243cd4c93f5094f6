"""Calibration parts: problems that were scored for calibration, and the choice among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import guards
from ._arrays import ranges, reduce_segments, starts_run
from ._checks import Floats
from .guarantees import Guarantee, Jumps, NoFalseClaim
from .identity import (
    Hashes,
    group_numbers,
    hash_question,
    is_repeated,
    mix,
    rounded_bits,
)
from .ops.hard import segment_min

_FIELDS = "jumps", "hashes", "largest", "lowest", "lowered", "texts"


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
    lowest, lowered : ndarray of shape (n_problems,)
        Smallest path risk of each problem, before and after being lowered to allow for rounding
        errors.
    texts : ndarray of str of shape (n_problems,)
        First claim of each problem, for messages about copies, or an empty text.
    hashes : Hashes
        Hashes of the questions and of the problem contents.
    groups : list of length n_problems or None
        Group of each problem, if the guarantee has groups.
    origin : dict, optional
        How the problems were made.
    settings : dict, optional
        Settings of the filter that scored the problems.

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
    largest: Floats
    lowest: Floats
    lowered: Floats
    texts: NDArray[Any]
    hashes: Hashes
    groups: list[Any] | None
    origin: dict[str, Any] | None = None
    settings: dict[str, Any] | None = None

    @property
    def scores(self) -> Floats:
        """Nonconformity score of each problem."""
        return segment_min(self.jumps.position, self.jumps.offsets)

    @property
    def group_of(self) -> NDArray[np.int64]:
        """Number of the group of each problem."""
        return group_numbers(self.groups, len(self))

    def __len__(self) -> int:
        """Number of problems."""
        return len(self.jumps.offsets) - 1

    def __getitem__(self, rows: slice | NDArray[Any]) -> CalibrationPart:
        """Return a part that contains only the given rows."""
        groups = self.groups and [self.groups[i] for i in np.arange(len(self))[rows]]
        taken = {name: getattr(self, name)[rows] for name in _FIELDS}
        return replace(self, groups=groups, **taken)

    def lowered_by(self, change: Any, *args: float) -> CalibrationPart:
        """Return a part in which the positions of the jumps, and ``lowered``, are lower.

        Parameters
        ----------
        change : callable
            Function that lowers an array of path risks.
        *args : float
            Other arguments of the function.

        Returns
        -------
        part : CalibrationPart
            The changed part.
        """
        jumps = replace(self.jumps, position=change(self.jumps.position, *args))
        return replace(self, jumps=jumps, lowered=change(self.lowered, *args))

    @classmethod
    def join(cls, parts: Sequence[CalibrationPart]) -> CalibrationPart:
        """Join several parts into one part, in the given order.

        Parameters
        ----------
        parts : sequence of CalibrationPart
            The parts.

        Returns
        -------
        part : CalibrationPart
            The part with the problems of all parts.
        """
        if len(parts) == 1:
            return parts[0]
        columns: Any = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in ("largest", "lowest", "lowered", "texts")
        }
        return replace(
            parts[0],
            jumps=Jumps.join([part.jumps for part in parts]),
            hashes=Hashes.join([part.hashes for part in parts]),
            groups=parts[0].groups and [g for part in parts for g in part.groups or ()],
            origin=guards.join_origins([part.origin for part in parts]),
            **columns,
        )

    def orders(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return the hashes that determine which answers and questions are selected.

        Equal answers to a question are numbered by score. Ties are broken by all other values
        that depend on the answers. The order of the rows does not matter.

        Returns
        -------
        answers, questions : ndarray of uint64 of shape (n_problems,)
            The hashes of each answer and of its question.
        """
        if not is_repeated(self.hashes.content).any():
            return self.hashes.orders()
        jumps = self.jumps
        steps = mix(rounded_bits(jumps.position)) + jumps.loss.view(np.uint64)
        losses = reduce_segments(np.add, mix(steps), jumps.offsets, 0)
        groups = [hash_question("group", group) for group in self.groups or ()]
        return self.hashes.orders(
            np.array(groups or np.zeros(len(self))),
            self.largest,
            losses,
            self.lowest,
            self.scores,
        )

    def choose(
        self,
        guarantee: Guarantee,
        level: float,
        fewest: bool,
        *,
        in_groups: bool = True,
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
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

        Returns
        -------
        chosen, left_over : ndarray of int
            Indices of problems, sorted.
        """
        group_of = self.group_of if in_groups else np.zeros(len(self), int)
        by_content, by_question = self.orders()
        rows = choose_one_each(self.hashes.question, by_content, group_of)
        if not fewest:
            return rows, rows[:0]
        order = np.lexsort((by_question[rows], group_of[rows]))
        sizes = np.bincount(group_of[rows])
        counts = [min(n, guarantee.fewest(n, level)) for n in sizes.tolist()]
        chosen = order[ranges(np.cumsum(sizes) - sizes, counts)]
        return np.sort(rows[chosen]), np.delete(rows, chosen)


def first_claims(batch):
    """Return the text of each problem's first claim, or an empty text."""
    if batch.claims is None or not batch.n_claims:
        return np.full(len(batch), "")
    first = np.minimum(batch.offsets[:-1], batch.n_claims - 1)
    return np.where(batch.sizes > 0, batch.claims[first], "")


def choose_one_each(questions, order, group_of):
    """For each group and question, return the index of the first problem in the given order.

    All arrays have shape (n_problems,). The indices are sorted.
    """
    if (questions < 0).all():  # Each problem has its own question.
        return np.arange(questions.size)
    by = np.lexsort((order, questions, group_of))
    return np.sort(by[starts_run(questions[by]) | starts_run(group_of[by])])


def problems_needed(
    alpha: float, delta: float | None = None, *, show: float = 1
) -> int:
    """Return the number of calibration problems required in each group to keep any claim.

    Parameters
    ----------
    alpha : float in (0, 1)
        The level.
    delta, show : optional
        As in `skdcf.guarantees.NoFalseClaim`.

    Returns
    -------
    n_problems : int
        The smallest number of problems.

    Examples
    --------
    >>> from skdcf import problems_needed
    >>> problems_needed(0.1), problems_needed(0.1, delta=0.05)
    (9, 29)
    """
    return NoFalseClaim(delta=delta, show=show).problems_needed(alpha)
