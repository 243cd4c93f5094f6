"""Coverage and retention: what was promised, and what came out.

The first part is what all displays share: how they are made, and lines that differ in
grey, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .._checks import check_choice, printable
from ..metrics import evaluate_filter, report_predictions

# Okabe and Ito (2008), without the yellow that white paper swallows.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")


MARKERS = ("o", "s", "^", "D", "v", "P", "X")


DASHES = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)))


TRUE, FALSE = "#0072b2", "#d55e00"


CHANCE = {"color": "0.55", "alpha": 0.3, "lw": 0}


class Display:
    """A report as a picture; a subclass says how to draw it.

    A subclass defines ``_draw(axes)``, which gets an array of ``_panels`` axes, and
    ``_size``, the inches of a new figure; both may depend on the report.
    """

    _panels = 1
    _size = (6.0, 4.0)

    def __init__(self, report: Any) -> None:
        self.report = report

    @classmethod
    def from_report(cls, report: Any, *, ax: Any = None, **settings: Any) -> Self:
        """Draw a report that is at hand.

        Parameters
        ----------
        report : object
            As the class takes it.
        ax : matplotlib Axes, or a sequence of one per panel, optional
            Where to draw; None is a new figure.
        **settings
            Further parameters of the class.

        Returns
        -------
        Display
            Of this class, drawn.
        """
        return cls(report, **settings).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, or a sequence of one per panel, optional
            Where to draw; None is a new figure.

        Returns
        -------
        self
        """
        self.axes_ = axes = axes_of(ax, self._panels, self._size)
        self._draw(axes)
        self.ax_, self.figure_ = axes[0], axes[0].figure
        return self

    def _draw(self, axes):
        raise NotImplementedError


def axes_of(ax, n, figsize):
    """The n axes that were given, or those of a new figure, side by side."""
    import matplotlib.pyplot as plt

    if ax is None:
        _, ax = plt.subplots(1, n, figsize=figsize, layout="constrained")
    axes = np.asarray(ax, dtype=object).ravel()
    if len(axes) != n:
        raise ValueError(f"{len(axes)} axes were given, but {n} are drawn on")
    return axes


def by_name(one):
    """A dict by name as it is, and anything else as one without a name."""
    return one if isinstance(one, dict) else {"": one}


def line_style(i):
    """Colour, marker and dash of line i."""
    return {
        "color": COLOURS[i % len(COLOURS)],
        "marker": MARKERS[i % len(MARKERS)],
        "linestyle": DASHES[i % len(DASHES)],
    }


def draw_bars(ax, i, name, at, height, error):
    """Points with error bars, joined by a line."""
    style = {"capsize": 2, "ms": 5, "lw": 1.2, "label": name or "observed"}
    ax.errorbar(at, height, yerr=error, **style, **line_style(i))


class Places:
    """Where the marks of n lines stand around the levels, so that none hides another.

    What was promised and what theory expects is drawn as wide as all of them, flat, so
    that a mark beside its level stays inside the band that it belongs to.

    Parameters
    ----------
    levels : array-like
    n : int
        Number of lines.
    """

    def __init__(self, levels, n):
        self.levels = np.unique(levels)
        gap = np.diff(self.levels).min(initial=0.1) / (3 * max(n, 1))
        self.shifts = gap * (np.arange(n) - (n - 1) / 2)
        self.half = gap * max(n, 2) / 2

    def draw_promise(self, ax, coverage):
        """A flat line at each level."""
        ends = self.levels - self.half, self.levels + self.half
        label = {"label": "promised: 1 - alpha"}
        ax.hlines(coverage, *ends, color="k", lw=1.2, zorder=1, **label)

    def draw_band(self, ax, levels, band, i=None):
        """A box around each level, or around the marks of line i alone."""
        n = len(self.shifts)
        shift, half = (0, self.half) if i is None else (self.shifts[i], self.half / n)
        at, gap = np.asarray(levels) + shift, np.full(len(levels), np.nan)
        ends = np.column_stack([at - half, at + half, gap]).ravel()
        low, high = np.repeat(np.asarray(band).T, 3, axis=1)
        label = None if i else "95 % band of theory"
        ax.fill_between(ends, low, high, label=label, zorder=0, **CHANCE)

    def name(self, ax, label="alpha"):
        """Ticks at the levels, and nowhere else."""
        close = np.diff(self.levels).min(initial=np.inf) < 0.09 * np.ptp(self.levels)
        names = [f"{level:g}" for level in self.levels]
        ax.set_xticks(self.levels, names, rotation=90 if close else 0, minor=False)
        ax.set_xlabel(label)


ALPHAS = (0.02, 0.05, 0.1, 0.2)


class _ReportDisplay(Display):
    """Draws one or more `FilterReport`, by the name that the legend shows."""

    def __init__(self, report: Any) -> None:
        self.report = report

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        alphas: Iterable[float] = ALPHAS,
        *,
        by: Any = None,
        ax: Any = None,
        **settings: Any,
    ) -> Self:
        """Evaluate fitted filters on test problems, and draw what comes out.

        Parameters
        ----------
        estimator : fitted filter, or dict of str to fitted filter
            By the name that the legend shows.
        X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
            Test problems.
        y : sequence of 1-D arrays, one per problem
            Their labels.
        alphas : sequence of float in (0, 1)
            The levels.
        by : str, callable or list, optional
            Groups of problems, as in `skdcf.metrics.evaluate_filter`.
        ax : matplotlib Axes, or a sequence of one per panel, optional
            Where to draw; None is a new figure.
        **settings
            Further parameters of the class.

        Returns
        -------
        Display
            Of this class, drawn.
        """
        alphas = np.atleast_1d(np.asarray(alphas)).tolist()
        reports = {
            name: evaluate_filter(one, X, y, alphas, by=by)
            for name, one in by_name(estimator).items()
        }
        return cls.from_report(reports, ax=ax, **settings)

    @classmethod
    def from_predictions(
        cls,
        y: Sequence[ArrayLike] | ArrayLike,
        kept: Mapping[float, Any],
        *,
        by: Sequence[Any] | None = None,
        groups: ArrayLike | None = None,
        ax: Any = None,
        **settings: Any,
    ) -> Self:
        """Draw what masks keep, whatever made them.

        Parameters
        ----------
        y : sequence of 1-D arrays, one per problem
            Labels: 1 true, 0 false, -1 unknown.
        kept : dict of float to sequence of boolean masks
            By alpha, as `predict` returns them.
        by : sequence of length n_problems, optional
            The part that each problem belongs to.
        groups : array-like of shape (n_problems,), optional
            The question that each problem answers.
        ax : matplotlib Axes, or a sequence of one per panel, optional
            Where to draw; None is a new figure.
        **settings
            Further parameters of the class.

        Returns
        -------
        Display
            Of this class, drawn.
        """
        report = report_predictions(y, kept, by=by, groups=groups)
        return cls.from_report(report, ax=ax, **settings)

    def _places(self):
        reports = by_name(self.report)
        levels = np.concatenate([one.alpha for one in reports.values()])
        return reports, Places(levels, len(reports))


class FilterReportDisplay(_ReportDisplay):
    """Coverage and retention against alpha, one line per report.

    Parameters
    ----------
    report : FilterReport, or dict of str to FilterReport
        By the name that the legend shows.
    panels : sequence of {"coverage", "retention", "false kept", "non-empty"}
        "false kept" is the number of false claims that are kept per problem, "non-empty"
        the share of the answers of which something is kept.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes
        The first panel.
    axes_ : ndarray of matplotlib Axes
        One per panel. Grey boxes are where theory expects coverage in 95 of 100 cases,
        for so many calibration and test problems; bars are 95 % intervals of coverage,
        and standard errors of retention.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.plots import FilterReportDisplay
    >>> graphs, y = make_reasoning_graphs(300, random_state=0, return_X_y=True)
    >>> cf = HardCF().fit(graphs[:150], y[:150])
    >>> display = FilterReportDisplay.from_estimator(cf, graphs[150:], y[150:])
    >>> len(display.axes_)
    2
    """

    def __init__(
        self, report: Any, *, panels: Iterable[str] = ("coverage", "retention")
    ) -> None:
        self.report = report
        self.panels = panels

    @property
    def _panels(self):
        return len(list(self.panels))

    @property
    def _size(self):
        return 4.6 * self._panels, 3.8

    def plot(self, *, ax: Any = None) -> Self:
        for panel in self.panels:
            check_choice("panel", panel, PANELS)
        return super().plot(ax=ax)

    def _draw(self, axes):
        reports, places = self._places()
        for panel, ax in zip(self.panels, axes, strict=True):
            PANELS[panel](ax, reports, places)
            places.name(ax)
        falls = next(iter(self.panels)) == "coverage"
        if len(reports) > 1 or falls:
            add_legend(axes[0], falls)

    plot.__doc__ = Display.plot.__doc__


def _draw_coverage(ax, reports, places):
    for i, (name, report) in enumerate(reports.items()):
        if not np.isnan(report.coverage_band).any():  # else the law is not known
            places.draw_band(ax, report.alpha, report.coverage_band, i)
        error = np.abs(report.coverage_interval.T - report.coverage).clip(min=0)
        at = report.alpha + places.shifts[i]
        draw_bars(ax, i, name, at, report.coverage, error)
    places.draw_promise(ax, 1 - places.levels)
    ax.set_ylabel("coverage (no false claim kept)")


def _draw_retention(ax, reports, places):
    for i, (name, report) in enumerate(reports.items()):
        at = report.alpha + places.shifts[i]
        draw_bars(ax, i, name, at, report.retention, report.retention_error)
    ax.set_ylabel("true claims kept per problem")
    _from_zero(ax)


def _draw_false(ax, reports, places):
    for i, (name, report) in enumerate(reports.items()):
        draw_bars(ax, i, name, report.alpha + places.shifts[i], report.false_kept, None)
    ax.set_ylabel("false claims kept per problem")
    _from_zero(ax)


def _draw_nonempty(ax, reports, places):
    for i, (name, report) in enumerate(reports.items()):
        share = report.nonempty
        error = np.sqrt(share * (1 - share) / report.n_questions)
        draw_bars(ax, i, name, report.alpha + places.shifts[i], share, error)
    ax.set_ylabel("share of answers that are not emptied")
    ax.set_ylim(0, 1.02)


PANELS = {
    "coverage": _draw_coverage,
    "retention": _draw_retention,
    "false kept": _draw_false,
    "non-empty": _draw_nonempty,
}


def _from_zero(ax):
    """Let the axis begin at 0, with a margin above all that is shown."""
    ax.update_datalim([(ax.dataLim.x0, 0)])
    ax.autoscale_view()
    ax.set_ylim(0, None)


def add_legend(ax, falls):
    """Below lines that fall, with room made for it; else where it fits best."""
    n = len(ax.get_legend_handles_labels()[0])
    if falls:
        low, high = ax.get_ylim()
        ax.set_ylim(low - 0.05 * n * (high - low), high)
    place = "lower left" if falls else "best"
    ax.legend(frameon=False, fontsize="small", loc=place)


class CoverageDisplay(_ReportDisplay):
    """Observed against promised coverage: the promise, as it was kept.

    Parameters
    ----------
    report : FilterReport, or dict of str to FilterReport
        By the name that the legend shows.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes
        Points on or above the diagonal keep the promise. Bars are 95 % intervals, and
        grey boxes are where theory expects the points.
    axes_ : ndarray of one matplotlib Axes

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.plots import CoverageDisplay
    >>> graphs, y = make_reasoning_graphs(300, random_state=0, return_X_y=True)
    >>> cf = HardCF().fit(graphs[:150], y[:150])
    >>> display = CoverageDisplay.from_estimator(cf, graphs[150:], y[150:], [0.1, 0.2])
    >>> display.ax_.get_xlabel()
    'promised coverage, 1 - alpha'
    """

    _size = (4.8, 4.4)

    def _draw(self, axes):
        (ax,), (reports, _) = axes, self._places()
        levels = np.concatenate([1 - one.alpha for one in reports.values()])
        places = Places(levels, len(reports))
        for i, (name, report) in enumerate(reports.items()):
            target, style = 1 - report.alpha, line_style(i) | {"linestyle": "none"}
            if not np.isnan(report.coverage_band).any():
                places.draw_band(ax, target, report.coverage_band, i)
            error = np.abs(report.coverage_interval.T - report.coverage).clip(min=0)
            ax.errorbar(
                target + places.shifts[i],
                report.coverage,
                yerr=error,
                capsize=2,
                label=name or "observed",
                **style,
            )
        places.draw_promise(ax, places.levels)
        ends = places.levels[[0, -1]]
        ax.plot(ends, ends, color="k", lw=0.6, ls=":", zorder=0)
        places.name(ax, "promised coverage, 1 - alpha")
        ax.set_ylabel("observed coverage")
        ax.legend(frameon=False, fontsize="small", loc="best")


class GroupCoverageDisplay(_ReportDisplay):
    """Coverage of each group with its 95 % interval, against what was promised.

    Parameters
    ----------
    report : FilterReport, or dict of str to FilterReport
        By the name that the legend shows; each made with ``by=``.
    index : int, default=0
        Which of the levels of the reports.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes
    axes_ : ndarray of one matplotlib Axes

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.plots import GroupCoverageDisplay
    >>> graphs, y = make_reasoning_graphs(300, random_state=0, return_X_y=True)
    >>> cf = HardCF().fit(graphs[:150], y[:150])
    >>> display = GroupCoverageDisplay.from_estimator(
    ...     cf, graphs[150:], y[150:], [0.1], by=lambda batch: batch.sizes > 7
    ... )
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['all (150)', 'True (58)', 'False (92)']
    """

    def __init__(self, report: Any, *, index: int = 0) -> None:
        self.report = report
        self.index = index

    @property
    def _size(self):
        groups = next(iter(by_name(self.report).values())).groups
        return 6.5, 1.55 + 0.35 * len(groups)

    def _draw(self, axes):
        (ax,), reports = axes, by_name(self.report)
        if not all(report.groups for report in reports.values()):
            raise ValueError("there are no groups: make the report with by=")
        first = next(iter(reports.values()))
        parts = {"all": first, **first.groups}
        for i, (label, report) in enumerate(reports.items()):
            rows = [report, *(report.groups.get(name) for name in first.groups)]
            known = [(place, one) for place, one in enumerate(rows) if one is not None]
            shift = 0.15 * (2 * i / max(len(reports) - 1, 1) - (len(reports) > 1))
            place = np.array([place for place, _ in known]) + shift
            coverage = np.array([one.coverage[self.index] for _, one in known])
            ends = np.array([one.coverage_interval[self.index] for _, one in known])
            style = line_style(i) | {"linestyle": "none", "capsize": 3}
            error = np.abs(ends.T - coverage)
            ax.errorbar(coverage, place, xerr=error, label=label or "observed", **style)
        alpha = first.alpha[self.index]
        ax.axvline(1 - alpha, color="k", ls="--", lw=1, label="promised")
        names = [f"{printable(name)} ({one.n_problems})" for name, one in parts.items()]
        ax.set_yticks(range(len(names)), names)
        ax.invert_yaxis()
        ax.set(xlabel="coverage, with its 95 % interval")
        ax.legend(frameon=False)


class ComparisonDisplay(Display):
    """Coverage, retention and false claims kept against alpha, one line per filter.

    Parameters
    ----------
    report : ComparisonReport
        From `skdcf.evaluation.compare_filters`.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes
        The first panel.
    axes_ : ndarray of three matplotlib Axes
        Coverage on the left, with the promise as lines and the band of theory about it;
        true claims kept in the middle, with corrected standard errors; false claims kept
        on the right.

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
    >>> len(ComparisonDisplay.from_report(report).axes_)
    3
    """

    _panels = 3
    _size = (13.0, 4.2)

    def _draw(self, axes):
        left, middle, right = axes
        report, order = self.report, np.argsort(self.report.alpha)
        alpha = report.alpha[order]
        places = Places(alpha, len(report.names))
        places.draw_band(left, alpha, report.coverage_band[order])
        places.draw_promise(left, 1 - alpha)
        for i, name in enumerate(report.names):
            at, error = alpha + places.shifts[i], report.retention_error[i, order]
            means = [
                getattr(report, key)[i].mean(axis=0)[order]
                for key in ("coverage", "retention", "false_kept")
            ]
            left.plot(at, means[0], label=name, ms=4, lw=1.2, **line_style(i))
            draw_bars(middle, i, name, at, means[1], error)
            draw_bars(right, i, name, at, means[2], None)
        left.set_ylabel("coverage (no false claim kept)")
        middle.set_ylabel("true claims kept per problem")
        right.set_ylabel("false claims kept per problem")
        for ax in axes:
            places.name(ax)
        for ax in axes[1:]:
            _from_zero(ax)
        add_legend(left, True)
