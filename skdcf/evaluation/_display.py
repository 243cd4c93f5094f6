"""A comparison as a picture, in the manner of scikit-learn's displays."""

import numpy as np

from ._differences import corrected_error


class ComparisonDisplay:
    """Coverage and retention against alpha, one line per filter.

    Parameters
    ----------
    report : ComparisonReport

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of two matplotlib Axes
        Coverage on the left, with the promise as a dashed line and the band of chance
        about it; retention on the right, with corrected standard errors.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.evaluation import ComparisonDisplay, compare_filters
    >>> X, y = make_reasoning_graphs(300, random_state=0, return_X_y=True)
    >>> report = compare_filters(
    ...     {"frequency": HardCF()}, X, y, [0.1, 0.2], cv=3, random_state=0
    ... )
    >>> len(ComparisonDisplay.from_comparison(report).axes_)
    2
    """

    def __init__(self, report):
        self.report = report

    @classmethod
    def from_comparison(cls, report, *, axes=None):
        """Draw a comparison.

        Parameters
        ----------
        report : ComparisonReport
        axes : sequence of two matplotlib Axes, optional

        Returns
        -------
        ComparisonDisplay
        """
        return cls(report).plot(axes=axes)

    def plot(self, *, axes=None):
        """Draw.

        Parameters
        ----------
        axes : sequence of two matplotlib Axes, optional

        Returns
        -------
        self
        """
        import matplotlib.pyplot as plt

        if axes is None:
            _, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
        left, right = axes
        report, order = self.report, np.argsort(self.report.alpha)
        alpha = report.alpha[order]
        coverage = report.coverage.mean(axis=1)[:, order]
        retention = report.retention.mean(axis=1)[:, order]
        error = corrected_error(report.retention, report.sizes)[:, order]
        # Side by side, or the bars of many filters hide each other.
        gap = np.diff(alpha).min(initial=0.1) / (3 * len(report.names))
        for i, name in enumerate(report.names):
            at = alpha + gap * (i - (len(report.names) - 1) / 2)
            left.plot(alpha, coverage[i], marker="o", label=name)
            right.errorbar(at, retention[i], yerr=error[i], marker="o", capsize=2)
        band = report.coverage_band[order].T
        left.fill_between(alpha, *band, color="0.5", alpha=0.2, lw=0, label="chance")
        left.plot(alpha, 1 - alpha, "k--", lw=1, label="promised: 1 - alpha")
        left.set(xlabel="alpha", ylabel="coverage (no false claim kept)")
        right.set(xlabel="alpha", ylabel="true claims kept per problem", ylim=(0, None))
        left.legend(frameon=False)
        self.axes_ = np.array([left, right])
        self.figure_ = left.figure
        return self
