"""Displays of reports on coverage and kept claims, of scores and of importances.

Each display uses the axes passed as ``ax``, or creates a figure with enough axes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .._checks import import_extra, printable
from ..evaluation import Table
from ..inspection import permutation_importance
from ..uses import check

# Palette of Okabe and Ito (2008), without yellow, which is hard to see on a white background.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
PANELS = {
    "coverage": "coverage (no false claim kept)",
    "retention": "true claims kept per problem",
    "false_kept": "false claims kept per problem",
}


class Display:
    """Base class of displays that draw a report.

    Parameters
    ----------
    report : object
        A report of the type that the display class supports.
    """

    def __init__(self, report: Any) -> None:
        self.report = report

    @classmethod
    def from_report(cls, report: Any, *, ax: Any = None) -> Self:
        """Create a display from a report, and draw the plot.

        Parameters
        ----------
        report : object
            A report of the type that the display class supports.
        ax : matplotlib Axes, or a sequence of one per panel, optional
            Axes to draw on. If None, a new figure is created.

        Returns
        -------
        display : Display
            The display that was drawn.
        """
        return cls(report).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw the report.

        Parameters
        ----------
        ax : matplotlib Axes, or a sequence of one per panel, optional
            Axes to draw on. If None, a new figure is created.

        Returns
        -------
        self : object
            The display itself.
        """
        plt = import_extra("matplotlib.pyplot", "plot")
        n, size = self._layout()
        if ax is None:
            _, ax = plt.subplots(1, n, figsize=size, layout="constrained")
        self.axes_ = np.asarray(ax, dtype=object).ravel()
        if len(self.axes_) != n:
            raise ValueError(f"ax must contain {n} axes, got {len(self.axes_)}")
        self.ax_ = self.axes_[0]
        self.figure_ = self.ax_.figure
        self._draw(self.axes_)
        return self

    def _layout(self):
        """Return the number of panels, and the width and height of a new figure."""
        raise NotImplementedError

    def _draw(self, axes):
        raise NotImplementedError


class ReportDisplay(Display):
    """Plot coverage and kept claims against alpha, with one line per filter.

    Parameters
    ----------
    report : Table, or dict of str to Table
        Report of `skdcf.evaluation.evaluate_filter`, `skdcf.evaluation.leave_one_out` or
        `skdcf.evaluation.compare_filters`, or the table ``groups`` of an evaluation. If a dict of
        evaluations is passed, its keys are the names in the legend.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure.
    ax_ : matplotlib Axes
        The first panel.
    axes_ : ndarray of matplotlib Axes
        Axes of the panels: coverage, true claims kept and false claims kept. Grey bars show
        theoretical 95 % bands of the coverage for the given numbers of calibration and test
        problems. Error bars show 95 % confidence intervals of the coverage and standard errors of
        the retention.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.evaluation import evaluate_filter
    >>> from skdcf.plots import ReportDisplay
    >>> graphs, y = make_reasoning_graphs(300, random_state=0, return_X_y=True)
    >>> cf = HardCF().fit(graphs[:150], y[:150])
    >>> report = evaluate_filter(cf, graphs[150:], y[150:])
    >>> display = ReportDisplay.from_report(report)
    >>> len(display.axes_)
    3
    """

    def _layout(self):
        return len(PANELS), (3.7 * len(PANELS), 3.7)

    def _draw(self, axes):
        lines = _lines(self.report)
        levels = np.unique(
            [row["alpha"] for line in lines.values() for row in line.rows]
        )
        # Markers are shifted, so the lines of several filters do not overlap.
        gap = np.diff(levels).min(initial=0.1) / (3 * len(lines))
        for i, (name, line) in enumerate(lines.items()):
            at = line.alpha + gap * (i - (len(lines) - 1) / 2)
            for (column, label), ax in zip(PANELS.items(), axes, strict=True):
                ax.errorbar(
                    at,
                    getattr(line, column),
                    yerr=_error(line, column),
                    label=printable(name),
                    color=COLOURS[i % len(COLOURS)],
                    marker=MARKERS[i % len(MARKERS)],
                    capsize=2,
                    lw=1.2,
                )
                ax.set_xlabel("alpha")
                ax.set_ylabel(label)
                ax.set_xticks(levels, [f"{level:g}" for level in levels], rotation=90)
            if "coverage_band_low" in line.rows[0]:
                axes[0].bar(
                    at,
                    line.coverage_band_high - line.coverage_band_low,
                    bottom=line.coverage_band_low,
                    width=gap,
                    color="0.85",
                    zorder=0,
                    label=None if i else "95 % theory band",
                )
        half = gap * max(len(lines), 2) / 2
        axes[0].hlines(
            1 - levels, levels - half, levels + half, "k", label="guaranteed: 1 - alpha"
        )
        for ax in axes[1:]:
            ax.set_ylim(0, None)
        axes[0].legend(frameon=False, fontsize="small")


def _lines(report):
    """Return one table per line, in increasing order of alpha, keyed by name."""
    if isinstance(report, Mapping):
        rows = [{"name": name} | row for name, of in report.items() for row in of.rows]
    else:
        rows = report.rows
    lines: dict[str, list[Any]] = {}
    for row in sorted(rows, key=lambda row: row["alpha"]):
        named = [row[key] for key in ("name", "filter", "group") if key in row]
        lines.setdefault(str(named[0]) if named else "observed", []).append(row)
    return {name: Table(own, {}) for name, own in lines.items()}


def _error(line, column):
    """Return the lengths of the error bars, or None if they are unknown."""
    if f"{column}_error" in line.rows[0]:
        return getattr(line, f"{column}_error")
    if column != "coverage" or "coverage_interval_low" not in line.rows[0]:
        return None
    ends = np.array([line.coverage_interval_low, line.coverage_interval_high])
    return abs(ends - line.coverage)


class ScoreDistributionDisplay(Display):
    """Plot histograms of the scores of true and false claims, with one panel per filter.

    Parameters
    ----------
    report : dict of str to (ndarray, ndarray)
        The scores of the true and of the false claims, keyed by panel name.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure.
    ax_ : matplotlib Axes
        The first panel.
    axes_ : ndarray of matplotlib Axes
        Axes of the panels, one per filter.

    Examples
    --------
    >>> from skdcf.plots import ScoreDistributionDisplay
    >>> labels = [1, 1, 1, 0, 0, 0]
    >>> display = ScoreDistributionDisplay.from_predictions(
    ...     labels, {"frequency": [5, 4, 2, 3, 1, 0]}
    ... )
    >>> display.ax_.get_title()
    'frequency'
    """

    @classmethod
    def from_predictions(
        cls, y: ArrayLike, scores: Mapping[str, ArrayLike], *, ax: Any = None
    ) -> Self:
        """Draw histograms of given scores of labelled claims.

        Parameters
        ----------
        y : array-like of shape (n_claims,)
            Claim labels: 1 true, 0 false. Claims with other labels are ignored.
        scores : dict of str to array-like of shape (n_claims,)
            The scores, keyed by panel name.
        ax : matplotlib Axes, or a sequence of one per panel, optional
            Axes to draw on. If None, a new figure is created.

        Returns
        -------
        display : ScoreDistributionDisplay
            The display that was drawn.
        """
        labels = np.asarray(y)
        report = {
            name: (np.asarray(row)[labels == 1], np.asarray(row)[labels == 0])
            for name, row in scores.items()
        }
        return cls.from_report(report, ax=ax)

    @classmethod
    def from_estimator(
        cls, estimator: Mapping[str, Any], X: Any, y: Any, *, ax: Any = None
    ) -> Self:
        """Compute the confidences of fitted filters, and draw histograms.

        Parameters
        ----------
        estimator : dict of str to fitted filter
            The filters, keyed by panel name.
        X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
            Problems that were not used to train the scorers.
        y : sequence of 1-D arrays, one per problem
            Claim labels of the problems.
        ax : matplotlib Axes, or a sequence of one per panel, optional
            Axes to draw on. If None, a new figure is created.

        Returns
        -------
        display : ScoreDistributionDisplay
            The display that was drawn.
        """
        labels = check(next(iter(estimator.values())), X, y)[1]
        scores = {name: each.confidence(X) for name, each in estimator.items()}
        return cls.from_predictions(labels, scores, ax=ax)

    def _layout(self):
        return len(self.report), (4.4 * len(self.report), 3.4)

    def _draw(self, axes):
        for (name, scores), ax in zip(self.report.items(), axes, strict=True):
            bins = np.histogram_bin_edges(np.concatenate(scores), 30)
            for own, colour, kind in zip(
                scores, COLOURS, ("true", "false"), strict=False
            ):
                ax.hist(
                    own,
                    bins,
                    density=len(own) > 0,
                    color=colour,
                    alpha=0.5,
                    label=f"{len(own)} {kind} claims",
                )
            ax.set_title(printable(name), fontsize="medium")
            ax.set(xlabel="score", ylabel="density")
            ax.legend(frameon=False)


class ImportanceDisplay(Display):
    """Plot the ten largest mean importances as bars, with their standard deviations.

    Parameters
    ----------
    report : Table
        A report of `skdcf.inspection.permutation_importance` or `skdcf.inspection.shap_values`.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure.
    ax_ : matplotlib Axes
        The axes.
    axes_ : ndarray of one matplotlib Axes
        Array that contains only ``ax_``.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.plots import ImportanceDisplay
    >>> graphs, y = make_reasoning_graphs(200, random_state=0, return_X_y=True)
    >>> cf = HardCF(ties="jitter").fit(graphs[:100], y[:100])
    >>> display = ImportanceDisplay.from_estimator(cf, graphs[100:], y[100:], n_repeats=2)
    >>> len(display.ax_.patches)
    10
    """

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, ax: Any = None, **options: Any
    ) -> Self:
        """Compute the permutation importances for retention, and draw the bars.

        Parameters
        ----------
        estimator : fitted filter
            The filter.
        X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
            Problems that were not used to train the scorer.
        y : sequence of 1-D arrays, one per problem
            Claim labels of the problems.
        ax : matplotlib Axes, optional
            Axes to draw on. If None, a new figure is created.
        **options
            Options of `skdcf.inspection.permutation_importance`.

        Returns
        -------
        display : ImportanceDisplay
            The display that was drawn.
        """
        report = permutation_importance(estimator, X, y, **options)
        return cls.from_report(report, ax=ax)

    def _layout(self):
        return 1, (6.5, 4.0)

    def _draw(self, axes):
        (ax,) = axes
        largest = Table(self.report.rows[:10], {})
        names = list(map(printable, largest.feature))
        ax.barh(
            names, largest.mean, xerr=largest.deviation, color=COLOURS[0], capsize=2
        )
        ax.invert_yaxis()
        ax.axvline(0, color="k", lw=0.8)
        ax.set_xlabel(self.report.heading.replace(", of", ",\nof"))
