"""Numbers printed in arXiv:2604.20098, to stand beside those measured here.

They are in ``paper_tables.json``, table by table: names of columns, and rows.
"""

import json
from pathlib import Path

TABLES = json.loads(Path(__file__).with_name("paper_tables.json").read_text("utf-8"))
PROBLEMS = TABLES["problems"]
SEVEN = tuple(TABLES["features_felm"]["7"])
TWENTY = SEVEN + tuple(TABLES["features_felm"]["20 more"])


def table(name):
    """{first cell: {column: cell}} of a printed table."""
    columns, rows = TABLES[name]["columns"], TABLES[name]["rows"]
    return {row[0]: dict(zip(columns, row, strict=True)) for row in rows}


ALPHAS = {kind: list(table(f"results_{kind}")) for kind in PROBLEMS}
