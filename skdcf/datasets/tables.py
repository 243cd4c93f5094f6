"""Read the rows of CSV tables as people make them with spreadsheets."""

import codecs
import csv
import io
from pathlib import Path

csv.field_size_limit(2**31 - 1)


def read_table(path):
    """Return the rows of a CSV table.

    Parameters
    ----------
    path : path-like
        A table in UTF-8 or UTF-16 whose first row contains the column names. The columns are
        separated by commas, semicolons or tabs.

    Returns
    -------
    rows : dict of int to dict of str
        The cells of each row that is not empty, with the column names as keys. Row 1 is the
        header.

    Raises
    ------
    ValueError
        If the file has another encoding, if the first row does not contain a unique name for each
        column, or if a row has too many cells.
    """
    content = Path(path).read_bytes()
    is_utf16 = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = content.decode("utf-16" if is_utf16 else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ValueError(
            f"{path}, line {line}: {error}. The table may be encoded as Windows-1252 (cp1252). "
            'Save it as "CSV UTF-8"'
        ) from None
    if "\0" in text:
        raise ValueError(
            f"{path} must be a UTF-8 table, but it is in UTF-32, is in UTF-16 without a "
            'byte order mark, or is a workbook. Save it as "CSV UTF-8"'
        )
    delimiter = max(",\t;", key=text.partition("\n")[0].count)
    lines = io.StringIO(text, newline="")
    try:
        header, *rows = [*csv.reader(lines, delimiter=delimiter, strict=True)] or [[]]
    except csv.Error as error:
        raise ValueError(
            f"{path}: the quotation marks of a row do not match ({error}). Close the "
            'quotation, and write a quotation mark within a cell as ""'
        ) from None
    names = [name.strip() for name in header]
    named = {name for name in names if name and not name.replace(".", "").isdigit()}
    if not names or len(named) < len(names):
        raise ValueError(
            f"{path}, row 1 must contain a different name for each column, for example "
            f"problem,answer,context, got {names}"
        )
    table = {}
    for number, row in enumerate(rows, start=2):
        if any(row[len(names) :]):
            raise ValueError(
                f"{path}, row {number} has more cells than the {len(names)} columns. Quote "
                "every cell that contains the separator"
            )
        if any(row):
            row += [""] * (len(names) - len(row))
            table[number] = dict(zip(names, row, strict=False))
    return table
