"""The command ``skdcf``: from a file with answers to a file with what is kept of them."""

from ._main import main as main
