"""The result of an evaluation: numbers per alpha, and the table they print as.

What is counted per problem becomes a mean over the answers to each question, and then a
mean over the questions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import check_groups
from .._table import Table, as_rows
from ..graphs.ragged import flatten
from ..guarantees import NoFalseClaim
from ..ops.hard import segment_sum
from ._intervals import band_of_law, mean_interval

PER_LEVEL = ("retention", "retention_error", "false_kept", "abstention", "threshold")
PER_LEVEL += ("nonempty", "nonempty_coverage")


@dataclass(frozen=True, eq=False, repr=False)
class FilterReport(Table):
    """Coverage and retention for several alphas; prints as a table.

    Each question counts once, however many of the problems are answers to it: what is
    called a mean over questions is the mean, over the questions, of the mean over the
    answers to each.

    Parameters
    ----------
    alpha : ndarray of shape (n_alphas,)
        The levels.
    coverage : ndarray of shape (n_alphas,)
        Share of the problems in which no false claim is kept, or for which what the
        filter's guarantee says holds; 1 - mean loss where it bounds a mean. A mean over
        questions, like all that follows.
    coverage_interval : ndarray of shape (n_alphas, 2)
        95 % interval of the coverage, over questions: Clopper-Pearson's, or Student's
        where a mean is bounded.
    coverage_band : ndarray of shape (n_alphas, 2)
        Where theory expects the coverage for so many calibration problems and questions,
        95 %; NaN where the law is not known.
    retention, retention_error : ndarray of shape (n_alphas,)
        True claims kept per problem, and its standard error.
    false_kept : ndarray of shape (n_alphas,)
        False claims kept per problem; claims that nobody judged count as false.
    abstention : ndarray of shape (n_alphas,)
        Share of the problems in which nothing is kept.
    threshold : ndarray of shape (n_alphas,)
        NaN where problems have thresholds of their own.
    n_problems, n_questions : int
        Test problems, and the questions that they answer.
    n_calibration : int
        Problems that calibrated the filter.
    seen : tuple of two int
        Numbers of the test problems that trained the filter, and that calibrated it. What
        is reported of these is too good.
    groups : dict of FilterReport
        By the name of the group; empty without ``by``.
    """

    alpha: np.ndarray
    coverage: np.ndarray
    coverage_interval: np.ndarray
    coverage_band: np.ndarray
    retention: np.ndarray
    retention_error: np.ndarray
    false_kept: np.ndarray
    abstention: np.ndarray
    threshold: np.ndarray
    n_problems: int
    n_questions: int
    n_calibration: int
    seen: tuple[int, int] = (0, 0)
    groups: dict[Any, FilterReport] = field(default_factory=dict)

    @classmethod
    def from_predictions(
        cls,
        y: Sequence[ArrayLike] | ArrayLike,
        kept: Mapping[float, Sequence[ArrayLike] | ArrayLike],
        *,
        groups: ArrayLike | None = None,
    ) -> FilterReport:
        """Report on masks that are at hand, whatever made them.

        Parameters
        ----------
        y : sequence of 1-D arrays, one per problem
            1 for a true claim, 0 for a false one, -1 for one that nobody judged, which
            counts as false.
        kept : dict of float to sequence of boolean masks
            The masks by alpha, as `predict` returns them.
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
        >>> from skdcf.metrics import FilterReport
        >>> masks = {0.1: [[True, True], [True, False]]}
        >>> report = FilterReport.from_predictions([[1, 0], [1, 1]], masks)
        >>> report.coverage, report.retention, report.false_kept
        (array([0.5]), array([1.]), array([0.5]))
        """
        if not kept:
            raise ValueError(
                "kept is empty: at least one alpha with its masks is needed"
            )
        flat = [flatten(y, masks) for masks in kept.values()]
        labels, _, offsets = flat[0]
        n, masks = len(offsets) - 1, np.array([mask for _, mask, _ in flat])
        questions = np.arange(n) if groups is None else check_groups(groups, n)
        levels = np.array(list(kept), float)
        return report_of(NoFalseClaim(), (levels, masks, labels, offsets, questions))

    @property
    def nonempty(self) -> NDArray[np.float64]:
        """Share of the problems in which something is kept, shape (n_alphas,)."""
        return 1 - self.abstention

    @property
    def nonempty_coverage(self) -> NDArray[np.float64]:
        """Coverage where something is kept, shape (n_alphas,); NaN where nothing is."""
        share = np.where(self.nonempty > 0, self.nonempty, np.nan)
        return 1 - (1 - self.coverage) / share

    _columns = {
        "alpha": "{alpha:.3f}",
        "target": "{target:.3f}",
        "coverage": "{coverage:.3f}",
        "95 % interval": "{coverage_interval_low:.3f} - {coverage_interval_high:.3f}",
        "theory band": "{coverage_band_low:.3f} - {coverage_band_high:.3f}",
        "true claims kept": "{retention:.3f} +- {retention_error:.3f}",
        "false kept": "{false_kept:.3f}",
        "non-empty": "{nonempty:.3f}",
        "covered of these": "{nonempty_coverage:.3f}",
        "threshold": "{threshold:.4g}",
    }

    @property
    def warning(self) -> str:
        """What to say of problems that the filter has seen before; empty without any."""
        said = [
            f"{n} of these problems {word} the filter"
            for n, word in zip(self.seen, ("trained", "calibrated"), strict=True)
            if n
        ]
        return f"; {' and '.join(said)}: coverage is too good" if said else ""

    def rows(self) -> list[dict[str, Any]]:
        """One dict per alpha; with groups, those of all problems and then of each group.

        Returns
        -------
        list of dict
            The lines, in plain values.
        """
        own = self._rows()
        if not self.groups:
            return own
        parts = {"all": own} | {g: one._rows() for g, one in self.groups.items()}
        return [{"group": g} | row for g, rows in parts.items() for row in rows]

    def _rows(self):
        columns = {"alpha": self.alpha, "target": 1 - self.alpha}
        columns["coverage"] = self.coverage
        for name in ("coverage_interval", "coverage_band"):
            for j, side in enumerate(("low", "high")):
                columns[f"{name}_{side}"] = getattr(self, name)[:, j]
        return as_rows(columns | {name: getattr(self, name) for name in PER_LEVEL})

    def _heading(self):
        answers = f"{self.n_problems} problems"
        if self.n_questions < self.n_problems:
            answers += f" ({self.n_questions} questions)"
        if self.n_calibration:
            answers += f", {self.n_calibration} for calibration"
        return answers + self.warning

    def _tables(self):
        tables = [(self._heading(), self._columns, self._rows())]
        if self.groups:
            rows = [
                {"group": group, "n_problems": one.n_problems} | one._rows()[i]
                for i in range(len(self.alpha))
                for group, one in self.groups.items()
            ]
            both = {"group": "{group}", "problems": "{n_problems:d}"} | self._columns
            left_out = ("target", "theory band", "threshold")
            columns = {key: form for key, form in both.items() if key not in left_out}
            tables.append(("", columns, rows))
        return tables


def report_of(guarantee, counted, parts=None, laws=None, seen=None, **known):
    """Count what is kept, and report on all problems and on parts of them.

    Parameters
    ----------
    guarantee : Guarantee
        It says what is lost.
    counted : tuple of ndarray
        Levels, (n_alphas,); kept claims, (n_alphas, n_claims); their labels, and the
        offsets of problems; the question that each problem answers, (n_problems,).
    parts : dict of ndarray of int, optional
        Problems of each group, by its name.
    laws : list of length n_alphas, optional
        The law of the coverage at each level, None where it is not known.
    seen : ndarray of bool, shape (2, n_problems), optional
        Problems that trained, and that calibrated.
    **known
        ``threshold`` and ``n_calibration`` of the filter.
    """
    alphas, kept, labels, offsets, questions = counted
    true, unknown, n = labels == 1, [None] * len(alphas), len(offsets) - 1
    counts = {
        "loss": [guarantee.loss(labels, k, offsets) for k in kept],
        "retention": [segment_sum(k & true, offsets) for k in kept],
        "false_kept": [segment_sum(k & ~true, offsets) for k in kept],
        "abstention": [segment_sum(k, offsets) == 0 for k in kept],
    }
    counts = {name: np.array(rows, float) for name, rows in counts.items()}
    known = {"threshold": np.full(len(alphas), np.nan), "n_calibration": 0} | known
    seen = np.zeros((2, n), bool) if seen is None else seen

    def report(rows, laws, groups):
        each = {
            k: _per_question(v[:, rows], questions[rows]) for k, v in counts.items()
        }
        loss, kept_true = each.pop("loss"), each["retention"]
        m, probability = loss.shape[1], guarantee.is_probability
        intervals = [mean_interval(row, probability, len(rows)) for row in loss]
        error = kept_true.std(axis=1, ddof=1) / np.sqrt(m) if m > 1 else np.nan
        return FilterReport(
            alpha=alphas,
            coverage=1 - loss.mean(axis=1),
            coverage_interval=np.array(intervals),
            coverage_band=np.array([band_of_law(law, 0.95, m) for law in laws]),
            retention_error=np.broadcast_to(error, alphas.shape),
            n_problems=len(rows),
            n_questions=m,
            seen=tuple(seen[:, rows].sum(axis=1).tolist()),
            groups=groups,
            **known,
            **{name: values.mean(axis=1) for name, values in each.items()},
        )

    groups = {name: report(rows, unknown, {}) for name, rows in (parts or {}).items()}
    return report(np.arange(n), unknown if laws is None else laws, groups)


def _per_question(values, questions):
    """Mean over the answers to each question, shape (n_alphas, n_questions)."""
    found, code, count = np.unique(questions, return_inverse=True, return_counts=True)
    if len(found) == len(questions):
        return values
    return np.array([np.bincount(code, row) for row in values]) / count
