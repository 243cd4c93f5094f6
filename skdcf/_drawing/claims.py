"""A problem with its texts beside its drawing, and many problems, as HTML."""

from .html import card, escape
from .pens import LOOKS, Mark, glyph_svg, graph_svg, legend_entries, shown_of

CLAIMS_DRAWN = 150  # in one problem; more make no readable drawing
CLAIMS_LISTED = 400
PROBLEMS_LISTED = 5


def answer_html(graph, *, kept=None, labels=None, reasons=None, title=None):
    """A problem: drawing, texts, legend; what was dropped is struck out.

    Parameters
    ----------
    graph : ReasoningGraph
    kept : sequence of bool, optional
        None where nothing was filtered.
    labels : sequence of int, optional
        1 true, 0 false, -1 not judged.
    reasons : dict of int to str, optional
        By claim, said below it.
    title : str, optional

    Returns
    -------
    str
    """
    return card(problem_html(graph, kept, labels, reasons), title)


def graph_html(graph):
    """A problem that nothing was done to, as notebooks show it."""
    return answer_html(graph, title=repr(graph))


def problem_html(graph, kept=None, labels=None, reasons=None):
    """What `answer_html` puts in its frame."""
    shown = shown_of(graph.n_claims, kept, labels)
    question = "" if graph.problem is None else _problem(graph.problem)
    both = _drawing(graph, kept, labels) + _listed(graph, shown, reasons or {})
    return f'{question}<div class="both">{both}</div>{_legend(shown)}'


def _listed(graph, shown, reasons):
    """The claims, one a line, where there is something to say about them."""
    if graph.claims is None and not reasons:
        return ""
    texts = graph.claims or [""] * graph.n_claims
    first = range(min(graph.n_claims, CLAIMS_LISTED))
    items = [_item(v, shown[v], texts[v], reasons.get(v)) for v in first]
    if graph.n_claims > CLAIMS_LISTED:
        items.append(f"<li>and {graph.n_claims - CLAIMS_LISTED} more</li>")
    return f'<ol class="claims">{"".join(items)}</ol>'


def _problem(text):
    return f'<p class="problem"><span class="said">{escape(text)}</span></p>'


def _drawing(graph, kept, labels):
    if not graph.n_claims:
        return "<p>no claims</p>"
    if graph.n_claims > CLAIMS_DRAWN:
        return f"<p>{graph.n_claims} claims, {len(graph.edges)} edges: too many to draw</p>"
    svg = graph_svg(
        graph.n_claims, graph.edges, kept=kept, labels=labels, claims=graph.claims
    )
    return f'<div class="drawing">{svg}</div>'


def _item(number, shown, text, reason):
    said = f'<span class="said">{escape(text)}</span>'
    if shown.look is LOOKS[False]:
        said = f"<del>{said}</del>"
    words = f' <span class="words">{shown.words}</span>' if shown.words else ""
    why = f'<span class="reason">{escape(reason)}</span>' if reason else ""
    kind = ' class="false"' if shown.mark is Mark.FALSE else ""
    glyph = glyph_svg(number + 1, shown)
    return f"<li{kind}><span>{glyph}</span><span>{said}{words}{why}</span></li>"


def _legend(shown):
    """Every look and every mark that occurs, in words."""
    said = [
        f"<span>{glyph_svg('', look)} {word}</span>"
        for look, word in legend_entries(shown)
    ]
    said.append("<span>An arrow leads from a claim to one that builds on it.</span>")
    return f'<div class="legend">{"".join(said)}</div>'


def batch_html(batch):
    """Many problems: the first few, each behind a line that opens it."""
    parts = [
        f"<details><summary>{summary(i, batch[i])}</summary>"
        f"{problem_html(batch[i])}</details>"
        for i in range(min(len(batch), PROBLEMS_LISTED))
    ]
    if len(batch) > PROBLEMS_LISTED:
        parts.append(f"<p>and {len(batch) - PROBLEMS_LISTED} more</p>")
    return card("".join(parts), repr(batch))


def summary(i, graph):
    """A problem in a line of HTML: name, size, beginning of the question."""
    name = f"problem {i}" if graph.id is None else f"problem {i} ({graph.id})"
    said = f"{name}: {graph.n_claims} claims, {len(graph.edges)} edges"
    if graph.problem:
        line = " ".join(graph.problem.split())
        said += f"; {line[:90]}{'…' if len(line) > 90 else ''}"
    return escape(said)
