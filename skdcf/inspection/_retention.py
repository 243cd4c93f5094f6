"""Where claims are lost, and how faithful the relaxation is that a filter was trained by.

Retention is counted by depth, by size, by topic, or by a feature.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import check_alphas
from .._table import Table
from ..graphs import Labels, Problems
from ..graphs.ragged import flatten
from ..metrics import filter_in
from ..ops.conformal import conformal_rank, conformal_threshold
from ..ops.hard import last_safe_thresholds, nonconformity_scores, path_risk

MOST_VALUES = 12  # of a number; more are put into as many ranges of equal size


@dataclass(frozen=True, eq=False, repr=False)
class RetentionReport(Table):
    """Kept and dropped claims per kind of claim; prints as a table.

    Attributes
    ----------
    by : str
        What the claims were told apart by.
    kind : list of str
    n_true, kept_true : ndarray of int, shape (n_kinds,)
        True claims, and those of them that are kept.
    n_false, kept_false : ndarray of int, shape (n_kinds,)
        False claims, and those of them that are kept.
    alpha : float
        NaN where it is not known.
    """

    by: str
    kind: list
    n_true: np.ndarray
    kept_true: np.ndarray
    n_false: np.ndarray
    kept_false: np.ndarray
    alpha: float = np.nan

    @classmethod
    def from_predictions(
        cls,
        y: Sequence[ArrayLike] | ArrayLike,
        kept: Sequence[ArrayLike] | ArrayLike,
        by: ArrayLike,
    ) -> RetentionReport:
        """Count what masks keep of each kind of claim, whatever made them.

        Parameters
        ----------
        y : sequence of 1-D arrays, one per problem
            1 true, 0 false; claims with another label do not count.
        kept : sequence of boolean masks, as `predict` returns them
            The claims that are kept.
        by : array-like of shape (n_claims,) or (n_problems,)
            The kind of each claim, or of each problem.

        Returns
        -------
        RetentionReport
        """
        labels, masks, offsets = flatten(y, kept)
        return cls._counted("kind", _per_claim(by, offsets), labels, masks)

    @classmethod
    def _counted(cls, name, values, labels, kept, alpha=np.nan):
        kinds, code = _kinds(values)
        counts = {}
        for word, chosen in (("true", labels == 1), ("false", labels == 0)):
            for key, some in (("n", chosen), ("kept", chosen & kept)):
                counts[f"{key}_{word}"] = np.bincount(code[some], minlength=len(kinds))
        return cls(by=name, kind=kinds, alpha=alpha, **counts)

    @property
    def share(self) -> NDArray:
        """Share of the true claims that is kept, shape (n_kinds,); NaN for none."""
        with np.errstate(invalid="ignore"):
            return self.kept_true / self.n_true

    @property
    def error(self) -> NDArray:
        """Standard error of the share, as if claims were independent, (n_kinds,).

        Claims of one problem are not, so that the true error is larger.
        """
        with np.errstate(invalid="ignore"):
            return np.sqrt(self.share * (1 - self.share) / self.n_true)

    def rows(self) -> list[dict[str, Any]]:
        """One dict per kind of claim.

        Returns
        -------
        list of dict
        """
        counts = ("n_true", "kept_true", "share", "error", "n_false", "kept_false")
        columns = [self.kind, *(getattr(self, name).tolist() for name in counts)]
        names = (self.by, *counts)
        return [
            dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)
        ]

    @property
    def _columns(self):
        return {
            self.by: lambda row: row[self.by],
            "true": "{n_true:d}",
            "true kept": "{kept_true:d}",
            "share": "{share:.3f} +- {error:.3f}",
            "false": "{n_false:d}",
            "false kept": "{kept_false:d}",
        }

    def _heading(self):
        return f"claims kept at alpha = {self.alpha:g}"


def retention_by(
    filter: Any,
    X: Problems,
    y: Labels,
    by: str | ArrayLike,
    *,
    alpha: float | None = None,
) -> RetentionReport:
    """Share of the true claims that a filter keeps, for each kind of claim.

    Parameters
    ----------
    filter : fitted filter
        Also a fitted search around a filter.
    X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
        Test problems.
    y : sequence of 1-D arrays, one per problem
        Their labels. Claims whose label is unknown do not count.
    by : str, or array-like of shape (n_claims,) or (n_problems,)
        What tells claims apart: "depth" (longest path that leads to the claim), "size"
        (claims of its problem), the name of a feature, or values of your own. Numbers
        that take many values are put into ranges that hold about as many claims each.
    alpha : float in (0, 1), optional
        None is the filter's own.

    Returns
    -------
    RetentionReport

    Raises
    ------
    ValueError
        If ``by`` names nothing, or has another length.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.inspection import retention_by
    >>> graphs, y = make_reasoning_graphs(400, random_state=0, return_X_y=True)
    >>> cf = HardCF().fit(graphs[:200], y[:200])
    >>> report = retention_by(cf, graphs[200:], y[200:], "depth", alpha=0.2)
    >>> report.kind[:3], int(report.n_true.sum()) == int(sum(map(sum, y[200:])))
    (['0', '1', '2'], True)
    """
    filter = filter_in(filter)
    batch, labels = filter.check(X, y)
    kept = np.concatenate(list(filter.predict(batch, alpha)), axis=None)
    if isinstance(by, str):
        name, values = by, _named(by, batch)
    else:
        name, values = "kind", _per_claim(by, batch.offsets)
    level = filter.calibration_.guarantee.level(alpha, filter.alpha)
    return RetentionReport._counted(name, values, labels, kept, level)


def _per_claim(by, offsets):
    """One value per claim, from one per claim or one per problem."""
    values, n, n_claims = np.asarray(by), len(offsets) - 1, int(offsets[-1])
    if values.shape == (n,) and n != n_claims:
        values = np.repeat(values, np.diff(offsets))
    if values.shape != (n_claims,):
        raise ValueError(
            f"by has shape {values.shape}, but there are {n} problems and {n_claims} "
            "claims: one value is needed for each of either"
        )
    return values


def _named(by, batch):
    names = batch.feature_names or ()
    if by in names:
        return batch.features[:, names.index(by)]
    if by == "depth":
        return batch.depth
    if by == "size":
        return batch.sizes[batch.problem_of]
    raise ValueError(
        f'by is {by!r}, but must be "depth", "size", an array, or one of the features '
        f"{list(names)}"
    )


def _kinds(values):
    """Names of the kinds, and the number of each claim's."""
    kinds, code = np.unique(values, return_inverse=True)
    if len(kinds) <= MOST_VALUES or values.dtype.kind not in "fiu":
        return [_name(kind) for kind in kinds], code
    edges = np.unique(np.quantile(values, np.linspace(0, 1, MOST_VALUES + 1)))
    code = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
    _, code = np.unique(code, return_inverse=True)
    ranges = [values[code == k] for k in range(code.max() + 1)]
    return [_range(some.min(), some.max()) for some in ranges], code


def _range(low, high):
    return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"


def _name(kind):
    return f"{kind:g}" if isinstance(kind, np.floating) else str(kind)


if TYPE_CHECKING:
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
