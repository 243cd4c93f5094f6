"""Layer 0: drawings and HTML, made of plain values, without any other package.

What a class shows in a notebook, what the pictures draw, and what reports and pages are
made of. Every text that comes from outside is escaped here, and nowhere else.
"""

from .claims import answer_html, batch_html, graph_html, problem_html, summary
from .curve import HEAD, RADIUS, Frame
from .layout import Layout, layered_layout
from .marks import FALSE, LOOKS, NOT_JUDGED, Look, Mark, Shown, shown_of
from .svg import graph_svg
from .text import card, escape, page, records, table

__all__ = [
    "FALSE",
    "HEAD",
    "LOOKS",
    "NOT_JUDGED",
    "RADIUS",
    "Frame",
    "Layout",
    "Look",
    "Mark",
    "Shown",
    "answer_html",
    "batch_html",
    "card",
    "escape",
    "graph_html",
    "graph_svg",
    "layered_layout",
    "page",
    "problem_html",
    "records",
    "shown_of",
    "summary",
    "table",
]
