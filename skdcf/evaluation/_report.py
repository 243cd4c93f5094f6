"""Count what a filter keeps, and report the counts at each level.

Counts per problem are averaged over the answers to each question, and then over the questions.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from sklearn.utils import check_random_state

from .. import full
from .._arrays import number_groups, offsets_of
from .._checks import Seed, check_alphas, check_count
from .._html import Table
from ..filters import ConformalFilter
from ..graphs import Problems
from ..guarantees import Calibration, PathRisks
from ..guarantees import leave_one_out as leave_one_out_levels
from ..identity import Groups
from ..labels import Labels, flatten
from ..ops.hard import segment_sum
from ..parts import choose_one_each
from ..uses import seen_among
from ._intervals import band_of_law, rate_interval


def report_table(rows, heading="", **details):
    """Return the table of an evaluation or comparison, in which unknown columns are left out."""
    columns = {
        "split": "{split:d}",
        "filter": "{filter}",
        "alpha": "{alpha:.3f}",
        "target": "{target:.3f}",
        "coverage": "{coverage:.3f}",
        "true claims kept": "{retention:.3f} +- {retention_error:.3f}",
        "delta %": "{delta_pct:+.1f} +- {delta_error:.1f}",
        "shown": "{shown:.3f} +- {shown_error:.3f}",
        "false among shown": "{false_among_shown:.3f} +- {false_among_shown_error:.3f}",
        "accuracy of kept": "{accuracy:.3f}",
        "false kept": "{false_kept:.3f}",
        "95 % interval": "{coverage_interval_low:.3f} - {coverage_interval_high:.3f}",
        "theory band": "{coverage_band_low:.3f} - {coverage_band_high:.3f}",
        "threshold": "{threshold:.4g}",
    }
    return Table(rows, columns, heading, **details)


def coverage_score(y: Labels, kept: Labels) -> float:
    """Compute the proportion of problems in which no false claim is kept.

    Parameters
    ----------
    y : sequence of 1-D arrays, one per problem
        Claim labels (1 for true, 0 for false, -1 for unjudged). Unjudged claims are treated as
        false. In a flat array, each label belongs to a separate problem with one claim.
    kept : sequence of boolean masks
        Boolean masks returned by `predict`.

    Returns
    -------
    coverage : float
        The proportion of covered problems, between 0 and 1.

    Raises
    ------
    ValueError
        If ``y`` or ``kept`` contains invalid or masked values, or if it is empty.

    Examples
    --------
    >>> from skdcf.evaluation import coverage_score
    >>> coverage_score([[1, 0], [1, 1]], [[True, True], [True, False]])
    0.5
    """
    labels, kept, offsets = flatten(y, kept)
    return float(np.mean(segment_sum(kept & (labels != 1), offsets) == 0))


def retention_score(y: Labels, kept: Labels) -> float:
    """Compute the mean number of true claims kept per problem.

    Parameters
    ----------
    y : sequence of 1-D arrays, one per problem
        Claim labels (1 for true, 0 for false, -1 for unjudged). Unjudged claims are not counted
        as true.
    kept : sequence of boolean masks
        Boolean masks returned by `predict`.

    Returns
    -------
    retention : float
        Mean number of true claims kept per problem.

    Examples
    --------
    >>> from skdcf.evaluation import retention_score
    >>> retention_score([[1, 0], [1, 1]], [[True, True], [True, False]])
    1.0
    """
    labels, kept, offsets = flatten(y, kept)
    return float(np.mean(segment_sum(kept & (labels == 1), offsets)))


def count(guarantee, problems, kept, passing):
    """Count what a mask keeps in each of the labelled problems.

    Returns
    -------
    counts : list of six ndarrays of shape (n_problems,)
        The loss, the numbers of kept true and false claims, whether any claim is kept, whether
        any false claim is kept, and ``passing``. Unjudged claims count as false.
    """
    labels, offsets = problems.labels, problems.batch.offsets
    loss = guarantee.loss(labels, kept, offsets)
    n_true = segment_sum(kept & (labels == 1), offsets)
    n_false = segment_sum(kept & (labels != 1), offsets)
    return [loss, n_true, n_false, n_true + n_false > 0, n_false > 0, passing]


def per_question(values, questions):
    """Average each row of values over the answers to each question."""
    _, code, n_answers = np.unique(questions, return_inverse=True, return_counts=True)
    return np.array([np.bincount(code, row) / n_answers for row in values])


def mean_error(values, overlap):
    """Return the standard error of the mean, or NaN for a single value.

    If values of splits share problems, ``overlap`` is the number of test problems divided by that
    of training problems, and 0 otherwise. The correction is that of Nadeau and Bengio (2003).
    """
    n = len(values)
    return values.std(ddof=1) * np.sqrt(1 / n + overlap) if n > 1 else np.nan


def ratio(part, whole):
    """Return a quotient, or NaN if the denominator is 0."""
    return part / whole if whole else np.nan


def means_of(counts, overlap=0.0):
    """Return the means of counts, and their standard errors.

    Parameters
    ----------
    counts : ndarray of shape (6, n)
        As returned by `count`, for each question or for each split. Coverage is computed for the
        answers that pass.
    overlap : float
        As in `mean_error`.
    """
    loss, retention, false_kept, shown, false_shown, passing = map(np.mean, counts)
    rate = ratio(false_shown, shown)
    # The rate is a quotient of two means over the same questions.
    rate_error = mean_error(counts[4] - rate * counts[3], overlap)
    return {
        "loss": loss,
        "coverage": 1 - ratio(loss, passing),
        "retention": retention,
        "retention_error": mean_error(counts[1], overlap),
        "shown": shown,
        "shown_error": mean_error(counts[3], overlap),
        "false_shown": false_shown,
        "false_among_shown": rate,
        "false_among_shown_error": ratio(rate_error, shown),
        "accuracy": ratio(retention, retention + false_kept),
        "false_kept": false_kept,
        "passing": passing,
    }


def rows_of_levels(alphas, counts, questions, calibration=None):
    """Return the means over questions at each level.

    Parameters
    ----------
    alphas : ndarray of shape (n_levels,)
    counts : array-like of shape (n_levels, 6, n_problems)
        As returned by `count`.
    questions : ndarray of shape (n_problems,)
    calibration : Calibration, optional
        The calibration with which each answer is filtered, for the theoretical bands.
    """
    rows = []
    averages = per_question(np.concatenate(counts), questions)
    each_level = averages.reshape(len(alphas), 6, -1)
    for alpha, each in zip(alphas.tolist(), each_level, strict=True):
        passes = each[-1]
        _, low, high = rate_interval(each[0], passes)
        law = calibration and calibration.coverage_law(alpha)
        band_low, band_high = band_of_law(law, round(passes.sum()))
        row = means_of(each) | {
            "alpha": alpha,
            "target": 1 - alpha,
            "coverage_interval_low": 1 - high,
            "coverage_interval_high": 1 - low,
            "coverage_band_low": band_low,
            "coverage_band_high": band_high,
        }
        rows.append({name: float(value) for name, value in row.items()})
    return rows


def counts_of_filters(filters, X, y, levels):
    """Return the result of `count` for each filter at its level. All filters share one scorer."""
    risks, problems = filters[0]._risks_of(X, y)
    counts = []
    for filter, level in zip(filters, levels, strict=True):
        kept = filter._margin(risks, filter._level(level)) > 0
        passing = filter.calibration_.passes(risks)
        guarantee = filter.calibration_.guarantee
        counts.append(count(guarantee, problems, kept, passing))
    return counts


def _table(alphas, counts, problems, of_each, of_all, **details):
    """Return a report on counts at each level.

    ``of_each`` is the calibration with which each answer is filtered, and ``of_all`` the one
    whose threshold is reported.
    """
    questions = problems.hashes.question
    rows = rows_of_levels(alphas, counts, questions, of_each)
    any_false = segment_sum(problems.labels != 1, problems.batch.offsets) > 0
    n_problems = len(questions)
    n_questions = len(np.unique(questions))
    heading = f"{n_problems} problems"
    if n_questions < n_problems:
        heading += f" ({n_questions} questions)"
    heading += f", {of_each.n} for calibration"
    passing = rows[0]["passing"]
    if passing < 1:
        heading += (
            f"; {passing:.1%} of the answers pass, and coverage is computed for these"
        )
    return report_table(
        [row | {"threshold": of_all.threshold(row["alpha"])} for row in rows],
        heading + details.get("warning", ""),
        n_problems=n_problems,
        n_questions=n_questions,
        n_calibration=of_each.n,
        unfiltered=float(per_question([any_false], questions).mean()),
        **details,
    )


def evaluate_filter(
    filter: ConformalFilter,
    X: Problems,
    y: Labels,
    alphas: Iterable[float] = (0.02, 0.05, 0.1, 0.2),
    *,
    groups: Groups = None,
) -> Table:
    """Compute coverage and retention of a fitted filter on test problems.

    Parameters
    ----------
    filter : fitted filter
        The filter to evaluate, or a fitted `skdcf.evaluation.CalibratedSearch`.
    X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
        Test problems in any form that the filter's `fit` accepts.
    y : sequence of 1-D arrays, one per problem
        Claim labels. A claim with an unknown label is treated as false in the coverage, and is
        not counted as a true claim in the retention.
    alphas : sequence of float in (0, 1)
        Levels at which the filter is evaluated.
    groups : array-like of shape (n_problems,), or False, optional
        Identifier of the question that each answer belongs to. If None, the questions are
        identified as in `skdcf.identity.question_groups`. If False, each problem belongs to a
        separate question. Each question has the same weight, and intervals are computed over
        questions.

    Returns
    -------
    report : Table
        One row for each level, with means over questions and their standard errors.
        ``coverage`` is the proportion of problems in which the guarantee holds, among the answers
        that pass, or 1 - mean loss. It has a 95 % confidence interval
        (``coverage_interval_low`` and ``_high``) and a theoretical 95 % band
        (``coverage_band_low`` and ``_high``). ``retention`` and ``false_kept`` are the numbers of
        true and false claims kept per problem, ``shown`` is the proportion of problems with a
        kept claim, ``false_among_shown`` the proportion of these with a false claim,
        ``accuracy`` the proportion of true claims among the kept ones, and ``passing`` the
        proportion of answers that pass. Unjudged claims count as false. The other attributes are
        ``n_problems``, ``n_questions``, ``n_calibration``, ``unfiltered`` (proportion of
        unfiltered answers with a false claim), ``seen`` (numbers of test problems that were used
        for training and for calibration), and ``warning``.

    Raises
    ------
    ValueError
        If the problems, labels or groups are invalid.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.evaluation import evaluate_filter
    >>> graphs, y = make_reasoning_graphs(400, random_state=0, return_X_y=True)
    >>> cf = HardCF().fit(graphs[:200], y[:200])
    >>> report = evaluate_filter(cf, graphs[200:], y[200:], alphas=[0.1, 0.2])
    >>> report.retention.shape, report.n_calibration
    ((2,), 199)
    """
    levels = check_alphas(alphas, filter._level_now)
    problems = filter._read_labelled(X, y, groups)
    counts = counts_of_filters(
        [filter] * len(levels), problems.batch, problems.labels, levels
    )
    masks = seen_among(filter._record, problems.hashes)
    used = tuple(int(mask.sum()) for mask in masks)
    warning = ""
    if any(used):
        warning = (
            f"; {used[0]} of these problems were used for training and {used[1]} for "
            "calibration, so coverage is overestimated"
        )
    calibration = filter.calibration_
    return _table(
        levels, counts, problems, calibration, calibration, seen=used, warning=warning
    )


def leave_one_out(
    filter: ConformalFilter,
    X: Problems,
    y: Labels,
    alphas: Iterable[float] = (0.02, 0.05, 0.1, 0.2),
    *,
    groups: Groups = None,
    n_draws: int | None = None,
    random_state: Seed = None,
) -> Table:
    """Evaluate the scorer of a fitted filter by exact leave-one-question-out cross-validation.

    Each problem is filtered with a threshold that is calibrated on one answer to every other
    question. The running time is O(n log n) for all alphas together. The problems must not have
    been used to train the scorer. The existing calibration of the filter is not used.

    Parameters
    ----------
    filter : fitted filter
        The filter whose scorer is evaluated. The parameter ``ties`` of the filter must not be
        "include".
    X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
        Answers to at least two questions.
    y : sequence of 1-D arrays, one per problem
        Claim labels.
    alphas : sequence of float in (0, 1)
        Levels at which the scorer is evaluated.
    groups : array-like of shape (n_problems,), or False, optional
        Identifier of the question that each answer belongs to, as in `evaluate_filter`.
    n_draws : int, optional
        Number of random draws of calibration answers, over which the results are averaged. Only
        one answer per question is used for calibration. If None, the answers that `fit` would
        choose are used.
    random_state : int, RandomState or None, default=None
        Seed of the random draws.

    Returns
    -------
    report : Table
        The report. ``threshold`` is calibrated on all questions, using the last draw.

    Raises
    ------
    ValueError
        If ``n_draws`` is not positive, or if the guarantee has ``show < 1``.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.evaluation import leave_one_out
    >>> graphs, y = make_reasoning_graphs(200, random_state=0, return_X_y=True)
    >>> cf = HardCF().fit(graphs[:100], y[:100])
    >>> leave_one_out(cf, graphs[100:], y[100:], alphas=[0.1]).n_calibration
    99
    """
    levels = check_alphas(alphas, filter._level_now)
    check_count("n_draws", 1 if n_draws is None else n_draws, 1)
    guarantee = filter.calibration_.guarantee
    if filter.ties == "include" or guarantee.show != 1:
        raise ValueError(
            'ties must be "exclude" or "jitter" and show must be 1 for leave-one-out '
            f"evaluation, got ties={filter.ties!r} and show={guarantee.show!r}. Use "
            "evaluate_filter or compare_filters instead"
        )
    full.refuse(filter, "leave-one-out evaluation")
    problems, _ = filter._read_calibration(X, y, groups)
    part = filter._part(problems)
    risk = filter._path_risks(problems).path_risk
    questions = problems.hashes.question
    n_questions = len(np.unique(questions))
    if n_questions < 2:
        raise ValueError(
            "leave-one-out evaluation requires answers to at least two questions"
        )
    draws = [part.orders()[0]]
    if n_draws is not None and n_questions < len(part):
        rng = check_random_state(random_state)
        draws = [rng.permutation(len(part)) for _ in range(n_draws)]
    # All answers to a question that are in the same group are merged into one problem.
    unit = number_groups(number_groups(questions) * len(part) + part.group_of)
    batch = problems.batch
    offsets = offsets_of(np.bincount(unit, batch.sizes).astype(int))
    order = np.argsort(unit[batch.problem_of], kind="stable")
    counts = []
    for ranks in draws:
        chosen = choose_one_each(questions, ranks, part.group_of)
        used = part[chosen[np.argsort(unit[chosen])]]
        merged = PathRisks(risk[order], offsets, used.groups)
        level = np.empty(len(risk))
        level[order] = leave_one_out_levels(guarantee, used.jumps, merged)
        # Every answer passes.
        passing = np.ones(len(part))
        masks = level <= levels[:, None]
        counts.append([count(guarantee, problems, kept, passing) for kept in masks])
    counts = np.mean(counts, axis=0)
    return _table(
        levels,
        counts,
        problems,
        Calibration(guarantee, used[1:]),
        Calibration(guarantee, used),
    )
