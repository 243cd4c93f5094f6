"""Numbers of the landing page, read from results: |safe|, |felm|, |gsm8k|, |million|."""

import csv
import json
import re
from pathlib import Path

HERE = Path(__file__).parent
RESULTS = HERE.parent / "guide/results_tables.rst"
SPEED = HERE.parents[1] / "benchmarks/results/hard_speed.txt"
OBSERVED = HERE.parents[1] / "benchmarks/results/observed.json"
CHANGE = "auto against logistic regression, %"
ALPHA = "0.05"


def setup(app):
    """Make the numbers known to all pages."""
    results = RESULTS.read_text("utf-8")
    numbers = {
        "safe": safe(json.loads(OBSERVED.read_text("utf-8"))["rows"]),
        "felm": change(results, "FELM (four domains), natural errors"),
        "gsm8k": change(results, "GSM8K solutions, natural errors, derived labels"),
        "million": million(SPEED.read_text("utf-8")),
    }
    lines = (f".. |{name}| replace:: {said}" for name, said in numbers.items())
    app.config.rst_prolog = "\n".join([*lines, "", ""])
    return {"parallel_read_safe": True}


def safe(rows):
    """Least and largest share of safe answers where 90 % were promised."""
    found = [100 * row["safe"] for row in rows if row["way"] == "0.1"]
    return f"{min(found):.1f} to {max(found):.1f} %"


def change(page, heading):
    """The change in the first table of a section that has it, without its star."""
    _, found, section = page.partition(f"\n{heading}\n---")
    if not found:
        raise ValueError(f"the results page has no section {heading!r}")
    rows = [next(csv.reader([line.strip()]), []) for line in section.splitlines()]
    column = next(row.index(ALPHA) for row in rows if row[:1] == ["alpha"])
    row = next(row for row in rows if row[:1] == [CHANGE])
    return row[column].replace("\\*", "").strip() + " %"


def million(text):
    """Seconds from flat arrays to masks."""
    assert text.startswith("1,000,000 problems"), text
    return re.search(r"flat arrays to masks: ([\d.]+ s)", text)[1]
