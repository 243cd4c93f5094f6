"""Fitted filters on test problems."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from .._checks import check_alphas
from ..graphs import Labels, Problems, question_groups
from ..graphs.grouping import read_groups
from ..graphs.ragged import offsets_of
from ._report import FilterReport, report_of


def evaluate_filter(
    filter: Any,
    X: Problems,
    y: Labels,
    alphas: Iterable[float] = (0.02, 0.05, 0.1, 0.2),
    *,
    by: str | Callable | Sequence[Any] | None = None,
    groups: ArrayLike | Literal[False] | None = None,
) -> FilterReport:
    """Coverage and retention of a fitted filter on test problems.

    Parameters
    ----------
    filter : fitted filter
        The filter to evaluate, or a fitted `skdcf.evaluation.CalibratedSearch`.
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

    Returns
    -------
    FilterReport
        Numbers per level, which print as a table.

    Raises
    ------
    ValueError
        On bad problems, labels or groups.

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
    alphas = _levels_of(filter, alphas)
    batch, labels = filter.check(X, y)
    questions, calibration = question_groups(batch, groups), filter.calibration_
    counted = alphas, filter.masks(batch, alphas), labels, batch.offsets, questions
    return report_of(
        calibration.guarantee,
        counted,
        None if by is None else _parts(*read_groups(by, batch)),
        laws=[calibration.coverage_law(a) for a in alphas],
        seen=np.array(filter.seen(batch, groups)),
        threshold=np.array([calibration.threshold(a) for a in alphas]),
        n_calibration=filter.n_calibration_,
    )


def _parts(values, overlap):
    """The problems of each group; with ``overlap`` a problem has a set of groups."""
    places: dict = {}
    for i, value in enumerate(values):
        for name in sorted(value, key=str) if overlap else [value]:
            places.setdefault(name, []).append(i)
    return {name: np.array(rows) for name, rows in places.items()}


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
    alphas = _levels_of(filter, alphas)
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
    counted = alphas, levels <= alphas[:, None], labels, batch.offsets, questions
    return report_of(
        guarantee,
        counted,
        laws=[fewer.coverage_law(a) if one else None for a in alphas],
        threshold=np.array([whole.threshold(a) for a in alphas]),
        n_calibration=len(chosen) - 1,
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


def _levels_of(filter, alphas):
    """Levels as the filter's guarantee understands them, each of them once."""
    guarantee = filter.calibration_.guarantee
    return check_alphas(alphas, lambda alpha: guarantee.level(alpha, filter.alpha))
