"""Read the numbers of the landing page from the benchmark results.

|shown| and |true| compare three scorers at alpha 0.1, as means over the |sets| published sets of
``benchmarks/guarantees/passing_answers.py``.
"""

import json
import re
from pathlib import Path

HERE = Path(__file__).parent
SPEED = HERE.parents[1] / "benchmarks/results/hard_speed.txt"
PASSING = HERE.parents[1] / "benchmarks/results/passing_scorers.json"


def setup(app):
    """Define the numbers as substitutions for all pages."""
    rows = json.loads(PASSING.read_text("utf-8"))
    rows = [row for row in rows if row["alpha"] == 0.1]
    numbers = {
        "shown": compared(rows, "shown", "{:.0%}").replace("%", " %"),
        "true": compared(rows, "true claims", "{:.2f}"),
        "sets": len(rows),
        "million": million(SPEED.read_text("utf-8")),
    }
    lines = (f".. |{name}| replace:: {said}" for name, said in numbers.items())
    app.config.rst_prolog = "\n".join([*lines, "", ""])
    return {"parallel_read_safe": True}


def compared(rows, number, form):
    """Return the means over the data sets for each scorer."""
    means = (
        sum(row[scorer][number][0] for row in rows) / len(rows)
        for scorer in ("default", "priced", "regression")
    )
    return " / ".join(form.format(mean) for mean in means)


def million(text):
    """Return the number of seconds from flat arrays to masks."""
    assert text.startswith("1,000,000 problems"), text
    return re.search(r"flat arrays to masks: ([\d.]+ s)", text)[1]
