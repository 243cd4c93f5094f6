"""One HTML page on what a filter promised and what it did, for readers without Python."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from io import StringIO
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import numpy as np

from ._drawing import card, escape, page, table
from ._files import replaced
from .inspection import explain
from .labelling import describe_labels
from .metrics import coverage_band, evaluate_filter, unwrap

if TYPE_CHECKING:
    from .graphs import Labels, Problems

__all__ = ["write_report"]

_MISSED = 20  # answers with a false claim that was kept


def write_report(
    path: str | os.PathLike,
    filter: Any,
    X: Problems,
    y: Labels,
    *,
    alphas: Iterable[float] = (0.02, 0.05, 0.1, 0.2),
    by: str | Callable | Sequence[Any] | None = None,
    n_answers: int = 30,
) -> Path:
    """Write a page on a fitted filter and what it did to test problems.

    The page holds the promise and what came out, coverage and retention per level and per
    group, what more labels would give, the false claims that were kept, and single
    answers with the reason for each dropped claim. It is one file that asks nothing of any
    server.

    Parameters
    ----------
    path : path-like
        Of the file to write. It appears when it is complete.
    filter : fitted filter
        Or a fitted pipeline that ends in one, or a search around one.
    X, y
        Test problems and their labels, as in the filter's `fit`.
    alphas : sequence of float in (0, 1)
        Levels of the table. Answers are shown at the filter's own.
    by : str, callable or list, optional
        Report on each group as well, see `skdcf.metrics.evaluate_filter`.
    n_answers : int, default=30
        Number of answers to show, besides those that keep a false claim. They are spread
        evenly over the problems.

    Returns
    -------
    pathlib.Path

    Raises
    ------
    ValueError
        On bad problems, labels, levels or groups.

    Examples
    --------
    >>> import tempfile
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.reporting import write_report
    >>> graphs, y = make_reasoning_graphs(300, random_state=0, return_X_y=True)
    >>> cf = HardCF(alpha=0.1).fit(graphs[:200], y[:200])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_report(f"{folder}/report.html", cf, graphs[200:], y[200:])
    ...     "theory band" in path.read_text("utf-8")
    True
    """
    filter, X = unwrap(filter, X)
    alphas = sorted({*alphas, _own_level(filter)})
    report = evaluate_filter(filter, X, y, alphas, by=by)
    explained = explain(filter, X, y)
    parts = [
        card(
            _summary(filter, report, describe_labels(*filter.check(X, y))),
            "What was promised, and what came out",
        ),
        _figure(report),
        report._repr_html_(),
        _groups(filter, report),
        card(_more_labels(filter), "What more labels would give"),
        *_answers(explained, n_answers),
    ]
    title = f"What was kept of {report.n_problems} answers"
    body = f"<h1>{escape(title)}</h1>{''.join(parts)}"
    with replaced(path, encoding="utf-8") as file:
        file.write(page(body, title))
    return Path(path)


def _summary(filter, report, labels):
    j = _own_row(filter, report)
    low, high = report.coverage_band[j]
    level = _own_level(filter)
    theory = "" if np.isnan(low) else f"Theory expects {low:.1%} to {high:.1%}"
    theory = theory and f" {theory} of answers that the filter has not seen."
    sentences = (
        f"Promised: {filter.calibration_.describe(level)}.",
        f"Came out at alpha = {level:g}, with {report.n_calibration} answers that "
        f"calibrated: it was met in {report.coverage[j]:.1%} of the {report.n_problems} "
        f"answers of this report.{theory}",
        f"{report.retention[j]:.2f} true claims were kept per answer, and "
        f"{report.nonempty[j]:.0%} of the answers kept something.",
        f"Labels that this was measured with: {labels}.",
    )
    return "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)


def _figure(report):
    """Coverage and retention as a drawing, where there is matplotlib."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        return ""
    from .plots import FilterReportDisplay

    display = FilterReportDisplay.from_reports({"this filter": report})
    out = StringIO()
    display.figure_.savefig(out, format="svg", bbox_inches="tight")
    plt.close(display.figure_)
    drawing = out.getvalue()[out.getvalue().index("<svg ") :]
    drawing = drawing.replace("<svg ", '<svg style="max-width:100%;height:auto" ', 1)
    return card(f'<div class="plot">{drawing}</div>')


def _groups(filter, report):
    """One row per group, at the filter's own level."""
    if not report.groups:
        return ""
    rows = []
    for name, group in report.groups.items():
        j = _own_row(filter, group)
        low, high = group.coverage_interval[j]
        rows.append(
            (
                name,
                group.n_problems,
                f"{group.coverage[j]:.3f}",
                f"{low:.3f} to {high:.3f}",
                f"{group.retention[j]:.3f}",
                f"{group.nonempty[j]:.0%}",
            )
        )
    header = (
        "group",
        "answers",
        "coverage",
        "95 % interval",
        "retention",
        "not emptied",
    )
    return card(table(header, rows), f"Groups at alpha = {_own_level(filter):g}")


def _own_row(filter, report):
    return int(np.flatnonzero(report.alpha == _own_level(filter))[0])


def _own_level(filter):
    return filter.calibration_.guarantee.level(None, filter.alpha)


def _more_labels(filter):
    """How far the coverage of one filter may be from its mean, with more calibration."""
    n, alpha = filter.n_calibration_, filter.alpha
    rows = []
    for factor in (1, 2, 4, 10):
        low, high = coverage_band(factor * n, alpha)
        rows.append(
            (
                f"{factor * n}{' (as it is)' if factor == 1 else ''}",
                f"{1 / (factor * n + 1):.2g}",
                f"{low:.3f} to {high:.3f}",
            )
        )
    header = "answers that calibrate", "strictest alpha", "coverage of 95 % of filters"
    return table(header, rows) + (
        "<p>More labels also train a better score, which keeps more true claims.</p>"
    )


def _answers(explained, n_answers):
    """The answers that keep a false claim, and some of all."""
    missed = [e for e in explained if _keeps(e, 0)]
    title = f"{len(missed)} of {len(explained)} answers keep a claim that is false"
    if len(missed) > _MISSED:
        title += f" ({_MISSED} of them are here)"
    if n_more := sum(_keeps(e, -1) and not _keeps(e, 0) for e in explained):
        title += f"; {n_more} more keep one that nobody judged, which counts as false"
    yield card("".join(map(_folded, missed[:_MISSED])), title)
    step = max(1, len(explained) // max(1, n_answers))
    some = explained[::step][:n_answers]
    title = f"{len(some)} of all answers, evenly spread"
    yield card("".join(map(_folded, some)), title)


def _keeps(explanation, label):
    return bool((explanation.kept & (explanation.labels == label)).any())


def _folded(explanation):
    graph, kept = explanation.graph, explanation.kept
    name = graph.problem or graph.id or "an answer"
    name = shorten(str(name), 90, placeholder=" …")
    said = f"{kept.sum()} of {len(kept)} claims kept: {name}"
    return (
        f"<details><summary>{escape(said)}</summary>{explanation.body_html()}</details>"
    )
