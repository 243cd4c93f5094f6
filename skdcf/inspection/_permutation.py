"""How much retention hangs on each feature, whatever the scorer is."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state

from ..metrics import filter_in, leave_one_out
from ._shap import ImportanceReport, names_of

if TYPE_CHECKING:
    from ..graphs import Labels, Problems


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
