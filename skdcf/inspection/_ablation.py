"""Each feature alone against all of them together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.model_selection import GridSearchCV

from ..estimators import SingleFeatureCF
from ..evaluation import ComparisonReport, compare_filters

if TYPE_CHECKING:
    from ..graphs import Labels, Problems

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
