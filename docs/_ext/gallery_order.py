"""The order of the gallery: what a new user wants first, then by name."""

from sphinx_gallery.sorting import FileNameSortKey

FIRST = ("quickstart", "records_to_text", "language_model", "pipelines", "search")


class FirstThingsFirst(FileNameSortKey):
    """Sort examples."""

    def __call__(self, filename):
        name = str(filename).removeprefix("plot_").removesuffix(".py")
        return (FIRST.index(name) if name in FIRST else len(FIRST)), name
