"""Where true claims are lost."""

from typing import Any, Self

import numpy as np

from ._style import TRUE, one_axes


class RetentionDisplay:
    """Share of the true claims that is kept, for each kind of claim.

    Parameters
    ----------
    report : RetentionReport

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes
        Bars with standard errors; the numbers of true claims stand in them.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.plots import RetentionDisplay
    >>> X, y = make_reasoning_graphs(300, random_state=0, return_X_y=True)
    >>> cf = HardCF().fit(X[:150], y[:150])
    >>> display = RetentionDisplay.from_estimator(cf, X[150:], y[150:], "depth")
    >>> display.ax_.get_ylabel()
    'depth'
    """

    def __init__(self, report: Any) -> None:
        self.report = report

    @classmethod
    def from_report(cls, report: Any, *, ax: Any = None) -> Self:
        """Draw what is at hand.

        Parameters
        ----------
        report : RetentionReport
            From `skdcf.inspection.retention_by`.
        ax : matplotlib Axes, optional

        Returns
        -------
        RetentionDisplay
        """
        return cls(report).plot(ax=ax)

    @classmethod
    def from_estimator(
        cls,
        filter: Any,
        X: Any,
        y: Any,
        by: Any,
        *,
        alpha: float | None = None,
        ax: Any = None,
    ) -> Self:
        """Filter problems, and draw what is kept of each kind of claim.

        Parameters
        ----------
        filter, X, y, by, alpha
            As in `skdcf.inspection.retention_by`.
        ax : matplotlib Axes, optional

        Returns
        -------
        RetentionDisplay
        """
        from ..inspection import retention_by

        return cls.from_report(retention_by(filter, X, y, by, alpha=alpha), ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        self
        """
        report = self.report
        rows = np.arange(len(report.kind))
        self.ax_ = ax = one_axes(ax, (6, 1.1 + 0.3 * len(rows)))
        share = np.nan_to_num(report.share)
        error = np.nan_to_num(report.error)
        ax.barh(
            rows, share, xerr=error, color=TRUE, ecolor="0.35", capsize=2, height=0.7
        )
        for row, n in zip(rows, report.n_true, strict=True):
            ax.text(1.01, row, f"of {n}", va="center", fontsize="small")
        ax.set_yticks(rows, report.kind)
        ax.set_ylim(len(rows) - 0.4, -0.6)
        ax.set(xlim=(0, 1.15), ylabel=report.by)
        ax.set_xlabel(f"share of true claims kept at alpha = {report.alpha:g}")
        ax.set_xticks(np.arange(6) / 5)
        self.figure_ = ax.figure
        return self
