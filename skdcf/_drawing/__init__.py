# ruff: noqa: F401 (the names below are used by other rooms)
"""Layer 0: drawings and HTML, made of plain values, without any other package.

What a class shows in a notebook, what the pictures draw, and what reports and pages are
made of. Every text that comes from outside is escaped here, and nowhere else.
"""

from .html import card, escape, page, table
from .layout import layered_layout
from .pens import (
    CLAIMS_LISTED,
    FALSE,
    LOOKS,
    batch_html,
    graph_html,
    graph_svg,
    problem_html,
    shown_of,
    summary,
)
