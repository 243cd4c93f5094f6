"""Text and HTML tables, lists of claims, and components of HTML pages.

Reports are displayed as tables in terminals and notebooks. Text from users and models is escaped
only in this module.
"""

from __future__ import annotations

import re
from html import escape as escape_markup
from textwrap import shorten
from typing import Any

import numpy as np

from ._checks import counted, import_extra, printable

# Colours in light and dark mode.
_LIGHT = """--ink:#1d1d1d;--soft:#444;--paper:#fff;--frame:#d0d0d0;--line:#e2e2e2;
--rule:#9a9a9a;--quote:#eef3f8;--bar:#2f5d8a;--gone:#5c5c5c;--false:#a84300"""
_DARK = """--ink:#e4e8ee;--soft:#b9c2ce;--paper:#1b222c;--frame:#38424f;--line:#333c48;
--rule:#6f7b8a;--quote:#232d3a;--bar:#7fb0e0;--gone:#9aa6b5;--false:#ff9a5c"""

# CSS selectors for dark mode in the documentation, Jupyter, VS Code and `page`.
STYLE = (
    f".skdcf{{{_LIGHT}}}"
    'html[data-theme="dark"] .skdcf,[data-jp-theme-light="false"] .skdcf,'
    f".vscode-dark .skdcf{{{_DARK}}}"
    f"@media(prefers-color-scheme:dark){{.skdcf-page .skdcf{{{_DARK}}}}}"
    """
.skdcf{font:14px/1.45 system-ui,-apple-system,"Segoe UI",sans-serif;color:var(--ink);
background:var(--paper);border:1px solid var(--frame);border-radius:6px;
padding:12px 14px;margin:4px 0;max-width:86em;box-sizing:border-box;text-align:left;
overflow-wrap:anywhere}
.skdcf .title{font-weight:600;margin:0 0 6px}
.skdcf .problem{white-space:pre-wrap;margin:0 0 10px;padding:6px 10px;
background:var(--quote);border-left:3px solid var(--bar)}
.skdcf ol.claims{margin:0;padding:0 0 0 2.2em}
.skdcf ol.claims>li{margin:0;padding:1px 0;border-bottom:1px solid var(--line)}
.skdcf .said{white-space:pre-wrap;unicode-bidi:isolate}
.skdcf del{color:var(--gone)}
.skdcf .words{font-size:12px;font-weight:600;color:var(--soft);white-space:nowrap}
.skdcf .false .words{color:var(--false)}
.skdcf .reason{display:block;font-size:12.5px;color:var(--soft)}
.skdcf .plot{background:#fff;border-radius:4px;max-width:100%;overflow-x:auto}
.skdcf table.numbers{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums;
margin:4px 0;background:none;color:inherit}
.skdcf .wide{overflow-x:auto}
.skdcf table.numbers caption{text-align:left;padding:2px 0 6px;color:inherit}
.skdcf table.numbers tbody tr{background:none}
.skdcf table.numbers th,.skdcf table.numbers td{padding:3px 8px;text-align:right;
border-bottom:1px solid var(--line);background:none;color:inherit;white-space:nowrap}
.skdcf table.numbers th{border-bottom:2px solid var(--rule);font-weight:600}
.skdcf table.numbers td:first-child,.skdcf table.numbers th:first-child{text-align:left}
.skdcf details{margin:4px 0}
.skdcf summary{cursor:pointer}
"""
)

# Formulas are not typeset, because typesetting would also change text from users and models.
IGNORE = "tex2jax_ignore mathjax_ignore"


def escape(text):
    """Return text with HTML markup and control characters escaped."""
    return escape_markup(printable(text, "\n\t"), quote=True)


def card(body, title=None):
    """Return HTML in a styled frame. ``title`` is plain text."""
    head = "" if title is None else f'<p class="title">{escape(title)}</p>'
    return f'<div class="skdcf {IGNORE}"><style>{STYLE}</style>{head}{body}</div>'


def folded(title, inside):
    """Return a collapsible section, which is hidden until the reader clicks the title."""
    return f"<details><summary>{escape(title)}</summary>{inside}</details>"


def table(header, rows, caption=None):
    """Return an HTML table with a left-aligned first column and right-aligned other columns."""
    caption_html = "" if caption is None else f"<caption>{escape(caption)}</caption>"
    names = "".join(f'<th scope="col">{escape(name)}</th>' for name in header)
    lines = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>"
        for row in rows
    )
    inside = f"{caption_html}<thead><tr>{names}</tr></thead><tbody>{lines}</tbody>"
    return f'<div class="wide"><table class="numbers">{inside}</table></div>'


CLAIMS_LISTED = 400
PROBLEMS_LISTED = 5


def claim_words(n_claims, kept=None, labels=None):
    """Return the decision about each claim and its label in words, such as "kept, false"."""
    decided = [""] * n_claims if kept is None else np.where(kept, "kept", "dropped")
    judged = [1] * n_claims if labels is None else labels
    marks = {1: "", 0: "false", -1: "not judged"}
    pairs = zip(decided, (marks[label] for label in judged), strict=True)
    return [", ".join(filter(None, pair)) for pair in pairs]


def problem_html(graph, kept=None, labels=None, reasons=None):
    """Return a problem as HTML: its question and the list of its claims.

    Parameters
    ----------
    graph : ReasoningGraph
        The problem.
    kept : sequence of bool, optional
        Whether each claim was kept. If None, the problem has not been filtered.
    labels : sequence of int, optional
        Claim labels (1 for true, 0 for false, -1 for not judged).
    reasons : dict of int to str, optional
        Reasons for dropping claims, keyed by claim index. Each reason is shown below the claim
        text.

    Returns
    -------
    html : str
        HTML without a frame, in which the texts of dropped claims are struck through.
    """
    question = (
        ""
        if graph.problem is None
        else f'<p class="problem">{_said(graph.problem)}</p>'
    )
    if not graph.n_claims:
        return f"{question}<p>no claims</p>"
    words = claim_words(graph.n_claims, kept, labels)
    items = []
    for v in range(min(graph.n_claims, CLAIMS_LISTED)):
        text = _said(f"claim {v + 1}" if graph.claims is None else graph.claims[v])
        if kept is not None and not kept[v]:
            text = f"<del>{text}</del>"
        kind = ' class="false"' if labels is not None and labels[v] == 0 else ""
        why = escape((reasons or {}).get(v, ""))
        items.append(
            f'<li{kind}>{text} <span class="words">{words[v]}</span>'
            f'<span class="reason">{why}</span></li>'
        )
    left_out = graph.n_claims - CLAIMS_LISTED
    more = f"<p>and {left_out} more</p>" if left_out > 0 else ""
    return f'{question}<ol class="claims">{"".join(items)}</ol>{more}'


def _said(text):
    return f'<span class="said">{escape(text)}</span>'


def graph_html(graph):
    """Return an unfiltered problem as HTML for notebooks."""
    return card(problem_html(graph), repr(graph))


def batch_html(batch):
    """Return the first few problems of a batch as HTML, each in a collapsible section."""
    first = range(min(len(batch), PROBLEMS_LISTED))
    sections = [folded(_summary(i, batch[i]), problem_html(batch[i])) for i in first]
    if len(batch) > PROBLEMS_LISTED:
        sections.append(f"<p>and {len(batch) - PROBLEMS_LISTED} more</p>")
    return card("".join(sections), repr(batch))


def _summary(i, graph):
    """Return one line with the name and size of a problem, and the start of the question."""
    name = f"problem {i}" if graph.id is None else f"problem {i} ({graph.id})"
    sentence = f"{name}: {counted(graph.n_claims, 'claim')}, {counted(len(graph.edges), 'edge')}"
    if graph.problem:
        sentence += f"; {shorten(graph.problem, 90, placeholder=' …')}"
    return sentence


class Table:
    """Base class of reports that are printed as tables.

    The class attribute ``_fields`` lists the attributes that become columns. Alternatively, a
    subclass defines `_values`, which returns a dict of columns of equal length. ``_columns`` maps
    each heading to a format string for the cells, such as ``"{low:.3f} - {high:.3f}"``, or to a
    function of a row. Columns with NaN in every row are omitted. A column whose format has no
    colon contains text and is left-aligned.
    """

    _fields: tuple[str, ...] = ()
    _columns: dict[str, Any] = {}

    def _values(self) -> dict[str, Any]:
        """Return the columns, with two columns for each interval field of shape (n_rows, 2)."""
        out = {}
        for name in self._fields:
            values = np.asarray(getattr(self, name))
            if values.ndim == 2:
                out[f"{name}_low"], out[f"{name}_high"] = values.T
            else:
                out[name] = values
        return out

    def rows(self) -> list[dict[str, Any]]:
        """Return one dict of plain Python values per table row.

        Returns
        -------
        rows : list of dict
            The rows of the table. All rows have the same keys.
        """
        columns = self._values()
        lines = zip(*(np.asarray(v).tolist() for v in columns.values()), strict=True)
        return [dict(zip(columns, line, strict=True)) for line in lines]

    def to_frame(self) -> Any:
        """Return the rows as a pandas DataFrame.

        Returns
        -------
        frame : pandas.DataFrame
            The rows of the table.
        """
        return import_extra("pandas", "frame").DataFrame(self.rows())

    def _heading(self) -> str:
        return ""

    def _tables(self):
        """Return the tables of the report as (heading, columns, rows) tuples."""
        return [(self._heading(), self._columns, self.rows())]

    def __str__(self) -> str:
        return "\n".join(_as_text(*table_rows) for table_rows in self._tables())

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return "".join(card(html_table(*table_rows)) for table_rows in self._tables())


class LevelTable(Table):
    """Table with one row per level and filter, ordered by level.

    Subclasses store the names of the filters in ``names`` and the levels in ``alpha``. The arrays
    returned by `_levels` are broadcast to shape (n_filters, n_alphas).
    """

    names: tuple[Any, ...]
    alpha: np.ndarray

    def _levels(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._fields}

    def _values(self):
        shape = len(self.names), len(self.alpha)
        columns = {"alpha": self.alpha, "filter": np.array(self.names)[:, None]}
        values = columns | self._levels()
        return {key: np.ravel(np.broadcast_to(v, shape).T) for key, v in values.items()}


def html_table(heading, columns, rows):
    """Return one table as HTML, without a frame."""
    cells = _cells(columns, rows)
    return table(cells, zip(*cells.values(), strict=True), heading or None)


def _as_text(heading, columns, rows):
    padded = {}
    for name, texts in _cells(columns, rows).items():
        width = max(map(len, [name, *texts]))
        side = "<" if _is_text(columns[name]) else ">"
        padded[name] = [f"{text:{side}{width}}" for text in (name, *texts)]
    lines = ["  ".join(line).rstrip() for line in zip(*padded.values(), strict=True)]
    return "\n".join([heading, *lines] if heading else lines)


def _cells(columns, rows):
    """Return the cell texts keyed by heading, without columns in which all values are unknown."""
    out = {name: [_cell(form, row) for row in rows] for name, form in columns.items()}
    return {k: texts for k, texts in out.items() if not rows or set(texts) != {"-"}}


_MINUS_ZERO = re.compile(r"-(0(?:\.0+)?)(?![\d.])")


def _cell(form, row):
    text = printable(form(row) if callable(form) else form.format_map(row))
    # The standard error is undefined for a single question.
    text = _MINUS_ZERO.sub(r"\1", text.replace(" +- nan", ""))
    unknown = not _is_text(form) and text.strip().startswith(("nan", "+nan"))
    return "-" if unknown else text


def _is_text(form):
    return isinstance(form, str) and ":" not in form
