"""Features ranked by what they add to scores, and by how much retention hangs on them.

Shapley values are those of one filter, or are pooled over many trained models, as in the
paper. Permutation works whatever the scorer is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from .._checks import check_alphas
from .._table import Table
from ..graphs import Labels, Problems
from ..metrics import filter_in, leave_one_out


@dataclass(frozen=True, eq=False, repr=False)
class ImportanceReport(Table):
    """Importances of features over repetitions; prints as a ranking.

    Attributes
    ----------
    feature_names : tuple of str
    importances : ndarray of shape (n_repeats, n_features)
    what : str
        What an importance is, in words.
    """

    feature_names: tuple
    importances: np.ndarray
    what: str

    @property
    def mean(self) -> NDArray:
        """Mean importance, shape (n_features,)."""
        return self.importances.mean(axis=0)

    @property
    def deviation(self) -> NDArray:
        """Standard deviation over the repetitions, shape (n_features,)."""
        return self.importances.std(axis=0)

    @property
    def ranking(self) -> NDArray:
        """Column numbers, the most important first."""
        return np.argsort(-self.mean, kind="stable")

    def rows(self) -> list[dict[str, Any]]:
        """One dict per feature, in the order of the ranking.

        Returns
        -------
        list of dict
        """
        return [
            {
                "rank": rank + 1,
                "feature": self.feature_names[j],
                "mean": float(self.mean[j]),
                "deviation": float(self.deviation[j]),
            }
            for rank, j in enumerate(self.ranking)
        ]

    _columns = {
        "rank": "{rank:d}",
        "feature": "{feature}",
        "mean": "{mean:.3f}",
        "deviation": "{deviation:.3f}",
    }

    def _heading(self):
        return self.what


@dataclass(frozen=True, eq=False, repr=False)
class ShapReport(ImportanceReport):
    """Shapley values of claims; as an importance, their absolute values.

    Attributes
    ----------
    feature_names : tuple of str
    importances : ndarray of shape (n_rows, n_features)
        Absolute Shapley values, so that ``mean`` and ``deviation`` are those of the
        paper's table.
    what : str
    values : ndarray of shape (n_rows, n_features)
        Shapley values: what the feature adds to the confidence of the claim.
    features : ndarray of shape (n_rows, n_features)
        The features themselves.
    """

    values: np.ndarray
    features: np.ndarray

    @classmethod
    def from_values(cls, feature_names, values, features):
        """A report of Shapley values and of the features that they belong to.

        Parameters
        ----------
        feature_names : sequence of str
        values, features : ndarray of shape (n_rows, n_features)

        Returns
        -------
        ShapReport
        """
        what = f"mean |SHAP| over {len(values)} values per feature"
        return cls(tuple(feature_names), np.abs(values), what, values, features)


def shap_values(filter: Any, X: Problems, *, background: Problems | None = None) -> Any:
    """Shapley values of each claim's confidence.

    Exact, without sampling: of a linear score they are weight times the distance of the
    value from the mean over the background; of xgboost's trees, its own contributions to
    the log odds. Other scorers are refused: see `permutation_importance`.

    Parameters
    ----------
    filter : fitted filter
        Also a fitted search around a filter.
    X : problems, as in the filter's `predict`
    background : problems, optional
        Values are compared with these; None is X. Trees compare with what they were
        trained on, and look at no background.

    Returns
    -------
    ShapReport

    Raises
    ------
    ValueError
        If the scorer is neither linear nor a boosted tree.

    References
    ----------
    S. Lundberg, S.-I. Lee. A Unified Approach to Interpreting Model Predictions.
    NeurIPS 2017.

    Examples
    --------
    >>> from skdcf import CoherentConformalFilter
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.inspection import shap_values
    >>> graphs, y = make_reasoning_graphs(300, random_state=0, return_X_y=True)
    >>> dcf = CoherentConformalFilter("linear", random_state=0).fit(graphs[:200], y[:200])
    >>> report = shap_values(dcf, graphs[200:])
    >>> report.values.shape == graphs[200:].features.shape
    True
    """
    filter = filter_in(filter)
    batch = filter.columns(X)
    other = batch if background is None else filter.columns(background)
    values = filter.scorer_.shap_values(batch, other)
    return ShapReport.from_values(names_of(batch), values, batch.features)


def names_of(batch):
    """Names of the features, or x0, x1, ... where they have none."""
    return batch.feature_names or tuple(f"x{j}" for j in range(batch.n_features))


def pooled_shap_values(
    filter: Any,
    X: Problems,
    y: Labels,
    alphas: Iterable[float],
    *,
    n_splits: int = 5,
    calibration_size: float | int = 0.2,
    n_background: int = 100,
    n_claims: int = 500,
    groups: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> ShapReport:
    """Shapley values of several models per level, all in one report.

    Each split trains one model per alpha. The values of up to ``n_claims`` claims, drawn
    anew for each model, are pooled over all models; the report then has their mean
    absolute value, its deviation, and the ranking of the features.

    Parameters
    ----------
    filter : unfitted filter
        With a scorer that is linear once fitted, or xgboost's trees.
    X, y
        As in the filter's `fit`.
    alphas : sequence of float in (0, 1)
    n_splits : int, default=5
        Splits per level into problems that train and problems that do not.
    calibration_size : float or int, default=0.2
        Share or number of the problems that do not train.
    n_background : int, default=100
        Claims whose mean is what values are compared with.
    n_claims : int, default=500
        Claims per model whose values are pooled; all of them where there are fewer.
    groups : array-like of shape (n_problems,), optional
        As in the filter's `fit`.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    ShapReport

    References
    ----------
    Hittesdorf, Salzetta, Cheng (arXiv:2604.20098), appendix on SHAP: eight levels and
    five splits make 40 models. They sample coalitions (Kernel SHAP); the values of a
    linear model are exact here.

    Examples
    --------
    >>> from skdcf import CoherentConformalFilter
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.inspection import pooled_shap_values
    >>> graphs, y = make_reasoning_graphs(200, random_state=0, return_X_y=True)
    >>> dcf = CoherentConformalFilter("linear")
    >>> report = pooled_shap_values(
    ...     dcf, graphs, y, [0.1, 0.2], n_splits=2, n_claims=50, random_state=0
    ... )
    >>> report.values.shape  # 2 levels, 2 splits, 50 claims each
    (200, 31)
    """
    for name, value in (("n_splits", n_splits), ("n_background", n_background)):
        _check_count(name, value)
    _check_count("n_claims", n_claims)
    levels, rng = check_alphas(alphas).tolist(), check_random_state(random_state)
    changed = clone(filter).set_params(calibration_size=calibration_size)
    pooled = []
    for seed in rng.randint(2**31 - 1, size=n_splits).tolist():
        split = clone(changed).set_params(random_state=seed)
        for fitted in split.fit_levels(X, y, levels, groups):
            batch = fitted.columns(X)
            pooled.append(_drawn(fitted.scorer_, batch, n_claims, n_background, rng))
    values, features = (np.concatenate(part) for part in zip(*pooled, strict=True))
    return ShapReport.from_values(names_of(batch), values, features)


def _drawn(scorer, batch, n_claims, n_background, rng):
    """Shapley values and features of some claims of ``batch``."""
    some = [_some(batch, n, rng) for n in (n_claims, n_background)]
    rows, background = (_alone(batch, chosen) for chosen in some)
    return scorer.shap_values(rows, background), rows.features


def _some(batch, n, rng):
    return np.sort(rng.permutation(batch.n_claims)[:n])


def _alone(batch, rows):
    """Claims as problems of their own; what is additive in features sees no graph."""
    from ..graphs import GraphBatch

    return GraphBatch.from_arrays(
        batch.features[rows],
        np.arange(len(rows) + 1),
        (),
        feature_names=batch.feature_names,
    )


def _check_count(name, value):
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(
            f"{name} is {value!r}, but must be a whole number of at least 1"
        )


def permutation_importance(
    filter: Any,
    X: Problems,
    y: Labels,
    *,
    alpha: float | None = None,
    n_repeats: int = 5,
    random_state: int | np.random.RandomState | None = None,
) -> ImportanceReport:
    """Retention that is lost when a feature is shuffled among the claims.

    The threshold is found anew each time, from all other problems of X
    (`skdcf.metrics.leave_one_out`), so that the promise is the same with and without the
    feature: what is lost is retention alone. A scorer that reads the graph itself, such
    as "auto", keeps what it knows from there.

    Parameters
    ----------
    filter : fitted filter
        Also a fitted search around a filter.
    X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
        Problems that are new to the scorer.
    y : sequence of 1-D arrays, one per problem
        Their labels.
    alpha : float in (0, 1), optional
        None is the filter's own.
    n_repeats : int, default=5
        Shuffles of each feature.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    ImportanceReport
        In true claims kept per problem; negative where shuffling helped.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.inspection import permutation_importance
    >>> graphs, y = make_reasoning_graphs(300, random_state=0, return_X_y=True)
    >>> cf = HardCF("frequency-score", ties="jitter").fit(graphs[:100], y[:100])
    >>> report = permutation_importance(cf, graphs[100:], y[100:], random_state=0)
    >>> report.feature_names[report.ranking[0]]
    'frequency-score'
    """
    if not isinstance(n_repeats, Integral) or n_repeats < 1:
        raise ValueError(f"n_repeats is {n_repeats!r}, but must be at least 1")
    filter = filter_in(filter)
    batch, labels = filter.check(X, y)
    level = [filter.calibration_.guarantee.level(alpha, filter.alpha)]
    rng = check_random_state(random_state)

    def retention(problems):
        return leave_one_out(filter, problems, labels, level).retention[0]

    baseline, lost = retention(batch), np.empty((n_repeats, batch.n_features))
    for j in range(batch.n_features):
        for repeat in range(n_repeats):
            lost[repeat, j] = baseline - retention(_shuffled(batch, j, rng))
    what = (
        f"true claims per problem lost without the feature, of {baseline:.3f} kept at "
        f"alpha = {level[0]:g}; {n_repeats} shuffles"
    )
    return ImportanceReport(names_of(batch), lost, what)


def _shuffled(batch, column, rng):
    features = batch.features.copy()
    features[:, column] = rng.permutation(features[:, column])
    return batch.replace_features(features, batch.feature_names)
