"""Read the number of the landing page from the benchmark results."""

import re
from pathlib import Path

HERE = Path(__file__).parent
SPEED = HERE.parents[1] / "benchmarks/results/hard_speed.txt"


def setup(app):
    """Define the number as a substitution for all pages."""
    seconds = million(SPEED.read_text("utf-8"))
    app.config.rst_prolog = f".. |million| replace:: {seconds}\n\n"
    return {"parallel_read_safe": True}


def million(text):
    """Return the number of seconds from flat arrays to masks."""
    assert text.startswith("1,000,000 problems"), text
    return re.search(r"flat arrays to masks: ([\d.]+ s)", text)[1]
