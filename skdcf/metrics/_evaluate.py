"""Fitted filters on test problems."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from .._checks import check_groups, check_list
from ..graphs import Labels, Problems, question_groups
from ..graphs.ragged import flatten, offsets_of
from ..guarantees import NoFalseClaim
from ._filter_report import FilterReport
from ._tally import Tally, claim_weights, is_chain, rows_by_group, rows_by_value


def evaluate_filter(
    filter: Any,
    X: Problems,
    y: Labels,
    alphas: Iterable[float] = (0.02, 0.05, 0.1, 0.2),
    *,
    by: str | Callable | Sequence[Any] | None = None,
    groups: ArrayLike | Literal[False] | None = None,
    claim_weight: str | Callable | ArrayLike | None = None,
) -> FilterReport:
    """Coverage and retention of a fitted filter on test problems.

    Parameters
    ----------
    filter : fitted filter
        Also a fitted search around a filter.
    X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
        Test problems, as in the filter's `fit`.
    y : sequence of 1-D arrays, one per problem
        Their labels. A claim whose label is unknown counts as false for coverage, and
        not as true for retention.
    alphas : sequence of float in (0, 1)
        The levels to report on.
    by : str, callable or list, optional
        Report on each group of problems as well, as in
        `skdcf.guarantees.NoFalseClaim`. Groups may overlap.
    groups : array-like of shape (n_problems,), or False, optional
        The question that each problem answers; None reads it off the problems
        (`skdcf.graphs.question_groups`), False says that each is a question of its own.
        Each question counts once, and intervals are drawn over questions.
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
    ((2,), 199)
    >>> halves = evaluate_filter(
    ...     cf, graphs[200:], y[200:], [0.1], by=lambda batch: batch.sizes > 7
    ... )
    >>> {group: one.n_problems for group, one in halves.groups.items()}
    {False: 126, True: 74}
    """
    filter = filter_in(filter)
    alphas = levels_of(filter, alphas)
    batch, labels = filter.check(X, y)
    questions = question_groups(batch, groups)
    kept = filter.masks(batch, alphas)
    calibration = filter.calibration_
    theory = {
        "thresholds": [calibration.threshold(a) for a in alphas],
        "laws": [calibration.coverage_law(a) for a in alphas],
        "n_calibration": filter.n_calibration_,
        "seen": filter.seen(batch, groups),
    }
    weight = None if claim_weight is None else claim_weights(claim_weight, batch)
    counted = alphas, kept, labels, batch.offsets, questions, is_chain(batch), weight
    parts = None if by is None else rows_by_group(by, batch)
    return Tally(calibration.guarantee, *counted).report(theory, parts)


def leave_one_out(
    filter: Any,
    X: Problems,
    y: Labels,
    alphas: Iterable[float] = (0.02, 0.05, 0.1, 0.2),
    *,
    groups: ArrayLike | Literal[False] | None = None,
) -> FilterReport:
    """Exact leave-one-out evaluation of a fitted filter's scorer, by question.

    Each problem is filtered with the threshold from one answer to each other question of
    X, for all alphas at once in O(n log n). The problems must be new to the scorer; the
    filter's own calibration is not used.

    Parameters
    ----------
    filter : fitted filter
        With ``ties`` other than "include", and a ``guarantee`` without weights and
        without groups that overlap.
    X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
        Problems of at least two questions.
    y : sequence of 1-D arrays, one per problem
        Their labels.
    alphas : sequence of float in (0, 1)
        The levels to report on.
    groups : array-like of shape (n_problems,), or False, optional
        The question that each problem answers, as in `evaluate_filter`.

    Returns
    -------
    FilterReport
        ``threshold`` is that of all questions together.

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
    filter = filter_in(filter)
    alphas = levels_of(filter, alphas)
    if filter.ties == "include":
        raise ValueError('leave-one-out evaluation needs ties="exclude" or "jitter"')
    batch, labels = filter.check(X, y)
    questions = question_groups(batch, groups)
    if len(np.unique(questions)) < 2:
        raise ValueError(
            "leave-one-out evaluation needs at least two problems, of different questions"
        )
    guarantee = filter.calibration_.guarantee
    part = filter.calibration_part(batch, labels, groups)
    risk = np.concatenate(list(filter.path_risk(batch)), axis=None)
    chosen, _ = part.choose(guarantee, alphas[0], fewest=False)
    claims, order, chosen = _by_question(
        guarantee.path_risks(risk, batch), questions, chosen
    )
    steps = part.steps[chosen]
    levels = np.empty_like(risk)
    levels[order] = guarantee.leave_one_out(steps, claims)
    whole = guarantee.calibrate(steps, claims)
    fewer = guarantee.calibrate_one(steps[np.arange(1, len(chosen))], None)
    one = claims.groups is None
    theory = {
        "thresholds": [whole.threshold(a) for a in alphas],
        "laws": [fewer.coverage_law(a) if one else None for a in alphas],
        "n_calibration": len(chosen) - 1,
        "seen": np.zeros((2, len(batch)), bool),
    }
    kept = levels <= alphas[:, None]
    counted = alphas, kept, labels, batch.offsets, questions, is_chain(batch)
    return Tally(guarantee, *counted).report(theory)


def report_predictions(
    y: Sequence[ArrayLike] | ArrayLike,
    kept: Mapping[float, Sequence[ArrayLike] | ArrayLike],
    *,
    by: Sequence[Any] | None = None,
    groups: ArrayLike | None = None,
) -> FilterReport:
    """Coverage and retention of masks that are at hand, whatever made them.

    Parameters
    ----------
    y : sequence of 1-D arrays, one per problem
        1 for a true claim, 0 for a false one, -1 for one that nobody judged, which counts
        as false.
    kept : dict of float to sequence of boolean masks
        By alpha, the masks as `predict` returns them.
    by : sequence of length n_problems, optional
        The part that each problem belongs to; reports on each as well.
    groups : array-like of shape (n_problems,), optional
        The question that each problem answers; None says that each is one of its own.

    Returns
    -------
    FilterReport
        ``threshold`` and ``coverage_band`` are NaN, as nothing is known of them.

    Raises
    ------
    ValueError
        If labels and masks do not fit each other.

    Examples
    --------
    >>> from skdcf.metrics import report_predictions
    >>> y = [[1, 0], [1, 1]]
    >>> report = report_predictions(y, {0.1: [[True, True], [True, False]]})
    >>> report.coverage, report.retention, report.false_kept
    (array([0.5]), array([1.]), array([0.5]))
    """
    if not kept:
        raise ValueError("kept is empty: at least one alpha with its masks is needed")
    flat = [flatten(y, masks) for masks in kept.values()]
    labels, _, offsets = flat[0]
    n, alphas = len(offsets) - 1, np.array(list(kept), float)
    codes = check_groups(groups, n)
    questions = np.arange(n) if codes is None else codes
    theory = {
        "thresholds": np.full(len(alphas), np.nan),
        "laws": [None] * len(alphas),
        "n_calibration": 0,
        "seen": np.zeros((2, n), bool),
    }
    masks = np.array([mask for _, mask, _ in flat])
    tally = Tally(NoFalseClaim(), alphas, masks, labels, offsets, questions)
    return tally.report(
        theory, None if by is None else rows_by_value(check_list("by", by))
    )


def _by_question(claims, questions, chosen):
    """Claims with all answers to a question as one problem.

    Parameters
    ----------
    claims : Claims
    questions : ndarray of int, shape (n_problems,)
    chosen : ndarray of int
        The answers that calibrate, one to each question in each group.

    Returns
    -------
    claims : Claims
        Question by question, and within a question group by group.
    order : ndarray of int, shape (n_claims,)
        Where these claims were.
    chosen : ndarray of int
        The answers that calibrate, in the order of these problems.
    """
    groups = claims.groups or [None] * len(claims)
    units = list(zip(questions.tolist(), groups, strict=True))
    number = {unit: i for i, unit in enumerate(dict.fromkeys(units))}
    unit = np.array([number[one] for one in units])
    answers = np.argsort(unit, kind="stable")
    chosen = chosen[np.argsort(unit[chosen])]
    sizes = np.bincount(unit, np.diff(claims.offsets)).astype(int)
    order = claims.rows(answers)
    merged = replace(
        claims,
        path_risk=claims.path_risk[order],
        offsets=offsets_of(sizes),
        weights=None if claims.weights is None else claims.weights[chosen],
        groups=None if claims.groups is None else [groups[i] for i in chosen],
    )
    return merged, order, chosen


def levels_of(filter, alphas):
    """Levels as the filter's guarantee understands them, each of them once."""
    guarantee = filter.calibration_.guarantee
    levels = [guarantee.level(a, filter.alpha) for a in np.atleast_1d(alphas).tolist()]
    if not levels:
        raise ValueError("alphas is empty: at least one level is needed")
    if len(set(levels)) < len(levels):
        raise ValueError(f"alphas has repeated values: {levels}")
    return np.array(levels)


def filter_in(model: Any) -> Any:
    """The filter that a fitted search chose; a filter itself is returned as it is.

    Parameters
    ----------
    model : fitted filter, or fitted search around one

    Returns
    -------
    fitted filter
    """
    return getattr(model, "best_estimator_", model)
