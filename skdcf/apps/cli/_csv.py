"""Read a CSV file as JSON Lines, with one object per row and the column names as keys."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

csv.field_size_limit(2**31 - 1)


class CsvAsLines(io.BytesIO):
    """Binary stream that presents the rows of a CSV file as JSON Lines.

    A cell that contains a JSON list or object is parsed. An empty cell is read as null, or
    as an empty string in a column of answers. Line n of the stream is row n of the file, and
    row 1 is the header. The attribute ``name`` contains the file name for error messages.

    Parameters
    ----------
    path : path-like
        A UTF-8 file whose first row contains the column names. The columns are separated by
        commas, semicolons or tabs.
    answers : collection of str
        Names of the columns that contain answers.

    Raises
    ------
    ValueError
        If the first row does not contain a different name for each column.
    """

    def __init__(self, path, answers=()):
        text = Path(path).read_text("utf-8-sig")
        head = text.partition("\n")[0]
        delimiter = max(",;\t", key=head.count)
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        names = [name.strip() for name in next(rows, [])]
        _check_names(path, names)
        empty = {name: "" for name in answers if name in names}
        lines = [
            json.dumps(_record(names, row, empty)) if any(row) else "" for row in rows
        ]
        super().__init__("\n".join(["", *lines]).encode())
        self.name = str(path)


def _check_names(path, names):
    named = [name for name in names if name and not name.replace(".", "").isdigit()]
    if len(named) < len(names) or len(set(names)) < len(names) or not names:
        raise ValueError(
            f"{path}: the first row must contain unique column names, for example "
            f"problem,answer,context, got {names}"
        )


def _record(names, row, empty):
    """Return the values of a row, keyed by column, with a default for some empty cells."""
    record = dict(zip(names, map(_value, row), strict=False))
    return {k: empty.get(k) if value is None else value for k, value in record.items()}


def _value(cell):
    """Return the value of a cell: a parsed JSON list or object, a string, or None if empty."""
    text = cell.strip()
    if text[:1] in ("[", "{"):
        try:
            return json.loads(text)
        except ValueError:
            return cell
    return cell if text else None
