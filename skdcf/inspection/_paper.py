"""Analyses of the paper: score separation, single-feature ablation and relaxation error.

The functions measure the separation between the scores of true and false claims, the number of
claims that a filter with a single feature keeps, and the agreement of the training relaxation
with the hard procedure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import GridSearchCV, GroupShuffleSplit, ShuffleSplit
from sklearn.utils import check_random_state

from .._checks import check_alphas, check_groups
from .._docs import documented
from .._html import LevelTable, Table
from ..estimators import SingleFeatureCF, check
from ..evaluation import ComparisonReport, compare_filters, fit_levels
from ..evaluation.compare import seeded
from ..graphs import Labels, Problems
from ..ops.conformal import conformal_rank, conformal_threshold
from ..ops.hard import last_safe_thresholds, nonconformity_scores, path_risk

TEST_SIZE = 0.15
GRID = 2001  # number of points at which the two densities are compared
BEYOND = 0.25  # margin for the tails of the densities, as a proportion of the range of the scores


@dataclass(frozen=True, eq=False, repr=False)
class SeparationReport(LevelTable):
    """Comparison of the scores of true and false claims for each filter and alpha.

    Scores are pooled z-scores. The mean and the standard deviation of the scores are computed
    over all filters at the same alpha.

    Parameters
    ----------
    names : tuple of str
        Filter names. The first filter is the reference.
    alpha : ndarray of shape (n_alphas,)
        The levels.
    scores : list of ndarray of shape (n_filters, n_scores)
        The standardised scores at each alpha.
    true : ndarray of bool of shape (n_scores,)
        Whether the claim that belongs to each score is true.
    """

    names: tuple[Any, ...]
    alpha: np.ndarray
    scores: list[Any]
    true: np.ndarray

    @classmethod
    def from_scores(
        cls, scores: Mapping[str, ArrayLike], labels: ArrayLike, alpha: float = np.nan
    ) -> SeparationReport:
        """Create a report from given scores.

        Parameters
        ----------
        scores : dict of str to array-like of shape (n_claims,)
            The scores, keyed by filter name.
        labels : array-like of shape (n_claims,)
            Claim labels: 1 true, 0 false. Claims with other labels are ignored.
        alpha : float, optional
            The level to print in the report.

        Returns
        -------
        report : SeparationReport
            A report with a single level.
        """
        labels = np.asarray(labels)
        judged = (labels == 0) | (labels == 1)
        table = np.array([np.asarray(row, float)[judged] for row in scores.values()])
        true = labels[judged] == 1
        return cls(tuple(scores), np.array([alpha]), [_pooled(table)], true)

    @property
    def separation(self) -> NDArray[Any]:
        """Return the mean score of true claims minus that of false claims, per filter and alpha."""
        return self._measured(lambda true, false: true.mean() - false.mean())

    @property
    def cohens_d(self) -> NDArray[Any]:
        """Return Cohen's d of the scores of true and false claims per filter and alpha."""
        return self._measured(cohens_d)

    @property
    def overlap(self) -> NDArray[Any]:
        """Return the overlap of the two score densities, between 0 and 1, per filter and alpha."""
        return self._measured(overlap)

    @property
    def ratio(self) -> NDArray[Any]:
        """Return the separation relative to the first filter, of shape (n_filters, n_alphas)."""
        separation = self.separation
        with np.errstate(divide="ignore", invalid="ignore"):
            return separation / separation[0]

    def _measured(self, measure):
        out = [
            [measure(row[self.true], row[~self.true]) for row in scores]
            for scores in self.scores
        ]
        return np.array(out).T

    _fields = ("separation", "ratio", "cohens_d", "overlap")
    _columns = {
        "alpha": "{alpha:.3f}",
        "filter": "{filter}",
        "separation": "{separation:.3f}",
        "ratio": "{ratio:.2f}",
        "Cohen's d": "{cohens_d:.3f}",
        "overlap": "{overlap:.3f}",
    }


@documented
def score_separation(
    filters: Mapping[str, Any],
    X: Problems,
    y: Labels,
    alphas: Iterable[float],
    *,
    cv: int = 20,
    groups: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> SeparationReport:
    """Compute the out-of-sample separation between the scores of true and false claims.

    Parameters
    ----------
    filters : dict of str to unfitted filter
        The filters, keyed by name. The first filter is the reference.
    X : {problems}
        Problems, as in the filters' `fit`.
    y : {labels}
        Claim labels of the problems. Claims with unknown labels are ignored.
    alphas : sequence of float in (0, 1)
        The levels.
    cv : int, default=20
        Number of random splits. In each split, 15 % of the problems are scored by filters that
        are fitted to the other problems. The scores of all splits are pooled.
    groups : array-like of shape (n_problems,), optional
        Group of each problem. Problems in the same group are assigned to the same side of each
        split.
    random_state : int, RandomState or None, default=None
        Seed of the splits and of the filters whose ``random_state`` is None.

    Returns
    -------
    report : SeparationReport
        The scores of the held-out problems in all splits.

    Notes
    -----
    Well-separated scores do not imply high retention. Retention depends on the false claims
    with the best scores, not on the average false claim.

    References
    ----------
    Hittesdorf, Salzetta, Cheng (arXiv:2604.20098), appendix on score distributions. The
    appendix does not define the overlap. Here, the overlap is the area under both of two
    Gaussian kernel density estimates.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.inspection import score_separation
    >>> from skdcf.scorers import ClassifierScorer
    >>> X, y = make_reasoning_graphs(300, random_state=0, return_X_y=True)
    >>> filters = {"frequency": HardCF(), "logistic": HardCF(ClassifierScorer())}
    >>> report = score_separation(filters, X, y, [0.1], cv=3, random_state=0)
    >>> bool(report.cohens_d[1, 0] > report.cohens_d[0, 0] > 0)
    True
    """
    levels = check_alphas(alphas).tolist()
    rng = check_random_state(random_state)
    if not filters:
        raise ValueError("filters must contain at least one filter, got none")
    batch, labels = check(next(iter(filters.values())), X, y)
    groups = check_groups(groups, len(batch))
    seed = int(rng.randint(2**31 - 1))
    kind = ShuffleSplit if groups is None else GroupShuffleSplit
    splitter = kind(cv, test_size=TEST_SIZE, random_state=seed)
    separations = []
    true = []
    for split in splitter.split(np.empty(len(batch)), groups=groups):
        train: NDArray = np.sort(split[0])
        test: NDArray = np.sort(split[1])
        seed = int(rng.randint(2**31 - 1))
        rows = np.isin(batch.problem_of, train)
        among = None if groups is None else np.asarray(groups)[train]
        judged = labels[~rows] >= 0
        true.append(labels[~rows][judged] == 1)
        fitted = []
        for unfitted in filters.values():
            by_level = fit_levels(
                seeded(unfitted, seed), batch[train], labels[rows], levels, groups=among
            )
            fitted.append(by_level.values())
        scores = [
            [fitted_filter.confidence(batch[test])[judged] for fitted_filter in row]
            for row in fitted
        ]
        separations.append(
            np.array(scores)
        )  # The shape is (n_filters, n_levels, n_claims).
    pooled = np.concatenate(separations, axis=2).swapaxes(0, 1)
    scores = [_pooled(table) for table in pooled]
    return SeparationReport(
        tuple(filters), np.array(levels), scores, np.concatenate(true)
    )


def _pooled(scores):
    """Return z-scores, based on the mean and standard deviation of all scores."""
    deviation = scores.std()
    return (scores - scores.mean()) / (deviation if deviation > 0 else 1.0)


def cohens_d(true, false):
    """Return Cohen's d of the scores of true and false claims, or NaN if it is undefined."""
    n = len(true)
    m = len(false)
    if n < 2 or m < 2:
        return np.nan
    within = ((n - 1) * true.var(ddof=1) + (m - 1) * false.var(ddof=1)) / (n + m - 2)
    return (true.mean() - false.mean()) / np.sqrt(within) if within > 0 else np.nan


def overlap(true, false):
    """Return the overlap area of two kernel density estimates, or NaN if one is undefined."""
    from scipy.stats import gaussian_kde

    if min(len(true), len(false)) < 2 or np.ptp(true) == 0 or np.ptp(false) == 0:
        return np.nan
    scores = np.concatenate([true, false])
    margin = BEYOND * np.ptp(scores)
    at = np.linspace(scores.min() - margin, scores.max() + margin, GRID)
    least = np.minimum(gaussian_kde(true)(at), gaussian_kde(false)(at))
    return float(least.sum() * (at[1] - at[0]))


BETA_MIX = tuple((np.arange(11) / 10).tolist())


@documented
def single_feature_ablation(
    filters: Mapping[str, Any],
    X: Problems,
    y: Labels,
    alphas: Iterable[float],
    features: Iterable[str | int] | Mapping[str, str | int],
    *,
    beta_mix: Iterable[float] = BETA_MIX,
    ties: Literal["exclude", "include", "jitter"] = "jitter",
    **options: Any,
) -> ComparisonReport:
    """Compare filters that use all features with filters that use a single feature.

    The weight of the descendants, ``beta_mix``, is selected for each feature, level and split
    by cross-validation on the training problems. The printed report contains the mean of
    ``beta_mix`` over the splits. The attribute ``chosen`` of the report contains each selected
    value.

    Parameters
    ----------
    filters : dict of str to unfitted filter
        Filters that use all features, keyed by name. The first filter is the reference.
    X : {problems}
        Problems, as in `skdcf.evaluation.compare_filters`.
    {y}
    alphas : sequence of float in (0, 1)
        The levels.
    features : sequence of names or column numbers, or dict of str to name or number
        The single features to evaluate. If a dict is passed, its keys are used as names in the
        report.
    beta_mix : sequence of float in [0, 1]
        Candidate values of ``beta_mix``. If only one value is passed, no cross-validation is
        performed.
    ties : {"exclude", "include", "jitter"}, default="jitter"
        Treatment of ties in the scores of the single-feature filters. These scores often have
        many ties.
    **options
        Options for `skdcf.evaluation.compare_filters`: cv, protocol, groups, n_jobs, random_state,
        verbose, resume.

    Returns
    -------
    report : ComparisonReport
        Results of all filters. The single-feature filters are listed last.

    References
    ----------
    Hittesdorf, Salzetta, Cheng (arXiv:2604.20098), section 5.3, which uses 20 folds, the
    default of `compare_filters`.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.inspection import single_feature_ablation
    >>> from skdcf.scorers import ClassifierScorer
    >>> X, y = make_reasoning_graphs(300, random_state=0, return_X_y=True)
    >>> report = single_feature_ablation(
    ...     {"all": HardCF(ClassifierScorer())}, X, y, [0.1, 0.2],
    ...     ["frequency-score", "claim_index"], beta_mix=[0.5], cv=3, random_state=0,
    ... )
    >>> report.names
    ('all', 'frequency-score', 'claim_index')
    """
    if not isinstance(features, Mapping):
        features = {str(feature): feature for feature in features}
    shared = [name for name in features if name in filters]
    tried = list(beta_mix)
    if shared:
        raise ValueError(
            f"a filter and a feature cannot both be named {shared[0]!r}. Rename one of "
            "them"
        )
    if not tried:
        raise ValueError("beta_mix must contain at least one value, got none")
    reports: dict[Any, Any] = {}
    for name, column in features.items():
        reports[name] = SingleFeatureCF(column, beta_mix=tried[0], ties=ties)
        if len(tried) > 1:
            reports[name] = GridSearchCV(reports[name], {"beta_mix": tried})
    return compare_filters(dict(filters) | reports, X, y, alphas, **options)


@dataclass(frozen=True, eq=False, repr=False)
class SurrogateReport(Table):
    """Comparison of the soft and the hard procedure in calibration and prediction.

    Parameters
    ----------
    alpha : ndarray of shape (n_alphas,)
        The levels.
    soft_scores, hard_scores : ndarray of shape (n_with_errors,)
        Nonconformity scores of the problems with a false claim.
    soft_thresholds, hard_thresholds : ndarray of shape (n_alphas,)
        Soft and hard thresholds, computed from the nonconformity scores.
    soft_kept, hard_kept : ndarray of bool of shape (n_alphas, n_claims)
        Whether each claim is kept. The soft procedure keeps claims with a soft retention of at
        least 1/2.
    """

    alpha: np.ndarray
    soft_scores: np.ndarray
    hard_scores: np.ndarray
    soft_thresholds: np.ndarray
    hard_thresholds: np.ndarray
    soft_kept: np.ndarray
    hard_kept: np.ndarray

    @property
    def score_pearson(self) -> float:
        """Return the Pearson correlation of soft and hard scores, or NaN if either is constant."""
        return _compared(self.soft_scores, self.hard_scores)[0]

    @property
    def score_mae(self) -> float:
        """Return the mean absolute difference of soft and hard scores, in units of the risk."""
        return _compared(self.soft_scores, self.hard_scores)[1]

    @property
    def threshold_pearson(self) -> float:
        """Return the Pearson correlation of soft and hard thresholds, over the finite pairs."""
        return _compared(self.soft_thresholds, self.hard_thresholds)[0]

    @property
    def threshold_mae(self) -> float:
        """Return the mean absolute difference of soft and hard thresholds, over finite pairs."""
        return _compared(self.soft_thresholds, self.hard_thresholds)[1]

    @property
    def agreement(self) -> NDArray[Any]:
        """Return the proportion of claims on which both procedures agree, for each alpha."""
        return (self.soft_kept == self.hard_kept).mean(axis=1)

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

    def _values(self):
        soft = self.soft_kept
        hard = self.hard_kept
        return {
            "alpha": self.alpha,
            "both_included": (soft & hard).sum(axis=1),
            "soft_only": (soft & ~hard).sum(axis=1),
            "hard_only": (~soft & hard).sum(axis=1),
            "both_excluded": (~soft & ~hard).sum(axis=1),
            "agree_pct": 100 * self.agreement,
        }


@documented
def surrogate_agreement(
    filter: Any,
    X: Problems,
    y: Labels,
    alphas: Iterable[float],
    *,
    relaxation: Any = None,
) -> SurrogateReport:
    """Compare a relaxation with the hard procedure that the relaxation approximates.

    Both procedures are calibrated on the given problems and then applied to the same problems.
    For a grid relaxation, the hard score is the last safe threshold of its grid, which is the
    limit of the soft score. For a path relaxation, the hard score is the nonconformity score
    itself.

    Parameters
    ----------
    filter : fitted filter
        The filter whose scorer computes the risks.
    X : {problems}
        Problems, in the format of the filter's `fit`. At least one problem must contain an
        error.
    {y}
    alphas : sequence of float in (0, 1)
        The levels. ``X`` must contain enough problems for calibration at each level.
    relaxation : PathRelaxation or GridRelaxation, optional
        The relaxation to compare. By default, the filter's relaxation is used.

    Returns
    -------
    report : SurrogateReport
        Soft and hard scores, thresholds and kept claims.

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
    batch = filter.transform_features(X)
    true = check(filter, X, y)[1] == 1
    if true.all():
        raise ValueError(
            "y must contain at least one false claim, but all labels are true. Pass "
            "problems with errors"
        )
    if not conformal_rank(len(batch), levels.min()):
        raise ValueError(
            f"alpha must be at least {1 / (len(batch) + 1):.4g} for {len(batch)} "
            f"problems, got {levels.min():g}. Increase alpha, or pass more problems"
        )
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
    soft_t = np.array([relaxation.soft_threshold(soft, a) for a in levels])
    hard_t = np.array([conformal_threshold(np.sort(hard), a) for a in levels])
    kept = np.array([relaxation.soft_retention(risk, t, plan) >= 0.5 for t in soft_t])
    return SurrogateReport(
        alpha=levels,
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
    soft = soft[finite]
    hard = hard[finite]
    if not len(soft):
        return np.nan, np.nan
    varies = np.ptp(soft) > 0 and np.ptp(hard) > 0
    r = float(np.corrcoef(soft, hard)[0, 1]) if varies else np.nan
    return r, float(np.mean(np.abs(soft - hard)))
