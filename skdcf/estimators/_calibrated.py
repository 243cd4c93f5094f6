"""From a fitted scorer to kept claims: calibration, thresholds, masks.

Everything that the guarantee rests on stands here, once, and is the same for all filters.
"""

from copy import copy
from typing import Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_is_fitted

from .._checks import check_alpha, warn
from .._parameters import Settings
from ..exceptions import CalibrationWarning
from ..graphs import GraphBatch, Labels, Problems, ReasoningGraph
from ..ops.conformal import (
    claim_alpha,
    conformal_rank,
    conformal_threshold,
    problems_needed,
)
from ..ops.hard import (
    answer_scores,
    nonconformity_scores,
    path_risk,
    path_risk_of_errors,
    segment_sum,
)
from ..scorers import Scorer
from ._admit import admit_problems
from ._labels import flat_labels
from ._parts import CalibratedInParts, CalibrationPart
from ._repeat import confidence_of, measured_rounding, resolution_of
from ._ties import TIES, jittered


class CalibratedFilter(CalibratedInParts, Settings):
    """What a filter does once it has a scorer: calibrate it, and filter problems."""

    alpha: float
    coherent: bool
    ties: str
    scorer_: Scorer
    nonconformity_scores_: NDArray[np.float64]
    answer_scores_: NDArray[np.float64]
    threshold_: float
    n_calibration_: int

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
        """
        check_is_fitted(self)
        self.validate()
        batch, is_table = self._admit(X)
        labels, _ = flat_labels(y, batch, is_table, self._label_values)
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

    def _part(self, batch, labels):
        """Scores of problems, lowered by more than the scorer's rounding."""
        confidence = confidence_of(self.scorer_, batch)
        risk = path_risk_of_errors(self._risk(confidence, batch), labels, batch)
        rounding = measured_rounding(self.scorer_, batch, confidence)
        least = resolution_of(self.scorer_, batch)
        scores = nonconformity_scores(risk, labels, batch.offsets)
        answers = answer_scores(risk, labels, batch.offsets)
        lowered = _lowered(answers, least, rounding)
        if TIES[self.ties].keep_equal:
            return CalibrationPart(scores, lowered)
        return CalibrationPart(_lowered(scores, least, rounding), lowered)

    def _risk(self, confidence, batch):
        if TIES[self.ties].jitter:
            return jittered(-confidence, batch, self._seed)
        return -confidence

    def _store(self, part):
        scores = np.sort(part.scores)
        threshold = self._threshold(scores, self.alpha)
        self.nonconformity_scores_ = scores
        self.answer_scores_ = np.sort(part.answers)
        self.n_calibration_ = len(scores)
        self.threshold_ = threshold
        self._calibrated_as = self.coherent, self.ties
        return self

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
            problems are free of errors.

        Warns
        -----
        CalibrationWarning
            If the rank is 0.
        UserWarning
            If alpha is above 0.5.
        """
        check_is_fitted(self, "nonconformity_scores_")
        return self._threshold(self.nonconformity_scores_, alpha)

    def _threshold(self, scores, alpha):
        alpha = check_alpha(self.alpha if alpha is None else alpha)
        n = len(scores)
        if alpha > 0.5:
            warn(
                f"alpha = {alpha:g} allows a false claim in {alpha:.0%} of the problems: "
                f"alpha is the share of errors. Was {1 - alpha:.3g} meant?"
            )
        if conformal_rank(n, alpha) == 0:
            warn(
                f"{n} calibration problems are too few for alpha = {alpha:g}: nothing "
                f"can be kept. At least {problems_needed(alpha)} are needed, of those "
                f"that calibration_size holds out, or alpha >= {1 / (n + 1):.4g}.",
                CalibrationWarning,
            )
        return conformal_threshold(scores, alpha)

    def predict(self, X: Problems, alpha: float | None = None) -> NDArray:
        """Which claims are kept.

        Parameters
        ----------
        X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
        alpha : float in (0, 1), optional
            None is the filter's own. Kept sets are nested in alpha.

        Returns
        -------
        object ndarray of shape (n_problems,) with one boolean mask per problem, or a
        boolean ndarray of shape (n_problems,) for an array X.
        """
        margin, batch, is_table = self._margin(X, alpha)
        return _shaped(margin > 0, batch, is_table)

    def predict_alpha(self, X: Problems) -> NDArray:
        """The smallest alpha at which each claim is kept.

        Parameters
        ----------
        X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)

        Returns
        -------
        object ndarray of shape (n_problems,) with one array per problem, or an ndarray
        for an array X. ``predict(X, alpha=a)`` is ``predict_alpha(X) <= a``; 1 says
        that the claim is never kept.
        """
        risk, batch, is_table = self._path_risk(X)
        keep_equal = TIES[self.ties].keep_equal
        levels = claim_alpha(self.nonconformity_scores_, risk, keep_equal)
        return _shaped(levels, batch, is_table)

    def path_risk(self, X: Problems) -> NDArray:
        """The largest risk among each claim and its ancestors.

        Parameters
        ----------
        X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)

        Returns
        -------
        Shaped as in `predict_alpha`. Without ``coherent``, the claim's own risk.
        """
        return _shaped(*self._path_risk(X))

    def decision_function(self, X: Problems) -> NDArray:
        """Threshold minus path risk: positive exactly where `predict` keeps.

        Parameters
        ----------
        X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)

        Returns
        -------
        Shaped as in `predict_alpha`; -inf everywhere where nothing may be kept.
        """
        return _shaped(*self._margin(X, None))

    def filter(self, X: Problems, alpha: float | None = None) -> list[ReasoningGraph]:
        """The problems with their kept claims only.

        Parameters
        ----------
        X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
        alpha : float in (0, 1), optional

        Returns
        -------
        list of ReasoningGraph
        """
        batch = self.check(X)
        masks = self.predict(batch, alpha)
        return [g.subgraph(mask) for g, mask in zip(batch, masks, strict=True)]

    def score(
        self, X: Problems, y: Labels, sample_weight: ArrayLike | None = None
    ) -> float:
        """Retention: mean number of true claims kept per problem, at ``self.alpha``.

        Parameters
        ----------
        X, y
            As in `fit`. Claims whose label is unknown do not count.
        sample_weight : array-like of shape (n_problems,), optional
            Weights of the problems in the mean.

        Returns
        -------
        float
        """
        margin, batch, is_table = self._margin(X, None)
        labels, _ = flat_labels(y, batch, is_table, self._label_values)
        kept = segment_sum((labels == 1) & (margin > 0), batch.offsets)
        weights = None if sample_weight is None else np.asarray(sample_weight)
        return float(np.average(kept, weights=weights))

    def _margin(self, X, alpha):
        threshold, (risk, batch, is_table) = self.threshold(alpha), self._path_risk(X)
        if TIES[self.ties].keep_equal and np.isfinite(threshold):
            threshold = np.nextafter(threshold, np.inf)
        return threshold - risk, batch, is_table

    def _path_risk(self, X):
        """R of each claim, the problems, and whether they were a table."""
        check_is_fitted(self, "nonconformity_scores_")
        if (self.coherent, self.ties) != self._calibrated_as:
            raise ValueError(
                f"(coherent, ties) was {self._calibrated_as} at calibration and is "
                f"{(self.coherent, self.ties)} now: call calibrate or fit again"
            )
        batch, is_table = self._admit(X)
        risk = self._risk(confidence_of(self.scorer_, batch), batch)
        return path_risk(risk, batch), batch, is_table

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags


def _lowered(scores, least, rounding):
    """Scores lowered by what they may differ by in another batch, in place."""
    finite = np.isfinite(scores)
    scores[finite] -= np.maximum(least * (1 + np.abs(scores[finite])), rounding)
    return scores


def _shaped(values, batch, is_table):
    return values if is_table else batch.split(values)
