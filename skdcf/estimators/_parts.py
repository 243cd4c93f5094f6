"""What calibration needs to know of some problems, so that they may come in parts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..guarantees import Claims
from ..ops.risk_control import Steps
from ._labels import flat_labels

if TYPE_CHECKING:
    from ..graphs import Labels, Problems

#: What is compared, in the order of ``made_as``.
MADE_AS = (
    "coherent",
    "ties",
    "guarantee",
    "scorer",
    "functions (by what they do)",
    "training (seed, problems, and alpha where it matters)",
    "random_state",
)


@dataclass(frozen=True)
class CalibrationPart:
    """What is left of problems once they have been scored for calibration.

    Made by ``calibration_part`` of a filter, for ``calibrate_parts`` of the same one.

    Parameters
    ----------
    steps : Steps
        Where what the guarantee counts grows with the threshold; one step at the
        nonconformity score of each problem if that is all there is to it.
    answers : ndarray of shape (n_problems,)
        Largest path risk of the problem, lowered likewise, +inf where all claims are true.
    weights : ndarray of shape (n_problems,), optional
        Where the guarantee has weights.
    groups : list of length n_problems, optional
        Where it is made for groups.
    made_as : tuple, optional
        Settings of the filter that scored them; None where nobody knows.

    Attributes
    ----------
    scores : ndarray of shape (n_problems,)
        Nonconformity scores, +inf where every threshold is safe.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> graphs, y = make_reasoning_graphs(200, random_state=0, return_X_y=True)
    >>> cf = HardCF("frequency-score").fit(graphs, y)
    >>> parts = [cf.calibration_part(graphs[i : i + 50], y[i : i + 50])
    ...          for i in range(0, 200, 50)]
    >>> cf.calibrate_parts(parts).n_calibration_
    200
    """

    steps: Steps
    answers: NDArray[np.float64]
    weights: NDArray[np.float64] | None = None
    groups: list | None = None
    made_as: tuple | None = None

    @property
    def scores(self) -> NDArray[np.float64]:
        """Nonconformity score of each problem."""
        return self.steps.first()

    def __len__(self) -> int:
        """Number of problems."""
        return self.steps.n

    def __getitem__(self, rows: slice | NDArray) -> CalibrationPart:
        """The same of some of the problems."""
        rows = np.arange(len(self))[rows]
        weights = None if self.weights is None else self.weights[rows]
        groups = None if self.groups is None else [self.groups[i] for i in rows]
        steps, answers = self.steps[rows], self.answers[rows]
        return CalibrationPart(steps, answers, weights, groups, self.made_as)

    def claims(self) -> Claims:
        """Weights and groups, as a guarantee takes them.

        Returns
        -------
        Claims
        """
        none, bounds = np.empty(0), np.zeros(len(self) + 1, dtype=np.int64)
        return Claims(none, bounds, self.weights, self.groups)

    @classmethod
    def join(cls, parts: Iterable[CalibrationPart]) -> CalibrationPart:
        """Several parts as one, in their order.

        Parameters
        ----------
        parts : iterable of CalibrationPart
            At least one.

        Returns
        -------
        CalibrationPart

        Raises
        ------
        ValueError
            If there is none, or they were made with different settings.
        """
        parts = list(parts)
        if not parts:
            raise ValueError("there are no calibration problems: no part was given")
        first, weights, groups = parts[0], None, None
        for part in parts:
            _refuse_other_settings(part.made_as, first.made_as)
        if first.weights is not None:
            weights = np.concatenate([part.weights for part in parts])
        if first.groups is not None:
            groups = [group for part in parts for group in part.groups]
        answers = np.concatenate([part.answers for part in parts])
        steps = Steps.join([part.steps for part in parts])
        return cls(steps, answers, weights, groups, first.made_as)


class CalibratedInParts:
    """What a filter does with problems that calibrate it part by part."""

    _admit: Any  # these are the filter's
    _label_values: Any
    _part: Any
    _part_settings: Any
    _store: Any
    validate: Any

    def calibration_scores(self, X: Problems, y: Labels) -> NDArray[np.float64]:
        """Nonconformity score of each problem, as `calibrate` would use it.

        Parameters
        ----------
        X, y
            As in `fit`.

        Returns
        -------
        ndarray of shape (n_problems,)
            The largest threshold that is safe, lowered by more than the rounding of the
            scorer: the smallest path risk of a claim that is not known to be true, or
            what ``guarantee`` makes of these. +inf where every threshold is safe.
        """
        return self.calibration_part(X, y).scores

    def calibration_part(self, X: Problems, y: Labels) -> CalibrationPart:
        """What calibration needs of some problems, to be used later or elsewhere.

        Parameters
        ----------
        X, y
            As in `fit`; problems that the scorer has not seen.

        Returns
        -------
        CalibrationPart
            For `calibrate_parts`. It takes some 32 bytes per problem.
        """
        batch, is_table = self._admit(X)
        labels, _ = flat_labels(y, batch, is_table, self._label_values)
        return replace(self._part(batch, labels), made_as=self._part_settings())

    def calibrate_parts(self, parts: Iterable[CalibrationPart]) -> Self:
        """Calibrate again, on problems that were scored in parts.

        Parameters
        ----------
        parts : iterable of CalibrationPart
            From `calibration_part` of this filter or of a copy, with the scorer that it
            has now.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If there is no part, or the parts were made for another guarantee, with other
            settings, or with a scorer that was another or trained on other problems.

        Warns
        -----
        CalibrationWarning
            If there are too few calibration problems for ``alpha``.
        """
        check_is_fitted(self)
        self.validate()
        part = CalibrationPart.join(parts)
        if part.made_as is not None:
            _refuse_other_settings(part.made_as, self._part_settings())
        return self._store(part)


def _refuse_other_settings(found, wanted):
    if found != wanted:
        both = zip(MADE_AS, found or (), wanted or (), strict=False)
        differ = [
            f"{name} = {a}, and is to calibrate with {b}"
            for name, a, b in both
            if a != b
        ]
        raise ValueError(
            f"a part was scored with {[*differ, 'settings that are not known'][0]}: score "
            "it again, by calibration_part"
        )
