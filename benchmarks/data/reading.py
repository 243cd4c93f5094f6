"""Find the files of these sets as the package finds those of its own."""

import json
from functools import partial
from pathlib import Path

from skdcf.datasets import fetch

HERE = Path(__file__).parent
SOURCES = fetch.read_sources(HERE / "sources.json")
load = partial(fetch.load, folder=HERE / "descr")


def read(name, data_home):
    """The content of a JSON file, or the list of objects in a JSON Lines file."""
    return fetch.read_json(fetch.published_file(name, data_home, SOURCES))


def read_data(name, data_home):
    """The records in a file that is named like JSON Lines but holds one object."""
    path = fetch.published_file(name, data_home, SOURCES)
    return json.loads(path.read_text("utf-8"))["data"]
