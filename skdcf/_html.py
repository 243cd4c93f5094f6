"""Text and HTML tables, lists of claims, and components of HTML pages.

Reports are displayed as tables in terminals and notebooks. Text from users and models is escaped
only in this module.
"""

from html import escape as escape_markup
from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy as np

from ._checks import counted, import_extra, printable


def escape(text):
    """Return text with HTML markup and control characters escaped."""
    return escape_markup(printable(text, "\n\t"))


def card(body, title=None):
    """Return HTML in a styled frame. ``title`` is plain text."""
    head = "" if title is None else f'<p class="title">{escape(title)}</p>'
    style = Path(__file__).with_name("style.css").read_text()
    # Formulas are not typeset, because that would also change text from users and models.
    classes = "skdcf tex2jax_ignore mathjax_ignore"
    return f'<div class="{classes}"><style>{style}</style>{head}{body}</div>'


def folded(title, inside):
    """Return a collapsible section, which is hidden until the reader clicks the title."""
    return f"<details><summary>{escape(title)}</summary>{inside}</details>"


CLAIMS_LISTED = 400


def decisions(n_claims, kept, labels):
    """Yield whether each claim is kept, its label, and both in words, such as "kept, false".

    None for ``kept`` means that all claims are kept, and None for ``labels`` that all are true. The
    words then omit the decision or the label.
    """
    for v in range(n_claims):
        is_kept = kept is None or kept[v]
        words = [] if kept is None else ["kept" if is_kept else "dropped"]
        label = 1 if labels is None else labels[v]
        words += {1: [], 0: ["false"], -1: ["not judged"]}[label]
        yield is_kept, label, ", ".join(words)


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
    question = ""
    if graph.problem is not None:
        question = f'<p class="problem">{_said(graph.problem)}</p>'
    if not graph.n_claims:
        return f"{question}<p>no claims</p>"
    n_listed = min(graph.n_claims, CLAIMS_LISTED)
    items = []
    for v, (is_kept, label, words) in enumerate(decisions(n_listed, kept, labels)):
        text = _said(f"claim {v + 1}" if graph.claims is None else graph.claims[v])
        if not is_kept:
            text = f"<del>{text}</del>"
        kind = ' class="false"' if label == 0 else ""
        why = escape((reasons or {}).get(v, ""))
        items.append(
            f'<li{kind}>{text} <span class="words">{words}</span>'
            f'<span class="reason">{why}</span></li>'
        )
    more = _more(graph.n_claims - n_listed)
    return f'{question}<ol class="claims">{"".join(items)}</ol>{more}'


def _said(text):
    return f'<span class="said">{escape(text)}</span>'


def _more(n):
    return f"<p>and {n} more</p>" if n > 0 else ""


def graph_html(graph):
    """Return an unfiltered problem as HTML for notebooks."""
    return card(problem_html(graph), repr(graph))


def batch_html(batch):
    """Return the first five problems of a batch as HTML, each in a collapsible section."""
    sections = []
    for i, graph in enumerate(batch[:5]):
        title = f"problem {i}: {counted(graph.n_claims, 'claim')}"
        if graph.problem:
            title += f"; {shorten(graph.problem, 90, placeholder=' …')}"
        sections.append(folded(title, problem_html(graph)))
    return card("".join(sections) + _more(len(batch) - 5), repr(batch))


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
        cells = {}
        for name, form in self.columns.items():
            texts = [_cell(form, row) for row in self.rows]
            if {*texts} != {"-"}:
                cells[name] = texts
        return cells

    def __repr__(self) -> str:
        columns = []
        for name, texts in self.cells().items():
            width = max(map(len, [name, *texts]))
            side = ">" if ":" in self.columns[name] else "<"
            columns.append([f"{text:{side}{width}}" for text in (name, *texts)])
        lines = ["  ".join(line).rstrip() for line in zip(*columns, strict=True)]
        return "\n".join([self.heading, *lines] if self.heading else lines)

    def _repr_html_(self) -> str:
        cells = self.cells()
        names = "".join(f'<th scope="col">{escape(name)}</th>' for name in cells)
        lines = []
        for row in zip(*cells.values(), strict=True):
            texts = "".join(f"<td>{escape(cell)}</td>" for cell in row)
            lines.append(f"<tr>{texts}</tr>")
        return card(
            f'<div class="wide" tabindex="0"><table class="numbers">'
            f"<caption>{escape(self.heading)}</caption><thead><tr>{names}</tr></thead>"
            f"<tbody>{''.join(lines)}</tbody></table></div>"
        )


def _cell(form, row):
    """Return a formatted cell, without undefined errors, or "-" if its value is unknown."""
    try:
        text = printable(form.format_map(row)).replace(" +- nan", "")
    except KeyError:
        return "-"
    is_unknown = ":" in form and text.lstrip("+").startswith("nan")
    return "-" if is_unknown else text
