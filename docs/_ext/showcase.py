"""Directive ``showcase``, which shows an answer before and after filtering."""

from functools import cache
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive, directives

TUTORIAL = Path(__file__).resolve().parent.parent / "guide/tutorial"


def setup(app):
    """Register the directive, and write the example report next to the pages."""
    app.add_directive("showcase", Showcase)
    app.connect("build-finished", write_example)
    return {"parallel_read_safe": True}


def write_example(app, error):
    """Write the report of the filter on the landing page."""
    from skdcf.apps.reporting import write_report

    if error is None and app.builder.format == "html":
        model, graphs, labels = filter_of_tutorial()
        write_report(Path(app.outdir) / "example_report.html", model, graphs, labels)


class Showcase(Directive):
    """Show an answer and its filtered text, or only the texts with the option ``short``."""

    option_spec = {"short": directives.flag}

    def run(self):
        from skdcf._html import card, problem_html

        if "short" in self.options:
            html = card(in_words(choose(explain_tutorial())))
        else:
            explained = choose(explain_answers())
            before = card(problem_html(explained.graph), "The answer")
            after = problem_html(
                explained.graph, explained.kept, explained.labels, explained.reasons
            )
            html = beside(before, card(after, explained.heading))
        return [nodes.raw("", html, format="html")]


def beside(*parts):
    """Return HTML with parts side by side, or stacked on narrow pages."""
    columns = (f'<div style="flex:1 1 21em">{part}</div>' for part in parts)
    return f'<div style="display:flex;flex-wrap:wrap;gap:12px">{"".join(columns)}</div>'


def in_words(explained):
    """Return HTML with the passages, the answer with marked errors, and the filtered answer."""
    from skdcf._html import escape

    claims = [escape(claim) for claim in explained.graph.claims]
    sign = ' <span class="false"><span class="words">[false]</span></span>'
    before = (
        claim if true else claim + sign
        for claim, true in zip(claims, explained.labels, strict=True)
    )
    after = (
        claim if kept else f"<del>{claim}</del>"
        for claim, kept in zip(claims, explained.kept, strict=True)
    )
    question = f'<p class="problem">{escape(explained.graph.problem)}</p>'
    passages = "<br>".join(escape(text) for text in explained.graph.context)
    return question + beside(
        f'<p class="title">Retrieved</p>{passages}',
        f'<p class="title">Before</p>{" ".join(before)}',
        f'<p class="title">After</p>{" ".join(after)}',
    )


@cache
def filter_of_tutorial():
    """Return a filter of answers with passages, and test answers with their labels."""
    from skdcf import CoherentConformalFilter
    from skdcf.datasets import read_jsonl
    from skdcf.features import reasoning_features

    judged, test = (
        read_jsonl(TUTORIAL / f"{name}.jsonl") for name in ("judged", "test")
    )
    columns = reasoning_features()
    model = CoherentConformalFilter(features=columns, alpha=0.1, random_state=0)
    return model.fit(judged.graphs, judged.labels), test.graphs, test.labels


def explain_tutorial():
    """Return the explanations of the tutorial filter for its test answers."""
    from skdcf.inspection import explain

    return explain(*filter_of_tutorial())


@cache
def explain_answers():
    """Return the explanations of a filter for new answers."""
    from skdcf import CoherentConformalFilter
    from skdcf.datasets import make_word_problems
    from skdcf.features import reasoning_features
    from skdcf.inspection import explain

    old = make_word_problems(500, random_state=0)
    new = make_word_problems(100, random_state=1)
    columns = reasoning_features()
    model = CoherentConformalFilter(features=columns, alpha=0.1, random_state=0)
    model.fit(old.graphs, old.labels)
    return explain(model, new.graphs, new.labels)


def choose(explained):
    """Return the answer that best shows kept true claims and dropped false claims."""

    def shows(one):
        kept, true = one.kept, one.labels == 1
        both = min((kept & true).sum(), (~kept & ~true).sum())
        return both, -(kept & ~true).sum(), (kept & true).sum()

    return max(explained, key=shows)
