"""Draw one problem as a layered graph next to its claim texts."""

from __future__ import annotations

import textwrap
from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .._checks import import_extra, printable
from .._html import claim_words
from .._parameters import settings
from ..graphs import GraphBatch, ReasoningGraph
from ..labels import pack_labels

WIDE = 74  # number of characters per line of text
# fill, colour of text and outline, shape
KEPT = "#00664d", "#ffffff", "o"
DROPPED = "#f4f4f4", "#333333", "s"
FALSE = "#d55e00"
MARKS = {1: "", 0: "×", -1: "?"}  # noqa: RUF001


@settings
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
        {ax}

        Returns
        -------
        display : ReasoningGraphDisplay
            The display that was drawn.
        """
        for name, values in (("kept", kept), ("labels", labels)):
            if values is not None and np.shape(values) != (graph.n_claims,):
                raise ValueError(
                    f"{name} must have one value for each of the {graph.n_claims} claims, "
                    f"got shape {np.shape(values)}"
                )
        if labels is not None:
            labels = pack_labels([labels], GraphBatch.from_graphs([graph]))
        if kept is not None and np.asarray(kept).dtype.kind != "b":
            raise ValueError(
                f"kept must be a boolean array, got dtype {np.asarray(kept).dtype}"
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
        {ax}

        Returns
        -------
        display : ReasoningGraphDisplay
            The display that was drawn.
        """
        from ..inspection import explain

        explained = explain(estimator, graph, labels, alpha=alpha)
        what = {"labels": explained.labels, "reasons": explained.reasons}
        return cls(explained.graph, kept=explained.kept, **what).plot(ax=ax)

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
        digraph = graph.to_networkx()
        depth = GraphBatch.from_graphs([graph]).depth
        layers = {
            -int(row): np.flatnonzero(depth == row).tolist() for row in np.unique(depth)
        }
        places = nx.multipartite_layout(digraph, layers, align="horizontal")
        lines = self._lines()
        if ax is None:
            # The height leaves room for all layers and for all lines of text.
            height = max(2.5, 0.8 * len(layers), 0.18 * len(lines))
            _, ax = plt.subplots(
                figsize=(9 if lines else 4.5, height), layout="constrained"
            )
        n = graph.n_claims
        kept = np.ones(n) if self.kept is None else np.asarray(self.kept)
        labels = np.ones(n) if self.labels is None else np.asarray(self.labels)
        for v in range(graph.n_claims):
            fill, ink, shape = KEPT if kept[v] else DROPPED
            wrong = labels[v] == 0
            nx.draw_networkx_nodes(
                digraph,
                places,
                nodelist=[v],
                node_color=fill,
                node_shape=shape,
                edgecolors=FALSE if wrong else ink,
                linewidths=2.8 if wrong else 1.2,
                ax=ax,
            )
            text = f"{v + 1}{MARKS[int(labels[v])]}"
            nx.draw_networkx_labels(
                digraph, places, {v: text}, font_size=9, font_color=ink, ax=ax
            )
        nx.draw_networkx_edges(digraph, places, edge_color="0.45", ax=ax)
        ax.margins(0.15)
        ax.set_axis_off()
        text = "\n".join(lines)
        style = {"va": "top", "fontsize": 9, "parse_math": False}
        ax.text(1.05, 1, text, transform=ax.transAxes, **style)
        if self.kept is not None:
            ax.set_title(f"{np.sum(self.kept)} of {graph.n_claims} claims kept")
        self.ax_ = ax
        self.figure_ = ax.figure
        return self

    def _lines(self):
        """Return the lines of the numbered claim texts, each followed by its reason."""
        graph = self.graph
        reasons = self.reasons or {}
        if graph.claims is None and not reasons:
            return []
        out = []
        for v, words in enumerate(claim_words(graph.n_claims, self.kept, self.labels)):
            text = "" if graph.claims is None else " ".join(graph.claims[v].split())
            said = f"{v + 1}. {text}" + (f" [{words}]" if words else "")
            out += textwrap.wrap(printable(said), WIDE)
            why = printable(reasons.get(v, ""))
            out += textwrap.wrap(
                why, WIDE, initial_indent="    ", subsequent_indent="    "
            )
        return out
