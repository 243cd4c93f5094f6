"""Features ranked by what they add to scores, and by how much retention hangs on them.

Shapley values are those of one filter, or are pooled over many trained models, as in the
paper. Permutation works whatever the scorer is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from .._table import Table
from ..graphs import Labels, Problems
from ..metrics import leave_one_out


@dataclass(frozen=True, eq=False, repr=False)
class ImportanceReport(Table):
    """Importances of features over repetitions; prints as a ranking.

    Parameters
    ----------
    feature_names : tuple of str
        The features.
    importances : ndarray of shape (n_repeats, n_features)
        One row per repetition; of Shapley values one per claim and model, their size.
    what : str
        What an importance is, in words.
    values : ndarray of shape (n_repeats, n_features) or None
        The Shapley values themselves, with their signs; None where there are none.
    """

    feature_names: tuple
    importances: np.ndarray
    what: str
    values: np.ndarray | None = None

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

    def _values(self):
        order = self.ranking
        return {
            "rank": np.arange(1, len(order) + 1),
            "feature": [self.feature_names[j] for j in order],
            "mean": self.mean[order],
            "deviation": self.deviation[order],
        }

    _columns = {
        "rank": "{rank:d}",
        "feature": "{feature}",
        "mean": "{mean:.3f}",
        "deviation": "{deviation:.3f}",
    }

    def _heading(self):
        return self.what


def shap_values(
    filter: Any | Sequence[Any], X: Problems, *, background: Problems | None = None
) -> ImportanceReport:
    """Shapley values of each claim's confidence, and the ranking of the features by them.

    Exact, without sampling: of a linear score they are weight times the distance of the
    value from the mean over the background; of xgboost's trees, its own contributions to
    the log odds. Other scorers are refused: see `permutation_importance`.

    Parameters
    ----------
    filter : fitted filter, or sequence of fitted filters
        Values of several filters, which see the same columns, are pooled.
    X : problems, as in the filter's `predict`
        The claims that are looked at.
    background : problems, optional
        Values are compared with these; None is X. Trees compare with what they were
        trained on, and look at no background.

    Returns
    -------
    ImportanceReport
        An importance is the absolute Shapley value; ``values`` has the signs.

    Raises
    ------
    ValueError
        If the scorer is neither linear nor a boosted tree.

    References
    ----------
    S. Lundberg, S.-I. Lee. A Unified Approach to Interpreting Model Predictions.
    NeurIPS 2017. Hittesdorf, Salzetta, Cheng (arXiv:2604.20098), appendix on SHAP, pool
    the values of 40 models: eight levels by five splits. They sample coalitions (Kernel
    SHAP); the values of a linear model are exact here.

    Examples
    --------
    >>> from skdcf import CoherentConformalFilter
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.evaluation import fit_levels
    >>> from skdcf.inspection import shap_values
    >>> graphs, y = make_reasoning_graphs(300, random_state=0, return_X_y=True)
    >>> dcf = CoherentConformalFilter("linear", random_state=0)
    >>> fitted = fit_levels(dcf, graphs[:200], y[:200], [0.1, 0.2])
    >>> report = shap_values(fitted[0.1], graphs[200:])
    >>> report.values.shape == graphs[200:].features.shape
    True
    >>> pooled = shap_values([*fitted.values()], graphs[200:])
    >>> len(pooled.values) == 2 * len(report.values)
    True
    """
    several: list | tuple = filter if isinstance(filter, (list, tuple)) else [filter]
    parts = []
    for one in several:
        batch = one.columns(X)
        other = batch if background is None else one.columns(background)
        parts.append(one.scorer_.shap_values(batch, other))
    values = np.concatenate(parts)
    what = f"mean |SHAP| over {len(values)} values per feature"
    return ImportanceReport(_names_of(batch), np.abs(values), what, values)


def _names_of(batch):
    """Names of the features, or x0, x1, ... where they have none."""
    return batch.feature_names or tuple(f"x{j}" for j in range(batch.n_features))


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
    (`skdcf.metrics.leave_one_out`), so that the guarantee is the same with and without
    the feature: what is lost is retention alone. A scorer that reads the graph itself,
    such as "auto", keeps what it knows from there.

    Parameters
    ----------
    filter : fitted filter
        The filter whose features are shuffled.
    X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
        Problems that are new to the scorer.
    y : sequence of 1-D arrays, one per problem
        Their labels.
    alpha : float in (0, 1), optional
        The level; None is the filter's own.
    n_repeats : int, default=5
        Shuffles of each feature.
    random_state : int, RandomState or None, default=None
        Seeds the shuffles.

    Returns
    -------
    ImportanceReport
        Importances in true claims kept per problem; negative where shuffling helped.

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
    batch, labels = filter.check(X, y)
    level = filter.calibration_.guarantee.level(alpha, filter.alpha)
    rng = check_random_state(random_state)

    def retention(problems):
        return leave_one_out(filter, problems, labels, [level]).retention[0]

    baseline, lost = retention(batch), np.empty((n_repeats, batch.n_features))
    for j in range(batch.n_features):
        for repeat in range(n_repeats):
            features = batch.features.copy()
            features[:, j] = rng.permutation(features[:, j])
            shuffled = batch.replace_features(features, batch.feature_names)
            lost[repeat, j] = baseline - retention(shuffled)
    what = (
        f"true claims per problem lost without the feature, of {baseline:.3f} kept at "
        f"alpha = {level:g}; {n_repeats} shuffles"
    )
    return ImportanceReport(_names_of(batch), lost, what)
