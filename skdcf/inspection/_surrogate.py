"""How faithful the relaxation is that a filter was trained by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._checks import check_alphas
from .._table import Table
from ..metrics import filter_in
from ..ops.conformal import conformal_rank, conformal_threshold
from ..ops.hard import last_safe_thresholds, nonconformity_scores, path_risk

if TYPE_CHECKING:
    from ..graphs import Labels, Problems
    from ..relaxation import Relaxation


@dataclass(frozen=True, eq=False, repr=False)
class SurrogateReport(Table):
    """Soft against hard calibration and prediction; prints as the paper's table.

    Attributes
    ----------
    alpha : ndarray of shape (n_alphas,)
    soft_scores, hard_scores : ndarray of shape (n_with_errors,)
        Nonconformity scores of the problems with a false claim.
    soft_thresholds, hard_thresholds : ndarray of shape (n_alphas,)
    both_included, soft_only, hard_only, both_excluded : ndarray of int, (n_alphas,)
        Numbers of claims; softly included is a soft retention of at least 1/2.
    """

    alpha: np.ndarray
    soft_scores: np.ndarray
    hard_scores: np.ndarray
    soft_thresholds: np.ndarray
    hard_thresholds: np.ndarray
    both_included: np.ndarray
    soft_only: np.ndarray
    hard_only: np.ndarray
    both_excluded: np.ndarray

    @property
    def score_pearson(self) -> float:
        """Pearson correlation of the scores; NaN where one side is constant."""
        return _pearson(self.soft_scores, self.hard_scores)

    @property
    def score_mae(self) -> float:
        """Mean absolute difference of the scores, in units of the risk."""
        return float(np.mean(np.abs(self.soft_scores - self.hard_scores)))

    @property
    def threshold_pearson(self) -> float:
        """Pearson correlation of the thresholds over alphas where both are finite."""
        return _pearson(*self._finite_thresholds())

    @property
    def threshold_mae(self) -> float:
        """Mean absolute difference of the thresholds where both are finite."""
        soft, hard = self._finite_thresholds()
        return float(np.mean(np.abs(soft - hard))) if len(soft) else np.nan

    @property
    def agreement(self) -> NDArray:
        """Share of the claims on which both agree, shape (n_alphas,)."""
        same = self.both_included + self.both_excluded
        return same / (same + self.soft_only + self.hard_only)

    def _finite_thresholds(self):
        both = np.isfinite(self.soft_thresholds) & np.isfinite(self.hard_thresholds)
        return self.soft_thresholds[both], self.hard_thresholds[both]

    _columns = {
        "alpha": "{alpha:.3f}",
        "both incl.": "{both_included:d}",
        "soft only": "{soft_only:d}",
        "hard only": "{hard_only:d}",
        "both excl.": "{both_excluded:d}",
        "agree %": "{agree_pct:.1f}",
    }

    def _heading(self):
        return (
            f"nonconformity scores of {len(self.soft_scores)} problems with errors: "
            f"r = {self.score_pearson:.3f}, MAE = {self.score_mae:.3f}\n"
            f"thresholds: r = {self.threshold_pearson:.3f}, "
            f"MAE = {self.threshold_mae:.3f}"
        )

    def rows(self) -> list[dict[str, Any]]:
        """One dict per alpha, with numbers of claims.

        Returns
        -------
        list of dict
        """
        names = ("alpha", "both_included", "soft_only", "hard_only", "both_excluded")
        columns = [getattr(self, name).tolist() for name in names]
        columns.append((100 * self.agreement).tolist())
        lines = zip(*columns, strict=True)
        return [dict(zip((*names, "agree_pct"), line, strict=True)) for line in lines]


def surrogate_agreement(
    filter: Any,
    X: Problems,
    y: Labels,
    alphas: Iterable[float],
    *,
    relaxation: Relaxation | None = None,
) -> SurrogateReport:
    """Compare a relaxation with the hard procedure that it stands for.

    The problems calibrate both, and are then filtered by both. For a grid relaxation the
    hard score is the last safe threshold of its grid, which is its limit; for a path
    relaxation it is the nonconformity score itself.

    Parameters
    ----------
    filter : fitted filter
        The filter whose scorer gives the risks.
    X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
        Problems, as in the filter's `fit`; at least one with an error.
    y : sequence of 1-D arrays, one per problem
        Their labels.
    alphas : sequence of float in (0, 1)
        Levels for which there are too few problems are refused.
    relaxation : PathRelaxation or GridRelaxation, optional
        None is the filter's own.

    Returns
    -------
    SurrogateReport

    References
    ----------
    Hittesdorf, Salzetta, Cheng (arXiv:2604.20098), section on validating the surrogate.

    Examples
    --------
    >>> from skdcf import CoherentConformalFilter
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.inspection import surrogate_agreement
    >>> from skdcf.relaxation import PathRelaxation
    >>> X, y = make_reasoning_graphs(400, random_state=0, return_X_y=True)
    >>> dcf = CoherentConformalFilter(random_state=0).fit(X[:200], y[:200])
    >>> sharp = PathRelaxation(keep_temperature=1e-4, quantile_temperature=1e-4)
    >>> new = X[200:], y[200:]
    >>> report = surrogate_agreement(dcf, *new, [0.05, 0.1], relaxation=sharp)
    >>> bool((report.agreement > 0.99).all())
    True
    """
    from ..relaxation import GridRelaxation, PathRelaxation

    levels = check_alphas(alphas)
    filter = filter_in(filter)
    batch, true = filter.columns(X), filter.check(X, y)[1] == 1
    _check_enough(levels, len(batch), true)
    if relaxation is None:
        relaxation = getattr(filter, "relaxation", None) or PathRelaxation()
    relaxation.validate()
    risk = -filter.confidence(X)
    hard_risk = path_risk(risk, batch)
    hard = nonconformity_scores(hard_risk, true, batch.offsets)
    wrong = np.isfinite(hard)
    if isinstance(relaxation, GridRelaxation):
        hard = last_safe_thresholds(risk, hard, batch.offsets, relaxation.margin)
    plan = relaxation.plan(batch, true)
    soft = relaxation.soft_scores(risk, plan)
    ordered = np.sort(hard)
    soft_t = np.array([relaxation.soft_threshold(soft, a) for a in levels])
    hard_t = np.array([conformal_threshold(ordered, a) for a in levels])
    kept = np.array([relaxation.soft_retention(risk, t, plan) >= 0.5 for t in soft_t])
    truly = hard_risk < hard_t[:, None]
    return SurrogateReport(
        alpha=levels,
        soft_scores=soft[wrong],
        hard_scores=hard[wrong],
        soft_thresholds=soft_t,
        hard_thresholds=hard_t,
        both_included=(kept & truly).sum(axis=1),
        soft_only=(kept & ~truly).sum(axis=1),
        hard_only=(~kept & truly).sum(axis=1),
        both_excluded=(~kept & ~truly).sum(axis=1),
    )


def _check_enough(alphas, n, true):
    if true.all():
        raise ValueError(
            "no claim is false: there is no nonconformity score to compare"
        )
    few = [a for a in alphas.tolist() if conformal_rank(n, a) == 0]
    if few:
        raise ValueError(
            f"{n} problems are too few for alpha = {few[0]:g}: at least "
            f"alpha = {1 / (n + 1):.4g} is needed"
        )


def _pearson(a, b):
    if len(a) < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return float("nan")
    return float(np.corrcoef(a, b)[0, 1])
