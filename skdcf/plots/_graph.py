"""Draw one problem as a layered graph next to its claim texts."""

from __future__ import annotations

import textwrap
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .._checks import import_extra, printable
from .._html import claim_words
from ..graphs import GraphBatch, ReasoningGraph
from ..inspection import explain
from ..labels import pack_labels

# fill, colour of text and outline, shape
KEPT = ("#00664d", "#ffffff", "o")
DROPPED = ("#f4f4f4", "#333333", "s")
MARKS = {1: "", 0: "×", -1: "?"}  # noqa: RUF001


class ReasoningGraphDisplay:
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

    def __init__(
        self,
        graph: ReasoningGraph,
        *,
        kept: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        reasons: dict[int, str] | None = None,
    ) -> None:
        self.graph = graph
        self.kept = kept
        self.labels = labels
        self.reasons = reasons

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
        mask = np.ones(graph.n_claims, bool) if kept is None else np.asarray(kept)
        if mask.shape != (graph.n_claims,) or mask.dtype != bool:
            raise ValueError(
                f"kept must be a boolean array with one value for each of the "
                f"{graph.n_claims} claims, got shape {mask.shape} and dtype {mask.dtype}"
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
        display = cls(
            explained.graph,
            kept=explained.kept,
            labels=explained.labels,
            reasons=explained.reasons,
        )
        return display.plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw the problem.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on. If None, a new figure is created.

        Returns
        -------
        self : object
            The display itself.
        """
        import networkx as nx

        plt = import_extra("matplotlib.pyplot", "plot")
        graph = self.graph
        n = graph.n_claims
        depth = GraphBatch.from_graphs([graph]).depth
        layers = {
            -row: np.flatnonzero(depth == row).tolist() for row in {*depth.tolist()}
        }
        digraph = graph.to_networkx()
        places = nx.multipartite_layout(digraph, layers, align="horizontal")
        lines = self._lines()
        if ax is None:
            # The height leaves room for all layers and for all lines of text.
            size = 9 if lines else 4.5, max(2.5, 0.8 * len(layers), 0.18 * len(lines))
            _, ax = plt.subplots(figsize=size, layout="constrained")
        kept = np.ones(n) if self.kept is None else np.asarray(self.kept)
        labels = np.ones(n, int) if self.labels is None else np.asarray(self.labels)
        for v in range(n):
            fill, ink, shape = KEPT if kept[v] else DROPPED
            is_false = labels[v] == 0
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
            text = {v: f"{v + 1}{MARKS[int(labels[v])]}"}
            nx.draw_networkx_labels(
                digraph, places, text, font_size=9, font_color=ink, ax=ax
            )
        nx.draw_networkx_edges(digraph, places, edge_color="0.45", ax=ax)
        ax.margins(0.15)
        ax.set_axis_off()
        ax.text(
            1.05,
            1,
            "\n".join(lines),
            transform=ax.transAxes,
            va="top",
            fontsize=9,
            parse_math=False,
        )
        if self.kept is not None:
            ax.set_title(f"{np.sum(self.kept)} of {n} claims kept")
        self.ax_ = ax
        self.figure_ = ax.figure
        return self

    def _lines(self):
        """Return the lines of the numbered claim texts, each followed by its reason."""
        graph = self.graph
        reasons = self.reasons or {}
        if graph.claims is None and not reasons:
            return []
        lines = []
        for v, words in enumerate(claim_words(graph.n_claims, self.kept, self.labels)):
            text = "" if graph.claims is None else " ".join(graph.claims[v].split())
            claim = f"{v + 1}. {text}" + (f" [{words}]" if words else "")
            for paragraph in (claim, reasons.get(v, "")):
                # number of characters per line of text
                lines += textwrap.wrap(printable(paragraph), 74)
        return lines
