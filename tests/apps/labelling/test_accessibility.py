"""The pages for people who use a keyboard or a screen reader."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from browser import Browser

from skdcf import ReasoningGraph
from skdcf.apps.labelling import LabelServer, LabelStore, RandomOrder

CLAIMS = [
    r"Half of it is $\frac{1}{2}$.",
    "לכן זה אמת",  # from right to left
    "So it is even.",
]
GRAPHS = [
    ReasoningGraph(
        None,
        [(0, 1), (1, 2)],
        claims=CLAIMS,
        problem="What is it?",
        context=["It is a half. " * 30],
        metadata={"answer": "The whole answer."},
    ),
    ReasoningGraph(None, None, claims=CLAIMS[1:], problem="ומה זה?"),
]
FOCUS = "document.activeElement"


@pytest.fixture
def axe(checkout):
    path = Path(checkout, ".venv/axe/node_modules/axe-core/axe.min.js")
    if not path.exists():
        pytest.skip(f"axe-core is not installed ({path}): make axe")
    return path.read_text("utf-8")


@pytest.fixture
def browser(tmp_path):
    with Browser(tmp_path / "profile") as browser:
        yield browser


def ready(tab):
    tab.wait("document.querySelector('#saved').textContent === 'all saved'")


class Review(RandomOrder):
    """A review in which every claim is kept."""

    def masks(self):
        return [np.ones(graph.n_claims, dtype=bool) for graph in GRAPHS]


def server_of(purpose, folder):
    """The page of this purpose, with something judged and something noted on it."""
    store = LabelStore(GRAPHS, folder / purpose, purpose=purpose)
    store.label(0, 0, "true", by="ann")
    store.label(0, 1, "false", by="ann")
    store.note(0, 0, "a note", by="ann")
    if purpose == "labels":
        return LabelServer(store, "ann", order=RandomOrder(), meaning="supported")
    return LabelServer(store, "ann", order=Review())


@pytest.mark.long
@pytest.mark.parametrize("purpose", ["labels", "review"])
def test_axe_finds_nothing(axe, browser, tmp_path, purpose):
    with server_of(purpose, tmp_path) as server:
        for width in (390, 1280):
            tab = browser.open(server.url, width, 900)
            ready(tab)
            tab.run(axe + "; 0")
            for scheme in ("light", "dark"):
                feature = {"name": "prefers-color-scheme", "value": scheme}
                tab.send("Emulation.setEmulatedMedia", features=[feature])
                for key in (
                    "",
                    "m",
                    "Escape",
                    "n",
                ):  # a field to write in, another problem
                    if key:
                        tab.press(key)
                    found = json.loads(
                        tab.run("axe.run().then(r => JSON.stringify(r.violations))")
                    )
                    faults = [(f["id"], f["nodes"][0]["html"]) for f in found]
                    assert faults == [], (width, scheme, key)
                    tab.screenshot(tmp_path / f"{purpose}-{width}-{scheme}{key}.png")
        keep = Path("/tmp/pages")
        if keep.exists():  # for whoever wants to look at them
            for path in tmp_path.glob("*.png"):
                shutil.copy(path, keep)


def test_axe_sees_faults(axe, browser, tmp_path):
    with server_of("labels", tmp_path) as server:
        tab = browser.open(server.url)
        ready(tab)
        tab.run(
            "document.querySelector('#letters').closest('label').replaceWith("
            "document.querySelector('#letters'))"
        )
        tab.run(axe + "; 0")
        found = tab.run("axe.run().then(r => r.violations.map(f => f.id))")
        assert found == ["label"]


def test_titles_say_what_the_page_is_for(browser, tmp_path):
    for purpose, title in (("labels", "label"), ("review", "review")):
        with server_of(purpose, tmp_path) as server:
            tab = browser.open(server.url)
            ready(tab)
            assert tab.run("document.title") == f"skdcf: {title} claims"
            heading = tab.run("document.querySelector('h1').textContent.toLowerCase()")
            assert heading.startswith(title)


def test_the_focus_follows_the_current_claim(browser, tmp_path):
    with server_of("labels", tmp_path) as server:
        tab = browser.open(server.url)
        ready(tab)
        assert tab.run(f"{FOCUS}.classList.contains('here')")
        before = tab.run(f"{FOCUS}.querySelector('.number').textContent")
        name = tab.run(
            f"{FOCUS}.getAttribute('aria-labelledby').split(' ').map("
            "id => document.getElementById(id).textContent).join(' ')"
        )
        assert name.startswith(before)
        tab.press("ArrowUp")
        assert tab.run(f"{FOCUS}.classList.contains('here')")
        assert tab.run(f"{FOCUS}.querySelector('.number').textContent") == "1"
        # A button that was pressed stays in focus, on whichever claim it is now.
        button = "document.querySelector('.here button[data-key=u]')"
        tab.run(f"{button}.focus()")
        i, v = tab.run("[i, v]")
        tab.press("Enter")
        ready(tab)
        assert tab.run(f"{FOCUS} === {button}")
        assert server.store.said(i, "ann")[v] == "unsure"


def test_letters_can_be_turned_off(browser, tmp_path):
    with server_of("labels", tmp_path) as server:
        tab = browser.open(server.url)
        ready(tab)
        version = server.store.version
        tab.run("document.querySelector('#letters').click()")
        tab.press("t", "f", "x", "1", "n")
        tab.run("document.querySelector('.here').focus()")
        tab.press("ArrowUp")
        ready(tab)
        assert server.store.version == version
        tab.run("document.querySelector('.here button[data-key=f]').click()")
        ready(tab)
        assert server.store.version == version + 1
        tab.run("window.is_old = true")
        tab.send("Page.reload")
        tab.wait(
            "!window.is_old && document.querySelector('#saved').textContent === 'all saved'"
        )
        assert not tab.run("document.querySelector('#letters').checked")


def test_a_passage_is_asked_about_only_where_there_is_one(browser, tmp_path):
    question = "document.querySelector('#ask').textContent"
    with server_of("labels", tmp_path) as server:
        tab = browser.open(server.url)
        ready(tab)
        for _ in range(2):
            has_passage = tab.run("problems[i].context.length > 0")
            assert ("Does the passage support" in tab.run(question)) == has_passage
            assert ("Is the claim true" in tab.run(question)) != has_passage
            tab.press("n")


def test_texts_run_in_their_own_direction(browser, tmp_path):
    with server_of("review", tmp_path) as server:
        tab = browser.open(server.url)
        ready(tab)
        tab.wait("document.querySelectorAll('.claim').length > 0")
        rows = tab.run(
            "[...document.querySelectorAll('.claim .text')].map("
            "e => [e.textContent, getComputedStyle(e).direction])"
        )
        directions = {text: direction for text, direction in rows}
        assert directions[CLAIMS[1]] == "rtl" and directions[CLAIMS[2]] == "ltr"
