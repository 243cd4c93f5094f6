"""The page of a report: who and when, a verdict per block, and what is missing."""

import json
import re
from importlib import util

import numpy as np
import pytest
from browser import Browser

import skdcf
from skdcf import HardCF
from skdcf.apps import reporting
from skdcf.apps.reporting import write_report
from skdcf.datasets import make_reasoning_graphs

GRAPHS, Y = make_reasoning_graphs(240, random_state=0, return_X_y=True)


@pytest.fixture(scope="module")
def model():
    return HardCF("frequency-score").fit(GRAPHS[:120], Y[:120])


def text_of(page):
    page = re.sub(r"<(svg|style).*?</\1>", "", page, flags=re.DOTALL)
    return re.sub(r"<[^>]+>", "\n", page)


def test_answers_that_contradict_the_guarantee_are_named(model, tmp_path):
    page = write_report(tmp_path / "a.html", model, GRAPHS[120:], Y[120:])
    text = text_of(page.read_text("utf-8"))
    assert "agree with the guarantee" in text and skdcf.__version__ in text
    wrong = [np.zeros_like(row) for row in Y[120:]]
    page = write_report(tmp_path / "b.html", model, GRAPHS[120:], wrong)
    assert "contradict the guarantee" in text_of(page.read_text("utf-8"))


def test_answers_of_another_kind_are_a_drift(model, tmp_path):
    other = [g.replace(features=g.features - 9) for g in GRAPHS[120:]]
    for graphs, drift in ((GRAPHS[120:], False), (other, True)):
        page = write_report(tmp_path / "r.html", model, graphs, Y[120:])
        text = text_of(page.read_text("utf-8"))
        assert ("does not clearly differ" in text) != drift


def test_without_matplotlib_the_page_says_how_to_have_figures(
    model, tmp_path, monkeypatch
):
    find = util.find_spec
    monkeypatch.setattr(
        reporting, "find_spec", lambda n: None if n == "matplotlib" else find(n)
    )
    page = write_report(tmp_path / "r.html", model, GRAPHS[120:], Y[120:])
    assert "pip install matplotlib" in page.read_text("utf-8")


@pytest.mark.long
def test_axe_finds_nothing_on_a_phone_and_nothing_is_cut_off(model, checkout, tmp_path):
    axe = checkout / ".venv/axe/node_modules/axe-core/axe.min.js"
    if not axe.exists():
        pytest.skip(f"axe-core is not installed ({axe}): make axe")
    page = write_report(tmp_path / "r.html", model, GRAPHS[120:], Y[120:])
    with Browser(tmp_path / "profile") as browser:
        tab = browser.open(page.as_uri(), 390, 900)
        tab.wait("document.readyState === 'complete'")
        tab.run(axe.read_text("utf-8") + "; 0")
        for scheme in ("light", "dark"):
            feature = {"name": "prefers-color-scheme", "value": scheme}
            tab.send("Emulation.setEmulatedMedia", features=[feature])
            found = tab.run("axe.run().then(r => JSON.stringify(r.violations))")
            faults = [(f["id"], f["nodes"][0]["html"][:200]) for f in json.loads(found)]
            assert faults == []
        assert tab.run("document.documentElement.scrollWidth") <= 390
