"""Read the rows of CSV tables as people make them with spreadsheets."""

import csv

from ..datasets.tables import explain_rows, open_table


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
    with explain_rows(path):
        text, form = open_table(path)
        header, *rows = [*csv.reader(text, **form)] or [[]]
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
