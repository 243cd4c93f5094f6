"""The page of a report: who and when, a verdict per block, and what is missing."""

import numpy as np
import pytest
from browser import Browser, read_axe

import skdcf
from skdcf import HardCF
from skdcf.apps import reporting
from skdcf.apps.reporting import write_report
from skdcf.datasets import make_reasoning_graphs

GRAPHS, Y = make_reasoning_graphs(240, random_state=0, return_X_y=True)


@pytest.fixture(scope="module")
def model():
    return HardCF("frequency-score").fit(GRAPHS[:120], Y[:120])


def test_answers_that_contradict_the_guarantee_or_drift_are_named(model, monkeypatch):
    monkeypatch.setattr(reporting, "find_spec", lambda name: None)  # no matplotlib
    other = [g.replace(features=g.features - 9) for g in GRAPHS[120:]]
    _, text = reporting.compose(model, GRAPHS[120:], Y[120:], [0.1])
    assert "do not contradict the guarantee" in text and skdcf.__version__ in text
    assert "does not clearly differ" in text and "pip install matplotlib" in text
    wrong = [np.zeros_like(row) for row in Y[120:]]
    _, text = reporting.compose(model, GRAPHS[120:], wrong, [0.1])
    assert "contradict the guarantee" in text
    _, text = reporting.compose(model, other, Y[120:], [0.1])
    assert "does not clearly differ" not in text
    other = [g.replace(claims=["so"] * g.n_claims) for g in GRAPHS[120:]]
    assert '<p class="said">so' in reporting.compose(model, other, Y[120:], [0.1])[1]


@pytest.mark.long
def test_axe_finds_nothing_on_a_phone_and_nothing_is_cut_off(model, checkout, tmp_path):
    axe = read_axe(checkout)
    page = write_report(tmp_path / "r.html", model, GRAPHS[120:], Y[120:])
    with Browser(tmp_path / "profile") as browser:
        tab = browser.open(page.as_uri(), 390, 900)
        tab.wait("document.readyState === 'complete'")
        for scheme in ("light", "dark"):
            assert tab.faults(axe, scheme) == []
        assert tab.run("document.documentElement.scrollWidth") <= 390
