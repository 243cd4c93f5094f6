"""Compare a relaxation with the hard procedure that it approximates."""

from dataclasses import dataclass

import numpy as np

from skdcf.ops.conformal import conformal_threshold
from skdcf.ops.hard import (
    nonconformity_scores,
    path_risk,
    segment_max,
    segment_min,
)
from skdcf.relaxation import GridRelaxation


@dataclass
class Agreement:
    """Nonconformity scores of problems with errors, thresholds per level, and kept claims."""

    soft_scores: np.ndarray
    hard_scores: np.ndarray
    soft_thresholds: np.ndarray
    hard_thresholds: np.ndarray
    soft_kept: np.ndarray
    hard_kept: np.ndarray

    @property
    def agreement(self):
        """Return the proportion of claims on which both procedures agree, for each level."""
        return (self.soft_kept == self.hard_kept).mean(axis=1)

    def numbers(self):
        """Return Pearson's r and the mean difference of the scores, and of the thresholds."""
        return [
            *_compared(self.soft_scores, self.hard_scores),
            *_compared(self.soft_thresholds, self.hard_thresholds),
        ]

    def counts(self):
        """Return the numbers of claims kept by both, soft only, hard only and neither."""
        soft, hard = self.soft_kept, self.hard_kept
        kinds = soft & hard, soft & ~hard, ~soft & hard, ~soft & ~hard
        return [int(kind.sum()) for kind in kinds]


def last_safe_thresholds(risk, scores, offsets, margin):
    """The largest threshold of each problem's grid at which no false claim is kept."""
    below = np.where(risk < np.repeat(scores, np.diff(offsets)), risk, -np.inf)
    last = np.maximum(segment_max(below, offsets), segment_min(risk, offsets) - margin)
    return np.where(np.isinf(scores), segment_max(risk, offsets) + margin, last)


def surrogate_agreement(filter, X, y, alphas, relaxation):
    """Calibrate the soft and the hard procedure on the same problems, and apply both to them.

    For a grid relaxation, the hard score is the last safe threshold of its grid, which is the
    limit of the soft score. For a path relaxation, it is the nonconformity score itself.
    """
    batch = filter.transform_features(X)
    true = np.concatenate(list(y)) == 1
    risk = -filter.confidence(X)
    hard_risk = path_risk(risk, batch)
    hard = nonconformity_scores(hard_risk, true, batch.offsets)
    wrong = np.isfinite(hard)
    if isinstance(relaxation, GridRelaxation):
        hard = last_safe_thresholds(risk, hard, batch.offsets, relaxation.margin)
    plan = relaxation.plan(batch, true)
    soft = relaxation.soft_scores(risk, plan)
    soft_t = np.array([relaxation.soft_threshold(soft, a) for a in alphas])
    hard_t = np.array([conformal_threshold(np.sort(hard), a) for a in alphas])
    kept = np.array(
        [relaxation.kept(relaxation.state(risk, plan), t, plan) >= 0.5 for t in soft_t]
    )
    return Agreement(
        soft_scores=soft[wrong],
        hard_scores=hard[wrong],
        soft_thresholds=soft_t,
        hard_thresholds=hard_t,
        soft_kept=kept,
        hard_kept=hard_risk < hard_t[:, None],
    )


def _compared(soft, hard):
    """Return the Pearson correlation and the mean absolute difference of the finite pairs."""
    finite = np.isfinite(soft) & np.isfinite(hard)
    soft, hard = soft[finite], hard[finite]
    r = float(np.corrcoef(soft, hard)[0, 1])
    return r, float(np.mean(np.abs(soft - hard)))
