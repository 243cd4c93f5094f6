"""The result of an evaluation: numbers per alpha, and the table they print as."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._table import Table

PER_LEVEL = (
    "retention",
    "retention_error",
    "false_kept",
    "abstention",
    "threshold",
    "nonempty",
    "nonempty_coverage",
    "clean_prefix",
    "weighted_retention",
)


@dataclass(frozen=True, eq=False, repr=False)
class FilterReport(Table):
    """Coverage and retention for several alphas; prints as a table.

    Each question counts once, however many of the problems are answers to it: what is
    called a mean over questions is the mean, over the questions, of the mean over the
    answers to each.

    Attributes
    ----------
    alpha : ndarray of shape (n_alphas,)
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
    nonempty_coverage : ndarray of shape (n_alphas,)
        Coverage among the problems in which something is kept; NaN without any.
    clean_prefix : ndarray of shape (n_alphas,)
        Mean number of claims before the first that is dropped or not true; NaN unless
        all problems are chains.
    weighted_retention : ndarray of shape (n_alphas,)
        Weight of the true claims kept per problem; NaN without ``claim_weight``.
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
    nonempty_coverage: np.ndarray
    clean_prefix: np.ndarray
    weighted_retention: np.ndarray
    n_problems: int
    n_questions: int
    n_calibration: int
    seen: tuple[int, int] = (0, 0)
    groups: dict[Any, FilterReport] = field(default_factory=dict)

    @property
    def nonempty(self) -> np.ndarray:
        """Share of the problems in which something is kept, shape (n_alphas,)."""
        return 1 - self.abstention

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
        "clean prefix": "{clean_prefix:.3f}",
        "weighted retention": "{weighted_retention:.3f}",
    }
    _group_columns = {
        "alpha": "{alpha:.3f}",
        "group": "{group}",
        "problems": "{n_problems:d}",
        "coverage": "{coverage:.3f}",
        "95 % interval": "{coverage_interval_low:.3f} - {coverage_interval_high:.3f}",
        "true claims kept": "{retention:.3f}",
        "false kept": "{false_kept:.3f}",
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
        columns |= {name: getattr(self, name) for name in PER_LEVEL}
        lines = zip(*(values.tolist() for values in columns.values()), strict=True)
        return [dict(zip(columns, line, strict=True)) for line in lines]

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
            tables.append(("", self._group_columns, rows))
        return tables
