"""Coverage and retention against alpha: what was promised, and what came out."""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np

from .._checks import check_choice
from ._style import alpha_ticks, line_style, several_axes, shifts

CHANCE = {"color": "0.55", "alpha": 0.25, "lw": 0}
OTHER_CHANCE = {"facecolor": "none", "edgecolor": "0.45", "lw": 0.8, "hatch": "...."}


class FilterReportDisplay:
    """Coverage and retention against alpha, one line per report.

    Parameters
    ----------
    reports : dict of str to FilterReport
        By the name that the legend shows.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of matplotlib Axes
        One per panel. The grey band is where theory puts coverage in 95 of 100 cases,
        for so many calibration and test problems; bars are 95 % intervals of coverage,
        and standard errors of retention.

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
    def from_reports(
        cls,
        reports: Any,
        *,
        panels: Iterable[str] = ("coverage", "retention"),
        axes: Any = None,
    ) -> Self:
        """Draw reports.

        Parameters
        ----------
        reports : FilterReport, or dict of str to FilterReport
        panels : sequence of {"coverage", "retention", "non-empty"}
            "non-empty" is the share of answers of which something is kept.
        axes : sequence of matplotlib Axes, optional
            One per panel.

        Returns
        -------
        FilterReportDisplay
        """
        if not isinstance(reports, dict):
            reports = {"": reports}
        return cls(reports).plot(panels=panels, axes=axes)

    @classmethod
    def from_estimator(
        cls,
        filter: Any,
        X: Any,
        y: Any,
        alphas: Iterable[float] = (0.02, 0.05, 0.1, 0.2),
        *,
        panels: Iterable[str] = ("coverage", "retention"),
        axes: Any = None,
    ) -> Self:
        """Evaluate fitted filters on test problems, and draw what comes out.

        Parameters
        ----------
        filter : fitted filter, or dict of str to fitted filter
        X, y
            Test problems and labels.
        alphas : sequence of float in (0, 1)
        panels, axes
            As in `from_reports`.

        Returns
        -------
        FilterReportDisplay
        """
        from ..metrics import evaluate_filter

        alphas = list(alphas)
        filters = filter if isinstance(filter, dict) else {"": filter}
        reports = {
            name: evaluate_filter(fitted, X, y, alphas)
            for name, fitted in filters.items()
        }
        return cls(reports).plot(panels=panels, axes=axes)

    def plot(
        self,
        *,
        panels: Iterable[str] = ("coverage", "retention"),
        axes: Any = None,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        panels, axes
            As in `from_reports`.

        Returns
        -------
        self
        """
        panels = list(panels)
        for panel in panels:
            check_choice("panel", panel, PANELS)
        axes = several_axes(axes, len(panels), (4.6 * len(panels), 3.8))
        alpha = np.concatenate([r.alpha for r in self.reports.values()])
        moved = shifts(np.unique(alpha), len(self.reports))
        for panel, ax in zip(panels, axes, strict=True):
            PANELS[panel](ax, self.reports, moved)
            alpha_ticks(ax, alpha)
        if panels and (len(self.reports) > 1 or panels[0] == "coverage"):
            _add_legend(axes[0], panels[0] == "coverage")
        self.axes_, self.figure_ = axes, axes[0].figure
        return self


def _draw_coverage(ax, reports, moved):
    alpha = np.unique(np.concatenate([r.alpha for r in reports.values()]))
    bands = _bands(reports)
    for i, (band, owners) in enumerate(bands):
        label = "95 % band of theory"
        if len(owners) < len(reports):
            label += f": {', '.join(owners)}"
        at = reports[owners[0]].alpha
        order = np.argsort(at)
        style = CHANCE if i == 0 else OTHER_CHANCE
        ax.fill_between(at[order], *band[order].T, label=label, **style)
    ax.plot(alpha, 1 - alpha, color="k", lw=1, label="promised: 1 - alpha")
    for i, (name, report) in enumerate(reports.items()):
        error = np.abs(report.coverage_interval.T - report.coverage).clip(min=0)
        _bars(ax, i, name, report.alpha + moved[i], report.coverage, error)
    ax.set_ylabel("coverage (no false claim kept)")


def _bands(reports):
    """Theory bands that differ, each with the names of its reports."""
    out = []
    for name, report in reports.items():
        if np.isnan(report.coverage_band).any():  # a promise whose law is not known
            continue
        for band, owners in out:
            same = np.array_equal(reports[owners[0]].alpha, report.alpha)
            if same and np.allclose(band, report.coverage_band):
                owners.append(name)
                break
        else:
            out.append((report.coverage_band, [name]))
    return out


def _draw_retention(ax, reports, moved):
    for i, (name, report) in enumerate(reports.items()):
        at = report.alpha + moved[i]
        _bars(ax, i, name, at, report.retention, report.retention_error)
    ax.set_ylabel("true claims kept per problem")
    ax.update_datalim([(at[0], 0)])  # the margin above is then one of all that is shown
    ax.autoscale_view()
    ax.set_ylim(0, None)


def _draw_nonempty(ax, reports, moved):
    for i, (name, report) in enumerate(reports.items()):
        share = report.nonempty
        error = np.sqrt(share * (1 - share) / report.n_problems)
        _bars(ax, i, name, report.alpha + moved[i], share, error)
    ax.set_ylabel("share of answers that are not emptied")
    ax.set_ylim(0, 1.02)


def _add_legend(ax, falls):
    """Below lines that fall, with room made for it; else where it fits best."""
    n = len(ax.get_legend_handles_labels()[0])
    if falls:
        low, high = ax.get_ylim()
        ax.set_ylim(low - 0.04 * n * (high - low), high)
    place = "lower left" if falls else "best"
    ax.legend(frameon=False, fontsize="small", loc=place)


def _bars(ax, i, name, at, height, error):
    ax.errorbar(
        at,
        height,
        yerr=error,
        capsize=2,
        ms=5,
        lw=1.2,
        label=name or "observed",
        **line_style(i),
    )


PANELS = {
    "coverage": _draw_coverage,
    "retention": _draw_retention,
    "non-empty": _draw_nonempty,
}


class ComparisonDisplay:
    """Coverage and retention against alpha, one line per filter.

    Parameters
    ----------
    report : ComparisonReport

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of two matplotlib Axes
        Coverage on the left, with the promise as a line and the band of chance about
        it; retention on the right, with corrected standard errors.

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
        axes = several_axes(axes, 2, (10, 4.2))
        left, right = axes
        report, order = self.report, np.argsort(self.report.alpha)
        alpha = report.alpha[order]
        coverage = report.coverage.mean(axis=1)[:, order]
        retention = report.retention.mean(axis=1)[:, order]
        error = report.retention_error[:, order]
        moved = shifts(alpha, len(report.names))
        band = report.coverage_band[order].T
        left.fill_between(alpha, *band, label="band of chance", **CHANCE)
        left.plot(alpha, 1 - alpha, color="k", lw=1, label="promised: 1 - alpha")
        for i, name in enumerate(report.names):
            at, style = alpha + moved[i], line_style(i)
            left.plot(at, coverage[i], label=name, ms=4, lw=1.2, **style)
            _bars(right, i, name, at, retention[i], error[i])
        left.set_ylabel("coverage (no false claim kept)")
        right.set(ylabel="true claims kept per problem", ylim=(0, None))
        for ax in axes:
            alpha_ticks(ax, alpha)
        _add_legend(left, True)
        self.axes_, self.figure_ = axes, left.figure
        return self
