"""Order the examples of the gallery, and put pictures into scrollable boxes."""

from docutils import nodes
from sphinx_gallery.directives import imgsgnode
from sphinx_gallery.sorting import ExplicitOrder, FileNameSortKey

SECTIONS = ExplicitOrder(
    [f"../examples/{name}" for name in ("start", "guarantees", "scores", "practice")]
)
FIRST = (
    "quickstart",
    "records_to_text",
    "pandas_table",
    "fixed_threshold",
    "conformal_training",
)


class FirstThingsFirst(FileNameSortKey):
    """Sort key that places the examples for new users first and sorts the others by name."""

    def __call__(self, filename):
        name = str(filename).removeprefix("plot_").removesuffix(".py")
        return (FIRST.index(name) if name in FIRST else len(FIRST)), name


def setup(app):
    """Connect `box_pictures` to Sphinx."""
    app.connect("doctree-read", box_pictures)
    return {"parallel_read_safe": True}


def box_pictures(app, doctree):
    """Put each picture into a box that scrolls on narrow pages."""
    for picture in list(doctree.findall(imgsgnode)):
        box = nodes.compound(classes=["picture"])
        picture.replace_self(box)
        box += picture
