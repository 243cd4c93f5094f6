"""The directive ``showcase``: an answer before and after a filter, made by the filter."""

from docutils import nodes
from docutils.parsers.rst import Directive


def setup(app):
    """Register the directive."""
    app.add_directive("showcase", Showcase)
    return {"parallel_read_safe": True}


class Showcase(Directive):
    """An answer as it came, and what is left of it."""

    def run(self):
        from skdcf._drawing import problem_html
        from skdcf._html import card

        explained = choose(explain_answers())
        before = card(problem_html(explained.graph), "The answer")
        after = explained._repr_html_()
        columns = (
            f'<div style="flex:1 1 24em">{part}</div>' for part in (before, after)
        )
        both = f'<div style="display:flex;flex-wrap:wrap;gap:12px">{"".join(columns)}</div>'
        return [nodes.raw("", both, format="html")]


def explain_answers():
    """What a filter did to new answers."""
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
    """The answer that shows most: true claims kept, false ones dropped."""

    def shows(one):
        kept, true = one.kept, one.labels == 1
        both = min((kept & true).sum(), (~kept & ~true).sum())
        return both, -(kept & ~true).sum(), (kept & true).sum()

    return max(explained, key=shows)
