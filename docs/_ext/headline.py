"""Numbers of the landing page, read from results.

|card| is the change on |cardset|, the largest set of natural errors that people judged, which
|cardwho| judged; |pooled| is the mean over the |pooledsets| sets that people judged.
"""

import json
import re
from pathlib import Path

HERE = Path(__file__).parent
SPEED = HERE.parents[1] / "benchmarks/results/hard_speed.txt"
OBSERVED = HERE.parents[1] / "benchmarks/results/observed.json"
HEADLINE = HERE.parents[1] / "benchmarks/results/headline.json"


def setup(app):
    """Make the numbers known to all pages."""
    headline = json.loads(HEADLINE.read_text("utf-8"))
    numbers = {
        "safe": safe(json.loads(OBSERVED.read_text("utf-8"))["rows"]),
        "card": headline["change"],
        "cardset": headline["set"],
        "cardwho": headline["who"],
        "pooled": headline["pooled"],
        "pooledsets": headline["n_sets"],
        "million": million(SPEED.read_text("utf-8")),
    }
    lines = (f".. |{name}| replace:: {said}" for name, said in numbers.items())
    app.config.rst_prolog = "\n".join([*lines, "", ""])
    return {"parallel_read_safe": True}


def safe(rows):
    """Least and largest share of safe answers where 90 % were promised."""
    found = [100 * row["safe"] for row in rows if row["way"] == "0.1"]
    return f"{min(found):.1f} to {max(found):.1f} %"


def million(text):
    """Seconds from flat arrays to masks."""
    assert text.startswith("1,000,000 problems"), text
    return re.search(r"flat arrays to masks: ([\d.]+ s)", text)[1]
