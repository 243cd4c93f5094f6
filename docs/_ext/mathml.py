"""Convert formulas to MathML, which browsers render without scripts or network access."""

from docutils import nodes
from latex2mathml.converter import convert


def setup(app):
    """Register the renderer under the name of this module."""
    app.add_html_math_renderer(__name__, (inline, None), (block, None))
    return {"parallel_read_safe": True}


def inline(writer, node):
    """Convert an inline formula."""
    writer.body.append(convert(node.astext()))
    raise nodes.SkipNode


def block(writer, node):
    """Convert a displayed formula."""
    writer.body.append(
        f'<div class="math">{convert(node.astext(), display="block")}</div>'
    )
    raise nodes.SkipNode
