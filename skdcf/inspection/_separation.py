"""How far apart the scores of true and of false claims are, and what single features do.

Each feature alone is compared with filters that use all of them together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupShuffleSplit, ShuffleSplit
from sklearn.utils import check_random_state

from .._checks import check_alphas, check_groups
from .._table import Table
from ..estimators import SingleFeatureCF
from ..evaluation import ComparisonReport, compare_filters, fit_levels
from ..graphs import Labels, Problems

TEST_SIZE = 0.15
GRID = 2001  # points at which densities are compared
BEYOND = 0.25  # of the range, on both sides, for the tails of the densities


@dataclass(frozen=True, eq=False, repr=False)
class SeparationReport(Table):
    """Scores of true and of false claims, per filter and alpha; prints as a table.

    Scores are z-scores, pooled over the filters: minus the mean, and divided by the
    standard deviation, of all scores of all filters at that alpha.

    Attributes
    ----------
    names : tuple of str
        The filters; the first is the reference.
    alpha : ndarray of shape (n_alphas,)
    scores : list of ndarray of shape (n_filters, n_scores)
        One per alpha.
    true : ndarray of bool, shape (n_scores,)
    """

    names: tuple
    alpha: np.ndarray
    scores: list
    true: np.ndarray

    @classmethod
    def from_scores(
        cls, scores: Mapping[str, ArrayLike], labels: ArrayLike, alpha: float = np.nan
    ) -> SeparationReport:
        """A report of scores that are at hand.

        Parameters
        ----------
        scores : dict of str to array-like of shape (n_claims,)
        labels : array-like of shape (n_claims,)
            1 true, 0 false; other claims are left out.
        alpha : float, optional

        Returns
        -------
        SeparationReport
        """
        labels = np.asarray(labels)
        known = (labels == 0) | (labels == 1)
        table = np.array([np.asarray(row, float)[known] for row in scores.values()])
        true = labels[known] == 1
        return cls(tuple(scores), np.array([alpha]), [_pooled(table)], true)

    @property
    def separation(self) -> NDArray:
        """Mean score of true claims minus that of false ones, (n_filters, n_alphas)."""
        return self._measured(lambda true, false: true.mean() - false.mean())

    @property
    def cohens_d(self) -> NDArray:
        """The separation in pooled deviations within the two, (n_filters, n_alphas)."""
        return self._measured(cohens_d)

    @property
    def overlap(self) -> NDArray:
        """Area under both densities, (n_filters, n_alphas): 1 where they are the same."""
        return self._measured(overlap)

    @property
    def ratio(self) -> NDArray:
        """The separation over that of the reference, (n_filters, n_alphas)."""
        separation = self.separation
        with np.errstate(divide="ignore", invalid="ignore"):
            return separation / separation[0]

    def _measured(self, measure):
        out = [
            [measure(row[self.true], row[~self.true]) for row in scores]
            for scores in self.scores
        ]
        return np.array(out).T

    def rows(self) -> list[dict[str, Any]]:
        """One dict per alpha and filter.

        Returns
        -------
        list of dict
        """
        columns = {
            "separation": self.separation,
            "ratio": self.ratio,
            "cohens_d": self.cohens_d,
            "overlap": self.overlap,
        }
        return [
            {"alpha": float(alpha), "filter": name}
            | {key: float(values[i, j]) for key, values in columns.items()}
            for j, alpha in enumerate(self.alpha)
            for i, name in enumerate(self.names)
        ]

    _columns = {
        "alpha": "{alpha:.3f}",
        "filter": "{filter}",
        "separation": "{separation:.3f}",
        "ratio": "{ratio:.2f}",
        "Cohen's d": "{cohens_d:.3f}",
        "overlap": "{overlap:.3f}",
    }


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
    """Separation of true from false claims by the scores of filters, out of sample.

    Parameters
    ----------
    filters : dict of str to unfitted filter
        By the name to print. The first is what the others are compared with.
    X, y
        As in the filters' `fit`. Claims whose label is unknown are left out.
    alphas : sequence of float in (0, 1)
    cv : int, default=20
        Random splits; in each, 15 % of the problems are scored and the others fit. The
        scores of all splits are pooled.
    groups : array-like of shape (n_problems,), optional
        Problems of one group never stand on two sides.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    SeparationReport

    Notes
    -----
    Separated scores are not what a filter needs: what it keeps is decided by the false
    claims with the best scores, not by the average one.

    References
    ----------
    Hittesdorf, Salzetta, Cheng (arXiv:2604.20098), appendix on score distributions. It
    does not say how overlap is measured; here it is the area under both of two Gaussian
    kernel density estimates.

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
    levels, rng = check_alphas(alphas).tolist(), check_random_state(random_state)
    if not filters:
        raise ValueError("filters is empty: at least one is needed")
    batch, labels = next(iter(filters.values())).check(X, y)
    groups = check_groups(groups, len(batch))
    found, true = [], []
    for train, test in _splits(cv, len(batch), groups, rng):
        seed = int(rng.randint(2**31 - 1))
        rows = np.isin(batch.problem_of, train)
        data = batch[train], labels[rows], levels
        among = None if groups is None else groups[train]
        held, label = batch[test], labels[~rows]
        known = label >= 0
        true.append(label[known] == 1)
        found.append(
            [
                [
                    fitted.confidence(held)[known]
                    for fitted in _fitted(f, seed, data, among)
                ]
                for f in filters.values()
            ]
        )
    pooled = [
        _pooled(np.concatenate([[row[j] for row in split] for split in found], axis=1))
        for j in range(len(levels))
    ]
    return SeparationReport(
        tuple(filters), np.array(levels), pooled, np.concatenate(true)
    )


def _splits(cv, n, groups, rng):
    """Train and test problems, both in their order."""
    seed = int(rng.randint(2**31 - 1))
    kind = ShuffleSplit if groups is None else GroupShuffleSplit
    splitter = kind(cv, test_size=TEST_SIZE, random_state=seed)
    for train, test in splitter.split(np.empty(n), groups=groups):
        yield np.sort(train), np.sort(test)


def _fitted(filter, seed, data, groups):
    filter = clone(filter)
    if "random_state" in filter.get_params():
        filter.set_params(random_state=seed)
    return fit_levels(filter, *data, groups).values()


def _pooled(scores):
    """z-scores with the mean and the deviation of all of them."""
    deviation = scores.std()
    return (scores - scores.mean()) / (deviation if deviation > 0 else 1.0)


def cohens_d(true, false):
    """Difference of the means in pooled deviations; NaN where nothing varies."""
    n, m = len(true), len(false)
    if n < 2 or m < 2:
        return np.nan
    within = ((n - 1) * true.var(ddof=1) + (m - 1) * false.var(ddof=1)) / (n + m - 2)
    return (true.mean() - false.mean()) / np.sqrt(within) if within > 0 else np.nan


def overlap(true, false):
    """Area under both of two kernel density estimates; NaN where one cannot be made."""
    from scipy.stats import gaussian_kde

    if min(len(true), len(false)) < 2 or np.ptp(true) == 0 or np.ptp(false) == 0:
        return np.nan
    both = np.concatenate([true, false])
    margin = BEYOND * np.ptp(both)
    at = np.linspace(both.min() - margin, both.max() + margin, GRID)
    least = np.minimum(gaussian_kde(true)(at), gaussian_kde(false)(at))
    return float(least.sum() * (at[1] - at[0]))


BETA_MIX = tuple((np.arange(11) / 10).tolist())


def single_feature_ablation(
    filters: Mapping[str, Any],
    X: Problems,
    y: Labels,
    alphas: Iterable[float],
    features: Iterable[str | int] | Mapping[str, str | int],
    *,
    beta_mix: Iterable[float] = BETA_MIX,
    ties: str = "jitter",
    **options: Any,
) -> ComparisonReport:
    """Compare filters with filters along the edges that know a single feature.

    The share of the claims below, ``beta_mix``, is chosen for each feature, level and
    split by cross-validation on the training problems. The report prints its mean over
    the splits, and has each choice in ``chosen``.

    Parameters
    ----------
    filters : dict of str to unfitted filter
        Those that use all features, by the name to print. The first is the reference.
    X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
        Problems, as in `skdcf.evaluation.compare_filters`.
    y : sequence of 1-D arrays, one per problem
        Their labels.
    alphas : sequence of float in (0, 1)
        The levels to compare at.
    features : sequence of names or column numbers, or dict of names to print to these
    beta_mix : sequence of float in [0, 1]
        The values to try; a single one is used as it is.
    ties : {"exclude", "include", "jitter"}, default="jitter"
        How the filters with a single feature, which often are coarse, treat ties.
    **options
        Passed on to `skdcf.evaluation.compare_filters`: cv, protocol, groups, n_jobs,
        random_state, verbose, resume.

    Returns
    -------
    ComparisonReport

    References
    ----------
    Hittesdorf, Salzetta, Cheng (arXiv:2604.20098), section 5.3: 20 folds, which is the
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
    if isinstance(features, Mapping):
        columns = dict(features)
    else:
        columns = {str(feature): feature for feature in features}
    shared = [name for name in columns if name in filters]
    if shared:
        raise ValueError(f"{shared[0]!r} names a filter and a feature: rename one")
    tried = list(beta_mix)
    alone: dict[str, Any] = {
        name: _single(column, tried, ties) for name, column in columns.items()
    }
    return compare_filters(dict(filters) | alone, X, y, alphas, **options)


def _single(feature, tried, ties):
    if not tried:
        raise ValueError("beta_mix is empty: at least one value is needed")
    filter = SingleFeatureCF(feature, beta_mix=tried[0], ties=ties)
    return filter if len(tried) == 1 else GridSearchCV(filter, {"beta_mix": tried})
