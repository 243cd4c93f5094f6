"""Read a table as CSV as if it were JSON Lines: one line per row, with the columns as keys."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

csv.field_size_limit(2**31 - 1)


class CsvAsLines(io.BytesIO):
    """The rows of a table as lines of JSON, with the name of the file for messages.

    A cell that holds a JSON list or object is read as one, and an empty cell is left out. Line n
    is row n, where the row of names is the first.

    Parameters
    ----------
    path : path-like
        A table in UTF-8 whose first row names the columns, separated by commas, semicolons or
        tabs.

    Raises
    ------
    ValueError
        If the first row does not name the columns.
    """

    def __init__(self, path):
        text = Path(path).read_text("utf-8-sig")
        head = text.partition("\n")[0]
        delimiter = max(",;\t", key=head.count)
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        names = [name.strip() for name in next(rows, [])]
        _check_names(path, names)
        lines = [
            json.dumps(dict(zip(names, map(_value, row), strict=False)))
            if any(row)
            else ""
            for row in rows
        ]
        super().__init__("\n".join(["", *lines]).encode())
        self.name = str(path)


def _check_names(path, names):
    named = [name for name in names if name and not name.replace(".", "").isdigit()]
    if len(named) < len(names) or len(set(names)) < len(names) or not names:
        raise ValueError(
            f"{path}: the first row must name each column once, as in problem,answer,context, "
            f"but it is {names}"
        )


def _value(cell):
    """The value of a cell: JSON lists and objects as such, and None if it is empty."""
    text = cell.strip()
    if text[:1] in ("[", "{"):
        try:
            return json.loads(text)
        except ValueError:
            return cell
    return cell if text else None
