"""Drawings and HTML: where claims stand, where edges run, and that texts are harmless."""

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdcf import GraphBatch, ReasoningGraph
from skdcf._drawing import (
    CLAIM,
    CLEAR,
    FALSE,
    LOW,
    MARGIN,
    RADIUS,
    SPACING,
    TRUNK,
    graph_svg,
    layered_layout,
    problem_html,
)
from skdcf._html import STYLE, card, escape, table
from skdcf.apps.reporting import page

HOSTILE = (
    "</li></ol><script>alert(1)</script><img src=x onerror=alert(1)> \" ' &amp; "
    "\u202e\x00\udc80 ]]> <!-- --> ${x} {title} \\href{javascript:alert(1)}{y}"
)
VOID = {"br", "img", "meta", "link", "input", "hr"}
ALLOWED = {
    *("div", "p", "span", "ol", "li", "del", "style", "details", "summary", "svg"),
    *("g", "title", "circle", "rect", "text", "path"),
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


def random_dag(n, chance, seed):
    rng = np.random.default_rng(seed)
    order = rng.permutation(n)
    return [
        (order[u], order[v])
        for v in range(n)
        for u in range(v)
        if rng.random() < chance
    ]


@pytest.mark.parametrize("n", [0, 1, 2, 7, 40])
@pytest.mark.parametrize("chance", [0, 0.05, 0.3, 1])
def test_rows_and_gaps(n, chance):
    edges = random_dag(n, chance, n)
    layout = layered_layout(n, edges, widest=6)
    assert all(layout.row[u] < layout.row[v] for u, v in edges)
    assert np.bincount(layout.row, minlength=1).max() <= 6
    assert layout.n_rows == len(set(layout.row.tolist()))
    for r in range(layout.n_rows):
        beside = np.sort(layout.x[layout.row == r])
        assert (np.diff(beside) >= 2 * CLAIM - 1e-9).all()


@pytest.mark.parametrize("seed", range(6))
def test_no_edge_runs_behind_a_claim_that_it_does_not_belong_to(seed):
    n = 25
    edges = random_dag(n, 0.15, seed)
    layout = layered_layout(n, edges)
    for (parent, child), course in zip(edges, layout.courses, strict=True):
        assert course[0].tolist() == [layout.x[parent], layout.row[parent]]
        assert course[-1].tolist() == [layout.x[child], layout.row[child]]
        assert np.diff(course[:, 1]).tolist() == [1] * (len(course) - 1)
        for x, row in course[1:-1]:
            away = np.abs(layout.x[layout.row == row] - x)
            assert away.min(initial=np.inf) >= CLAIM + TRUNK - 1e-9
    # What the edge needs beside a claim is less than what it has, and between two rows,
    # where it turns, there are no claims.
    assert (CLAIM + TRUNK) * SPACING > RADIUS + 2
    assert LOW - 2 * (RADIUS + CLEAR) > 0


def points_of(path):
    """Points on an SVG path of M, L and C."""
    x = y = 0.0
    for letter, numbers in re.findall(r"([MLC])([-\d. ]+)", path):
        values = [float(v) for v in numbers.split()]
        if letter == "C":
            ends = np.array([x, y, *values]).reshape(4, 2)
            for t in np.linspace(0, 1, 50):
                weight = [(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3]
                yield weight @ ends
            x, y = ends[-1]
        else:
            steps = np.linspace([x, y], values, 50) if letter == "L" else [values]
            yield from steps
            x, y = values


@pytest.mark.parametrize("seed", range(4))
def test_drawn_lines_keep_clear_of_other_claims(seed):
    n = 20
    edges = random_dag(n, 0.2, seed)
    root = ElementTree.fromstring(graph_svg(n, edges))
    lines = [e.get("d") for e in root if e.tag.endswith("path") and "C" in e.get("d")]
    spots = [element for element in root if element.tag.endswith("circle")]
    centres = np.array([[float(c.get("cx")), float(c.get("cy"))] for c in spots])
    assert len(lines) == len(edges) and len(centres) == n
    for (parent, child), line in zip(edges, lines, strict=True):
        others = np.delete(centres, [parent, child], axis=0)
        away = [np.hypot(*(others - point).T).min() for point in points_of(line)]
        assert min(away) > RADIUS + 1
    width, height = float(root.get("width")), float(root.get("height"))
    assert centres.min() >= MARGIN - 0.1
    assert centres[:, 0].max() <= width and centres[:, 1].max() <= height


def test_a_chain_is_straight_and_a_premise_stands_near():
    chain = layered_layout(6, [(v, v + 1) for v in range(5)])
    assert np.ptp(chain.x) < 1e-9
    late = layered_layout(5, [(0, 1), (1, 2), (2, 3), (4, 3)])
    assert late.row[4] == 2


def test_what_a_claim_looks_like_differs_in_shape_and_outline():
    svg = graph_svg(3, [(0, 1)], kept=[True, False, True], labels=[1, 0, -1])
    root = ElementTree.fromstring(svg)
    kinds = [one.tag.partition("}")[2] for one in root if one.get("r") != "5.5"]
    shapes = [kind for kind in kinds if kind in ("circle", "rect")]
    assert shapes == ["circle", "rect", "circle"]
    assert root.find("{*}rect").get("stroke-dasharray")
    texts = [text.text for text in root.findall("{*}text")]
    assert texts == ["1", "2", "×", "3", "?"]  # noqa: RUF001
    assert "3 claims and 1 edge; 2 claims are kept" in svg


@pytest.mark.parametrize("edges", [[], [(0, 1)]])
def test_arrows_are_explained_only_if_there_are_any(edges):
    html = problem_html(ReasoningGraph(None, edges, claims=["a", "b"]))
    assert ("arrow points" in html) == bool(edges)


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
        table([text, text], [[text, 1.0]], caption=text),
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


def test_large_and_empty_problems():
    many = ReasoningGraph(None, [], claims=["x"] * 500)
    assert "drawing is omitted" in many._repr_html_()
    assert "and 100 more" in many._repr_html_()
    assert "no claims" in ReasoningGraph(None, [], claims=[])._repr_html_()
    assert "<ol" not in ReasoningGraph([[1.0]], [])._repr_html_()


def test_a_page_asks_nothing_of_any_server():
    source = page("".join(html_of("x")), title="<b>")
    assert "&lt;b&gt;" in source
    found = Elements(source.replace("<!DOCTYPE html>", ""))
    assert {"script", "link", "img", "iframe"}.isdisjoint(found.tags)
    assert not {"src", "href"} & {name for name, _ in found.attributes}
    assert "url(" not in source and "@import" not in source


def test_reports_show_their_numbers_as_tables():
    from skdcf import CoherentConformalFilter, HardCF
    from skdcf.datasets import make_reasoning_graphs
    from skdcf.evaluation import compare_filters
    from skdcf.inspection import surrogate_agreement
    from skdcf.metrics import evaluate_filter

    X, y = make_reasoning_graphs(160, random_state=0, return_X_y=True)
    dcf = CoherentConformalFilter("linear", random_state=0).fit(X[:100], y[:100])
    filters = {"<b>": HardCF("claim_index"), "other": HardCF("nx_pagerank")}
    comparison = compare_filters(filters, X, y, [0.2], cv=2, random_state=0)
    report = evaluate_filter(dcf, X[100:], y[100:], [0.1, 0.2])
    shown = {
        f"{report.retention[1]:.3f}": report,
        f"{comparison.rows()[0]['retention']:.4g}": comparison,
        "corrected": comparison.differences(),
        "<i> 30": evaluate_filter(
            dcf, X[100:], y[100:], [0.1], by=lambda b: np.where(b.sizes > 6, "<i>", "b")
        ),
        "agree %": surrogate_agreement(dcf, X[100:], y[100:], [0.1]),
    }
    for number, some in shown.items():
        found = Elements(some._repr_html_())
        assert found.tags <= ALLOWED
        assert number in " ".join(found.texts)


def luminance(colour):
    """Of "#rgb" or "#rrggbb", as WCAG 2 defines it."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * c for c in colour[1:])
    parts = np.array([int(digits[i : i + 2], 16) for i in (0, 2, 4)]) / 255
    parts = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return parts @ [0.2126, 0.7152, 0.0722]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_texts_can_be_read_in_the_light_and_in_the_dark():
    blocks = re.findall(r"\{((?:--\w+:#\w+;?\s*)+)\}", STYLE)
    palettes = [dict(re.findall(r"--(\w+):(#\w+)", block)) for block in blocks]
    assert len(palettes) == 3  # light, dark by a switch, dark by the reader's settings
    assert palettes[1] == palettes[2] != palettes[0]
    for colours in palettes:
        for ink in ("ink", "soft", "gone", "false"):
            assert contrast(colours[ink], colours["paper"]) > 4.5
        assert contrast(colours["ink"], colours["quote"]) > 4.5
        assert contrast(colours["soft"], colours["square"]) > 4.5
        for drawn in (FALSE, "#707070"):
            assert contrast(drawn, colours["paper"]) > 3
    used = set(re.findall(r"var\(--(\w+)\)", STYLE))
    assert used == palettes[0].keys()
