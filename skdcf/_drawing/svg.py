"""The layered drawing of a problem as SVG, without scripts, styles or names.

Everything is an attribute, because pages that strip styles keep those, and nothing is
referred to by a name, because two drawings may stand in one page.
"""

import numpy as np

from .curve import HEAD, RADIUS, Frame
from .layout import layered_layout
from .marks import FALSE, NOT_JUDGED, Mark, shown_of
from .text import escape


def graph_svg(n_claims, edges, *, kept=None, labels=None, claims=None):
    """A problem as an SVG element.

    Parameters
    ----------
    n_claims : int
    edges : sequence of (parent, child)
    kept : sequence of bool, optional
        None where nothing was filtered.
    labels : sequence of int, optional
        1 true, 0 false, -1 not judged.
    claims : sequence of str, optional
        Shown where the mouse rests.

    Returns
    -------
    str
    """
    frame = Frame(layered_layout(n_claims, edges))
    shown = shown_of(n_claims, kept, labels)
    texts = claims or [""] * n_claims
    parts = [_edge(curve) for curve in frame.curves()]
    for v, place in enumerate(zip(frame.x, frame.y, strict=True)):
        parts.append(claim_svg(*place, v, shown[v], texts[v]))
    width, height = f"{frame.width:.0f}", f"{frame.height:.0f}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
        f'height="{height}" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(_described(n_claims, len(edges), kept))}">'
        f"{''.join(parts)}</svg>"
    )


def glyph_svg(number, shown):
    """One claim alone, as lists and legends show it."""
    size = 2 * RADIUS + 10
    inside = claim_svg(size / 2, size / 2, number, shown, "")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size}" height="{size}" '
        f'viewBox="0 0 {size} {size}" aria-hidden="true">{inside}</svg>'
    )


def claim_svg(x, y, number, shown, text):
    """The shape of a claim, its number, its mark, and its text to rest the mouse on."""
    look, mark = shown
    outline, width = (FALSE, 3) if mark is Mark.FALSE else (look.outline, 1.5)
    paint = f'fill="{look.fill}" stroke="{outline}" stroke-width="{width}"'
    if look.square:
        corner, side = RADIUS - 1, 2 * RADIUS - 2
        shape = (
            f'<rect x="{x - corner:.1f}" y="{y - corner:.1f}" width="{side}" '
            f'height="{side}" rx="3" stroke-dasharray="4 2.5" {paint}/>'
        )
    else:
        shape = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS}" {paint}/>'
    tip = ": ".join(part for part in (shown.words, text) if part)
    return (
        f"<g>{f'<title>{escape(tip)}</title>' if tip else ''}{shape}"
        f'<text x="{x:.1f}" y="{y + 4:.1f}" font-size="12" font-weight="600" '
        f'font-family="sans-serif" text-anchor="middle" fill="{look.ink}">{number}</text>'
        f"{_corner(x + RADIUS - 2, y - RADIUS + 2, mark)}</g>"
    )


def _corner(x, y, mark):
    """A cross for a false claim, a question mark for one that nobody judged."""
    if mark is Mark.NONE:
        return ""
    colour = FALSE if mark is Mark.FALSE else NOT_JUDGED
    disc = (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5.5" fill="#fff" stroke="{colour}" '
        'stroke-width="1.2"/>'
    )
    if mark is Mark.UNKNOWN:
        return (
            f'{disc}<text x="{x:.1f}" y="{y + 3.2:.1f}" font-size="9" font-weight="700" '
            f'font-family="sans-serif" text-anchor="middle" fill="{colour}">?</text>'
        )
    d = 2.6
    return (
        f'{disc}<path d="M{x - d:.1f} {y - d:.1f}L{x + d:.1f} {y + d:.1f}'
        f'M{x - d:.1f} {y + d:.1f}L{x + d:.1f} {y - d:.1f}" stroke="{colour}" '
        'stroke-width="1.8"/>'
    )


def _edge(curve):
    """The line, and the head of its arrow."""
    path = "".join(
        letter + " ".join(f"{x:.1f} {y:.1f}" for x, y in points)
        for letter, points in curve
    )
    (x, y), (length, half) = curve[-1][1][-1], HEAD
    head = f"M{x:.1f} {y:.1f}l-{half} -{length}h{2 * half}z"
    return (
        f'<path d="{path}" fill="none" stroke="#707070" stroke-width="1.3"/>'
        f'<path d="{head}" fill="#707070"/>'
    )


def _described(n_claims, n_edges, kept):
    said = f"{n_claims} claims and {n_edges} edges between them"
    if kept is None:
        return said
    return f"{said}; {int(np.sum(kept))} claims are kept"
