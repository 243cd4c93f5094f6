"""Pictures of filters and problems, as Display classes like scikit-learn's."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .graphs import GraphBatch, ReasoningGraph, pack_labels

__all__ = ["ComparisonDisplay", "FilterReportDisplay", "ReasoningGraphDisplay"]

KEPT, DROPPED, FALSE = "#1b7f5c", "#b9b9b9", "#c0392b"


class FilterReportDisplay:
    """Coverage and retention against alpha, one line per report.

    Parameters
    ----------
    reports : dict of str to FilterReport
        By the name that the legend shows.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of two matplotlib Axes
        Coverage on the left, retention on the right.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.metrics import evaluate_filter
    >>> from skdcf.plots import FilterReportDisplay
    >>> graphs, y = make_reasoning_graphs(300, random_state=0, return_X_y=True)
    >>> cf = HardCF().fit(graphs[:150], y[:150])
    >>> report = evaluate_filter(cf, graphs[150:], y[150:])
    >>> display = FilterReportDisplay.from_reports({"frequency": report})
    >>> len(display.axes_)
    2
    """

    def __init__(self, reports: Any) -> None:
        self.reports = reports

    @classmethod
    def from_reports(cls, reports: Any, *, axes: Any = None) -> Self:
        """Draw reports.

        Parameters
        ----------
        reports : FilterReport, or dict of str to FilterReport
        axes : sequence of two matplotlib Axes, optional

        Returns
        -------
        FilterReportDisplay
        """
        if not isinstance(reports, dict):
            reports = {"": reports}
        return cls(reports).plot(axes=axes)

    def plot(self, *, axes: Any = None) -> Self:
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
            _, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
        left, right = axes
        for name, report in self.reports.items():
            left.errorbar(
                report.alpha,
                report.coverage,
                yerr=np.abs(report.coverage_interval.T - report.coverage).clip(min=0),
                marker="o",
                capsize=2,
                label=name,
            )
            right.errorbar(
                report.alpha,
                report.retention,
                yerr=report.retention_error,
                marker="o",
                capsize=2,
                label=name,
            )
        alpha = np.unique(np.concatenate([r.alpha for r in self.reports.values()]))
        left.plot(alpha, 1 - alpha, "k--", lw=1, label="promised: 1 - alpha")
        left.set(xlabel="alpha", ylabel="coverage (no false claim kept)")
        right.set(xlabel="alpha", ylabel="true claims kept per problem", ylim=(0, None))
        left.legend(frameon=False)
        self.axes_ = np.array([left, right])
        self.figure_ = left.figure
        return self


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
    >>> from skdcf.evaluation import compare_filters
    >>> from skdcf.plots import ComparisonDisplay
    >>> X, y = make_reasoning_graphs(300, random_state=0, return_X_y=True)
    >>> report = compare_filters(
    ...     {"frequency": HardCF()}, X, y, [0.1, 0.2], cv=3, random_state=0
    ... )
    >>> len(ComparisonDisplay.from_comparison(report).axes_)
    2
    """

    def __init__(self, report: Any) -> None:
        self.report = report

    @classmethod
    def from_comparison(cls, report: Any, *, axes: Any = None) -> Self:
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

    def plot(self, *, axes: Any = None) -> Self:
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
        error = report.retention_error[:, order]
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


class ReasoningGraphDisplay:
    """One problem: its claims from premises down, kept ones in green.

    Parameters
    ----------
    graph : ReasoningGraph
    kept : ndarray of bool, shape (n_claims,), optional
    labels : ndarray of shape (n_claims,), optional
        False claims get a red border.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.plots import ReasoningGraphDisplay
    >>> graph = ReasoningGraph([[0.9], [0.8], [0.1]], [(0, 1), (0, 2)])
    >>> display = ReasoningGraphDisplay.from_graph(graph, kept=[True, True, False])
    >>> display.ax_.get_title()
    '2 of 3 claims kept'
    """

    def __init__(
        self,
        graph: ReasoningGraph,
        *,
        kept: ArrayLike | None = None,
        labels: ArrayLike | None = None,
    ) -> None:
        self.graph = graph
        self.kept = kept
        self.labels = labels

    @classmethod
    def from_graph(
        cls,
        graph: ReasoningGraph,
        *,
        kept: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        ax: Any = None,
    ) -> Self:
        """Draw a problem.

        Parameters
        ----------
        graph : ReasoningGraph
        kept : array-like of bool, shape (n_claims,), optional
        labels : array-like of 0/1, shape (n_claims,), optional
        ax : matplotlib Axes, optional

        Returns
        -------
        ReasoningGraphDisplay
        """
        for name, values in (("kept", kept), ("labels", labels)):
            if values is not None and np.shape(values) != (graph.n_claims,):
                raise ValueError(
                    f"{name} has shape {np.shape(values)}, but there are "
                    f"{graph.n_claims} claims"
                )
        if kept is not None and np.asarray(kept).dtype != bool:
            raise ValueError(f"kept holds {np.asarray(kept).dtype}: booleans expected")
        if labels is not None:
            labels = pack_labels([labels], GraphBatch.pack([graph]))
        kept = None if kept is None else np.asarray(kept)
        return cls(graph, kept=kept, labels=labels).plot(ax=ax)

    def _positions(self):
        """Depth downwards, claims of one depth side by side and centred."""
        depth = GraphBatch.pack([self.graph]).depth
        where = np.zeros((len(depth), 2))
        for level in np.unique(depth):
            row = np.flatnonzero(depth == level)
            shift = 0.25 if level % 2 else -0.25  # so that chains do not hide edges
            where[row, 0] = np.arange(len(row)) - (len(row) - 1) / 2 + shift
            where[row, 1] = -level
        return where

    def plot(self, *, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        self
        """
        import matplotlib.pyplot as plt

        where = self._positions()
        if ax is None:
            height = 1.2 - 0.75 * where[:, 1].min(initial=0)
            _, ax = plt.subplots(figsize=(5, height), layout="constrained")
        for parent, child in self.graph.edges:
            ax.annotate(
                "",
                where[child],
                where[parent],
                arrowprops={
                    "arrowstyle": "->",
                    "color": "0.5",
                    "shrinkA": 11,
                    "shrinkB": 11,
                    "connectionstyle": "arc3,rad=0.12",
                },
            )
        kept = np.ones(len(where), bool) if self.kept is None else self.kept
        false = np.zeros(len(where), bool) if self.labels is None else self.labels == 0
        ax.scatter(
            *where.T,
            s=420,
            zorder=3,
            color=np.where(kept, KEPT, DROPPED),
            edgecolors=np.where(false, FALSE, "white"),
            linewidths=np.where(false, 3.0, 1.0),
        )
        for v, point in enumerate(where):
            ax.annotate(
                str(v), point, ha="center", va="center", color="white", zorder=4
            )
        ax.margins(0.25, 0.12)
        ax.set_axis_off()
        if self.kept is not None:
            ax.set_title(f"{np.sum(kept)} of {len(where)} claims kept")
        self.ax_, self.figure_ = ax, ax.figure
        return self
