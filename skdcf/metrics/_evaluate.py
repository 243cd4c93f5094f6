"""Fitted filters on test problems."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from .._checks import check_alphas
from ..ops.conformal import conformal_threshold, leave_one_out_alpha
from ..ops.hard import segment_min, segment_sum
from ._filter_report import FilterReport
from ._scores import coverage_band, coverage_interval

if TYPE_CHECKING:
    from ..graphs import Labels, Problems


def evaluate_filter(
    filter: Any,
    X: Problems,
    y: Labels,
    alphas: Iterable[float] = (0.02, 0.05, 0.1, 0.2),
) -> FilterReport:
    """Coverage and retention of a fitted filter on test problems.

    Parameters
    ----------
    filter : fitted filter
        Or a fitted pipeline that ends in one, or a search around one.
    X, y
        Test problems and their labels, as in the filter's `fit`. A claim whose label is
        unknown counts as false for coverage, and not as true for retention.
    alphas : sequence of float in (0, 1)

    Returns
    -------
    FilterReport

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.metrics import evaluate_filter
    >>> graphs, y = make_reasoning_graphs(400, random_state=0, return_X_y=True)
    >>> cf = HardCF().fit(graphs[:200], y[:200])
    >>> report = evaluate_filter(cf, graphs[200:], y[200:], alphas=[0.1, 0.2])
    >>> report.retention.shape, report.n_calibration
    ((2,), 200)
    """
    alphas = check_alphas(alphas)
    filter, X = unwrap(filter, X)
    batch, labels = filter.check(X, y)
    levels = np.concatenate(list(filter.predict_alpha(batch)), axis=None)
    thresholds = [conformal_threshold(filter.nonconformity_scores_, a) for a in alphas]
    return _summary(
        alphas, levels, labels, batch.offsets, thresholds, filter.n_calibration_
    )


def leave_one_out(
    filter: Any,
    X: Problems,
    y: Labels,
    alphas: Iterable[float] = (0.02, 0.05, 0.1, 0.2),
) -> FilterReport:
    """Exact leave-one-out evaluation of a fitted filter's scorer.

    Each problem is filtered with the threshold from all other problems of X, for all
    alphas at once in O(n log n). The problems must be new to the scorer; the filter's own
    calibration is not used.

    Parameters
    ----------
    filter : fitted filter
        With ``ties`` other than "include".
    X, y
        Problems and labels, at least two.
    alphas : sequence of float in (0, 1)

    Returns
    -------
    FilterReport
        ``threshold`` is that of all problems together.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.metrics import leave_one_out
    >>> graphs, y = make_reasoning_graphs(200, random_state=0, return_X_y=True)
    >>> cf = HardCF().fit(graphs[:100], y[:100])
    >>> leave_one_out(cf, graphs[100:], y[100:], alphas=[0.1]).n_calibration
    99
    """
    alphas = check_alphas(alphas)
    filter, X = unwrap(filter, X)
    if filter.ties == "include":
        raise ValueError('leave-one-out evaluation needs ties="exclude" or "jitter"')
    batch, labels = filter.check(X, y)
    if len(batch) < 2:
        raise ValueError("leave-one-out evaluation needs at least two problems")
    risk = np.concatenate(list(filter.path_risk(batch)), axis=None)
    scores = filter.calibration_scores(batch, labels)
    levels = leave_one_out_alpha(scores, risk, batch.problem_of)
    ordered = np.sort(scores)
    thresholds = [conformal_threshold(ordered, a) for a in alphas]
    return _summary(alphas, levels, labels, batch.offsets, thresholds, len(batch) - 1)


def unwrap(filter: Any, X: Problems) -> tuple[Any, Any]:
    """The filter in a fitted pipeline or search, and X as that filter sees it.

    Parameters
    ----------
    filter : fitted filter, pipeline or search
    X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)

    Returns
    -------
    filter : fitted filter
    X
        Transformed by the steps before the filter.
    """
    while hasattr(filter, "best_estimator_") or hasattr(filter, "steps"):
        if hasattr(filter, "best_estimator_"):
            filter = filter.best_estimator_
        else:
            filter, X = filter[-1], filter[:-1].transform(X)
    return filter, X


def _summary(alphas, levels, labels, offsets, thresholds, n_calibration):
    n = len(offsets) - 1
    first_error = segment_min(np.where(labels == 1, np.inf, levels), offsets)
    first_kept = segment_min(levels, offsets)
    covered = first_error > alphas[:, None]
    kept = np.stack(
        [segment_sum((labels == 1) & (levels <= a), offsets) for a in alphas]
    )
    spread = kept.std(axis=1, ddof=1) if n > 1 else np.full(len(alphas), np.nan)
    return FilterReport(
        alpha=alphas,
        coverage=covered.mean(axis=1),
        coverage_interval=np.array([coverage_interval(c.sum(), n) for c in covered]),
        coverage_band=np.array(
            [coverage_band(n_calibration, a, n_test=n) for a in alphas]
        ),
        retention=kept.mean(axis=1),
        retention_error=spread / np.sqrt(n),
        abstention=(first_kept > alphas[:, None]).mean(axis=1),
        threshold=np.array(thresholds),
        n_problems=n,
        n_calibration=n_calibration,
    )
