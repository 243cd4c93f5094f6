"""Paired differences between filters, with errors that respect reused problems."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._table import Table


def naive_error(values, axis=-2):
    """Standard error of the mean over splits, as if they were independent."""
    return _deviation(values, axis) * np.sqrt(1 / values.shape[axis])


def corrected_error(values, sizes, axis=-2):
    """Standard error of the mean over splits that share problems.

    The variance over J splits is multiplied by 1 / J + n_test / n_train instead of
    1 / J (Nadeau and Bengio, Machine Learning 52, 2003, equation 13).

    Parameters
    ----------
    values : ndarray of shape (..., n_splits, n_alphas)
    sizes : ndarray of shape (n_splits, n_parts)
        Problems in each part; the first trains, the last tests.
    """
    overlap = sizes[:, -1].mean() / sizes[:, 0].mean()
    return _deviation(values, axis) * np.sqrt(1 / values.shape[axis] + overlap)


def _deviation(values, axis):
    if values.shape[axis] < 2:
        return np.full(np.delete(values.shape, axis), np.nan)
    return values.std(axis=axis, ddof=1)


def percent_change(new, old):
    """100 (new / old - 1); nan where old is 0."""
    old = np.broadcast_to(old, np.shape(new))
    ratio = np.divide(new, old, out=np.full(old.shape, np.nan), where=old > 0)
    return 100 * (ratio - 1)


def p_values(difference, error, n_splits):
    """Two-sided, of Student's t with n_splits - 1 degrees of freedom."""
    from scipy.stats import t

    if n_splits < 2:
        return np.full(difference.shape, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.abs(difference) / error
    return 2 * t.sf(np.nan_to_num(statistic, nan=0.0, posinf=np.inf), n_splits - 1)


@dataclass(frozen=True, eq=False, repr=False)
class DifferenceReport(Table):
    """Retention of filters minus that of a reference, split by split; prints as a table.

    Attributes
    ----------
    reference : str
    names : tuple of str
        The other filters.
    alpha : ndarray of shape (n_alphas,)
    difference : ndarray of shape (n_filters, n_alphas)
        Mean over splits, in true claims kept per problem.
    percent : ndarray of shape (n_filters, n_alphas)
        The same relative to the reference; nan where that keeps nothing.
    naive_error : ndarray of shape (n_filters, n_alphas)
        Standard error of the difference if the splits were independent. They are not, as
        they divide the same problems anew: too small.
    corrected_error : ndarray of shape (n_filters, n_alphas)
        After Nadeau and Bengio (2003), which allows for that.
    p_value : ndarray of shape (n_filters, n_alphas)
        Two-sided, from the corrected error.
    """

    reference: str
    names: tuple
    alpha: np.ndarray
    difference: np.ndarray
    percent: np.ndarray
    naive_error: np.ndarray
    corrected_error: np.ndarray
    p_value: np.ndarray

    @classmethod
    def _from_comparison(cls, report, reference):
        base = report.names.index(reference)
        others = [i for i in range(len(report.names)) if i != base]
        paired = report.retention[others] - report.retention[base]
        difference = paired.mean(axis=1)
        error = corrected_error(paired, report.sizes)
        means = report.retention.mean(axis=1)
        return cls(
            reference=reference,
            names=tuple(report.names[i] for i in others),
            alpha=report.alpha,
            difference=difference,
            percent=percent_change(means[others], means[base]),
            naive_error=naive_error(paired),
            corrected_error=error,
            p_value=p_values(difference, error, len(report.sizes)),
        )

    def rows(self) -> list[dict[str, Any]]:
        """One dict per alpha and filter.

        Returns
        -------
        list of dict
        """
        keys = ("difference", "percent", "naive_error", "corrected_error", "p_value")
        return [
            {"alpha": float(alpha), "filter": name}
            | {key: float(getattr(self, key)[i, j]) for key in keys}
            for j, alpha in enumerate(self.alpha)
            for i, name in enumerate(self.names)
        ]

    _columns = {
        "alpha": "{alpha:.3f}",
        "filter": "{filter}",
        "difference": "{difference:+.3f}",
        "naive": "{naive_error:.3f}",
        "corrected": "{corrected_error:.3f}",
        "delta %": "{percent:+.1f}",
        "p": "{p_value:.3f}",
    }

    def _heading(self):
        return f"true claims kept per problem, minus those of {self.reference!r}"
