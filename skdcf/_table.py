"""Layer 0: reports that print as tables, in a terminal and in a notebook."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._checks import printable
from ._drawing import card, table


class Table:
    """Columns of values that print as a table.

    A report defines `_values`, a dict of columns of equal length, and ``_columns``: for
    each heading, the format of its cells, such as ``"{low:.3f} - {high:.3f}"``, or a
    function of a row. A column of which nothing is known (it has NaN in each row) is left
    out. What has no format after a colon is text, and stands to the left.
    """

    _columns: dict[str, Any] = {}

    def _values(self) -> dict[str, Any]:
        raise NotImplementedError

    def rows(self) -> list[dict[str, Any]]:
        """One dict per line of the table, in plain values.

        Returns
        -------
        list of dict
            The lines, all with the same keys.
        """
        return as_rows(self._values())

    def to_frame(self) -> Any:
        """Return `rows` as a pandas DataFrame.

        Returns
        -------
        pandas.DataFrame
            One row per line of the table.
        """
        import pandas as pd

        return pd.DataFrame(self.rows())

    def _heading(self) -> str:
        return ""

    def _tables(self):
        """Each table as (what it is about, formats by heading, rows)."""
        return [(self._heading(), self._columns, self.rows())]

    def __str__(self) -> str:
        return "\n".join(_as_text(*one) for one in self._tables())

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return "".join(card(html_table(*one)) for one in self._tables())


def as_rows(columns):
    """Columns by name as one dict per row, in plain values."""
    lines = zip(*(np.asarray(v).tolist() for v in columns.values()), strict=True)
    return [dict(zip(columns, line, strict=True)) for line in lines]


def by_level(alpha, names, values):
    """Columns of values of shape (n_filters, n_alphas), level by level."""
    levels = {"alpha": np.repeat(alpha, len(names)), "filter": [*names] * len(alpha)}
    return levels | {key: np.ravel(value.T) for key, value in values.items()}


def html_table(heading, columns, rows):
    """One table in HTML, without a frame."""
    cells = _cells(columns, rows)
    return table(cells, zip(*cells.values(), strict=True), heading or None)


def _as_text(heading, columns, rows):
    padded = []
    for name, texts in _cells(columns, rows).items():
        width = max(map(len, [name, *texts]))
        side = "<" if _is_text(columns[name]) else ">"
        padded.append([f"{text:{side}{width}}" for text in (name, *texts)])
    lines = ["  ".join(line).rstrip() for line in zip(*padded, strict=True)]
    return "\n".join([heading, *lines] if heading else lines)


def _cells(columns, rows):
    """Texts by heading, without the columns in which nothing is known."""
    out = {name: [_cell(form, row) for row in rows] for name, form in columns.items()}
    return {
        name: texts for name, texts in out.items() if not rows or set(texts) != {"-"}
    }


def _cell(form, row):
    text = printable(form(row) if callable(form) else form.format_map(row))
    unknown = not _is_text(form) and text.strip().startswith(("nan", "+nan"))
    return "-" if unknown else text


def _is_text(form):
    return isinstance(form, str) and ":" not in form
