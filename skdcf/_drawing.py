"""Drawings of reasoning graphs in SVG and HTML.

The layout is layered. Every claim is placed in a row below all its parents, and the number of
claims per row is limited. An edge that passes through a row has its own position in that row, so
it never runs behind a claim. All long edges of a parent share one trunk, which occupies one
position in each row that it passes through. Within each row, claims are ordered by the mean
position of their neighbours, so few edges cross. Edges are vertical near claims and bend only
between rows.

Shapes are drawn by a pen, which determines the output format but not the appearance. This module
defines the pen for SVG. Kept and dropped claims differ in colour, shape and outline, so the
difference is also visible in greyscale and to colour-blind readers. The colours are based on the
Okabe-Ito palette.

A pen has the methods ``disc(place, radius, fill, outline, width)``, ``square(place, fill,
outline, width)``, ``curve(pieces, fill, outline, width)`` and ``write(place, text, size,
colour)``.
"""

from collections import Counter
from itertools import pairwise
from textwrap import shorten
from typing import NamedTuple

import numpy as np

from ._checks import counted
from ._html import card, escape, folded

RADIUS = 12
SPACING = 40  # distance between neighbouring claims in a row
MARGIN = 20
TALL = 50  # distance between neighbouring rows in small drawings
LOW = 37  # minimum distance between neighbouring rows in large drawings
HEIGHT = 950  # approximate maximum height of large drawings
CLEAR = 4  # distance between a claim and the bends of its edges
WIDEST = 8  # maximum number of claims in one row
TURNS = 12
CLAIM, TRUNK = 0.5, 0.22  # half-widths of a claim and of a trunk


class Layout:
    """Positions of the claims and paths of the edges in a drawing.

    Parameters
    ----------
    x : ndarray of shape (n_claims,)
        Horizontal position of each claim, starting at 0, in units of the distance between
        adjacent claims.
    row : ndarray of int of shape (n_claims,)
        Row index of each claim. The index of the top row is 0.
    courses : tuple of ndarray of shape (k, 2)
        One array per edge, with the coordinates (x, row) of the start point, one point in each
        row in between, and the end point. Each edge runs vertically through a row and bends only
        between rows.

    Attributes
    ----------
    places : ndarray of shape (n_claims, 2)
        Position of each claim in points, measured from the upper left corner of the drawing.
    width, height : float
        Size of the drawing in points.
    """

    def __init__(self, x, row, courses):
        self.x = x
        self.row = row
        self.courses = courses
        self.n_rows = int(row.max(initial=-1)) + 1
        self.unit = SPACING, min(TALL, max(LOW, HEIGHT / max(self.n_rows, 1)))
        self.places = self._points(np.column_stack([x, row]))
        last = max([x.max(initial=0.0), *(course[:, 0].max() for course in courses)])
        self.width, self.height = self._points([last, max(self.n_rows - 1, 0)]) + MARGIN

    def _points(self, at):
        return MARGIN + np.multiply(at, self.unit)

    def curves(self):
        """Return one list of (SVG path command, points) pairs per edge."""
        return [self._curve(self._points(course).tolist()) for course in self.courses]

    def _curve(self, points):
        band = RADIUS + CLEAR
        out = [("M", [points[0]])]
        for (x0, y0), (x1, y1) in pairwise(points):
            top = y0 + band
            bottom = y1 - band
            middle = (top + bottom) / 2
            out.append(("L", [[x0, top]]))
            out.append(("C", [[x0, middle], [x1, middle], [x1, bottom]]))
        x, y = points[-1]
        return [*out, ("L", [[x, y - RADIUS - 1]])]


def layered_layout(n_claims, edges, widest=WIDEST):
    """Compute the layout of a directed acyclic graph.

    Parameters
    ----------
    n_claims : int
        Number of claims.
    edges : sequence of (parent, child)
        Positions of claims.
    widest : int
        Maximum number of claims in one row.

    Returns
    -------
    layout : Layout
        Positions of the claims and paths of the edges.
    """
    edges = np.array(edges, dtype=int).reshape(-1, 2).tolist()
    row = _rows(n_claims, edges, widest)
    items, links, passed = _with_trunks(row, edges)
    rows = [np.flatnonzero(items == r) for r in range(items.max(initial=-1) + 1)]
    half = np.where(np.arange(len(items)) < n_claims, CLAIM, TRUNK)
    x = _places(_ordered(rows, links, len(items)), links, half)
    at = np.column_stack([x, items])
    return Layout(x[:n_claims], row, tuple(at[course] for course in passed))


def _rows(n_claims, edges, widest):
    """Assign each claim to a row below all its parents, with at most ``widest`` claims per row."""
    parents = [[] for _ in range(n_claims)]
    for parent, child in edges:
        parents[child].append(parent)
    row = np.full(n_claims, -1)
    taken = Counter()
    waiting = list(range(n_claims))
    while waiting:
        ready = [v for v in waiting if all(row[u] >= 0 for u in parents[v])]
        for v in ready:
            at = max((row[u] + 1 for u in parents[v]), default=0)
            while taken[at] >= widest:
                at += 1
            row[v] = at
            taken[at] = taken[at] + 1
        waiting = [v for v in waiting if row[v] < 0]
    # Place each root claim just above the first claim that depends on it.
    for u in [u for u in range(n_claims) if not parents[u]]:
        first = min((row[v] for w, v in edges if w == u), default=row[u] + 1)
        free = [at for at in range(row[u] + 1, first) if taken[at] < widest]
        taken[row[u]] -= 1
        row[u] = max([row[u], *free])
        taken[row[u]] += 1
    return row


def _with_trunks(row, edges):
    """Return the row of each claim and trunk, the links between rows, and the edge paths."""
    passed = []
    trunk = {}
    for parent, child in edges:
        between = [(parent, at) for at in range(row[parent] + 1, row[child])]
        trunks = [trunk.setdefault(key, len(row) + len(trunk)) for key in between]
        passed.append([parent, *trunks, child])
    links = {pair for course in passed for pair in pairwise(course)}
    ends = np.array(sorted(links), dtype=int).reshape(-1, 2)
    trunk_rows = [at for _, at in trunk]
    return np.array([*row, *trunk_rows], dtype=int), ends, passed


def _turns(rows, links, turn):
    """Return (row, links) pairs for a downward pass if ``turn`` is even, else an upward pass."""
    down = turn % 2 == 0
    return [(r, links if down else links[:, ::-1]) for r in rows[:: 1 if down else -1]]


def _wanted(at, links):
    """Return the mean position of each item's neighbours, or its own position if it has none."""
    parent, child = links.T
    count = np.bincount(child, minlength=len(at))
    total = np.bincount(child, at[parent], len(at))
    return np.where(count > 0, total / np.maximum(count, 1), at)


def _ordered(rows, links, n_items):
    """Order the items of each row by the mean position of their neighbours."""
    place = np.empty(n_items)
    fewest = np.inf
    for row in rows:
        place[row] = np.arange(len(row)) - (len(row) - 1) / 2
    for turn in range(TURNS):
        for row, towards in _turns(rows, links, turn):
            order = row[np.lexsort((place[row], _wanted(place, towards)[row]))]
            place[order] = np.sort(place[row])
        crossings = _crossings(place, links, rows)
        if crossings < fewest:
            fewest = crossings
            best = [row[np.argsort(place[row])] for row in rows]
    return best


def _crossings(place, links, rows):
    total = 0
    for row in rows[:-1]:
        ends = place[links[np.isin(links[:, 0], row)]]
        above = np.sign(ends[:, None, 0] - ends[None, :, 0])
        below = np.sign(ends[:, None, 1] - ends[None, :, 1])
        total += int((above * below < 0).sum()) // 2
    return total


def _places(rows, links, half):
    """Compute horizontal positions that are close to neighbours and preserve the row order."""
    # Importing scipy.optimize takes half a second and is only needed for drawings.
    from scipy.optimize import isotonic_regression

    x = np.zeros(len(half))
    gap = np.zeros(len(half))
    for row in rows:
        gap[row] = np.cumsum([0, *(half[row][:-1] + half[row][1:])])
        x[row] = gap[row] - gap[row[-1]] / 2
    for turn in range(TURNS + 1):
        for row, towards in _turns(rows, links, turn):
            # Shift the claims in the row horizontally to keep trunks straight.
            weight = np.where(half[row] == TRUNK, 4.0, 1.0)
            target = _wanted(x, towards)[row] - gap[row]
            x[row] = isotonic_regression(target, weights=weight).x + gap[row]
    return x - x.min(initial=np.inf)


FALSE, NOT_JUDGED, EDGE = "#d55e00", "#5c5c5c", "#707070"
HEAD = 6.5, 3.6  # length and half-width of an arrowhead


class Look(NamedTuple):
    """Fill, outline and text colour of a claim, which is drawn as a dashed square if dropped."""

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
# Draw each mark at a corner of its claim's square.
MARKS = {1: "", 0: "false", -1: "not judged"}


class Shown(NamedTuple):
    """Appearance and corner mark of a claim in a drawing."""

    look: Look
    mark: str

    @property
    def words(self):
        """Decision about the claim and its label in words, such as "kept, false"."""
        look_word = self.look.word if self.look is not LOOKS[None] else ""
        return ", ".join(word for word in (look_word, self.mark) if word)


def shown_of(n_claims, kept, labels):
    """Return the appearance and corner mark of each claim.

    Parameters
    ----------
    n_claims : int
        Number of claims.
    kept : sequence of bool, or None
        Whether each claim was kept. If None, the problem has not been filtered.
    labels : sequence of int, or None
        Claim labels (1 for true, 0 for false, -1 for not judged).

    Returns
    -------
    appearances : list of Shown
        Appearance and corner mark of each claim.
    """
    states = [None] * n_claims if kept is None else kept
    label_of = [1] * n_claims if labels is None else labels
    pairs = zip(states, label_of, strict=True)
    return [Shown(LOOKS[state], MARKS[label]) for state, label in pairs]


def legend_entries(shown):
    """Return a (Shown, text) pair for each appearance and mark that occurs in a drawing."""
    looks = [
        look
        for look in (LOOKS[True], LOOKS[False])
        if any(claim.look is look for claim in shown)
    ]
    marks = [
        mark
        for mark in ("false", "not judged")
        if any(claim.mark == mark for claim in shown)
    ]
    on = (*looks, LOOKS[None])[0]
    entries = [(Shown(look, ""), look.word) for look in looks]
    return entries + [(Shown(on, mark), mark) for mark in marks]


def draw_graph(pen, layout, shown):
    """Draw all claims, and all edges with arrowheads."""
    for curve in layout.curves():
        pen.curve(curve, "none", EDGE, 1.2)
        (x, y), (length, half) = curve[-1][1][-1], HEAD
        ends = [[x - half, y - length], [x + half, y - length], [x, y]]
        head = [("M", [[x, y]]), *(("L", [end]) for end in ends)]
        pen.curve(head, EDGE, "none", 0)
    for v, place in enumerate(layout.places):
        draw_claim(pen, place, v + 1, shown[v])


def draw_claim(pen, place, number, shown):
    """Draw the shape and number of a claim, and its mark at the corner."""
    look, mark = shown
    wrong = mark == "false"
    outline = FALSE if wrong else look.outline
    width = 2.8 if wrong else 1.4
    if look.square:
        pen.square(place, look.fill, outline, width)
    else:
        pen.disc(place, RADIUS, fill=look.fill, outline=outline, width=width)
    pen.write(place, number, 11, look.ink)
    if mark:
        corner = place[0] + RADIUS - 2, place[1] - RADIUS + 2
        colour = FALSE if wrong else NOT_JUDGED
        pen.disc(corner, 5.5, fill="#ffffff", outline=colour, width=1.1)
        pen.write(corner, "×" if wrong else "?", 9, colour)  # noqa: RUF001


class SvgPen:
    """Pen that creates SVG elements without scripts, style sheets or IDs.

    All styling uses attributes, because some pages remove style sheets. IDs are avoided, because
    a page may contain several drawings and IDs must be unique.
    """

    def __init__(self):
        self.elements = []

    def _add(self, tag, fill, outline, width):
        paint = f'fill="{fill}" stroke="{outline}" stroke-width="{width}"'
        self.elements.append(f"<{tag} {paint}/>")

    def disc(self, place, radius, fill, outline, width):
        """Draw a circle centred at a position."""
        x, y = place
        self._add(
            f'circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}"', fill, outline, width
        )

    def square(self, place, fill, outline, width):
        """Draw a dashed square centred at a position."""
        x, y = np.subtract(place, RADIUS - 1)
        side = f'width="{2 * RADIUS - 2}" height="{2 * RADIUS - 2}"'
        dashes = 'rx="3" stroke-dasharray="4 2.5"'
        self._add(f'rect x="{x:.1f}" y="{y:.1f}" {side} {dashes}', fill, outline, width)

    def curve(self, pieces, *paint):
        """Draw a path given as (SVG path command, points) pairs."""
        commands = "".join(
            letter + " ".join(f"{x:.1f} {y:.1f}" for x, y in points)
            for letter, points in pieces
        )
        self._add(f'path d="{commands}"', *paint)

    def write(self, place, text, size, colour):
        """Draw a short text label centred at a position."""
        x, y = place
        self.elements.append(
            f'<text x="{x:.1f}" y="{y + 0.36 * size:.1f}" font-size="{size}" '
            'font-weight="600" font-family="sans-serif" text-anchor="middle" '
            f'fill="{colour}">{text}</text>'
        )

    def element(self, width, height, attributes):
        """Return one SVG element that contains the whole drawing."""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" '
            f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" {attributes}>'
            f"{''.join(self.elements)}</svg>"
        )


def glyph_svg(number, shown):
    """Return an SVG element with a single claim, for use in lists and legends."""
    pen = SvgPen()
    size = 2 * RADIUS + 10
    draw_claim(pen, (size / 2, size / 2), number, shown)
    return pen.element(size, size, 'aria-hidden="true"')


def graph_svg(n_claims, edges, kept=None, labels=None):
    """Return a drawing of a reasoning graph as an SVG element.

    Parameters
    ----------
    n_claims : int
        Number of claims.
    edges : sequence of (parent, child)
        Positions of claims.
    kept : sequence of bool, optional
        Whether each claim was kept. If None, the problem has not been filtered.
    labels : sequence of int, optional
        Claim labels (1 for true, 0 for false, -1 for not judged).

    Returns
    -------
    element : str
        The SVG element.
    """
    layout = layered_layout(n_claims, edges)
    pen = SvgPen()
    draw_graph(pen, layout, shown_of(n_claims, kept, labels))
    description = f"{counted(n_claims, 'claim')} and {counted(len(edges), 'edge')}"
    if kept is not None:
        description += f"; {int(np.sum(kept))} claims are kept"
    label = f'role="img" aria-label="{escape(description)}"'
    return pen.element(layout.width, layout.height, label)


# maximum number of claims in a drawing, because larger drawings are unreadable
CLAIMS_DRAWN = 150
CLAIMS_LISTED = 400
PROBLEMS_LISTED = 5


def graph_html(graph):
    """Return an unfiltered problem as HTML for notebooks."""
    return card(problem_html(graph), repr(graph))


def problem_html(graph, kept=None, labels=None, reasons=None):
    """Return a problem as HTML, with a drawing, the claim texts and a legend.

    Parameters
    ----------
    graph : ReasoningGraph
        The problem.
    kept : sequence of bool, optional
        Whether each claim was kept. If None, the problem has not been filtered.
    labels : sequence of int, optional
        Claim labels (1 for true, 0 for false, -1 for not judged).
    reasons : dict of int to str, optional
        Reasons for dropping claims, keyed by claim index. Each reason is shown below the claim
        text.

    Returns
    -------
    html : str
        HTML without a frame, in which the texts of dropped claims are struck through.
    """
    shown = shown_of(graph.n_claims, kept, labels)
    question = (
        ""
        if graph.problem is None
        else f'<p class="problem">{_said(graph.problem)}</p>'
    )
    content = _drawing(graph, kept, labels) + _listed(graph, shown, reasons or {})
    return f'{question}<div class="both">{content}</div>{_legend(graph, shown)}'


def _listed(graph, shown, reasons):
    """Return the claims as an HTML list, or an empty string if there are no texts or reasons."""
    if graph.claims is None and not reasons:
        return ""
    texts = graph.claims or [""] * graph.n_claims
    first = range(min(graph.n_claims, CLAIMS_LISTED))
    items = [_item(v, shown[v], texts[v], reasons.get(v)) for v in first]
    if graph.n_claims > CLAIMS_LISTED:
        items.append(f"<li>and {graph.n_claims - CLAIMS_LISTED} more</li>")
    return f'<ol class="claims">{"".join(items)}</ol>'


def _said(text):
    return f'<span class="said">{escape(text)}</span>'


def _drawing(graph, kept, labels):
    if not graph.n_claims:
        return "<p>no claims</p>"
    if graph.n_claims > CLAIMS_DRAWN:
        return (
            f"<p>The drawing is omitted because the graph has {graph.n_claims} claims "
            f"and {len(graph.edges)} edges.</p>"
        )
    svg = graph_svg(graph.n_claims, graph.edges, kept, labels)
    return f'<div class="drawing">{svg}</div>'


def _item(number, shown, text, reason):
    text_of_claim = _said(text)
    if shown.look is LOOKS[False]:
        text_of_claim = f"<del>{text_of_claim}</del>"
    words = f' <span class="words">{shown.words}</span>' if shown.words else ""
    why = f'<span class="reason">{escape(reason)}</span>' if reason else ""
    kind = ' class="false"' if shown.mark == "false" else ""
    glyph = glyph_svg(number + 1, shown)
    return (
        f"<li{kind}><span>{glyph}</span><span>{text_of_claim}{words}{why}</span></li>"
    )


def _legend(graph, shown):
    """Return a legend for the shapes, marks and arrows in a drawing."""
    entries = [f"{glyph_svg('', look)} {word}" for look, word in legend_entries(shown)]
    if len(graph.edges):
        entries.append("An arrow points from a claim to a claim that depends on it.")
    return f'<div class="legend"><span>{"</span><span>".join(entries)}</span></div>'


def batch_html(batch):
    """Return the first few problems of a batch as HTML, each in a collapsible section."""
    first = range(min(len(batch), PROBLEMS_LISTED))
    sections = [folded(summary(i, batch[i]), problem_html(batch[i])) for i in first]
    if len(batch) > PROBLEMS_LISTED:
        sections.append(f"<p>and {len(batch) - PROBLEMS_LISTED} more</p>")
    return card("".join(sections), repr(batch))


def summary(i, graph):
    """Return one line with the name and size of a problem, and the start of the question."""
    name = f"problem {i}" if graph.id is None else f"problem {i} ({graph.id})"
    sentence = f"{name}: {counted(graph.n_claims, 'claim')}, {counted(len(graph.edges), 'edge')}"
    if graph.problem:
        sentence += f"; {shorten(graph.problem, 90, placeholder=' …')}"
    return sentence
