"""Read the published numbers of arXiv:2604.20098, for comparison with our measurements.

``paper_tables.json`` contains the column names and the rows of each table.
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
