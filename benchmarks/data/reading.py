"""Find the files of these sets as the package finds those of its own."""

import json
from functools import partial
from pathlib import Path

from skdcf.datasets import fetch

HERE = Path(__file__).parent
SOURCES = json.loads((HERE / "sources.json").read_text())
load = partial(fetch.load, folder=HERE / "descr")


def read(name, data_home):
    """The object in a file, or the list of objects in a JSON Lines file."""
    return fetch.read_published(name, data_home, SOURCES)


def read_data(name, data_home):
    """The records in a file that is named like JSON Lines but holds one object."""
    return read(name, data_home)["data"]
