"""Displays of reports on coverage and kept claims, of scores and of importances.

Each display uses the axes passed as ``ax``, or creates a figure with enough axes.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ._checks import import_extra, printable
from ._html import decisions
from .evaluation import Table
from .graphs import GraphBatch, ReasoningGraph
from .inspection import explain, permutation_importance
from .labels import pack_labels
from .uses import check

__all__ = [
    "ImportanceDisplay",
    "ReasoningGraphDisplay",
    "ReportDisplay",
    "ScoreDistributionDisplay",
]


class Display:
    """Base class of displays."""

    def plot(self, *, ax: Any = None) -> Self:
        """Draw the plot.

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
        n, size = self._layout()  # type: ignore[attr-defined]
        if ax is None:
            _, ax = plt.subplots(1, n, figsize=size, layout="constrained")
        self.axes_ = np.asarray(ax, object).ravel()
        if len(self.axes_) != n:
            raise ValueError(f"ax must contain {n} axes, got {len(self.axes_)}")
        self.ax_ = self.axes_[0]
        self.figure_ = self.ax_.figure
        self._draw(self.axes_)  # type: ignore[attr-defined]
        return self


class DisplayOfReport(Display):
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


class ReportDisplay(DisplayOfReport):
    """Plot coverage and kept claims against alpha, with one line per filter.

    Parameters
    ----------
    report : Table, or dict of str to Table
        Report of `skdcf.evaluation.evaluate_filter`, `skdcf.evaluation.leave_one_out` or
        `skdcf.evaluation.compare_filters`. If a dict of
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
        return 3, (11.1, 3.7)

    def _draw(self, axes):
        panels = {
            "coverage": "coverage (no false claim kept)",
            "retention": "true claims kept per problem",
            "false_kept": "false claims kept per problem",
        }
        lines = _lines(self.report)
        levels = np.unique(
            [row["alpha"] for line in lines.values() for row in line.rows]
        )
        # Markers are shifted, so the lines of several filters do not overlap.
        gap = np.diff(levels).min(initial=0.1) / (3 * len(lines))
        for i, (name, line) in enumerate(lines.items()):
            at = line.alpha + gap * (i - (len(lines) - 1) / 2)
            for (column, label), ax in zip(panels.items(), axes, strict=True):
                # Lengths of the error bars, which may be unknown.
                error = getattr(line, f"{column}_error", None)
                if f"{column}_interval_low" in line.rows[0]:
                    ends = [line.coverage_interval_low, line.coverage_interval_high]
                    error = abs(np.array(ends) - line.coverage)
                ax.errorbar(
                    at,
                    getattr(line, column),
                    yerr=error,
                    label=printable(name),
                    color=f"C{i}",
                    marker="os^DvPX"[i % 7],
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
        rows = [
            {"filter": name} | row for name, of in report.items() for row in of.rows
        ]
    else:
        rows = report.rows
    lines = {}
    for row in sorted(rows, key=lambda row: row["alpha"]):
        lines.setdefault(row.get("filter", "observed"), []).append(row)
    return {name: Table(own, {}) for name, own in lines.items()}


class ScoreDistributionDisplay(DisplayOfReport):
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
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> graphs, y = make_reasoning_graphs(100, random_state=0, return_X_y=True)
    >>> fitted = HardCF().fit(graphs, y)
    >>> display = ScoreDistributionDisplay.from_estimator({"frequency": fitted}, graphs, y)
    >>> display.ax_.get_title()
    'frequency'
    """

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
        report = {}
        for name, filter in estimator.items():
            scores = filter.confidence(X)
            report[name] = scores[labels == 1], scores[labels == 0]
        return cls.from_report(report, ax=ax)

    def _layout(self):
        return len(self.report), (4.4 * len(self.report), 3.4)

    def _draw(self, axes):
        for (name, scores), ax in zip(self.report.items(), axes, strict=True):
            bins = np.histogram_bin_edges(np.concatenate(scores), 30)
            for own, kind in zip(scores, ("true", "false"), strict=True):
                label = f"{len(own)} {kind} claims"
                ax.hist(own, bins, density=len(own) > 0, alpha=0.5, label=label)
            ax.set_title(printable(name), fontsize="medium")
            ax.set(xlabel="score", ylabel="density")
            ax.legend(frameon=False)


class ImportanceDisplay(DisplayOfReport):
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
        ax.barh(names, largest.mean, xerr=largest.deviation, capsize=2)
        ax.invert_yaxis()
        ax.axvline(0, color="k", lw=0.8)
        ax.set_xlabel(self.report.heading.replace(", of", ",\nof"))


@dataclass(eq=False)
class ReasoningGraphDisplay(Display):
    """Draw one problem, with premises at the top and the claim texts next to the graph.

    Kept claims are drawn as dark discs, and dropped claims as light squares. A false claim has a
    thick outline and a cross. An unjudged claim has a question mark.

    Parameters
    ----------
    graph : ReasoningGraph
        The problem.
    kept : ndarray of bool of shape (n_claims,), optional
        Mask of the kept claims. If None, the unfiltered problem is drawn.
    labels : ndarray of shape (n_claims,), optional
        Claim labels: 1 true, 0 false, -1 unknown.
    reasons : dict of int to str, optional
        Reasons for dropped claims, keyed by claim index. Each reason is written below the text of
        its claim.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure.
    ax_ : matplotlib Axes
        The axes with the drawing.

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.plots import ReasoningGraphDisplay
    >>> graph = ReasoningGraph([[0.9], [0.8], [0.1]], [(0, 1), (0, 2)])
    >>> display = ReasoningGraphDisplay.from_graph(graph, kept=[True, True, False])
    >>> display.ax_.get_title()
    '2 of 3 claims kept'
    """

    graph: ReasoningGraph
    _: KW_ONLY
    kept: ArrayLike | None = None
    labels: ArrayLike | None = None
    reasons: dict[int, str] | None = None

    @classmethod
    def from_graph(
        cls,
        graph: ReasoningGraph,
        *,
        kept: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        ax: Any = None,
    ) -> Self:
        """Create a display from a problem, and draw the plot.

        Parameters
        ----------
        graph : ReasoningGraph
            The problem.
        kept : array-like of bool, shape (n_claims,), optional
            Mask of the kept claims. If None, the unfiltered problem is drawn.
        labels : array-like of 0/1, shape (n_claims,), optional
            Claim labels: 1 true, 0 false, -1 unknown.
        ax : matplotlib Axes, optional
            Axes to draw on. If None, a new figure is created.

        Returns
        -------
        display : ReasoningGraphDisplay
            The display that was drawn.
        """
        if labels is not None:
            labels = pack_labels([labels], GraphBatch.from_graphs([graph]))
        if kept is not None:
            kept = np.asarray(kept)
            if kept.shape != (graph.n_claims,) or kept.dtype != bool:
                raise ValueError(
                    f"kept must be a boolean array with one value for each of the "
                    f"{graph.n_claims} claims, got shape {kept.shape} and dtype {kept.dtype}"
                )
        return cls(graph, kept=kept, labels=labels).plot(ax=ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        graph: ReasoningGraph,
        labels: ArrayLike | None = None,
        *,
        alpha: float | None = None,
        ax: Any = None,
    ) -> Self:
        """Draw the decisions of a fitted filter on a problem, with the reasons.

        Parameters
        ----------
        estimator : fitted filter
            The filter whose decisions are drawn.
        graph : ReasoningGraph
            The problem.
        labels : array-like of 0/1, shape (n_claims,), optional
            Claim labels, which do not influence the decisions.
        alpha : float in (0, 1), optional
            The level. If None, the filter's alpha is used.
        ax : matplotlib Axes, optional
            Axes to draw on. If None, a new figure is created.

        Returns
        -------
        display : ReasoningGraphDisplay
            The display that was drawn.
        """
        explained = explain(estimator, graph, labels, alpha=alpha)
        return cls(
            explained.graph,
            kept=explained.kept,
            labels=explained.labels,
            reasons=explained.reasons,
        ).plot(ax=ax)

    def _layout(self):
        n_lines = len(self._lines())
        n_layers = GraphBatch.from_graphs([self.graph]).depth.max(initial=0) + 1
        # The height leaves room for all layers and for all lines of text.
        return 1, (9 if n_lines else 4.5, max(2.5, 0.8 * n_layers, 0.18 * n_lines))

    def _draw(self, axes):
        import networkx as nx

        (ax,) = axes
        graph = self.graph
        n = graph.n_claims
        digraph = graph.to_networkx()
        layers = {
            -depth: sorted(claims)
            for depth, claims in enumerate(nx.topological_generations(digraph))
        }
        places = nx.multipartite_layout(digraph, layers, align="horizontal")
        marks = {1: "", 0: "×", -1: "?"}  # noqa: RUF001
        for v, (is_kept, label, _) in enumerate(decisions(n, self.kept, self.labels)):
            fill, ink, shape = (
                ("#00664d", "white", "o") if is_kept else ("#f4f4f4", "0.2", "s")
            )
            is_false = label == 0
            nx.draw_networkx_nodes(
                digraph,
                places,
                nodelist=[v],
                node_color=fill,
                node_shape=shape,
                edgecolors="#d55e00" if is_false else ink,
                linewidths=2.8 if is_false else 1.2,
                ax=ax,
            )
            text = {v: f"{v + 1}{marks[label]}"}
            nx.draw_networkx_labels(
                digraph, places, text, font_size=9, font_color=ink, ax=ax
            )
        nx.draw_networkx_edges(digraph, places, edge_color="0.45", ax=ax)
        ax.margins(0.15)
        ax.set_axis_off()
        ax.text(
            1.05,
            1,
            "\n".join(self._lines()),
            transform=ax.transAxes,
            va="top",
            fontsize=9,
            parse_math=False,
        )
        if self.kept is not None:
            ax.set_title(f"{np.sum(self.kept)} of {n} claims kept")

    def _lines(self):
        """Return the lines of the numbered claim texts, each followed by its reason."""
        graph = self.graph
        reasons = self.reasons or {}
        if graph.claims is None and not reasons:
            return []
        lines = []
        claims = decisions(graph.n_claims, self.kept, self.labels)
        for v, (_, _, words) in enumerate(claims):
            text = "" if graph.claims is None else " ".join(graph.claims[v].split())
            claim = f"{v + 1}. {text}" + (f" [{words}]" if words else "")
            for paragraph in (claim, reasons.get(v, "")):
                # number of characters per line of text
                lines += textwrap.wrap(printable(paragraph), 74)
        return lines
