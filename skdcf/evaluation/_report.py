"""Comparison reports, with results per filter, split and alpha.

Differences between filters are paired by split, and their standard errors account for
overlapping splits.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import check_choice
from .._html import LevelTable
from ..metrics import NO_COVERAGE
from ..ops.conformal import conformal_rank


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


@dataclass(frozen=True, eq=False, repr=False)
class DifferenceReport(LevelTable):
    """Differences in kept claims between several filters and a reference filter, paired by split.

    Parameters
    ----------
    reference : str
        Name of the reference filter.
    names : tuple of str
        Other filter names.
    alpha : ndarray of shape (n_alphas,)
        The levels.
    difference : ndarray of shape (n_filters, n_alphas)
        Difference in the number of true claims kept per problem, averaged over the splits.
    percent : ndarray of shape (n_filters, n_alphas)
        Difference relative to the reference filter in percent, or NaN if the reference filter
        keeps no true claim.
    false_difference : ndarray of shape (n_filters, n_alphas)
        Difference in the number of false claims kept per problem, averaged over the splits.
    naive_error : ndarray of shape (n_filters, n_alphas)
        Standard error of the difference under the assumption of independent splits. The naive
        standard error is too small, because all splits use the same problems.
    corrected_error : ndarray of shape (n_filters, n_alphas)
        Standard error of the difference, corrected for overlapping splits (Nadeau and Bengio
        2003).
    p_value : ndarray of shape (n_filters, n_alphas)
        Two-sided p-value, computed from the corrected standard error.
    """

    reference: str
    names: tuple[str, ...]
    alpha: np.ndarray
    difference: np.ndarray
    percent: np.ndarray
    false_difference: np.ndarray
    naive_error: np.ndarray
    corrected_error: np.ndarray
    p_value: np.ndarray

    _fields = (
        "difference",
        "percent",
        "naive_error",
        "corrected_error",
        "p_value",
        "false_difference",
    )
    _columns = {
        "alpha": "{alpha:.3f}",
        "filter": "{filter}",
        "true kept": "{difference:+.3f}",
        "naive": "{naive_error:.3f}",
        "corrected": "{corrected_error:.3f}",
        "delta %": "{percent:+.1f}",
        "p": "{p_value:.3f}",
        "false kept": "{false_difference:+.3f}",
    }

    def _heading(self):
        return f"claims kept per problem, minus those of {self.reference!r}"


ROUNDING = 1e-9


def _meets(row):
    if np.isnan(row["coverage"]):
        return "-"
    return "yes" if row["meets_target"] else "in band" if row["in_band"] else "no"


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
    the mean coverage is at least 1 - alpha, and ``in_band`` states whether the mean coverage is at
    least the lower bound of `coverage_band`. ``delta_pct`` is the change in retention relative to
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
    def coverage_band(self) -> NDArray[Any]:
        """Return the theoretical band for the mean coverage over splits, one row per alpha.

        For every filter, the number of covered test problems in a split has a beta-binomial
        distribution. With the protocol "folds", the band is the 95 % interval of the mean over
        independent splits. With the protocol "leave-one-out", the coverage is deterministic. Of
        the n problems, the k = floor(alpha n) problems with the smallest scores are not covered.
        Ties and problems without a false claim can only increase the coverage. If questions have
        several answers, the theoretical band is approximate. The band depends on the number of
        passing problems, so it is NaN at each level at which some problems do not pass.
        """
        band = self._band()
        band[(self.passing < 1).any(axis=(0, 1))] = np.nan
        return band

    def _band(self):
        if self.protocol == "leave-one-out":
            n = self.n_questions[:, 1]
            misses = [[conformal_rank(m - 1, a) / m for m in n] for a in self.alpha]
            return np.repeat(1 - np.mean(misses, axis=1), 2).reshape(-1, 2)
        m = round(self.n_questions[:, -1].mean())
        splits = len(self.sizes)
        n = self.n_calibration.mean(axis=(0, 1)).round().astype(int).tolist()
        pairs = zip(n, self.alpha, strict=True)
        return np.array([mean_band(n, a, m, splits) for n, a in pairs])

    @property
    def retention_share(self) -> NDArray[Any]:
        """Return the proportions of true claims kept, by filter, split and alpha."""
        return self.retention / self.true_claims[:, None]

    @property
    def retention_error(self) -> NDArray[Any]:
        """Return the standard error of retention, corrected for overlapping splits."""
        return corrected_error(self.retention, self.sizes)

    def differences(self, reference: str | None = None) -> DifferenceReport:
        """Return the difference in retention between each filter and a reference filter.

        Parameters
        ----------
        reference : str, optional
            Reference filter. The default is the first filter.

        Returns
        -------
        differences : DifferenceReport
            The differences, with one row for each level and each filter except the reference
            filter.
        """
        from scipy.stats import t

        if reference is not None:
            check_choice("reference", reference, self.names)
        base = 0 if reference is None else self.names.index(reference)
        compared = [i for i in range(len(self.names)) if i != base]
        paired = self.retention[compared] - self.retention[base]
        n = len(self.sizes)
        difference = paired.mean(axis=1)
        false = self.false_kept.mean(axis=1)
        error = corrected_error(paired, self.sizes)
        means = self.retention.mean(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(difference == 0, 0 * error, np.abs(difference) / error)
        return DifferenceReport(
            reference=self.names[base],
            names=tuple(self.names[i] for i in compared),
            alpha=self.alpha,
            difference=difference,
            percent=percent_change(means[compared], means[base]),
            false_difference=false[compared] - false[base],
            naive_error=paired.std(axis=1, ddof=1) / np.sqrt(n) if n > 1 else error,
            corrected_error=error,
            p_value=2 * t.sf(ratio, n - 1) if n > 1 else np.nan * error,
        )

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
        target, (low, high) = 1 - self.alpha, self.coverage_band.T
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
            "band_low": low,
            "band_high": high,
            "meets_target": coverage >= target - ROUNDING,
            "in_band": coverage >= low - ROUNDING,
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


def mean_band(n_calibration, alpha, n_test, n_splits):
    """Return the 95 % band (low, high) of the mean coverage over independent splits.

    The distribution of the number of covered problems in all splits is a convolution, which is
    computed with a Fourier transform.
    """
    from scipy.stats import betabinom

    k = conformal_rank(n_calibration, alpha)
    if k == 0:
        return 1.0, 1.0
    total = n_splits * n_test
    law = betabinom.pmf(np.arange(n_test + 1), n_test, n_calibration + 1 - k, k)
    pmf = np.fft.irfft(np.fft.rfft(law, total + 1) ** n_splits, total + 1)
    edges = np.searchsorted(np.cumsum(pmf), [0.025, 0.975])
    return tuple((np.minimum(edges, total) / total).tolist())
