"""Find the files of these sets as the package finds those of its own."""

import json
from functools import partial
from pathlib import Path

from skdcf.datasets import fetch

HERE = Path(__file__).parent
SOURCES = fetch.read_sources(HERE / "sources.json")
load = partial(fetch.load, folder=HERE / "descr")


def read(name, options):
    """The content of a JSON file, or the list of objects in a JSON Lines file."""
    return fetch.read(name, options | {"sources": SOURCES})


def rows(pattern, id, options, **choices):
    """The id and the content of each record in several files."""
    return fetch.rows(pattern, id, options | {"sources": SOURCES}, **choices)


def read_object(name, options):
    """The object in a file that is named like JSON Lines but holds one object."""
    path = fetch.local_file(name, **options, sources=SOURCES)
    return json.loads(path.read_text("utf-8"))
