"""The command-line program ``skdcf``, which fits filters and applies them to answers in files."""

from ._main import main as main
