"""Observed coverage, theoretical coverage and retention of filters.

Counts per problem are averaged over the answers to each question, and then over the
questions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from .._checks import (
    check_alpha,
    check_alphas,
    check_count,
    check_groups,
    check_weights,
)
from .._docs import documented
from .._html import Table
from ..choosing import passing_answers
from ..filters import ConformalFilter
from ..graphs import GraphBatch, Problems
from ..graphs.ragged import offsets_of, segment_ids
from ..guarantees import NoFalseClaim, rows_of_groups
from ..guarantees import leave_one_out as leave_one_out_levels
from ..identity import question_groups, read_groups
from ..labels import Labels, flatten
from ..ops.conformal import conformal_rank
from ..ops.hard import segment_sum
from ..uses import check, filter_in, flat_masks, seen


@documented
def coverage_score(
    y: Labels, kept: Labels, *, sample_weight: ArrayLike | None = None
) -> float:
    """Compute the proportion of problems in which no false claim is kept.

    Parameters
    ----------
    y : {labels}
        Claim labels (1 for true, 0 for false, -1 for unjudged). Unjudged claims are treated as
        false. In a flat array, each label belongs to a separate problem with one claim.
    kept : sequence of boolean masks
        Boolean masks returned by `predict`.
    sample_weight : array-like of shape (n_problems,), optional
        Weight of each problem, for example 1 divided by the number of answers to the question.

    Returns
    -------
    coverage : float
        The proportion of covered problems, between 0 and 1.

    Raises
    ------
    ValueError
        If ``y`` or ``kept`` contains invalid or masked values, or if the weights are negative,
        not finite, or all zero.

    Examples
    --------
    >>> from skdcf.evaluation import coverage_score
    >>> coverage_score([[1, 0], [1, 1]], [[True, True], [True, False]])
    0.5
    """
    labels, kept, offsets = flatten(y, kept)
    return _mean(segment_sum(kept & (labels != 1), offsets) == 0, sample_weight)


@documented
def retention_score(
    y: Labels, kept: Labels, *, sample_weight: ArrayLike | None = None
) -> float:
    """Compute the mean number of true claims kept per problem.

    Parameters
    ----------
    y : {labels}
        Claim labels (1 for true, 0 for false, -1 for unjudged). Unjudged claims are not counted
        as true.
    kept : sequence of boolean masks
        Boolean masks returned by `predict`.
    sample_weight : array-like of shape (n_problems,), optional
        Weight of each problem.

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
    return _mean(segment_sum(kept & (labels == 1), offsets), sample_weight)


def _mean(values, sample_weight):
    return float(np.average(values, weights=check_weights(sample_weight, len(values))))


def coverage_interval(
    n_covered: int, n_problems: int, *, confidence_level: float = 0.95
) -> tuple[float, float]:
    """Compute the Clopper-Pearson interval for an observed coverage.

    Parameters
    ----------
    n_covered, n_problems : int
        Number of test problems without a kept false claim, and total number of test problems.
    confidence_level : float, default=0.95
        Probability that the interval contains the true coverage.

    Returns
    -------
    low, high : float
        Lower and upper limits of the interval.

    Examples
    --------
    >>> from skdcf.evaluation import coverage_interval
    >>> low, high = coverage_interval(90, 100)
    >>> round(low, 3), round(high, 3)
    (0.824, 0.951)
    """
    if not 0 <= n_covered <= n_problems or n_problems < 1:
        raise ValueError(
            f"n_covered must be between 0 and n_problems = {n_problems}, got "
            f"{n_covered}"
        )
    _check_confidence_level(confidence_level)
    return _clopper_pearson(int(n_covered), int(n_problems), confidence_level)


def error_rate_upper_bound(
    n_errors: int, n_audited: int, *, confidence_level: float = 0.95
) -> float:
    """Return an upper bound on the proportion of filtered answers that contain a false claim.

    In an audit, a person judges the kept claims of randomly drawn answers. The bound is exact and
    does not depend on the calibration, so it holds for any filter.

    Choose ``n_audited`` before judging the first answer. If an audit is extended until the bound
    is small enough, the bound is wrong in more than 5 % of cases. To compute the bound K
    times during an audit, choose all K sample sizes beforehand and pass ``confidence_level=1 -
    0.05 / K`` each time.

    Parameters
    ----------
    n_errors : int
        Number of audited answers in which a false claim was kept.
    n_audited : int
        Number of answers that were drawn at random and judged. The bound holds for the
        sampled population, which may include or exclude empty answers.
    confidence_level : float in (0, 1), default=0.95
        Probability, over random samples of answers, that the bound holds.

    Returns
    -------
    bound : float
        Clopper-Pearson bound on the proportion.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> from skdcf.evaluation import error_rate_upper_bound
    >>> [round(error_rate_upper_bound(*audit), 3) for audit in [(0, 50), (1, 50), (3, 100)]]
    [0.058, 0.091, 0.076]
    """
    check_count("n_audited", n_audited, 1)
    check_count("n_errors", n_errors, 0)
    if n_errors > n_audited:
        raise ValueError(
            f"n_errors must be at most n_audited = {n_audited}, got {n_errors}"
        )
    _check_confidence_level(confidence_level)
    if n_errors == n_audited:
        return 1.0
    from scipy.special import betaincinv

    return float(betaincinv(n_errors + 1, n_audited - n_errors, confidence_level))


def coverage_band(
    n_calibration: int,
    alpha: float,
    *,
    confidence_level: float = 0.95,
    n_test: int | None = None,
    delta: float | None = None,
) -> tuple[float, float]:
    """Compute the theoretical coverage band for a random sample of calibration problems.

    Without ties, the coverage conditional on the calibration problems follows Beta(n + 1 - k, k),
    where k is the conformal rank. Ties can only raise the coverage. Problems without a false
    claim can also raise the coverage if fewer than k problems have a false claim.

    Parameters
    ----------
    n_calibration : int
        Number of calibration problems, n.
    alpha : float in (0, 1)
        The filter's level.
    confidence_level : float, default=0.95
        Probability that the coverage is in the band.
    n_test : int, optional
        Number of test problems. If given, the band applies to the coverage *observed* on this
        number of problems. The number of covered problems then follows a beta-binomial
        distribution. If None, the band applies to the true coverage.
    delta : float, optional
        The parameter ``delta`` of `skdcf.guarantees.NoFalseClaim`.

    Returns
    -------
    low, high : float
        The lower and upper limits of the band, or (1, 1) if no claim can be kept.

    References
    ----------
    V. Vovk. Conditional validity of inductive conformal predictors. ACML 2012.

    Examples
    --------
    >>> from skdcf.evaluation import coverage_band
    >>> low, high = coverage_band(99, 0.1)
    >>> round(low, 3), round(high, 3)
    (0.834, 0.95)
    """
    _check_confidence_level(confidence_level)
    k = conformal_rank(n_calibration, check_alpha(alpha), delta)
    return band_of_law((n_calibration + 1 - k, k), confidence_level, n_test)


@lru_cache(
    4096
)  # The result is cached, because a comparison needs the same few bands repeatedly.
def band_of_law(shape, confidence_level, n_test=None):
    """Compute the band of a coverage that follows Beta(a, b), where ``shape`` is (a, b) or None."""
    from scipy.stats import beta, betabinom

    if shape is None or shape[1] == 0:
        return (np.nan, np.nan) if shape is None else (1.0, 1.0)
    tail = (1 - confidence_level) / 2
    if n_test is None:
        low, high = beta.ppf([tail, 1 - tail], *shape)
    else:
        low, high = betabinom.ppf([tail, 1 - tail], n_test, *shape) / n_test
    return float(low), float(high)


def mean_interval(losses, probability, n_problems):
    """Compute a 95 % confidence interval for 1 - mean loss from the mean loss of each question.

    If each loss is 0 or 1, the result is the Clopper-Pearson interval. If several answers to a
    question were averaged, the Clopper-Pearson interval is computed for the effective number of
    independent problems (Korn and Graubard 1998). For other losses, the result is Student's
    t-interval.
    """
    from scipy.stats import t

    m = len(losses)
    mean = float(np.mean(losses))
    if probability and np.isin(losses, (0, 1)).all():
        return coverage_interval(m - round(losses.sum()), m)
    variance = np.var(losses, ddof=1) / m if m > 1 else np.inf
    if not probability:
        reach = t.ppf(0.975, m - 1) * np.sqrt(variance) if m > 1 else np.inf
        return 1 - mean - reach, 1 - mean + reach
    if not 0 < variance < np.inf:
        return _clopper_pearson((1 - mean) * m, m, 0.95)
    few = (t.ppf(0.975, n_problems - 1) / t.ppf(0.975, m - 1)) ** 2
    independent = min(mean * (1 - mean) / variance * few, n_problems)
    return _clopper_pearson((1 - mean) * independent, independent, 0.95)


def _clopper_pearson(k, n, confidence_level):
    """Compute the Clopper-Pearson interval for k / n, where k and n need not be integers."""
    from scipy.special import betaincinv

    tail = (1 - confidence_level) / 2
    low = betaincinv(k, n - k + 1, tail) if k > 0 else 0.0
    high = betaincinv(k + 1, n - k, 1 - tail) if k < n else 1.0
    return float(low), float(high)


def _check_confidence_level(confidence_level):
    if not 0 < confidence_level < 1:
        raise ValueError(
            "confidence_level must be strictly between 0 and 1, got "
            f"{confidence_level!r}"
        )


#: If m answers pass, leave-one-out evaluation counts exactly floor(alpha m) of them as wrong.
NO_COVERAGE = (
    "coverage is not reported, because leave-one-out evaluation with show counts the same "
    "number of wrong answers for every filter"
)


@documented
@dataclass(frozen=True, eq=False, repr=False)
class FilterReport(Table):
    """Report on the coverage and retention of a filter at several levels, printed as a table.

    Each question has the same weight, regardless of the number of its answers. Values are averaged
    over the answers to each question, and then over the questions.

    Parameters
    ----------
    alpha : ndarray of shape (n_alphas,)
        The levels.
    coverage : ndarray of shape (n_alphas,)
        Proportion of problems in which the filter's guarantee holds, which usually means that no
        false claim is kept. If the guarantee bounds a mean, the coverage is 1 - mean loss. The
        coverage and all following values are means over questions. If the guarantee has ``show <
        1``, only passing answers are included in the coverage.
    coverage_interval : ndarray of shape (n_alphas, 2)
        Confidence interval (95 %) for the coverage, computed over questions. The Clopper-Pearson
        interval is used, or Student's t-interval if the guarantee bounds a mean.
    coverage_band : ndarray of shape (n_alphas, 2)
        Theoretical 95 % coverage band for the numbers of calibration problems and test questions,
        or NaN if the coverage distribution is unknown.
    retention, retention_error : ndarray of shape (n_alphas,)
        Mean number of true claims kept per problem, and its standard error.
    false_kept : ndarray of shape (n_alphas,)
        Mean number of false claims kept per problem. Unjudged claims are treated as false.
    abstention : ndarray of shape (n_alphas,)
        Proportion of problems in which no claim is kept.
    shown_error : ndarray of shape (n_alphas,)
        Standard error of `shown`, the proportion of problems with a kept claim.
    false_among_shown, false_among_shown_error : ndarray of shape (n_alphas,)
        Proportion of nonempty filtered answers that contain a false or unjudged claim, and its
        standard error, or NaN if all filtered answers are empty.
    unfiltered : float
        Proportion of unfiltered answers that contain a false or unjudged claim.
    threshold : ndarray of shape (n_alphas,)
        Threshold at each level, or NaN if the problems have different thresholds.
    n_problems, n_questions : int
        Number of test problems, and number of distinct questions.
    n_calibration : int
        Number of problems used to calibrate the filter.
    seen : tuple of two int
        Numbers of test problems that were used for training and for calibration. Results on
        problems that were used for training or calibration are biased upwards.
    groups : dict of FilterReport
        Report on each group, keyed by group name, or an empty dict if there are no groups.
    passing : ndarray of shape (n_alphas,)
        Proportion of answers that pass, which is 1 unless the guarantee has ``show < 1``.
    """

    alpha: np.ndarray
    coverage: np.ndarray
    coverage_interval: np.ndarray
    coverage_band: np.ndarray
    retention: np.ndarray
    retention_error: np.ndarray
    false_kept: np.ndarray
    abstention: np.ndarray
    shown_error: np.ndarray
    false_among_shown: np.ndarray
    false_among_shown_error: np.ndarray
    unfiltered: float
    threshold: np.ndarray
    n_problems: int
    n_questions: int
    n_calibration: int
    seen: tuple[int, int] = (0, 0)
    groups: dict[Any, FilterReport] = field(default_factory=dict)
    passing: np.ndarray = field(default_factory=lambda: np.ones(1))

    @classmethod
    def from_predictions(
        cls, y: Labels, kept: Mapping[float, Labels], *, groups: ArrayLike | None = None
    ) -> FilterReport:
        """Create a report from the masks returned by any filter.

        Parameters
        ----------
        y : {labels}
            Claim labels (1 for true, 0 for false, -1 for unjudged). Unjudged claims are treated
            as false.
        kept : dict of float to sequence of boolean masks
            Boolean masks returned by `predict`, keyed by alpha.
        groups : array-like of shape (n_problems,), optional
            Identifier of the question that each answer belongs to. If None, each problem belongs
            to a separate question.

        Returns
        -------
        report : FilterReport
            The report. ``threshold`` and ``coverage_band`` are NaN because they are unknown.

        Raises
        ------
        ValueError
            If the shapes of labels and masks differ.

        Examples
        --------
        >>> from skdcf.evaluation import FilterReport
        >>> masks = {0.1: [[True, True], [True, False]]}
        >>> report = FilterReport.from_predictions([[1, 0], [1, 1]], masks)
        >>> report.coverage, report.retention, report.false_kept
        (array([0.5]), array([1.]), array([0.5]))
        """
        if not kept:
            raise ValueError(
                "kept must contain the masks for at least one alpha, but it is empty"
            )
        flat = [flatten(y, masks) for masks in kept.values()]
        labels, _, offsets = flat[0]
        masks = np.array([mask for _, mask, _ in flat])
        n = len(offsets) - 1
        levels = np.array(list(kept), float)
        questions = np.arange(n) if groups is None else check_groups(groups, n)
        batch = GraphBatch.from_arrays(np.empty((len(labels), 0)), offsets)
        return report_of(NoFalseClaim(), batch, (levels, masks, labels, questions))

    @property
    def shown(self) -> NDArray[np.float64]:
        """Proportion of problems with a kept claim, at each level."""
        return 1 - self.abstention

    @property
    def false_shown(self) -> NDArray[np.float64]:
        """Proportion of problems in which a false or unjudged claim is kept, at each level."""
        return np.where(self.shown > 0, self.false_among_shown, 0) * self.shown

    @property
    def accuracy(self) -> NDArray[np.float64]:
        """Proportion of true claims among the kept claims at each level, or NaN if undefined."""
        kept = self.retention + self.false_kept
        return self.retention / np.where(kept > 0, kept, np.nan)

    @property
    def target(self) -> NDArray[np.float64]:
        """Guaranteed coverage at each level."""
        return 1 - self.alpha

    _fields = (
        "alpha",
        "target",
        "coverage",
        "coverage_interval",
        "coverage_band",
        "retention",
        "retention_error",
        "shown",
        "shown_error",
        "false_among_shown",
        "false_among_shown_error",
        "accuracy",
        "false_kept",
        "abstention",
        "passing",
        "threshold",
    )
    _columns = {
        "alpha": "{alpha:.3f}",
        "target": "{target:.3f}",
        "coverage": "{coverage:.3f}",
        "95 % interval": "{coverage_interval_low:.3f} - {coverage_interval_high:.3f}",
        "theory band": "{coverage_band_low:.3f} - {coverage_band_high:.3f}",
        "true claims kept": "{retention:.3f} +- {retention_error:.3f}",
        "shown": "{shown:.3f} +- {shown_error:.3f}",
        "false among shown": "{false_among_shown:.3f} +- {false_among_shown_error:.3f}",
        "accuracy of kept": "{accuracy:.3f}",
        "false kept": "{false_kept:.3f}",
        "threshold": "{threshold:.4g}",
    }

    @property
    def warning(self) -> str:
        """Warning about test problems that were used in `fit`, or an empty string."""
        sentences = [
            f"{n} of these problems were used for {word}"
            for n, word in zip(self.seen, ("training", "calibration"), strict=True)
            if n
        ]
        return (
            f"; {' and '.join(sentences)}, so coverage is overestimated"
            if sentences
            else ""
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return the table rows for all problems, followed by those for each group.

        Returns
        -------
        rows : list of dict
            The rows of the table, as dicts of plain Python values.
        """
        own_rows = super().rows()
        if not self.groups:
            return own_rows
        rows_by_group = {"all": own_rows} | {
            g: group_report.rows() for g, group_report in self.groups.items()
        }
        return [{"group": g} | row for g, rows in rows_by_group.items() for row in rows]

    def _heading(self):
        answers = f"{self.n_problems} problems"
        if self.n_questions < self.n_problems:
            answers += f" ({self.n_questions} questions)"
        if self.n_calibration:
            answers += f", {self.n_calibration} for calibration"
        if (self.passing < 1).any():
            shares = ", ".join(f"{share:.1%}" for share in np.unique(self.passing))
            answers += (
                f"; {shares} of the answers pass, and coverage is computed for these"
            )
        if np.isnan(self.coverage[self.passing == 1]).any():
            answers += f"; {NO_COVERAGE}"
        return answers + self.warning

    def _tables(self):
        tables = [(self._heading(), self._columns, super().rows())]
        if self.groups:
            rows_by_group = [
                (g, group_report.n_problems, group_report.rows())
                for g, group_report in self.groups.items()
            ]
            rows = [
                {"group": group, "n_problems": n} | rows[i]
                for i in range(len(self.alpha))
                for group, n, rows in rows_by_group
            ]
            columns = {"group": "{group}", "problems": "{n_problems:d}"} | self._columns
            for unlike in ("target", "theory band", "threshold"):
                del columns[unlike]
            tables.append(("", columns, rows))
        return tables


def report_of(
    guarantee,
    batch,
    counted,
    groups=None,
    laws=None,
    seen=None,
    threshold=None,
    n_calibration=0,
    passing=None,
):
    """Count the kept claims, and return a report on all problems and on each group.

    Parameters
    ----------
    guarantee : Guarantee
        Defines the loss.
    batch : GraphBatch
        The problems.
    counted : tuple of ndarray
        The levels, masks, labels and question identifiers. The masks have shape (n_alphas,
        n_claims), or (n_draws, n_alphas, n_claims) to report means over draws.
    groups : dict of ndarray of int, optional
        Indices of the problems in each group, keyed by group name.
    laws : list of length n_alphas, optional
        Coverage distribution at each level, or None if the distribution is unknown.
    seen : ndarray of bool of shape (2, n_problems), optional
        Whether each problem was used for training (first row) and for calibration (second row).
    threshold : ndarray of shape (n_alphas,), optional
        Thresholds of the filter. If omitted, the thresholds in the report are NaN.
    n_calibration : int, default=0
        Number of calibration problems.
    passing : ndarray of bool of shape (n_problems,) or (n_alphas, n_problems), optional
        Whether each problem passes and is therefore covered by the guarantee. By default, all
        problems pass. The loss of a problem that does not pass is 0.
    """
    alphas, kept, labels, questions = counted
    unknown = [None] * len(alphas)
    n = len(batch)

    # For each problem, compute the loss, the numbers of kept true and false claims, whether any
    # claim is kept, and whether any false claim is kept.
    def count(mask):
        n_false = segment_sum(mask & (labels != 1), batch.offsets)
        return [
            guarantee.loss(labels, mask, batch.offsets),
            segment_sum(mask & (labels == 1), batch.offsets),
            n_false,
            segment_sum(mask, batch.offsets) > 0,
            n_false > 0,
        ]

    counts = np.array([count(mask) for mask in kept.reshape(-1, len(labels))], float)
    counts = counts.reshape(-1, len(alphas), 5, n).mean(axis=0).swapaxes(0, 1)
    any_false = (segment_sum(labels != 1, batch.offsets) > 0).astype(float)
    threshold = np.full(len(alphas), np.nan) if threshold is None else threshold
    seen = np.zeros((2, n), bool) if seen is None else seen
    passing = np.ones(n) if passing is None else np.asarray(passing, float)
    passing = np.broadcast_to(passing, (len(alphas), n))

    def report(rows, laws, groups):
        each = per_question(counts[..., rows], questions[rows])
        loss, retention, false_kept, shown, false_shown = each.mean(axis=-1)
        m = each.shape[-1]
        passes = per_question(passing[:, rows], questions[rows])
        share = passes.mean(axis=1)
        rate = false_shown / np.where(shown > 0, shown, np.nan)
        # `rate` is the ratio of two means over the same questions.
        rest = each[4] - rate[:, None] * each[3]
        intervals = [
            _interval_of_passing(*row, guarantee.is_probability, len(rows))
            for row in zip(each[0], passes, strict=True)
        ]
        errors = [mean_error(values) for values in (each[1], each[3], rest)]
        return FilterReport(
            alpha=alphas,
            coverage=1 - loss / np.where(share > 0, share, np.nan),
            coverage_interval=np.array(intervals),
            coverage_band=np.array(
                [
                    band_of_law(law, 0.95, round(count))
                    for law, count in zip(laws, passes.sum(axis=1), strict=True)
                ]
            ),
            retention=retention,
            retention_error=errors[0],
            false_kept=false_kept,
            abstention=1 - shown,
            shown_error=errors[1],
            false_among_shown=rate,
            false_among_shown_error=errors[2] / np.where(shown > 0, shown, np.nan),
            unfiltered=float(per_question(any_false[rows], questions[rows]).mean()),
            n_problems=len(rows),
            n_questions=m,
            seen=tuple(seen[:, rows].sum(axis=1).tolist()),
            groups=groups,
            threshold=threshold,
            n_calibration=n_calibration,
            passing=share,
        )

    groups = {name: report(rows, unknown, {}) for name, rows in (groups or {}).items()}
    return report(np.arange(n), unknown if laws is None else laws, groups)


def _interval_of_passing(losses, passes, probability, n_problems):
    """Compute the interval for 1 - mean loss over passing answers, as in `mean_interval`.

    ``passes`` is the proportion of passing answers for each question. If the proportion of
    passing answers is strictly between 0 and 1 for any question, the mean loss is a ratio of two
    sums over the questions.
    """
    if not passes.any():
        return np.nan, np.nan
    if np.isin(passes, (0, 1)).all():
        among = losses[passes == 1]
        return mean_interval(among, probability, round(n_problems * passes.mean()))
    rate = losses.sum() / passes.sum()
    low, high = mean_interval(
        rate + (losses - rate * passes) / passes.mean(), False, n_problems
    )
    return max(low, 0.0), min(high, 1.0)


def mean_error(values):
    """Compute the standard error of the mean along the last axis, or NaN for a single value."""
    m = values.shape[-1]
    if m < 2:
        return np.full(values.shape[:-1], np.nan)
    return values.std(axis=-1, ddof=1) / np.sqrt(m)


def per_question(values, questions):
    """Average values over the answers to each question, along the last axis."""
    distinct, code, count = np.unique(
        questions, return_inverse=True, return_counts=True
    )
    if len(distinct) == len(questions):
        return values
    return np.apply_along_axis(lambda row: np.bincount(code, row), -1, values) / count


@documented
def evaluate_filter(
    filter: ConformalFilter,
    X: Problems,
    y: Labels,
    alphas: Iterable[float] = (0.02, 0.05, 0.1, 0.2),
    *,
    by: str | Callable | Sequence[Any] | None = None,
    groups: ArrayLike | Literal[False] | None = None,
) -> FilterReport:
    """Compute coverage and retention of a fitted filter on test problems.

    Parameters
    ----------
    filter : fitted filter
        The filter to evaluate, or a fitted `skdcf.evaluation.CalibratedSearch`.
    X : {problems}
        Test problems in any form that the filter's `fit` accepts.
    y : {labels}
        Claim labels. A claim with an unknown label is treated as false in the coverage, and is
        not counted as a true claim in the retention.
    alphas : sequence of float in (0, 1)
        Levels at which the filter is evaluated.
    by : str, callable or list, optional
        Definition of problem groups that are reported separately, as in
        `skdcf.guarantees.NoFalseClaim`.
    groups : array-like of shape (n_problems,), or False, optional
        Identifier of the question that each answer belongs to. If None, the questions are
        identified as in `skdcf.identity.question_groups`. If False, each problem belongs to a
        separate question. Each question has the same weight, and intervals are computed over
        questions.

    Returns
    -------
    report : FilterReport
        The results for each level, printed as a table.

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
    >>> halves = evaluate_filter(
    ...     cf, graphs[200:], y[200:], [0.1], by=lambda batch: batch.sizes > 7
    ... )
    >>> {group: one.n_problems for group, one in halves.groups.items()}
    {False: 126, True: 74}
    """
    alphas = _levels_of(filter, alphas)
    batch, labels = check(filter, X, y)
    questions = question_groups(batch, groups)
    calibration = filter.calibration_
    guarantee = calibration.guarantee
    return report_of(
        guarantee,
        batch,
        (alphas, flat_masks(filter, batch, alphas, labels), labels, questions),
        None if by is None else rows_of_groups(read_groups(by, batch)),
        laws=[calibration.coverage_law(a) for a in alphas],
        seen=np.array(seen(filter, batch, groups)),
        threshold=np.array([calibration.threshold(a) for a in alphas]),
        n_calibration=filter.n_calibration_,
        passing=None if guarantee.show == 1 else passing_answers(filter, batch),
    )


@documented
def leave_one_out(
    filter: ConformalFilter,
    X: Problems,
    y: Labels,
    alphas: Iterable[float] = (0.02, 0.05, 0.1, 0.2),
    *,
    groups: ArrayLike | Literal[False] | None = None,
    n_draws: int | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> FilterReport:
    """Evaluate the scorer of a fitted filter by exact leave-one-question-out cross-validation.

    Each problem is filtered with a threshold that is calibrated on one answer to every other
    question. The running time is O(n log n) for all alphas together. The problems must not have
    been used to train the scorer. The existing calibration of the filter is not used.

    Parameters
    ----------
    filter : fitted filter
        The filter whose scorer is evaluated. The parameter ``ties`` of the filter must not be
        "include".
    X : {problems}
        Answers to at least two questions.
    y : {labels}
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
    report : FilterReport
        The report. ``threshold`` is calibrated on all questions, using the last draw. If the
        guarantee has ``show < 1``, the coverage is NaN because it would be the same for every
        filter.

    Raises
    ------
    ValueError
        If ``n_draws`` is not positive, or if several answers to a question are passed although
        the guarantee has ``show < 1``.

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
    levels = _levels_of(filter, alphas)
    check_count("n_draws", 1 if n_draws is None else n_draws, 1)
    if filter.ties == "include":
        raise ValueError(
            'ties must be "exclude" or "jitter" for leave-one-out evaluation'
        )
    batch, labels = check(filter, X, y)
    questions = question_groups(batch, groups)
    if len(np.unique(questions)) < 2:
        raise ValueError(
            "leave-one-out evaluation requires answers to at least two questions"
        )
    guarantee = filter.calibration_.guarantee
    if guarantee.show != 1 and len(np.unique(questions)) < len(batch):
        raise ValueError(
            "leave-one-out evaluation requires a single answer to each question if show "
            f"is below 1, got show={guarantee.show!r} and {len(batch)} answers to "
            f"{len(np.unique(questions))} questions. Use evaluate_filter or "
            "compare_filters instead"
        )
    part = filter.calibration_part(batch, labels, groups)
    draws: list[NDArray | None] = [None]
    if n_draws is not None and len(np.unique(questions)) < len(batch):
        rng = check_random_state(random_state)
        draws = [rng.permutation(len(batch)) for _ in range(n_draws)]
    # The other answers calibrate, so an answer is compared with these.
    among_others = copy(filter_in(filter))
    among_others._record = replace(among_others._record, origin=part.origin)
    risk = np.concatenate(list(among_others.path_risk(batch)), axis=None)
    risks = guarantee.path_risks(risk, batch)
    kept = np.empty((len(draws), len(levels), len(risk)), bool)
    for ranks, mask in zip(draws, kept, strict=True):
        chosen, _ = part.choose(guarantee, levels[0], fewest=False, ranks=ranks)
        claims, order, chosen = _by_question(risks, questions, chosen)
        jumps = part.jumps[chosen]
        mask[:, order] = (
            leave_one_out_levels(guarantee, jumps, claims) <= levels[:, None]
        )
    calibration = part[chosen].calibrate(guarantee)
    fewer = part[chosen[1:]].calibrate(guarantee.with_share(1))
    report = report_of(
        guarantee,
        batch,
        (levels, kept, labels, questions),
        laws=None if claims.groups else [fewer.coverage_law(a) for a in levels],
        threshold=np.array([calibration.threshold(a) for a in levels]),
        n_calibration=len(chosen) - 1,
    )
    if guarantee.show == 1:
        return report
    unknown = np.full(len(levels), np.nan)
    pairs = np.full((len(levels), 2), np.nan)
    return replace(
        report, coverage=unknown, coverage_interval=pairs, coverage_band=pairs
    )


def _by_question(claims, questions, chosen):
    """Merge all answers to a question into one problem.

    Parameters
    ----------
    claims : Claims
    questions : ndarray of int of shape (n_problems,)
    chosen : ndarray of int
        The calibration answers, one for each question in each group.

    Returns
    -------
    claims : Claims
        The claims, ordered by question and then by group.
    order : ndarray of int of shape (n_claims,)
        Original index of each reordered claim.
    chosen : ndarray of int
        The calibration answers, in the order of the merged problems.
    """
    groups = claims.groups or [None] * len(claims)
    units = list(zip(questions.tolist(), groups, strict=True))
    number = {unit: i for i, unit in enumerate(dict.fromkeys(units))}
    unit = np.array([number[unit_name] for unit_name in units])
    chosen = chosen[np.argsort(unit[chosen])]
    order = np.argsort(unit[segment_ids(claims.offsets)], kind="stable")
    merged = replace(
        claims,
        path_risk=claims.path_risk[order],
        offsets=offsets_of(np.bincount(unit, np.diff(claims.offsets)).astype(int)),
        groups=None if claims.groups is None else [groups[i] for i in chosen],
    )
    return merged, order, chosen


def _levels_of(filter, alphas):
    """Validate the levels, and convert them to the form required by the filter's guarantee."""
    if isinstance(filter, ConformalFilter):
        filter.check_calibrated()
    guarantee = filter.calibration_.guarantee
    return check_alphas(alphas, lambda alpha: guarantee.level(alpha, filter.alpha))
