"""The command-line program ``skdcf``, which fits filters and applies them to files of answers."""

from ._main import main as main
