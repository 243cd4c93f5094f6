"""The result of a comparison: numbers per filter, split and alpha, and their table."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import check_choice
from .._table import Table
from ..ops.conformal import conformal_rank
from ._differences import DifferenceReport, corrected_error, percent_change
from ._splits import LEAVE_ONE_OUT

ROUNDING = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class ComparisonReport(Table):
    """Coverage and retention per filter, split and alpha; prints as a table.

    Attributes
    ----------
    names : tuple of str
        The filters.
    alpha : ndarray of shape (n_alphas,)
    coverage : ndarray of shape (n_filters, n_splits, n_alphas)
        Share of the test problems in which no false claim is kept.
    retention : ndarray of shape (n_filters, n_splits, n_alphas)
        True claims kept per test problem.
    abstention : ndarray of shape (n_filters, n_splits, n_alphas)
        Share of the test problems in which nothing is kept.
    true_claims : ndarray of shape (n_splits,)
        True claims per test problem, kept or not.
    sizes, n_questions : ndarray of int, shape (n_splits, 3) or (n_splits, 2)
        Problems to train, calibrate and test, or to train and evaluate, and the questions
        that they answer.
    n_calibration : ndarray of shape (n_filters, n_splits, n_alphas)
        Problems that calibrated.
    seconds : ndarray of shape (n_filters, n_splits)
        Time spent in fitting, all alphas together.
    protocol : {"folds", "leave-one-out"}
    nonempty_coverage : ndarray of shape (n_filters, n_splits, n_alphas)
        Coverage among the problems in which something is kept; NaN without any.
    false_kept : ndarray of shape (n_filters, n_splits, n_alphas)
        False claims kept per test problem.
    clean_prefix : ndarray of shape (n_filters, n_splits, n_alphas)
        Mean number of claims before the first that is dropped or not true; NaN unless
        all problems are chains.
    chosen : dict of str to list of list of dict
        By filter, split and alpha, the settings that a search chose; empty without one.
    """

    names: tuple
    alpha: np.ndarray
    coverage: np.ndarray
    retention: np.ndarray
    abstention: np.ndarray
    true_claims: np.ndarray
    sizes: np.ndarray
    n_questions: np.ndarray
    n_calibration: np.ndarray
    seconds: np.ndarray
    protocol: str
    nonempty_coverage: np.ndarray
    false_kept: np.ndarray
    clean_prefix: np.ndarray
    chosen: dict[str, list]

    @property
    def coverage_band(self) -> NDArray:
        """Where theory puts the mean coverage over the splits, shape (n_alphas, 2).

        For folds the 95 % band of the mean over independent splits: the number of test
        problems covered in one is beta-binomial, whatever the filter. Leave-one-out
        coverage leaves nothing to chance: of n problems, the k = floor(alpha n) with the
        smallest scores are not covered. Ties, and problems without a false claim, can
        only raise either. Where questions have several answers the band is approximate.
        """
        if self.protocol == LEAVE_ONE_OUT:
            n = self.n_questions[:, 1]
            misses = [[conformal_rank(m - 1, a) / m for m in n] for a in self.alpha]
            value = 1 - np.mean(misses, axis=1)
            return np.stack([value, value], axis=1)
        m, splits = round(self.n_questions[:, -1].mean()), len(self.sizes)
        n = self.n_calibration.mean(axis=(0, 1)).round().astype(int).tolist()
        pairs = zip(n, self.alpha, strict=True)
        return np.array([mean_band(n, a, m, splits) for n, a in pairs])

    @property
    def retention_share(self) -> NDArray:
        """Share of the true claims that is kept, shape (n_filters, n_splits, n_alphas)."""
        return self.retention / self.true_claims[:, None]

    @property
    def retention_error(self) -> NDArray:
        """Corrected standard error of the mean retention, (n_filters, n_alphas)."""
        return corrected_error(self.retention, self.sizes)

    def differences(self, reference: str | None = None) -> DifferenceReport:
        """Retention of each filter minus that of one of them.

        Parameters
        ----------
        reference : str, optional
            Name of a filter; None is the first.

        Returns
        -------
        DifferenceReport
        """
        reference = self._reference(reference)
        return DifferenceReport._from_comparison(self, reference)

    def rows(self, reference: str | None = None) -> list[dict[str, Any]]:
        """One dict per alpha and filter: means over the splits.

        Parameters
        ----------
        reference : str, optional
            Filter that ``delta_pct`` compares with; None is the first.

        Returns
        -------
        list of dict
            ``meets_target`` says whether the mean coverage is at least 1 - alpha,
            ``in_band`` whether it is at least the lower edge of `coverage_band`.
            ``retention_error`` is the corrected standard error of the mean. ``chosen``
            has the settings that searches chose: means of numbers, else what was chosen
            most often.
        """
        base = self.names.index(self._reference(reference))
        coverage, retention = self.coverage.mean(axis=1), self.retention.mean(axis=1)
        target = 1 - self.alpha
        low, high = self.coverage_band.T
        columns = {
            "coverage": coverage,
            "meets_target": coverage >= target - ROUNDING,
            "in_band": coverage >= low - ROUNDING,
            "retention": retention,
            "retention_error": self.retention_error,
            "retention_share": self.retention_share.mean(axis=1),
            "delta_pct": percent_change(retention, retention[base]),
            "abstention": self.abstention.mean(axis=1),
            "nonempty_coverage": _known_mean(self.nonempty_coverage),
            "false_kept": self.false_kept.mean(axis=1),
            "clean_prefix": self.clean_prefix.mean(axis=1),
        }
        return [
            {
                "alpha": float(self.alpha[j]),
                "filter": name,
                "target": float(target[j]),
                "band_low": float(low[j]),
                "band_high": float(high[j]),
            }
            | {key: column[i, j].item() for key, column in columns.items()}
            | {"chosen": _typical([split[j] for split in self.chosen[name]])}
            for j in range(len(self.alpha))
            for i, name in enumerate(self.names)
        ]

    def to_frame(self, reference: str | None = None) -> Any:
        """Return `rows` as a pandas DataFrame.

        Parameters
        ----------
        reference : str, optional
            As in `rows`.

        Returns
        -------
        pandas.DataFrame
        """
        import pandas as pd

        return pd.DataFrame(self.rows(reference))

    def _reference(self, name):
        if name is None:
            return self.names[0]
        check_choice("reference", name, self.names)
        return name

    _columns = {
        "alpha": "{alpha:.3f}",
        "filter": "{filter}",
        "coverage %": lambda row: f"{100 * row['coverage']:.1f}",
        "target": lambda row: f"{100 * row['target']:.1f}",
        "meets": lambda row: (
            "yes" if row["meets_target"] else "in band" if row["in_band"] else "no"
        ),
        "true claims kept": "{retention:.3f} +- {retention_error:.3f}",
        "delta %": "{delta_pct:+.1f}",
        "false kept": "{false_kept:.3f}",
        "abstains": "{abstention:.3f}",
        "covered of rest": "{nonempty_coverage:.3f}",
        "chosen": lambda row: _said(row["chosen"]),
    }

    def _heading(self):
        sizes = "/".join(f"{size:.0f}" for size in self.sizes.mean(axis=0))
        return (
            f"{len(self.sizes)} splits of {sizes} problems, {self.protocol}; delta is "
            f"against {self.names[0]!r}"
        )


def _typical(settings):
    """The mean of each numeric setting over the splits, else the most frequent value."""
    out = {}
    for key in settings[0] if settings else ():
        values = [one[key] for one in settings]
        numeric = all(isinstance(value, (int, float)) for value in values)
        out[key] = float(np.mean(values)) if numeric else max(values, key=values.count)
    return out


def _said(settings):
    pairs = settings.items()
    return (
        ", ".join(
            f"{k} = {v:.3g}" if isinstance(v, float) else f"{k} = {v}" for k, v in pairs
        )
        or "-"
    )


def _known_mean(values):
    """Mean over the splits in which it is known; NaN where it never is."""
    known = ~np.isnan(values)
    total = np.where(known, values, 0.0).sum(axis=1)
    count = known.sum(axis=1)
    return np.where(count, total / np.maximum(count, 1), np.nan)


def mean_band(n_calibration, alpha, n_test, n_splits, confidence=0.95):
    """Band of the mean coverage over independent splits: (low, high).

    The counts of the splits add up, so their distribution is an n_splits-fold
    convolution, taken as a power of the Fourier transform.
    """
    from scipy.stats import betabinom

    k = conformal_rank(n_calibration, alpha)
    if k == 0:
        return 1.0, 1.0
    total = n_splits * n_test
    one = betabinom.pmf(np.arange(n_test + 1), n_test, n_calibration + 1 - k, k)
    pmf = np.fft.irfft(np.fft.rfft(one, total + 1) ** n_splits, total + 1)
    tail = (1 - confidence) / 2
    edges = np.searchsorted(np.cumsum(pmf), [tail, 1 - tail])
    return tuple((np.minimum(edges, total) / total).tolist())
