"""Fitted filters on test problems."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .._checks import check_groups
from ..ops.risk_control import Steps
from ._filter_report import FilterReport
from ._tally import Tally

if TYPE_CHECKING:
    from ..graphs import Labels, Problems


def evaluate_filter(
    filter: Any,
    X: Problems,
    y: Labels,
    alphas: Iterable[float] = (0.02, 0.05, 0.1, 0.2),
    *,
    by: str | Callable | Sequence[Any] | None = None,
    groups: ArrayLike | None = None,
    claim_weight: str | Callable | ArrayLike | None = None,
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
    by : str, callable or list, optional
        Report on each group of problems as well, as in
        `skdcf.guarantees.NoFalseClaim`. Groups may overlap.
    groups : array-like of shape (n_problems,), optional
        Problems of one group, say of the same question, resemble each other: intervals
        and errors then count groups and not problems.
    claim_weight : str, callable or array-like, optional
        How much each claim matters: a feature, a function of a GraphBatch, or one number
        per claim. Adds the retention of weight.

    Returns
    -------
    FilterReport

    Raises
    ------
    ValueError
        On bad problems, labels, groups or weights.

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
    >>> halves = evaluate_filter(
    ...     cf, graphs[200:], y[200:], [0.1], by=lambda batch: batch.sizes > 7
    ... )
    >>> {group: one.n_problems for group, one in halves.groups.items()}
    {False: 126, True: 74}
    """
    filter, X = unwrap(filter, X)
    alphas = levels_of(filter, alphas)
    batch, labels = filter.check(X, y)
    kept = filter.masks(batch, alphas)
    calibration = filter.calibration_
    theory = {
        "thresholds": [calibration.threshold(a) for a in alphas],
        "laws": [calibration.coverage_law(a) for a in alphas],
        "n_calibration": filter.n_calibration_,
    }
    tally = Tally(calibration.guarantee, alphas, kept, labels, batch, claim_weight)
    return tally.report(theory, check_groups(groups, len(batch)), by)


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
        With ``ties`` other than "include", and a ``guarantee`` without weights and
        without groups that overlap.
    X, y
        Problems and labels, at least two.
    alphas : sequence of float in (0, 1)

    Returns
    -------
    FilterReport
        ``threshold`` is that of all problems together.

    Raises
    ------
    ValueError
        If that is not known in closed form for the filter's guarantee.

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
    filter, X = unwrap(filter, X)
    alphas = levels_of(filter, alphas)
    if filter.ties == "include":
        raise ValueError('leave-one-out evaluation needs ties="exclude" or "jitter"')
    batch, labels = filter.check(X, y)
    if len(batch) < 2:
        raise ValueError("leave-one-out evaluation needs at least two problems")
    risk = np.concatenate(list(filter.path_risk(batch)), axis=None)
    scores = filter.calibration_scores(batch, labels)
    promise = filter.calibration_.guarantee
    steps, claims = Steps.of_scores(scores), promise.path_risks(risk, batch)
    levels = promise.leave_one_out(steps, claims)
    one, whole = claims.groups is None, promise.calibrate(steps, claims)
    fewer = promise.calibrate_one(steps[np.arange(1, len(batch))], None)
    theory = {
        "thresholds": [whole.threshold(a) for a in alphas],
        "laws": [fewer.coverage_law(a) if one else None for a in alphas],
        "n_calibration": len(batch) - 1,
    }
    tally = Tally(promise, alphas, levels <= alphas[:, None], labels, batch, None)
    return tally.report(theory, None, None)


def levels_of(filter, alphas):
    """Levels as the filter's guarantee understands them, each of them once."""
    promise = filter.calibration_.guarantee
    levels = [promise.level(a, filter.alpha) for a in np.atleast_1d(alphas).tolist()]
    if not levels:
        raise ValueError("alphas is empty: at least one level is needed")
    if len(set(levels)) < len(levels):
        raise ValueError(f"alphas has repeated values: {levels}")
    return np.array(levels)


def filter_of(model: Any) -> Any:
    """The filter in a fitted pipeline or search; a filter itself is returned as it is.

    Parameters
    ----------
    model : fitted filter, pipeline or search

    Returns
    -------
    fitted filter
    """
    while hasattr(model, "best_estimator_") or hasattr(model, "steps"):
        searched = hasattr(model, "best_estimator_")
        model = model.best_estimator_ if searched else model.steps[-1][1]
    return model


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
