"""How claims and edges look, drawn by any pen; and a pen that writes SVG.

Each difference is made three times, by colour, by shape and by outline, so that it
survives print in grey and eyes that see fewer colours (palette of Okabe and Ito).

A pen has ``disc(place, radius, fill, outline, width)``, ``square(place, fill, outline,
width)``, ``path(curve, fill, outline, width)`` and ``write(place, text, size, colour)``.

The last part shows a problem with its texts beside its drawing, and many problems, as
HTML.
"""

from textwrap import shorten
from typing import NamedTuple

import numpy as np

from .html import card, escape
from .layout import RADIUS, layered_layout

FALSE, NOT_JUDGED, EDGE = "#d55e00", "#5c5c5c", "#707070"
HEAD = 6.5, 3.6  # length of an arrow's head, and half of its width


class Look(NamedTuple):
    """Fill, outline and colour of the number; dropped claims are dashed squares."""

    word: str
    fill: str
    outline: str
    ink: str
    square: bool


LOOKS = {
    None: Look("claim", "#2f5d8a", "#1d3d5c", "#ffffff", False),
    True: Look("kept", "#00664d", "#003b2c", "#ffffff", False),
    False: Look("dropped", "#f4f4f4", "#6b6b6b", "#333333", True),
}
MARKS = {1: "", 0: "false", -1: "not judged"}  # drawn at the corner of a claim


class Shown(NamedTuple):
    """Look and mark of one claim."""

    look: Look
    mark: str

    @property
    def words(self):
        """What the claim is, as text: "kept, false"."""
        known = self.look.word if self.look is not LOOKS[None] else ""
        return ", ".join(word for word in (known, self.mark) if word)


def shown_of(n_claims, kept, labels):
    """Look and mark of each claim.

    Parameters
    ----------
    n_claims : int
    kept : sequence of bool, or None where nothing was filtered
    labels : sequence of int, or None
        1 true, 0 false, -1 not judged.

    Returns
    -------
    list of Shown
    """
    states = [None] * n_claims if kept is None else kept
    known = [1] * n_claims if labels is None else labels
    pairs = zip(states, known, strict=True)
    return [Shown(LOOKS[state], MARKS[label]) for state, label in pairs]


def legend_entries(shown):
    """Every look and every mark that occurs, with its word."""
    looks = [LOOKS[state] for state in (True, False)]
    looks = [look for look in looks if any(s.look is look for s in shown)]
    marks = [
        mark for mark in ("false", "not judged") if any(s.mark == mark for s in shown)
    ]
    on = looks[0] if looks else LOOKS[None]
    entries = [(Shown(look, ""), look.word) for look in looks]
    return entries + [(Shown(on, mark), mark) for mark in marks]


def draw_graph(pen, layout, shown):
    """Every edge with the head of its arrow, and every claim."""
    for curve in layout.curves():
        pen.path(curve, "none", EDGE, 1.2)
        (x, y), (length, half) = curve[-1][1][-1], HEAD
        ends = [[x - half, y - length], [x + half, y - length], [x, y]]
        head = [("M", [[x, y]]), *(("L", [end]) for end in ends)]
        pen.path(head, EDGE, "none", 0)
    for v, place in enumerate(layout.places):
        draw_claim(pen, place, v + 1, shown[v])


def draw_claim(pen, place, number, shown):
    """The shape of a claim, its number, and its mark at the corner."""
    look, mark = shown
    wrong = mark == "false"
    paint = (look.fill, FALSE if wrong else look.outline, 2.8 if wrong else 1.4)
    if look.square:
        pen.square(place, *paint)
    else:
        pen.disc(place, RADIUS, *paint)
    pen.write(place, number, 11, look.ink)
    if mark:
        corner = place[0] + RADIUS - 2, place[1] - RADIUS + 2
        colour = FALSE if wrong else NOT_JUDGED
        pen.disc(corner, 5.5, "#ffffff", colour, 1.1)
        pen.write(corner, "×" if wrong else "?", 9, colour)  # noqa: RUF001


class SvgPen:
    """Collects SVG elements without scripts, styles or names.

    Everything is an attribute, because pages that strip styles keep those, and nothing is
    referred to by a name, because two drawings may stand in one page.
    """

    def __init__(self):
        self.parts = []

    def _add(self, tag, fill, outline, width):
        paint = f'fill="{fill}" stroke="{outline}" stroke-width="{width}"'
        self.parts.append(f"<{tag} {paint}/>")

    def disc(self, place, radius, *paint):
        """A circle around a place."""
        x, y = place
        self._add(f'circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}"', *paint)

    def square(self, place, *paint):
        """A dashed square around a place."""
        x, y = np.subtract(place, RADIUS - 1)
        side = f'width="{2 * RADIUS - 2}" height="{2 * RADIUS - 2}"'
        dashes = 'rx="3" stroke-dasharray="4 2.5"'
        self._add(f'rect x="{x:.1f}" y="{y:.1f}" {side} {dashes}', *paint)

    def path(self, curve, *paint):
        """A line of (letter, points), letters as in SVG."""
        said = "".join(
            letter + " ".join(f"{x:.1f} {y:.1f}" for x, y in points)
            for letter, points in curve
        )
        self._add(f'path d="{said}"', *paint)

    def write(self, place, text, size, colour):
        """A short text in the middle of a place."""
        x, y = place
        self.parts.append(
            f'<text x="{x:.1f}" y="{y + 0.36 * size:.1f}" font-size="{size}" '
            'font-weight="600" font-family="sans-serif" text-anchor="middle" '
            f'fill="{colour}">{text}</text>'
        )

    def element(self, width, height, attributes):
        """All that was drawn, as one SVG element."""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" '
            f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" {attributes}>'
            f"{''.join(self.parts)}</svg>"
        )


def glyph_svg(number, shown):
    """One claim alone, as lists and legends show it."""
    pen, size = SvgPen(), 2 * RADIUS + 10
    draw_claim(pen, (size / 2, size / 2), number, shown)
    return pen.element(size, size, 'aria-hidden="true"')


def graph_svg(n_claims, edges, kept=None, labels=None):
    """A problem as an SVG element.

    Parameters
    ----------
    n_claims : int
    edges : sequence of (parent, child)
    kept : sequence of bool, optional
        None where nothing was filtered.
    labels : sequence of int, optional
        1 true, 0 false, -1 not judged.

    Returns
    -------
    str
    """
    layout, pen = layered_layout(n_claims, edges), SvgPen()
    draw_graph(pen, layout, shown_of(n_claims, kept, labels))
    said = f"{n_claims} claims and {len(edges)} edges between them"
    if kept is not None:
        said += f"; {int(np.sum(kept))} claims are kept"
    label = f'role="img" aria-label="{escape(said)}"'
    return pen.element(layout.width, layout.height, label)


CLAIMS_DRAWN = 150  # in one problem; more make no readable drawing
CLAIMS_LISTED = 400
PROBLEMS_LISTED = 5


def graph_html(graph):
    """A problem that nothing was done to, as notebooks show it."""
    return card(problem_html(graph), repr(graph))


def problem_html(graph, kept=None, labels=None, reasons=None):
    """A problem: drawing, texts, legend; what was dropped is struck out.

    Parameters
    ----------
    graph : ReasoningGraph
        The problem.
    kept : sequence of bool, optional
        None where nothing was filtered.
    labels : sequence of int, optional
        1 true, 0 false, -1 not judged.
    reasons : dict of int to str, optional
        By claim, said below it.

    Returns
    -------
    str
        HTML without a frame.
    """
    shown = shown_of(graph.n_claims, kept, labels)
    question = "" if graph.problem is None else _problem(graph.problem)
    both = _drawing(graph, kept, labels) + _listed(graph, shown, reasons or {})
    return f'{question}<div class="both">{both}</div>{_legend(shown)}'


def _listed(graph, shown, reasons):
    """The claims, one a line, where there is something to say about them."""
    if graph.claims is None and not reasons:
        return ""
    texts = graph.claims or [""] * graph.n_claims
    first = range(min(graph.n_claims, CLAIMS_LISTED))
    items = [_item(v, shown[v], texts[v], reasons.get(v)) for v in first]
    if graph.n_claims > CLAIMS_LISTED:
        items.append(f"<li>and {graph.n_claims - CLAIMS_LISTED} more</li>")
    return f'<ol class="claims">{"".join(items)}</ol>'


def _problem(text):
    return f'<p class="problem"><span class="said">{escape(text)}</span></p>'


def _drawing(graph, kept, labels):
    if not graph.n_claims:
        return "<p>no claims</p>"
    if graph.n_claims > CLAIMS_DRAWN:
        return f"<p>{graph.n_claims} claims, {len(graph.edges)} edges: too many to draw</p>"
    svg = graph_svg(graph.n_claims, graph.edges, kept, labels)
    return f'<div class="drawing">{svg}</div>'


def _item(number, shown, text, reason):
    said = f'<span class="said">{escape(text)}</span>'
    if shown.look is LOOKS[False]:
        said = f"<del>{said}</del>"
    words = f' <span class="words">{shown.words}</span>' if shown.words else ""
    why = f'<span class="reason">{escape(reason)}</span>' if reason else ""
    kind = ' class="false"' if shown.mark == "false" else ""
    glyph = glyph_svg(number + 1, shown)
    return f"<li{kind}><span>{glyph}</span><span>{said}{words}{why}</span></li>"


def _legend(shown):
    """Every look and every mark that occurs, in words."""
    said = [
        f"<span>{glyph_svg('', look)} {word}</span>"
        for look, word in legend_entries(shown)
    ]
    said.append("<span>An arrow leads from a claim to one that builds on it.</span>")
    return f'<div class="legend">{"".join(said)}</div>'


def batch_html(batch):
    """Many problems: the first few, each behind a line that opens it."""
    parts = [
        f"<details><summary>{summary(i, batch[i])}</summary>"
        f"{problem_html(batch[i])}</details>"
        for i in range(min(len(batch), PROBLEMS_LISTED))
    ]
    if len(batch) > PROBLEMS_LISTED:
        parts.append(f"<p>and {len(batch) - PROBLEMS_LISTED} more</p>")
    return card("".join(parts), repr(batch))


def summary(i, graph):
    """A problem in a line of HTML: name, size, beginning of the question."""
    name = f"problem {i}" if graph.id is None else f"problem {i} ({graph.id})"
    said = f"{name}: {graph.n_claims} claims, {len(graph.edges)} edges"
    if graph.problem:
        said += f"; {shorten(graph.problem, 90, placeholder=' …')}"
    return escape(said)
