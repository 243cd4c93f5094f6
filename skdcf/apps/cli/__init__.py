"""The command ``skdcf``, which reads a file of answers and writes the filtered answers."""

from ._main import main as main
