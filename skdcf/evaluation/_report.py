"""Comparison reports, with results per filter, split and alpha.

Differences between filters are paired by split, and their standard errors account for
overlapping splits.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._html import LevelTable
from ._metrics import NO_COVERAGE


def corrected_error(values, sizes):
    """Return the standard error of the mean over splits that share problems.

    The variance over J splits is multiplied by 1 / J + n_test / n_train instead of 1 / J, as in
    equation 13 of Nadeau and Bengio (Machine Learning 52, 2003).

    Parameters
    ----------
    values : ndarray of shape (..., n_splits, n_alphas)
        Value of the statistic for each split and level.
    sizes : ndarray of shape (n_splits, n_parts)
        Number of problems in each part of a split. The first part is the training set and the
        last part is the test set.
    """
    n = values.shape[-2]
    if n < 2:
        return np.full(np.delete(values.shape, -2), np.nan)
    overlap = sizes[:, -1].mean() / sizes[:, 0].mean()
    return values.std(axis=-2, ddof=1) * np.sqrt(1 / n + overlap)


def percent_change(new, old):
    """Return the change from ``old`` to ``new`` in percent, or NaN if ``old`` is 0."""
    return 100 * (new / np.where(old > 0, old, np.nan) - 1)


ROUNDING = 1e-9


def _meets(row):
    if np.isnan(row["coverage"]):
        return "-"
    return "yes" if row["meets_target"] else "no"


@dataclass(frozen=True, eq=False, repr=False)
class ComparisonReport(LevelTable):
    """Report on the coverage and the retention of each filter for each split and alpha.

    Parameters
    ----------
    names : tuple of str
        Filter names.
    alpha : ndarray of shape (n_alphas,)
        The levels.
    coverage : ndarray of shape (n_filters, n_splits, n_alphas)
        Proportion of passing test problems in which no false claim is kept. The coverage is NaN
        if no test problem passes, or if ``protocol`` is "leave-one-out" and the guarantee has
        ``show``.
    retention : ndarray of shape (n_filters, n_splits, n_alphas)
        Number of true claims kept per test problem.
    abstention : ndarray of shape (n_filters, n_splits, n_alphas)
        Proportion of test problems without kept claims.
    true_claims : ndarray of shape (n_splits,)
        Number of true claims per test problem, whether or not they are kept.
    sizes, n_questions : ndarray of int of shape (n_splits, 3) or (n_splits, 2)
        Numbers of problems and of questions in each part of a split. The parts are training,
        calibration and test, or training and evaluation.
    n_calibration : ndarray of shape (n_filters, n_splits, n_alphas)
        Number of calibration problems.
    seconds : ndarray of shape (n_filters, n_splits)
        Total time to fit the filter at all alphas, in seconds.
    protocol : {"folds", "leave-one-out"}
        Split protocol.
    false_kept : ndarray of shape (n_filters, n_splits, n_alphas)
        Number of false claims kept per test problem.
    false_shown : ndarray of shape (n_filters, n_splits, n_alphas)
        Proportion of test problems with a kept false claim.
    chosen : dict of str to list of list of dict
        Settings that a search selected for each filter, split and alpha. If no search is used,
        the inner dicts are empty.
    passing : ndarray of shape (n_filters, n_splits, n_alphas)
        Proportion of test problems that pass. The proportion of passing problems is 1 if the
        guarantee has no ``show``.

    Notes
    -----
    The rows returned by ``rows()`` contain means over the splits. ``meets_target`` states whether
    the mean coverage is at least 1 - alpha. ``delta_pct`` is the change in retention relative to
    the first filter, in percent, and ``delta_error`` is the corrected standard error of this
    change. ``retention_error`` is the corrected standard error of the mean retention. ``chosen``
    contains the settings selected by a search. For a numerical setting, the value is the mean over
    the splits. For any other setting, the value is the most frequent one.
    """

    names: tuple[str, ...]
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
    false_kept: np.ndarray
    false_shown: np.ndarray
    chosen: dict[str, list]
    passing: np.ndarray

    @property
    def retention_share(self) -> NDArray[Any]:
        """Return the proportions of true claims kept, by filter, split and alpha."""
        return self.retention / self.true_claims[:, None]

    @property
    def retention_error(self) -> NDArray[Any]:
        """Return the standard error of retention, corrected for overlapping splits."""
        return corrected_error(self.retention, self.sizes)

    def _delta_error(self, reference):
        """Return the corrected standard error of the change from the first filter, in percent."""
        paired = self.retention - self.retention[0]
        error = corrected_error(paired, self.sizes)
        error[0] = np.nan
        with np.errstate(divide="ignore", invalid="ignore"):
            return 100 * error / np.where(reference > 0, reference, np.nan)

    def _levels(self):
        names = (
            *("retention", "retention_share", "abstention"),
            *("false_kept", "false_shown", "passing"),
        )
        mean = {name: getattr(self, name).mean(axis=1) for name in names}
        wrong = np.where(self.passing > 0, (1 - self.coverage) * self.passing, 0)
        passing = np.where(mean["passing"] > 0, mean["passing"], np.nan)
        coverage = 1 - wrong.mean(axis=1) / passing
        retention = mean["retention"]
        target = 1 - self.alpha
        shown = 1 - mean["abstention"]
        share = np.where(shown > 0, shown, np.nan)
        rate = mean.pop("false_shown") / share
        # `rate` is the ratio of two means over the same splits.
        rest = self.false_shown - rate[:, None] * (1 - self.abstention)
        kept = retention + mean["false_kept"]
        chosen = [
            [_typical([split[j] for split in self.chosen[name]]) for name in self.names]
            for j in range(len(self.alpha))
        ]
        return mean | {
            "coverage": coverage,
            "target": target,
            "meets_target": coverage >= target - ROUNDING,
            "retention_error": self.retention_error,
            "delta_pct": percent_change(retention, retention[0]),
            "delta_error": self._delta_error(retention[0]),
            "shown": shown,
            "shown_error": corrected_error(self.abstention, self.sizes),
            "false_among_shown": rate,
            "false_among_shown_error": corrected_error(rest, self.sizes) / share,
            "accuracy": retention / np.where(kept > 0, kept, np.nan),
            "chosen": np.array(chosen, dtype=object).T,
        }

    _columns = {
        "alpha": "{alpha:.3f}",
        "filter": "{filter}",
        "coverage %": lambda row: f"{100 * row['coverage']:.1f}",
        "target": lambda row: f"{100 * row['target']:.1f}",
        "meets": _meets,
        "true claims kept": "{retention:.3f} +- {retention_error:.3f}",
        "delta %": "{delta_pct:+.1f} +- {delta_error:.1f}",
        "shown": "{shown:.3f} +- {shown_error:.3f}",
        "false among shown": "{false_among_shown:.3f} +- {false_among_shown_error:.3f}",
        "accuracy of kept": "{accuracy:.3f}",
        "false kept": "{false_kept:.3f}",
        "chosen": lambda row: _said(row["chosen"]),
    }

    def _heading(self):
        sizes = "/".join(f"{size:.0f}" for size in self.sizes.mean(axis=0))
        heading = (
            f"{len(self.sizes)} splits of {sizes} problems, {self.protocol}; delta is "
            f"relative to {self.names[0]!r}"
        )
        if (self.passing < 1).any():
            heading += "; coverage is computed for the problems that pass"
        if np.isnan(self.coverage[self.passing == 1]).any():
            heading += f"; {NO_COVERAGE}"
        return heading


def _typical(settings):
    """Return the mean of each numeric setting and the mode of each of the other settings."""
    out = {}
    for key in settings[0] if settings else ():
        values = [chosen[key] for chosen in settings]
        numeric = all(isinstance(value, (int, float)) for value in values)
        out[key] = float(np.mean(values)) if numeric else max(values, key=values.count)
    return out


def _said(settings):
    texts = {k: f"{v:.3g}" if isinstance(v, float) else v for k, v in settings.items()}
    return ", ".join(f"{key} = {text}" for key, text in texts.items()) or "-"
