"""HTML of problems and reports: what is struck out, and that texts are harmless."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdcf import GraphBatch, ReasoningGraph
from skdcf._html import Table, card, escape, problem_html

HOSTILE = (
    "</li></ol><script>alert(1)</script><img src=x onerror=alert(1)> \" ' &amp; "
    "\u202e\x00\udc80 ]]> <!-- --> ${x} {title} \\href{javascript:alert(1)}{y}"
)
VOID = {"br", "img", "meta", "link", "input", "hr"}
ALLOWED = {
    *("div", "p", "span", "ol", "li", "del", "style", "details", "summary"),
    *("table", "caption", "thead", "tbody", "tr", "th", "td"),
}


class Elements(HTMLParser):
    """Collects elements, attributes and texts, and sees that all are closed."""

    def __init__(self, source):
        super().__init__()
        self.tags, self.attributes, self.texts, self.open = set(), [], [], []
        self.feed(source)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.texts.append(data)


def html_of(text):
    graph = ReasoningGraph(
        None, [(0, 1)], claims=[text, text], problem=text, id=text, alternatives=[text]
    )
    kept, labels = [True, False], [1, 0]
    reasons = {1: f"Because of {text}"}
    return [
        graph._repr_html_(),
        GraphBatch.from_graphs([graph] * 8)._repr_html_(),
        card(problem_html(graph, kept, labels, reasons), text),
        Table([{"text": text}], {"one": "{text}", "two": "{text}"}, text)._repr_html_(),
    ]


@pytest.mark.parametrize("number", range(4))
def test_hostile_text_is_text(number):
    source = html_of(HOSTILE)[number]
    found = Elements(source)
    assert found.tags <= ALLOWED
    assert not [name for name, _ in found.attributes if name.startswith("on")]
    assert not [value for _, value in found.attributes if "javascript" in (value or "")]
    assert "onerror=alert(1)" in "".join(found.texts)
    source.encode("utf-8")
    assert not set(source) & {"\x00", "\u202e"}


@given(st.text())
def test_any_text_is_read_back(text):
    read = "".join(Elements(f"<p>{escape(text)}</p>").texts)
    shown = [c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text]
    assert read == "".join(shown)


def test_dropped_claims_are_struck_out_with_their_reason():
    graph = ReasoningGraph(None, [(0, 1)], claims=["x = 1", "x < 0"])
    html = card(problem_html(graph, [True, False], reasons={1: "It is too risky."}))
    assert re.search(r'<del><span class="said">x &lt; 0</span></del>', html)
    assert "<del>" not in html.split("x = 1")[0] and html.count("<del>") == 1
    assert "It is too risky." in html
