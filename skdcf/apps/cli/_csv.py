"""Read a CSV file as JSON Lines, with one object per row and the column names as keys."""

from __future__ import annotations

import csv
import io
import json

from ...datasets.tables import explain_rows, open_table


class CsvAsLines(io.BytesIO):
    """Binary stream that contains the rows of a CSV file as JSON Lines.

    A cell that contains a JSON list or object is parsed. An empty cell is read as null, or as an
    empty string if the column contains answers. Line n of the stream is row n of the file, and
    row 1 is the header. The attribute ``name`` contains the name of the file, which is used in
    error messages.

    Parameters
    ----------
    path : path-like
        Path of a UTF-8 or UTF-16 file whose first row contains the column names. The columns are
        separated by commas, semicolons or tabs.
    answers : collection of str
        Names of the columns that contain answers.

    Raises
    ------
    ValueError
        If the file has another encoding, if the first row does not contain a unique name for each
        column, or if a row has too many cells.
    """

    def __init__(self, path, answers=()):
        text, form = open_table(path)
        rows = csv.reader(text, **form)
        with explain_rows(path):
            names = [name.strip() for name in next(rows, [])]
            _check_names(path, names)
            empty = {name: "" for name in answers if name in names}
            lines = [
                json.dumps(_record(names, row, empty, f"{path}, row {number}"))
                if any(row)
                else ""
                for number, row in enumerate(rows, 2)
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


def _record(names, row, empty, place):
    """Return the values of a row, keyed by column name, with defaults for some empty cells."""
    if any(row[len(names) :]):
        raise ValueError(
            f"{place} has more cells than the table has columns. Quote every cell that "
            "contains the separator"
        )
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
