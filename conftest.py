"""What holds for the tests and for the examples in docstrings."""

import sys

import pytest


@pytest.fixture(autouse=True)
def _close_figures():
    """Close what a test or an example drew; matplotlib warns of many open figures."""
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")
