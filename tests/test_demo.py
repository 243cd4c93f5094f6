"""The demonstration, as users start it."""

import subprocess
import sys
from dataclasses import fields

import numpy as np
import pytest

from skdcf.cli import main
from skdcf.cli._demo import LEARNT, PLAIN, SOURCES, describe, halves
from skdcf.metrics import FilterReport


@pytest.mark.parametrize("source", ["words", "math", "felm"])
def test_demo_prints_tables_and_writes_pictures_and_a_report(source, tmp_path, capsys):
    out = str(tmp_path / "pictures")
    arguments = ["--data", source, "--n-problems", "400", "--output", out]
    assert main(["demo", *arguments]) == 0
    text = capsys.readouterr().out
    for name in ("IndependentFactuality", "HardCF", "CoherentConformalFilter"):
        assert name in text
    assert "theory band" in text
    assert "Promised: in at least 90% of the answers" in text
    assert "dropped  (FALSE)" in text
    pictures = ["coverage_and_retention.png", "one_answer.png"]
    files = sorted(p.name for p in (tmp_path / "pictures").iterdir())
    assert files == [*pictures, "report.html"]
    assert all(f"wrote {tmp_path / 'pictures' / name}" in text for name in files)
    page = (tmp_path / "pictures/report.html").read_text("utf-8")
    assert "What was promised, and what came out" in page


@pytest.mark.parametrize("source", ["coherent-math", "perl"])
def test_demo_on_real_data(source, data_home, tmp_path, capsys):
    assert main(["demo", "--data", source, "--output", str(tmp_path)]) == 0
    assert "FALSE" in capsys.readouterr().out


def test_demo_without_data_says_so(tmp_path, monkeypatch, capsys):
    def offline(*_):
        raise OSError("offline")

    monkeypatch.setitem(SOURCES, "perl", offline)
    assert main(["demo", "--data", "perl"]) == 2
    assert "skdcf demo: offline" in capsys.readouterr().err


def report(retention, error):
    values = dict.fromkeys((f.name for f in fields(FilterReport)), np.full(2, 0.5))
    values |= {"alpha": np.array([0.1, 0.2]), "coverage_band": np.zeros((2, 2))}
    values |= {"retention": np.array(retention), "retention_error": np.array(error)}
    return FilterReport(**values | {"groups": {}})


def test_demo_says_where_the_learnt_filter_keeps_less():
    reports = {LEARNT: report([1.0, 2.0], [0.1, 0.1])}
    reports[PLAIN] = report([0.5, 2.2], [0.1, 0.1])
    said = list(describe(reports, 0.1, 25))
    assert len(said) == 3
    assert "At alpha = 0.2" in said[2]
    assert "0.20 claims fewer" in said[2]
    assert said[2].endswith("it may be chance.")
    reports[PLAIN] = report([0.5, 3.0], [0.1, 0.1])
    assert list(describe(reports, 0.1, 25))[2].endswith("25 problems teach too little.")


def test_halves_share_no_group():
    groups = np.random.default_rng(0).integers(0, 30, 100)
    first, second = halves(groups, 0)
    assert not set(groups[first]) & set(groups[second])
    assert len(first) + len(second) == 100


def test_help_runs_as_a_module():
    run = [sys.executable, "-m", "skdcf", "--help"]
    assert b"filter" in subprocess.run(run, capture_output=True, check=True).stdout
