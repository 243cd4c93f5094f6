"""Text and HTML tables, lists of claims, and components of HTML pages.

Reports are displayed as tables in terminals and notebooks. Text from users and models is escaped
only in this module.
"""

from __future__ import annotations

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
    return (
        f'<div class="wide" tabindex="0"><table class="numbers">{inside}</table></div>'
    )


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
    """Rows of a report, printed as a table in text or HTML.

    Each column is also an attribute, such as ``report.coverage``, which returns an array with one
    value per row.

    Parameters
    ----------
    rows : list of dict
        One dict of plain values per row.
    columns : dict of str to str
        Format of the printed cells, such as ``"{mean:.3f}"``, keyed by column heading.
    heading : str
        Line above the table.
    **details : object
        Values about the whole report, which become attributes.

    Examples
    --------
    >>> from skdcf.evaluation import Table
    >>> table = Table([{"n": 1, "share": 0.5}], {"n": "{n:d}", "share": "{share:.2f}"})
    >>> table
    n  share
    1   0.50
    >>> table.share
    array([0.5])
    """

    def __init__(
        self,
        rows: list[dict[str, Any]],
        columns: dict[str, str],
        heading: str = "",
        **details: Any,
    ) -> None:
        self.rows = rows
        self.columns = columns
        self.heading = heading
        vars(self).update(details)

    def __getattr__(self, name: str) -> Any:
        rows = vars(self).get("rows")
        if not rows or name not in rows[0]:
            raise AttributeError(f"the table has no column {name!r}")
        return np.array([row[name] for row in rows])

    def to_frame(self) -> Any:
        """Return the rows as a pandas DataFrame.

        Returns
        -------
        frame : pandas.DataFrame
            A row for each row of the table.
        """
        return import_extra("pandas", "frame").DataFrame(self.rows)

    def cells(self) -> dict[str, list[str]]:
        """Return the printed texts of each column that has a known value.

        Returns
        -------
        cells : dict of str to list of str
            The texts of each column.
        """
        cells = {
            name: [_cell(form, row) for row in self.rows]
            for name, form in self.columns.items()
        }
        return {name: texts for name, texts in cells.items() if {*texts} != {"-"}}

    def __repr__(self) -> str:
        columns = []
        for name, texts in self.cells().items():
            width = max(map(len, [name, *texts]))
            side = ">" if ":" in self.columns[name] else "<"
            columns.append([f"{text:{side}{width}}" for text in (name, *texts)])
        lines = ["  ".join(line).rstrip() for line in zip(*columns, strict=True)]
        return "\n".join([self.heading, *lines] if self.heading else lines)

    def html(self) -> str:
        """Return the table as HTML, without a frame.

        Returns
        -------
        html : str
            A ``<table>`` element.
        """
        cells = self.cells()
        return table(cells, zip(*cells.values(), strict=True), self.heading or None)

    def _repr_html_(self) -> str:
        return card(self.html())


def _cell(form, row):
    """Return a formatted cell, without undefined errors, or "-" if its value is unknown."""
    text = printable(form.format_map(row)).replace(" +- nan", "")
    is_unknown = ":" in form and text.lstrip("+").startswith("nan")
    return "-" if is_unknown or text == "{}" else text
