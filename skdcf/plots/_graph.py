"""One problem: a layered drawing, and beside it what the claims say."""

import textwrap
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .._checks import printable
from .._drawing import (
    FALSE,
    HEAD,
    LOOKS,
    NOT_JUDGED,
    RADIUS,
    Frame,
    Mark,
    Shown,
    layered_layout,
    shown_of,
)
from ..graphs import GraphBatch, ReasoningGraph, pack_labels

# In points, as in the drawing itself.
WIDE = 74  # characters of a line of text
LINE, PAD = 12.0, 7.0
FONT = 9.0
HINTED = 1.05  # letters on whole pixels are a little wider
LEGEND = 34.0
GAP = 16.0  # between the drawing and the texts
LEAST = 230.0  # width


class ReasoningGraphDisplay:
    """One problem: claims from premises down, and their texts beside them.

    Kept claims are dark discs, dropped ones dashed squares; a false claim has a thick
    outline and a cross, one that nobody judged a question mark.

    Parameters
    ----------
    graph : ReasoningGraph
    kept : ndarray of bool, shape (n_claims,), optional
    labels : ndarray of shape (n_claims,), optional
        1 true, 0 false, -1 unknown.
    reasons : dict of int to str, optional
        By claim, written below its text.

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

    @classmethod
    def from_estimator(
        cls,
        filter: Any,
        graph: ReasoningGraph,
        labels: ArrayLike | None = None,
        *,
        alpha: float | None = None,
        reasons: bool = True,
        ax: Any = None,
    ) -> Self:
        """Draw what a fitted filter does to a problem.

        Parameters
        ----------
        filter : fitted filter
            Or a fitted pipeline that ends in one, or a search around one.
        graph : ReasoningGraph
        labels : array-like of 0/1, shape (n_claims,), optional
        alpha : float in (0, 1), optional
            None is the filter's own.
        reasons : bool, default=True
            Whether to write below each dropped claim why it was dropped.
        ax : matplotlib Axes, optional

        Returns
        -------
        ReasoningGraphDisplay
        """
        from ..inspection import explain

        found = explain(filter, graph, labels, alpha=alpha)
        why = found.reasons if reasons else None
        display = cls(found.graph, kept=found.kept, labels=found.labels, reasons=why)
        return display.plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            What is written is made as small as it has to be there.

        Returns
        -------
        self
        """
        graph, n = self.graph, self.graph.n_claims
        frame = Frame(layered_layout(n, graph.edges))
        shown = shown_of(n, self.kept, self.labels)
        lines = _lines(graph, shown, self.reasons or {})
        title = None if self.kept is None else f"{np.sum(self.kept)} of {n} claims kept"
        # Room for the title is inside, so that nothing is cut off.
        size = _size(frame, lines, title)
        self.ax_, scale = _canvas(ax, size)
        for curve in frame.curves():
            _draw_edge(self.ax_, curve, scale)
        for v, place in enumerate(zip(frame.x, frame.y, strict=True)):
            _draw_claim(self.ax_, place, str(v), shown[v], scale)
        _write(self.ax_, lines, shown, frame.width + GAP, scale)
        _draw_legend(self.ax_, shown, size[1], scale)
        if title is not None:
            self.ax_.set_title(title, y=1.0, pad=-12, fontsize=11 * scale)
        self.figure_ = self.ax_.figure
        return self


TITLE = 22.0


def _lines(graph, shown, reasons):
    """Lines of text for each claim, and how many of them are a reason."""
    if graph.claims is None and not reasons:
        return []
    out = []
    for v, text in enumerate(graph.claims or [""] * graph.n_claims):
        words = f"  [{shown[v].words}]" if shown[v].words else ""
        said = textwrap.wrap(printable(" ".join(text.split())) + words, WIDE) or [""]
        why = textwrap.wrap(printable(reasons.get(v, "")), WIDE)
        out.append((said, why))
    return out


def _row_heights(lines):
    return [max(2 * RADIUS + 7, LINE * (len(a) + len(b)) + PAD) for a, b in lines]


def _size(frame, lines, title):
    """Width, height, and room at the top, in points."""
    text = GAP + _widest(lines) + 2 * RADIUS + 2 * PAD if lines else 0
    top = 0 if title is None else TITLE
    height = max(frame.height, sum(_row_heights(lines)) + PAD) + LEGEND
    return max(frame.width + text, LEAST), height, top


def _widest(lines):
    """Width of the widest line, in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=FONT)
    return HINTED * max(
        text_to_path.get_text_width_height_descent(line, font, ismath=False)[0]
        for said, why in lines
        for line in (*said, *why)
    )


def _canvas(ax, size):
    """Axes whose units are points of the drawing, and how large those come out."""
    width, height, top = size
    if ax is None:
        import matplotlib.pyplot as plt

        figure = plt.figure(figsize=(width / 72, (height + top) / 72))
        ax, scale = figure.add_axes((0, 0, 1, 1)), 1.0
    else:
        box = ax.get_window_extent()
        inches = box.width / ax.figure.dpi, box.height / ax.figure.dpi
        scale = min(72 * inches[0] / width, 72 * inches[1] / (height + top))
    ax.set(xlim=(0, width), ylim=(height, -top), aspect="equal")
    ax.set_axis_off()
    return ax, scale


def _draw_edge(ax, curve, scale):
    from matplotlib.patches import PathPatch, Polygon
    from matplotlib.path import Path

    kinds = {"M": Path.MOVETO, "L": Path.LINETO, "C": Path.CURVE4}
    points = [point for _, some in curve for point in some]
    codes = [kinds[letter] for letter, some in curve for _ in some]
    line = Path(points, codes)
    ax.add_patch(PathPatch(line, fill=False, ec="0.45", lw=1.1 * scale, zorder=1))
    (x, y), (length, half) = points[-1], HEAD
    head = [(x, y), (x - half, y - length), (x + half, y - length)]
    ax.add_patch(Polygon(head, fc="0.45", ec="none", zorder=1))


def _draw_claim(ax, place, number, shown, scale):
    from matplotlib.patches import Circle, FancyBboxPatch

    (x, y), (look, mark) = place, shown
    wrong = mark is Mark.FALSE
    style = {
        "fc": look.fill,
        "ec": FALSE if wrong else look.outline,
        "lw": (2.6 if wrong else 1.3) * scale,
        "zorder": 3,
    }
    if look.square:
        side = 2 * RADIUS - 6
        corner = x - side / 2, y - side / 2
        box = "round,pad=2,rounding_size=3"
        patch = FancyBboxPatch(
            corner, side, side, boxstyle=box, ls=(0, (3, 1.4)), **style
        )
    else:
        patch = Circle(place, RADIUS, **style)
    ax.add_patch(patch)
    middle = {"ha": "center", "va": "center", "zorder": 4, "weight": "bold"}
    ax.text(x, y, number, color=look.ink, fontsize=FONT * scale, **middle)
    if mark is not Mark.NONE:
        corner = x + RADIUS - 2, y - RADIUS + 2
        colour = FALSE if wrong else NOT_JUDGED
        ax.add_patch(Circle(corner, 5.5, fc="w", ec=colour, lw=scale, zorder=4))
        sign = "×" if wrong else "?"  # noqa: RUF001
        middle["zorder"] = 5
        ax.text(*corner, sign, color=colour, fontsize=0.85 * FONT * scale, **middle)


def _write(ax, lines, shown, left, scale):
    """Each claim once more, with what it says."""
    top = PAD
    style = {"va": "top", "fontsize": FONT * scale, "parse_math": False}
    for v, ((said, why), height) in enumerate(
        zip(lines, _row_heights(lines), strict=True)
    ):
        _draw_claim(ax, (left + RADIUS, top + RADIUS), str(v), shown[v], scale)
        x, y = left + 2 * RADIUS + PAD, top + RADIUS - LINE / 2
        colour = "0.35" if shown[v].look is LOOKS[False] else "k"
        ax.text(x, y, "\n".join(said), color=colour, linespacing=1.15, **style)
        y += LINE * len(said)
        ax.text(
            x,
            y,
            "\n".join(why),
            color="0.25",
            style="italic",
            linespacing=1.15,
            **style,
        )
        top += height


def _draw_legend(ax, shown, height, scale):
    looks = [LOOKS[True], LOOKS[False]]
    looks = [look for look in looks if any(s.look is look for s in shown)]
    marks = [mark for mark in Mark if mark.value and any(s.mark is mark for s in shown)]
    on = looks[0] if looks else LOOKS[None]
    entries = [(Shown(look, Mark.NONE), look.word) for look in looks]
    entries += [(Shown(on, mark), mark.value) for mark in marks]
    x, y = 6 + RADIUS, height - LEGEND / 2
    for entry, word in entries:
        _draw_claim(ax, (x, y), "", entry, 0.9 * scale)
        ax.text(x + RADIUS + 5, y, word, va="center", fontsize=FONT * scale)
        x += 2 * RADIUS + 20 + 5.4 * len(word)
