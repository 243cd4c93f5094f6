"""The command-line program ``skdcf``, which fits filters and filters files of answers."""

from ._main import main as main
