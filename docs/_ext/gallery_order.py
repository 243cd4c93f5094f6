"""The order of the gallery: what a new user wants first, then by name."""

from sphinx_gallery.sorting import ExplicitOrder, FileNameSortKey

SECTIONS = ExplicitOrder(
    [f"../examples/{name}" for name in ("start", "guarantees", "scores", "practice")]
)
FIRST = ("quickstart", "records_to_text", "fixed_threshold", "conformal_training")


class FirstThingsFirst(FileNameSortKey):
    """Sort examples."""

    def __call__(self, filename):
        name = str(filename).removeprefix("plot_").removesuffix(".py")
        return (FIRST.index(name) if name in FIRST else len(FIRST)), name
