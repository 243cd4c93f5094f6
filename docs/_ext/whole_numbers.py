"""A number stays on one line with its error, its unit and its star."""

import re

from docutils import nodes

#: A sign and the error behind it; a number and what belongs to it.
BROKEN = re.compile(r"(?<=[±≤≥]) (?=\d)|(?<=\d) (?=%|\*)")
CODE = (nodes.literal, nodes.literal_block, nodes.doctest_block, nodes.math)


def setup(app):
    """Connect it to the end of the reading."""
    app.connect("doctree-resolved", join)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def join(app, doctree, docname):
    """Put spaces that do not break into running text and tables."""
    for text in list(doctree.findall(nodes.Text)):
        joined = BROKEN.sub("\N{NO-BREAK SPACE}", text.astext())
        if joined != text.astext() and not isinstance(text.parent, CODE):
            text.parent.replace(text, nodes.Text(joined))
