"""The gallery: what a new user wants first, then by name; and pictures in boxes."""

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
    """Sort examples."""

    def __call__(self, filename):
        name = str(filename).removeprefix("plot_").removesuffix(".py")
        return (FIRST.index(name) if name in FIRST else len(FIRST)), name


def setup(app):
    """Register what follows the reading of a page."""
    app.connect("doctree-read", box_pictures)
    return {"parallel_read_safe": True}


def box_pictures(app, doctree):
    """Put each picture into a box, which scrolls where the page is narrow."""
    for picture in list(doctree.findall(imgsgnode)):
        box = nodes.compound(classes=["picture"])
        picture.replace_self(box)
        box += picture
