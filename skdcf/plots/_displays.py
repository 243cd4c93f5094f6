"""Display classes for reports on coverage, kept claims, scores and importances.

All display classes have the same methods, and their lines can be distinguished in greyscale.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .._checks import check_choice, import_extra, printable
from .._docs import documented
from .._parameters import settings
from ..evaluation import ComparisonReport, FilterReport, evaluate_filter
from ..inspection import permutation_importance
from ..labels import Labels
from ..uses import check

# Palette of Okabe and Ito (2008), without yellow, which is hard to see on a white background.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)))
TRUE, FALSE = COLOURS[:2]
CHANCE = {"color": "0.55", "alpha": 0.3, "lw": 0}
ALPHAS = (0.02, 0.05, 0.1, 0.2)
PANELS = {
    "coverage": ("coverage", "coverage (no false claim kept)"),
    "retention": ("retention", "true claims kept per problem"),
    "false kept": ("false_kept", "false claims kept per problem"),
    "passing": ("passing", "share of answers that pass"),
    "shown": ("shown", "share of answers that are shown"),
    "false among shown": (
        "false_among_shown",
        "share of shown texts with a false claim",
    ),
}
GRID = 400


@settings
class Display:
    """Base class of displays that draw a report.

    A subclass defines the method ``_draw(axes)``, whose argument is an array of ``_panels``
    axes, and the size ``_size`` of a new figure in inches. The number of panels and the size may
    depend on the report.
    """

    report: Any

    @property
    def _panels(self) -> int:
        return 1

    @property
    def _size(self) -> tuple[float, float]:
        return 5.5, 4.0

    @classmethod
    def from_report(cls, report: Any, *, ax: Any = None, **settings: Any) -> Self:
        """Create a display from a report, and draw the plot.

        Parameters
        ----------
        report : object
            A report of the type that the display class supports.
        {axes}
        **settings
            Additional parameters of the display class.

        Returns
        -------
        display : Display
            The display that was drawn.
        """
        return cls(report, **settings).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw the report.

        Parameters
        ----------
        {axes}

        Returns
        -------
        self : object
            The display itself.
        """
        plt = import_extra("matplotlib.pyplot", "plot")

        n = self._panels
        if ax is None:
            _, ax = plt.subplots(1, n, figsize=self._size, layout="constrained")
        axes = np.asarray(ax, dtype=object).ravel()
        if len(axes) != n:
            raise ValueError(f"ax must contain {n} axes, got {len(axes)}")
        self._draw(axes)
        self.axes_ = axes
        self.ax_ = axes[0]
        self.figure_ = axes[0].figure
        return self

    def _draw(self, axes):
        raise NotImplementedError


def by_name(one):
    """Return a dict unchanged, or put any other object into a dict under an empty key."""
    return one if isinstance(one, dict) else {"": one}


def line_style(i):
    """Return the colour, marker and dash pattern of line i."""
    return {
        "color": COLOURS[i % len(COLOURS)],
        "marker": MARKERS[i % len(MARKERS)],
        "linestyle": DASHES[i % len(DASHES)],
    }


@documented
@settings
class ReportDisplay(Display):
    """Plot coverage and kept claims against alpha, with one line per filter.

    Parameters
    ----------
    report : FilterReport, dict of str to FilterReport, or ComparisonReport
        Reports to draw. If a dict is passed, its keys are the names in the legend. To compare
        groups of problems, pass the attribute ``groups`` of a report, which is a dict with one
        report per group.
    panels : sequence of str
        The panels, from left to right. "coverage" is the proportion of passing answers without a
        kept false claim. "retention" and "false kept" are the numbers of true and false claims
        kept per problem. "passing" is the proportion of answers that pass, which is 1 without
        ``show``. "shown" is the proportion of answers with at least one kept claim. "false among
        shown" is the proportion of shown answers that contain a false claim.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure.
    ax_ : matplotlib Axes
        The first panel.
    axes_ : ndarray of matplotlib Axes
        Axes of the panels. Grey boxes show theoretical 95 % bands of the coverage for the given
        numbers of calibration and test problems. Error bars show 95 % confidence intervals of the
        coverage and standard errors of the retention.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.plots import ReportDisplay
    >>> graphs, y = make_reasoning_graphs(300, random_state=0, return_X_y=True)
    >>> cf = HardCF().fit(graphs[:150], y[:150])
    >>> display = ReportDisplay.from_estimator(cf, graphs[150:], y[150:])
    >>> len(display.axes_)
    3
    """

    _: KW_ONLY
    panels: Iterable[str] = ("coverage", "retention", "false kept")

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        alphas: Iterable[float] = ALPHAS,
        *,
        ax: Any = None,
        **settings: Any,
    ) -> Self:
        """Evaluate fitted filters on test problems, and draw the reports.

        Parameters
        ----------
        estimator : fitted filter, or dict of str to fitted filter
            The filters, keyed by legend name.
        X : {problems}
            Test problems.
        {y}
        alphas : sequence of float in (0, 1)
            Levels at which the filters are evaluated.
        {axes}
        **settings
            Additional parameters of the display class.

        Returns
        -------
        display : Display
            The display that was drawn.
        """
        alphas = np.atleast_1d(np.asarray(alphas)).tolist()
        filters = by_name(estimator).items()
        reports = {
            name: evaluate_filter(filter_of, X, y, alphas)
            for name, filter_of in filters
        }
        return cls.from_report(reports, ax=ax, **settings)

    @classmethod
    def from_predictions(
        cls,
        y: Labels,
        kept: Mapping[float, Any],
        *,
        groups: ArrayLike | None = None,
        ax: Any = None,
        **settings: Any,
    ) -> Self:
        """Evaluate given masks of kept claims, and draw the report.

        Parameters
        ----------
        y : {labels}
            Claim labels: 1 true, 0 false, -1 unknown.
        kept : dict of float to sequence of boolean masks
            Masks of the kept claims, keyed by alpha, as returned by `predict`.
        groups : array-like of shape (n_problems,), optional
            The question that each answer belongs to.
        {axes}
        **settings
            Additional parameters of the display class.

        Returns
        -------
        display : Display
            The display that was drawn.
        """
        report = FilterReport.from_predictions(y, kept, groups=groups)
        return cls.from_report(report, ax=ax, **settings)

    @property
    def _panels(self):
        for panel in self.panels:
            check_choice("panel", panel, PANELS)
        return len(list(self.panels))

    @property
    def _size(self):
        return 3.7 * self._panels, 3.7

    def _draw(self, axes):
        lines = _lines(self.report)
        places = Places(
            [a for line_of_filter in lines.values() for a in line_of_filter["alpha"]],
            len(lines),
        )
        for panel, ax in zip(self.panels, axes, strict=True):
            column, label = PANELS[panel]
            for i, (name, line) in enumerate(lines.items()):
                style = {"capsize": 2, "ms": 5, "lw": 1.2} | line_style(i)
                style |= {"yerr": line.get(f"{column}_error")}
                at = line["alpha"] + places.shifts[i]
                named = printable(name) or "observed"
                ax.errorbar(at, line[column], label=named, **style)
                if panel == "coverage" and not np.isnan(line["band"]).any():
                    places.draw_band(ax, at, line["band"], i)
            if panel == "coverage" and any(
                (line["passing"] < 1).any() for line in lines.values()
            ):
                label = "coverage among the answers that pass"
            if np.isnan([line[column] for line in lines.values()]).all():
                label = "coverage (not reported)"
            ax.set_ylabel(label)
            places.name(ax)
            if panel == "coverage":
                places.draw_guarantee(ax)
            else:
                _from_zero(ax)
        falls = next(iter(self.panels)) == "coverage"
        if len(lines) > 1 or falls:
            _add_legend(axes[0], falls)


def _lines(report):
    """Return the columns of a report, keyed by name, with their errors and bands."""
    lines = {}
    # A comparison only contains means over splits, without intervals.
    if isinstance(report, ComparisonReport):
        table = report._values()
        for name in report.names:
            own_values = {
                k: values[table["filter"] == name] for k, values in table.items()
            }
            band = np.full((2, len(own_values["alpha"])), np.nan)
            lines[name] = own_values | {"band": band}
    else:
        for name, report_of_filter in by_name(report).items():
            interval = abs(
                report_of_filter.coverage_interval.T - report_of_filter.coverage
            )
            lines[str(name)] = report_of_filter._values() | {
                "coverage_error": interval,
                "band": report_of_filter.coverage_band.T,
            }
    for name, line in lines.items():
        order = np.argsort(line["alpha"])
        lines[name] = {key: values[..., order] for key, values in line.items()}
    return lines


class Places:
    """Horizontal positions of the markers of several lines, shifted to avoid overlaps.

    Targets and theoretical bands are drawn as wide as all markers of a level together.

    Parameters
    ----------
    levels : array-like
        The levels, which may contain repetitions.
    n : int
        Number of lines.
    """

    def __init__(self, levels, n):
        self.levels = np.unique(levels)
        self.gap = np.diff(self.levels).min(initial=0.1) / (3 * max(n, 1))
        self.shifts = self.gap * (np.arange(n) - (n - 1) / 2)
        self.half = self.gap * max(n, 2) / 2

    def draw_guarantee(self, ax):
        """Draw a horizontal line at the target coverage of each level."""
        ax.hlines(
            1 - self.levels,
            xmin=self.levels - self.half,
            xmax=self.levels + self.half,
            color="k",
            lw=1.2,
            zorder=1,
            label="guaranteed: 1 - alpha",
        )

    def draw_band(self, ax, at, band, i):
        """Draw the theoretical band as a box around the markers of line i."""
        half = self.half / len(self.shifts)
        gap = np.full(len(at), np.nan)
        ends = np.column_stack([at - half, at + half, gap]).ravel()
        low, high = np.repeat(band, 3, axis=1)
        label = None if i else "95 % theory band"
        ax.fill_between(ends, low, high, label=label, zorder=0, **CHANCE)

    def name(self, ax):
        """Set ticks at the levels only."""
        close = np.diff(self.levels).min(initial=np.inf) < 0.09 * np.ptp(self.levels)
        names = [f"{level:g}" for level in self.levels]
        ax.set_xticks(self.levels, names, rotation=90 if close else 0, minor=False)
        ax.set_xlabel("alpha")


def _from_zero(ax):
    """Set the limits of the vertical axis from 0 to the largest value plus a margin."""
    ax.update_datalim([(ax.dataLim.x0, 0)])
    ax.autoscale_view()
    ax.set_ylim(0, None)


def _add_legend(ax, falls):
    """Add a legend, which is placed at the bottom if the lines decrease."""
    n = len(ax.get_legend_handles_labels()[0])
    if falls:
        low, high = ax.get_ylim()
        ax.set_ylim(low - 0.05 * n * (high - low), high)
    place = "lower left" if falls else "best"
    ax.legend(frameon=False, fontsize="small", loc=place)


@documented
class ScoreDistributionDisplay(Display):
    """Plot the score densities of true and false claims, with one panel per filter.

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
        """Draw the densities of given scores of labelled claims.

        Parameters
        ----------
        y : array-like of shape (n_claims,)
            Claim labels: 1 true, 0 false. Claims with other labels are ignored.
        scores : dict of str to array-like of shape (n_claims,)
            The scores, keyed by panel name.
        {axes}

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
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, ax: Any = None) -> Self:
        """Compute the confidences of fitted filters, and draw their densities.

        Parameters
        ----------
        estimator : fitted filter, or dict of str to fitted filter
            The filters, keyed by panel name.
        X : {problems}
            Problems that were not used to train the scorers.
        {y}
        {axes}

        Returns
        -------
        display : ScoreDistributionDisplay
            The display that was drawn.
        """
        filters = by_name(estimator)
        labels = check(next(iter(filters.values())), X, y)[1]
        scores = {name: filter_of.confidence(X) for name, filter_of in filters.items()}
        return cls.from_predictions(labels, scores, ax=ax)

    @property
    def _panels(self):
        return len(self.report)

    @property
    def _size(self):
        return 4.4 * self._panels, 3.4

    def _draw(self, axes):
        for (name, (true, false)), ax in zip(self.report.items(), axes, strict=True):
            _draw_density(ax, true, colour=TRUE, dash="-", label="true claims")
            _draw_density(ax, false, colour=FALSE, dash="--", label="false claims")
            ax.set_title(name, fontsize="medium")
            ax.set(xlabel="score", ylabel="density", ylim=(0, None))
        axes[0].legend(frameon=False)


def _draw_density(ax, scores, colour, dash, label):
    from scipy.stats import gaussian_kde

    style = {"color": colour, "ls": dash, "label": f"{len(scores)} {label}"}
    if len(scores) < 2 or np.ptp(scores) == 0:
        ax.axvline(scores[0] if len(scores) else np.nan, **style)
        return
    margin = 0.2 * np.ptp(scores)
    at = np.linspace(scores.min() - margin, scores.max() + margin, GRID)
    height = gaussian_kde(scores)(at)
    ax.plot(at, height, lw=1.6, **style)
    ax.fill_between(at, height, color=colour, alpha=0.15, lw=0)


@settings
class ImportanceDisplay(Display):
    """Plot the mean importances as bars in decreasing order, with their standard deviations.

    Parameters
    ----------
    report : ImportanceReport
        A report of `skdcf.inspection.permutation_importance` or `shap_values`.
    max_features : int, default=10
        Number of features to show.

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
    >>> display = ImportanceDisplay.from_estimator(
    ...     cf, graphs[100:], y[100:], n_repeats=2, max_features=5
    ... )
    >>> len(display.ax_.patches)
    5
    """

    _: KW_ONLY
    max_features: int = 10

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        max_features: int = 10,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Compute the permutation importances for retention, and draw the bars.

        Parameters
        ----------
        estimator : fitted filter
            The filter whose features are permuted.
        X : {problems}
            Problems that were not used to train the scorer.
        {y}
        max_features : int, default=10
            Number of features to show.
        {ax}
        **options
            Additional options of `skdcf.inspection.permutation_importance`.

        Returns
        -------
        display : ImportanceDisplay
            The display that was drawn.
        """
        report = permutation_importance(estimator, X, y, **options)
        return cls.from_report(report, max_features=max_features, ax=ax)

    @property
    def _size(self):
        return 6.5, 1.1 + 0.3 * len(self.report.ranking[: self.max_features])

    def _draw(self, axes):
        (ax,), report = axes, self.report
        shown = report.ranking[: self.max_features]
        style = {"color": TRUE, "ecolor": "0.35", "capsize": 2, "height": 0.65}
        rows = np.arange(len(shown))
        error = report.deviation[shown]
        ax.barh(rows, report.mean[shown], xerr=error, **style)
        ax.set_yticks(rows, [report.feature_names[j] for j in shown])
        ax.set_ylim(len(shown) - 0.45, -0.55)
        ax.axvline(0, color="k", lw=0.8)
        ax.set_xlabel(report.what.replace(", of", ",\nof"))
