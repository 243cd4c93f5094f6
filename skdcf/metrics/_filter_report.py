"""The result of an evaluation: numbers per alpha, and the table they print as."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._checks import printable
from .._drawing import records

COLUMNS = (
    "retention",
    "retention_error",
    "abstention",
    "threshold",
    "nonempty",
    "nonempty_coverage",
    "false_kept",
)
KNOWN_AT_TIMES = ("clean_prefix", "weighted_retention")


@dataclass(frozen=True, eq=False, repr=False)
class FilterReport:
    """Coverage and retention for several alphas; prints as a table.

    Attributes
    ----------
    alpha : ndarray of shape (n_alphas,)
    coverage : ndarray of shape (n_alphas,)
        Share of the test problems of which no false claim is kept, or for which what the
        filter's guarantee says holds; 1 - mean loss where it bounds a mean.
    coverage_interval : ndarray of shape (n_alphas, 2)
        Clopper-Pearson, 95 %; Student's where a mean is bounded.
    coverage_band : ndarray of shape (n_alphas, 2)
        What theory predicts for this many calibration and test problems, 95 %; NaN where
        the law is not known.
    retention, retention_error : ndarray of shape (n_alphas,)
        True claims kept per problem, and its standard error over problems.
    abstention : ndarray of shape (n_alphas,)
        Share of problems of which nothing is kept.
    threshold : ndarray of shape (n_alphas,)
        NaN where problems have thresholds of their own.
    n_problems, n_calibration : int
    nonempty_coverage : ndarray of shape (n_alphas,)
        Coverage among the problems of which something is kept; NaN without any.
    false_kept : ndarray of shape (n_alphas,)
        False claims that were missed, and so kept, per problem.
    clean_prefix : ndarray of shape (n_alphas,)
        Mean number of claims before the first that is dropped or not true; NaN unless
        all problems are chains.
    weighted_retention : ndarray of shape (n_alphas,)
        Weight of the true claims kept per problem; NaN without ``claim_weight``.
    groups : dict of FilterReport
        By the name of the group; empty without ``by``.
    """

    alpha: np.ndarray
    coverage: np.ndarray
    coverage_interval: np.ndarray
    coverage_band: np.ndarray
    retention: np.ndarray
    retention_error: np.ndarray
    abstention: np.ndarray
    threshold: np.ndarray
    n_problems: int
    n_calibration: int
    nonempty_coverage: np.ndarray
    false_kept: np.ndarray
    clean_prefix: np.ndarray
    weighted_retention: np.ndarray
    groups: Any = None

    def __post_init__(self):
        object.__setattr__(self, "groups", dict(self.groups or {}))

    @property
    def nonempty(self) -> np.ndarray:
        """Share of problems of which something is kept, shape (n_alphas,)."""
        return 1 - self.abstention

    def with_groups(self, groups: dict[Any, FilterReport]) -> FilterReport:
        """The same report with one for each group.

        Parameters
        ----------
        groups : dict of FilterReport

        Returns
        -------
        FilterReport
        """
        return replace(self, groups=groups)

    def __str__(self):
        more = [n for n in KNOWN_AT_TIMES if not np.isnan(getattr(self, n)).any()]
        lines = [
            f"{self.n_problems} problems, {self.n_calibration} for calibration",
            " alpha  target  coverage  95 % interval   theory band     "
            "retention        non-empty  covered of these  false kept  threshold"
            + "".join(f"  {name.replace('_', ' ')}" for name in more),
        ]
        for i, alpha in enumerate(self.alpha):
            lines.append(self._row(i, alpha) + self._more(i, more))
        return "\n".join(lines + self._group_lines())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        said = f"{self.n_problems} problems, {self.n_calibration} for calibration"
        lines = range(len(self.alpha))
        whole = records([self._shown(i) for i in lines], said)
        parts = [
            {"alpha": f"{self.alpha[i]:g}", "group": group, "problems": one.n_problems}
            | one._shown(i)
            for i in lines
            for group, one in self.groups.items()
        ]
        return whole + records(parts, "each group by itself") if parts else whole

    def _shown(self, i):
        (low, high), (a, b) = self.coverage_interval[i], self.coverage_band[i]
        kept, error = self.retention[i], self.retention_error[i]
        return {
            "alpha": f"{self.alpha[i]:g}",
            "target": f"{1 - self.alpha[i]:g}",
            "coverage": f"{self.coverage[i]:.3f}",
            "95 % interval": f"{low:.3f} to {high:.3f}",
            "theory band": "unknown" if np.isnan(a) else f"{a:.3f} to {b:.3f}",
            "retention": f"{kept:.3f} ± {error:.3f}",
            "not emptied": f"{self.nonempty[i]:.3f}",
            "false kept": f"{self.false_kept[i]:.3f}",
            "threshold": f"{self.threshold[i]:.4g}",
        }

    def _row(self, i, alpha):
        (low, high), (a, b) = self.coverage_interval[i], self.coverage_band[i]
        band = "       -      " if np.isnan(a) else f"{a:.3f} - {b:.3f} "
        return (
            f"{alpha:6.3f}  {1 - alpha:6.3f}  {self.coverage[i]:8.3f}  "
            f"{low:.3f} - {high:.3f}   {band}  "
            f"{self.retention[i]:6.3f} +- {self.retention_error[i]:.3f}  "
            f"{self.nonempty[i]:9.3f}  {self.nonempty_coverage[i]:16.3f}  "
            f"{self.false_kept[i]:10.3f}  {self.threshold[i]:9.4g}"
        )

    def _more(self, i, names):
        return "".join(f"  {getattr(self, n)[i]:{len(n)}.3f}" for n in names)

    def _group_lines(self):
        if not self.groups:
            return []
        names = {group: printable(group) for group in self.groups}
        width = max(5, *map(len, names.values()))
        lines = [
            f" alpha  {'group':{width}}  problems  coverage  95 % interval   retention"
        ]
        for i, alpha in enumerate(self.alpha):
            for group, one in self.groups.items():
                low, high = one.coverage_interval[i]
                lines.append(
                    f"{alpha:6.3f}  {names[group]:{width}}  {one.n_problems:8d}  "
                    f"{one.coverage[i]:8.3f}  {low:.3f} - {high:.3f}   "
                    f"{one.retention[i]:9.3f}"
                )
        return lines

    def to_frame(self) -> Any:
        """The table as a pandas DataFrame, one row per alpha, and per group if any.

        Returns
        -------
        pandas.DataFrame
        """
        import pandas as pd

        columns = {"alpha": self.alpha, "target": 1 - self.alpha}
        columns["coverage"] = self.coverage
        for name in ("coverage_interval", "coverage_band"):
            for j, side in enumerate(("low", "high")):
                columns[f"{name}_{side}"] = getattr(self, name)[:, j]
        for name in (*COLUMNS, *KNOWN_AT_TIMES):
            columns[name] = getattr(self, name)
        frame = pd.DataFrame(columns)
        if not self.groups:
            return frame
        parts = {"all": frame} | {g: one.to_frame() for g, one in self.groups.items()}
        names = pd.Index(list(parts), name="group", dtype=object)
        return (
            pd.concat(list(parts.values()), keys=names)
            .reset_index(0)
            .reset_index(drop=True)
        )
