"""Shapley values over many trained models, as the paper pools them."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import check_random_state

from .._checks import check_alphas
from ._shap import ShapReport, names_of

if TYPE_CHECKING:
    from ..graphs import Labels, Problems


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
