"""The result of an evaluation: numbers per alpha, and the table they print as."""

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False, repr=False)
class FilterReport:
    """Coverage and retention for several alphas; prints as a table.

    Attributes
    ----------
    alpha : ndarray of shape (n_alphas,)
    coverage : ndarray of shape (n_alphas,)
        Share of the test problems of which no false claim is kept.
    coverage_interval : ndarray of shape (n_alphas, 2)
        Clopper-Pearson, 95 %.
    coverage_band : ndarray of shape (n_alphas, 2)
        What theory predicts for this many calibration and test problems, 95 %.
    retention, retention_error : ndarray of shape (n_alphas,)
        True claims kept per problem, and its standard error over problems.
    abstention : ndarray of shape (n_alphas,)
        Share of problems of which nothing is kept.
    threshold : ndarray of shape (n_alphas,)
    n_problems, n_calibration : int
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

    def __str__(self):
        lines = [
            f"{self.n_problems} problems, {self.n_calibration} for calibration",
            " alpha  target  coverage  95 % interval   theory band     "
            "retention        abstains  threshold",
        ]
        for i, alpha in enumerate(self.alpha):
            (low, high), (a, b) = self.coverage_interval[i], self.coverage_band[i]
            lines.append(
                f"{alpha:6.3f}  {1 - alpha:6.3f}  {self.coverage[i]:8.3f}  "
                f"{low:.3f} - {high:.3f}   {a:.3f} - {b:.3f}   "
                f"{self.retention[i]:6.3f} +- {self.retention_error[i]:.3f}  "
                f"{self.abstention[i]:8.3f}  {self.threshold[i]:9.4g}"
            )
        return "\n".join(lines)

    __repr__ = __str__

    def to_frame(self) -> Any:
        """The table as a pandas DataFrame, one row per alpha.

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
        for name in ("retention", "retention_error", "abstention", "threshold"):
            columns[name] = getattr(self, name)
        return pd.DataFrame(columns)
