"""Write an HTML report on a filter for readers who do not use Python."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import date
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy as np

from .._checks import counted
from .._files import write_text
from .._html import CLAIMS_LISTED, card, escape, folded, problem_html
from .._version import __version__
from ..evaluation import evaluate_filter
from ..filters import ConformalFilter
from ..graphs import Problems
from ..inspection import explain
from ..labels import Labels
from ..monitoring import ExchangeabilityTest
from ..uses import check
from .labelling import describe_labels
from .text import kept_text

__all__ = ["write_report"]


def write_report(
    path: str | os.PathLike[str],
    filter: ConformalFilter,
    X: Problems,
    y: Labels,
    *,
    alphas: Iterable[float] = (0.02, 0.05, 0.1, 0.2),
) -> Path:
    """Write an HTML report on a fitted filter and its results on test problems.

    The report shows the guarantee and the observed coverage. The report also shows coverage and
    retention per level, whether the answers differ from the calibration answers, the
    false claims that were kept, and single answers with the reason for each dropped claim. The
    report is a single file without external resources.

    Parameters
    ----------
    path : path-like
        The file to write. The file is created only after the report is complete.
    filter : fitted filter
        The filter to report on, or a fitted `skdcf.evaluation.CalibratedSearch`.
    X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
        Test problems, in the format that the filter's `fit` accepts.
    y : sequence of 1-D arrays, one per problem
        Claim labels of the test problems.
    alphas : sequence of float in (0, 1)
        Levels in the results table. Single answers are shown at the filter's level.

    Returns
    -------
    path : pathlib.Path
        Path of the file that was written.

    Raises
    ------
    ValueError
        If the problems, labels, levels or groups are invalid.

    Examples
    --------
    >>> import tempfile
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.apps.reporting import write_report
    >>> graphs, y = make_reasoning_graphs(300, random_state=0, return_X_y=True)
    >>> cf = HardCF(alpha=0.1).fit(graphs[:200], y[:200])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_report(f"{folder}/report.html", cf, graphs[200:], y[200:])
    ...     "theory band" in path.read_text("utf-8")
    True
    """
    _, html = compose(filter, X, y, alphas)
    return write_text(path, [html])


def compose(filter, X, y, alphas):
    """Return the results of `skdcf.evaluation.evaluate_filter` and the report as a page.

    The parameters are the same as those of `write_report`.
    """
    level = filter.calibration_.guarantee.level(None, filter.alpha)
    batch, labels = check(filter, X, y)
    report = evaluate_filter(filter, batch, labels, sorted({*alphas, level}))
    summary = _summary(filter, report, level, describe_labels(batch, labels))
    cards = [
        card(summary, "What is guaranteed, and what was observed"),
        _figure(report),
        report._repr_html_(),
        card(_drift(filter, batch), "Drift"),
        *_answers(explain(filter, batch, labels)),
    ]
    title = f"Claims kept in {report.n_problems} answers"
    subtitle = (
        f"Filter: {type(filter).__name__}. Written on {date.today():%d %B %Y} by skdcf "
        f"{__version__}."
    )
    body = f"<h1>{escape(title)}</h1>{_paragraphs(subtitle)}{''.join(cards)}"
    return report, _page(escape(title), body)


def _page(title, body):
    return f"""<!DOCTYPE html>
<html lang="en" class="skdcf-page">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body{{margin:0 auto;max-width:86em;padding:12px;background:#fafafa;color:#1d1d1d;
font:15px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}}
@media(prefers-color-scheme:dark){{body{{background:#12171e;color:#e4e8ee}}}}
</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


def _paragraphs(*sentences):
    return "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)


def _summary(filter, report, own, labels):
    j = report.alpha.tolist().index(own)
    low, high = report.coverage_band_low[j], report.coverage_band_high[j]
    theory = "" if np.isnan(low) else f" Theory predicts {low:.1%} to {high:.1%}."
    answers = f"the {report.n_problems} answers of this report"
    if (share := report.passing[j]) < 1:
        answers = f"the answers that pass ({share:.1%} of {answers})"
    guarantee = filter.describe(own)
    return _paragraphs(
        f"{guarantee[0].upper()}{guarantee[1:]}.",
        _verdict_of_coverage(report, j),
        f"At alpha = {own:g} and with {describe_calibration(filter)}, no more false "
        f"claims than allowed were kept in {report.coverage[j]:.1%} of {answers}. These are "
        f"answers to {counted(report.n_questions, 'question')}.{theory}",
        f"{report.retention[j]:.2f} true and {report.false_kept[j]:.2f} false claims "
        f"were kept per answer. {_of_shown(report, j)}",
        f"The labels: {labels}.",
        *([f"Warning{report.warning}."] if report.warning else []),
    )


def describe_calibration(filter: Any) -> str:
    """Return a phrase with the number of calibration answers and how many of them pass.

    Parameters
    ----------
    filter : fitted filter
        The filter.

    Returns
    -------
    phrase : str
        The phrase, such as "51 calibration answers (9 more were not needed), of which 49 pass".
    """
    phrase = counted(filter.n_calibration_, "calibration answer")
    if n_unused := len(filter.unused_indices_):
        phrase += f" ({n_unused} more were not needed)"
    if filter.calibration_.guarantee.show == 1:
        return phrase
    n_passing = sum(steps.n for steps in filter.calibration_.steps)
    return f"{phrase}, of which {n_passing} pass"


def _verdict_of_coverage(report, j):
    """Return a sentence that states whether the observed coverage agrees with the guarantee."""
    low, high = report.coverage_band_low[j], report.coverage_band_high[j]
    if np.isnan(low):
        return "Theory does not predict a range for the coverage of these answers."
    if report.coverage[j] < low:
        return (
            "These answers contradict the guarantee: the filter kept a false claim "
            "in more of them than chance can explain. The answers probably differ "
            "from the calibration answers."
        )
    if report.coverage[j] > high:
        return (
            "The guarantee holds, and the filter kept a false claim in fewer of "
            "these answers than theory predicts."
        )
    return (
        "These answers do not contradict the guarantee: their coverage is within the range "
        "that theory predicts."
    )


def _of_shown(report, j):
    """Return a sentence about the errors among the answers with at least one kept claim."""
    if not report.shown[j]:
        return "No claims were kept in any answer."
    return (
        f"The filter kept at least one claim in {report.shown[j]:.0%} ± "
        f"{report.shown_error[j]:.0%} of the answers. Of these answers, "
        f"{report.false_among_shown[j]:.0%} ± {report.false_among_shown_error[j]:.0%} "
        "contain a kept false claim (± one standard error)."
    )


def _figure(report):
    """Return a plot of coverage and kept claims, or a hint to install matplotlib."""
    if find_spec("matplotlib") is None:
        hint = "This page has no figures, because matplotlib is not installed."
        return card(_paragraphs(f"{hint} Install it with: pip install matplotlib"))
    import matplotlib.pyplot as plt

    from ..plots import ReportDisplay

    display = ReportDisplay.from_report({"this filter": report})
    out = StringIO()
    display.figure_.savefig(out, format="svg", bbox_inches="tight")
    plt.close(display.figure_)
    drawing = out.getvalue()[out.getvalue().index("<svg ") :]
    # On a phone, the plot can be scrolled, because scaled text would be too small.
    style = '<svg style="max-width:max(100%,36em);height:auto" '
    drawing = drawing.replace("<svg ", style, 1)
    return card(
        f'<div class="plot" tabindex="0" role="group" aria-label="figure">{drawing}</div>'
    )


def _drift(filter, batch):
    """Return a sentence about whether the answers differ from the calibration answers."""
    if filter._labelled is not None:
        return _paragraphs('There is no test of drift with calibration_size="all".')
    test = ExchangeabilityTest(random_state=0).fit(filter).update(batch)
    differs = "differs" if test.alarm else "does not clearly differ"
    return _paragraphs(
        f"The largest path risk of these answers {differs} from that of the calibration answers "
        "(test of exchangeability at the level .05, in the order of the answers)."
    )


def _answers(explained):
    """Yield cards with the answers that keep a false claim, and with a sample of all answers."""
    missed = [explanation for explanation in explained if _keeps(explanation, 0)]
    title = f"A false claim was kept in {len(missed)} of {counted(len(explained), 'answer')}"
    if n_more := sum(_keeps(e, -1) and not _keeps(e, 0) for e in explained):
        title += (
            f". An unjudged claim, which counts as false, was kept in {n_more} other "
            "answers"
        )
    yield card(_shown(missed[:20], len(missed)), title)
    # answers at regular intervals
    examples = explained[:: max(1, len(explained) // 30)][:30]
    yield card(
        _shown(examples, len(examples)), f"Sample of {len(examples)} from all answers"
    )


def _keeps(explanation, label):
    return bool((explanation.kept & (explanation.labels == label)).any())


def _shown(explained, n_all):
    """Return HTML with the first answers (up to 4,000 claims) and the number of omitted ones."""
    sizes = [explanation.graph.n_claims for explanation in explained]
    claims = np.cumsum(np.minimum(sizes, CLAIMS_LISTED))
    n = int(np.sum(claims <= 4000))
    sections = "".join(map(_folded, explained[:n]))
    left = n_all - n
    left_out = f"<p>{left} more answers are omitted to keep this page small.</p>"
    return sections + left_out if left else sections


def _folded(explanation):
    graph = explanation.graph
    name = shorten(str(graph.problem or graph.id or "an answer"), 90, placeholder=" …")
    claims = problem_html(
        graph, explanation.kept, explanation.labels, explanation.reasons
    )
    text = kept_text(graph, explanation.kept) if graph.claims else ""
    if text and graph.n_claims <= CLAIMS_LISTED:
        claims += f'<p>Filtered text:</p><p class="said">{escape(text)}</p>'
    return folded(f"{explanation.heading}: {name}", claims)
