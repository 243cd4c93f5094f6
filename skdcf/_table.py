"""Layer 0: reports that print as tables, in a terminal and in a notebook."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._checks import printable
from ._drawing import card, table


class Table:
    """Columns of values that print as a table.

    A report names its attributes that are columns, in ``_fields``, or defines `_values`,
    a dict of columns of equal length. In ``_columns`` it has for each heading the format
    of the cells, such as ``"{low:.3f} - {high:.3f}"``, or a function of a row. A column of
    which nothing is known (it has NaN in each row) is left out. What has no format after
    a colon is text, and stands to the left.
    """

    _fields: tuple[str, ...] = ()
    _columns: dict[str, Any] = {}

    def _values(self) -> dict[str, Any]:
        """The fields; one of shape (n_rows, 2) is an interval, and becomes two columns."""
        out = {}
        for name in self._fields:
            values = np.asarray(getattr(self, name))
            if values.ndim == 2:
                out[f"{name}_low"], out[f"{name}_high"] = values.T
            else:
                out[name] = values
        return out

    def rows(self) -> list[dict[str, Any]]:
        """One dict per line of the table, in plain values.

        Returns
        -------
        list of dict
            The lines, all with the same keys.
        """
        columns = self._values()
        lines = zip(*(np.asarray(v).tolist() for v in columns.values()), strict=True)
        return [dict(zip(columns, line, strict=True)) for line in lines]

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


def by_level(alpha, names, values):
    """Columns of values, each broadcast to (n_filters, n_alphas), level by level."""
    shape = len(names), len(alpha)
    values = {"alpha": alpha, "filter": np.array(names)[:, None]} | values
    return {key: np.ravel(np.broadcast_to(v, shape).T) for key, v in values.items()}


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
