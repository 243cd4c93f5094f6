"""From a fitted scorer to a calibration: what the guarantee makes of problems."""

from copy import copy, deepcopy
from dataclasses import replace
from typing import Self, overload

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .._checks import warn
from .._parameters import Settings
from ..exceptions import CalibrationWarning
from ..graphs import GraphBatch, Labels, Problems
from ..guarantees import Calibration, Guarantee, NoFalseClaim
from ..ops.hard import answer_scores, path_risk, path_risk_of_errors
from ..scorers import Scorer
from ._admit import admit_problems
from ._labels import flat_labels, warn_of_labels
from ._parts import CalibratedInParts, CalibrationPart
from ._repeat import confidence_of, lowered, measured_rounding, resolution_of
from ._scored_as import code_of, described, described_scorer
from ._ties import TIES, jittered

LEVELS = ("delta", "bound", "unseen")  # settings that scores do not depend on


class CalibratingFilter(CalibratedInParts, Settings):
    """What a filter does once it has a scorer: calibrate it, as its guarantee says."""

    alpha: float
    coherent: bool
    ties: str
    guarantee: Guarantee | None
    scorer_: Scorer
    nonconformity_scores_: NDArray[np.float64]
    answer_scores_: NDArray[np.float64]
    threshold_: float
    n_calibration_: int
    calibration_: Calibration

    def calibrate(self, X: Problems, y: Labels) -> Self:
        """Calibrate again, on problems of the caller's; the scorer stays as it is.

        Parameters
        ----------
        X, y
            As in `fit`; problems that the scorer has not seen.

        Returns
        -------
        self

        Warns
        -----
        CalibrationWarning
            If there are too few calibration problems for ``alpha``.
        LabelWarning
            If a language model gave all the labels, or if more problems have no judged
            claim than alpha allows for.
        """
        check_is_fitted(self)
        self.validate()
        batch, is_table = self._admit(X)
        labels, _ = flat_labels(y, batch, is_table, self._label_values)
        warn_of_labels(batch, labels, self._level(None))
        return self._store(self._part(batch, labels))

    @overload
    def check(self, X: Problems, y: None = None) -> GraphBatch: ...

    @overload
    def check(self, X: Problems, y: Labels) -> tuple[GraphBatch, NDArray[np.int8]]: ...

    def check(self, X, y=None):
        """What `fit` and all other methods do first, by itself.

        Parameters
        ----------
        X, y
            As in `fit`.

        Returns
        -------
        batch : GraphBatch
            The problems, packed; every method takes them in place of X.
        labels : ndarray of int, shape (n_claims,)
            Only if y is given: 1 true, 0 false, -1 unknown, in place of y.

        Raises
        ------
        ValueError
            On bad problems or labels. A fitted filter compares with those of `fit`.
        """
        fitted = hasattr(self, "scorer_")
        door = self if fitted else copy(self)  # which keeps the names of columns
        batch, is_table = admit_problems(door, X, reset=not fitted)
        if y is None:
            return batch
        values = self._label_values if fitted else None
        return batch, flat_labels(y, batch, is_table, values)[0]

    def _admit(self, X, *, reset=False):
        """The problems as the filter works on them, and whether they were a table."""
        batch, is_table = admit_problems(self, X, reset=reset)
        return (batch if self.coherent else batch.without_edges()), is_table

    def _promise(self):
        """The guarantee; None stands for that of no false claim."""
        return NoFalseClaim() if self.guarantee is None else self.guarantee

    def _part(self, batch, labels):
        """What calibrates, lowered by more than the scorer's rounding."""
        confidence = confidence_of(self.scorer_, batch)
        risk = self._risk(confidence, batch)
        if self.guarantee is None:
            risk = path_risk_of_errors(risk, labels, batch)
        else:  # one of the user's own may look at problems without an error too
            risk = path_risk(risk, batch)
        steps = self._promise().steps(risk, labels, batch.offsets)
        answers = answer_scores(risk, labels, batch.offsets)
        claims = self._promise().claims(risk, batch)
        self._promise().refuse_company(batch, claims)
        rounding = measured_rounding(self.scorer_, batch, confidence)
        least = resolution_of(self.scorer_, batch)
        if not TIES[self.ties].keep_equal:
            position = lowered(steps.position, least, rounding)
            steps = replace(steps, position=position)
        answers = lowered(answers, least, rounding)
        return CalibrationPart(steps, answers, claims.weights, claims.groups)

    def _risk(self, confidence, batch):
        if TIES[self.ties].jitter:
            return jittered(-confidence, batch, self._seed)
        return -confidence

    def with_alpha(self, alpha: float) -> Self:
        """The same fitted filter with another alpha of its own; nothing is trained.

        Parameters
        ----------
        alpha : float in (0, 1)

        Returns
        -------
        fitted filter
            A copy, whose calibration is that of this one.
        """
        other = copy(self).set_params(alpha=alpha)
        if self.guarantee is not None:
            other.guarantee = self.guarantee.for_level(alpha)
        other.calibration_ = copy(self.calibration_)
        other.calibration_.promise = deepcopy(other._promise())
        other._calibrated_as = other._settings()
        other._warn(other.calibration_, other._level(None))
        other.threshold_ = other.calibration_.threshold(other._level(None))
        return other

    def _store(self, part):
        promise = deepcopy(self._promise())  # what the caller holds may change
        calibration = promise.calibrate(part.steps, part.claims())
        self._warn(calibration, self._level(None))
        scores = calibration.scores  # sorted already, where there is nothing else
        self.nonconformity_scores_ = np.sort(part.scores) if scores is None else scores
        self.answer_scores_ = np.sort(part.answers)
        self.n_calibration_ = len(part)
        self.calibration_ = calibration
        self.threshold_ = calibration.threshold(self._level(None))
        self._calibrated_as = self._settings()
        return self

    def _settings(self):
        """What has to be as it was at calibration."""
        return self.coherent, self.ties, described(self.guarantee)

    def _part_settings(self):
        """What has to be as it was when a part was scored."""
        promise = self._promise()
        functions = tuple(map(code_of, promise.functions))
        text = described(promise, LEVELS), described_scorer(self.scorer_)
        drawn = self._seed if TIES[self.ties].jitter else None
        return self.coherent, self.ties, *text, functions, self._trained_on, drawn

    def threshold(self, alpha: float | None = None) -> float:
        """The conformal threshold: claims with a smaller path risk are kept.

        Parameters
        ----------
        alpha : float in (0, 1), optional
            None is the filter's own.

        Returns
        -------
        float
            The floor(alpha (n + 1))-th smallest nonconformity score; -inf (nothing is
            kept) if that rank is 0, +inf (everything is kept) if so many calibration
            problems are free of errors. Another ``guarantee`` has a rank of its own.

        Raises
        ------
        ValueError
            If ``guarantee`` gives problems thresholds of their own: see `thresholds`.

        Warns
        -----
        CalibrationWarning
            If the rank is 0.
        UserWarning
            If alpha is above 0.5.
        """
        check_is_fitted(self, "nonconformity_scores_")
        level = self._level(alpha)
        self._warn(self.calibration_, level)
        threshold = self.calibration_.threshold(level)
        if np.isnan(threshold):
            raise ValueError(
                f"with guarantee={self.guarantee!r} problems have thresholds of their "
                "own: thresholds(X) gives one for each"
            )
        return threshold

    def _level(self, alpha):
        return self._promise().level(alpha, self.alpha)

    def _warn(self, calibration, level):
        if level > 0.5 and self._promise().is_probability:
            warn(
                f"alpha = {level:g} allows a false claim in {level:.0%} of the problems: "
                f"alpha is the share of errors. Was {1 - level:.3g} meant?"
            )
        lacking = calibration.lacking(level)
        if lacking:
            warn(lacking, CalibrationWarning)
