"""Draw one problem as a layered graph next to its claim texts."""

from __future__ import annotations

import textwrap
from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .. import _drawing as draw
from .._checks import import_extra, printable
from .._parameters import settings
from ..graphs import GraphBatch, ReasoningGraph, pack_labels

# Sizes in points, as in the HTML drawing.
WIDE = 74  # number of characters per line of text
LINE, PAD = 12.0, 7.0
FONT = 9.0
HINTED = 1.05  # factor by which hinting widens letters
LEGEND = 34.0
GAP = 16.0  # distance between the drawing and the texts next to it
LEAST = 230.0  # minimum width


@settings
class ReasoningGraphDisplay:
    """Draw one problem, with premises at the top and the claim texts next to the graph.

    Kept claims are drawn as dark discs, and dropped claims as dashed squares. A false claim has
    a thick outline and a cross. An unjudged claim has a question mark.

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
            Axes to draw on. The drawing is scaled to the size of the axes. If None, a new
            figure is created.

        Returns
        -------
        self : object
            The display itself.
        """
        graph = self.graph
        n = self.graph.n_claims
        layout = draw.layered_layout(n, graph.edges)
        shown = draw.shown_of(n, self.kept, self.labels)
        lines = _lines(graph, shown, self.reasons or {})
        title = None if self.kept is None else f"{np.sum(self.kept)} of {n} claims kept"
        # The size includes the title, so the title is not cut off.
        size = _size(layout, lines, title)
        self.ax_, scale = _canvas(ax, size)
        pen = AxesPen(self.ax_, scale)
        draw.draw_graph(pen, layout, shown)
        _write(pen, lines, shown, layout.width + GAP)
        _draw_legend(pen, shown, size[1])
        if title is not None:
            self.ax_.set_title(title, y=1.0, pad=-12, fontsize=11 * scale)
        self.figure_ = self.ax_.figure
        return self


TITLE = 22.0


def _lines(graph, shown, reasons):
    """Return the lines of each claim's text and of its reason."""
    if graph.claims is None and not reasons:
        return []
    out = []
    for v, text in enumerate(graph.claims or [""] * graph.n_claims):
        words = f"  [{shown[v].words}]" if shown[v].words else ""
        wrapped = textwrap.wrap(printable(" ".join(text.split())) + words, WIDE) or [""]
        why = textwrap.wrap(printable(reasons.get(v, "")), WIDE)
        out.append((wrapped, why))
    return out


def _row_heights(lines):
    return [max(2 * draw.RADIUS + 7, LINE * (len(a) + len(b)) + PAD) for a, b in lines]


def _size(layout, lines, title):
    """Return the width and the height of the drawing, and the space at its top, in points."""
    text = GAP + _widest(lines) + 2 * draw.RADIUS + 2 * PAD if lines else 0
    top = 0 if title is None else TITLE
    height = max(layout.height, sum(_row_heights(lines)) + PAD) + LEGEND
    return max(layout.width + text, LEAST), height, top


def _widest(lines):
    """Return the width of the widest line, in points."""
    font = import_extra("matplotlib.font_manager", "plot").FontProperties(size=FONT)
    to_curves = import_extra("matplotlib.textpath", "plot").text_to_path
    return HINTED * max(
        to_curves.get_text_width_height_descent(line, font, ismath=False)[0]
        for wrapped, why in lines
        for line in (*wrapped, *why)
    )


def _canvas(ax, size):
    """Return axes with coordinates in points, and the scale of the axes."""
    width, height, top = size
    if ax is None:
        plt = import_extra("matplotlib.pyplot", "plot")
        figure = plt.figure(figsize=(width / 72, (height + top) / 72))
        ax = figure.add_axes((0, 0, 1, 1))
        scale = 1.0
    else:
        box = ax.get_window_extent()
        inches = box.width / ax.figure.dpi, box.height / ax.figure.dpi
        scale = min(72 * inches[0] / width, 72 * inches[1] / (height + top))
    ax.set(xlim=(0, width), ylim=(height, -top), aspect="equal")
    ax.set_axis_off()
    return ax, scale


class AxesPen:
    """Pen that draws on matplotlib axes in points, scaled by ``scale``."""

    def __init__(self, ax, scale):
        from matplotlib import patches

        self.patches = patches
        self.ax = ax
        self.scale = scale
        self.above = 1

    def _add(self, patch, fill, outline, width, **more):
        # If marks overlap, later marks are drawn on top of earlier ones.
        self.above += 1
        width *= self.scale
        patch.set(fc=fill, ec=outline, lw=width, zorder=self.above, **more)
        self.ax.add_patch(patch)

    def disc(self, place, radius, fill, outline, width):
        """Draw a circle around a position."""
        self._add(self.patches.Circle(place, radius), fill, outline, width)

    def square(self, place, fill, outline, width):
        """Draw a dashed square around a position."""
        side = 2 * draw.RADIUS - 6
        corner = np.subtract(place, side / 2)
        box = "round,pad=2,rounding_size=3"
        patch = self.patches.FancyBboxPatch(corner, side, side, boxstyle=box)
        self._add(patch, fill, outline, width, ls=(0, (3, 1.4)))

    def curve(self, pieces, *paint):
        """Draw a path given as (letter, points) pairs, with the command letters of SVG paths."""
        kind = self.patches.Path
        kinds = {"M": kind.MOVETO, "L": kind.LINETO, "C": kind.CURVE4}
        points = [point for _, piece in pieces for point in piece]
        codes = [kinds[letter] for letter, piece in pieces for _ in piece]
        self._add(self.patches.PathPatch(kind(points, codes)), *paint)

    def write(self, place, text, size, colour):
        """Write a short text label centred at a position."""
        style = {"ha": "center", "va": "center", "weight": "bold"}
        self.say(place, text, 0.8 * size, colour, **style)

    def say(self, place, text, size, colour, **style):
        """Write text that starts at a position."""
        self.above += 1
        style |= {"fontsize": size * self.scale, "zorder": self.above}
        self.ax.text(*place, text, color=colour, parse_math=False, **style)


def _write(pen, lines, shown, left):
    """Write each claim's text."""
    top = PAD
    style = {"va": "top", "linespacing": 1.15}
    rows = zip(lines, _row_heights(lines), strict=True)
    for v, ((wrapped, why), height) in enumerate(rows):
        draw.draw_claim(pen, (left + draw.RADIUS, top + draw.RADIUS), v + 1, shown[v])
        x = left + 2 * draw.RADIUS + PAD
        y = top + draw.RADIUS - LINE / 2
        colour = "0.35" if shown[v].look is draw.LOOKS[False] else "k"
        pen.say((x, y), "\n".join(wrapped), FONT, colour, **style)
        below = x, y + LINE * len(wrapped)
        pen.say(below, "\n".join(why), FONT, "0.25", style="italic", **style)
        top += height


def _draw_legend(pen, shown, height):
    x = 6.0 + draw.RADIUS
    y = height - LEGEND / 2
    for entry, word in draw.legend_entries(shown):
        draw.draw_claim(pen, (x, y), "", entry)
        pen.say((x + draw.RADIUS + 5, y), word, FONT, "k", va="center")
        x += 2 * draw.RADIUS + 20 + 5.4 * len(word)
