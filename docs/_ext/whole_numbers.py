"""Keep each number on one line with its error, its unit and its star."""

import re

from docutils import nodes

#: Patterns for a sign before an error, and for a number before its unit.
BROKEN = re.compile(r"(?<=[±≤≥]) (?=\d)|(?<=\d) (?=%|\*)")
CODE = (nodes.literal, nodes.literal_block, nodes.doctest_block, nodes.math)


def setup(app):
    """Connect `join` to Sphinx."""
    app.connect("doctree-resolved", join)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def join(app, doctree, docname):
    """Insert non-breaking spaces in running text and tables."""
    for text in list(doctree.findall(nodes.Text)):
        joined = BROKEN.sub("\N{NO-BREAK SPACE}", text.astext())
        if joined != text.astext() and not isinstance(text.parent, CODE):
            text.parent.replace(text, nodes.Text(joined))
