"""The demonstration, as users start it."""

import subprocess
import sys

import pytest

from skdcf.apps.cli import main


@pytest.mark.long
@pytest.mark.parametrize("source", ["words", "math"])
def test_demo_prints_a_table_and_writes_a_report(source, tmp_path, capsys):
    out = str(tmp_path / "out")
    arguments = ["--data", source, "--n-problems", "240", "--output", out]
    assert main(["demo", *arguments]) == 0
    text = capsys.readouterr().out
    for name in ("IndependentFactuality", "HardCF", "CoherentConformalFilter"):
        assert name in text
    assert "alpha = 0.05" in text and "among shown" in text
    assert "dropped  (FALSE)" in text
    assert len(text.splitlines()) <= 25
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["report.html"]
    assert str(tmp_path / "out" / "report.html") in text
    page = (tmp_path / "out/report.html").read_text("utf-8")
    assert "What is guaranteed, and what was observed" in page


@pytest.mark.long
@pytest.mark.parametrize("source", ["coherent-math", "felm"])
def test_demo_on_real_data(source, data_home, tmp_path, capsys):
    assert main(["demo", "--data", source, "--output", str(tmp_path)]) == 0
    assert "FALSE" in capsys.readouterr().out


def test_demo_without_data_says_so(tmp_path, monkeypatch, capsys):
    def offline(*_, **options):
        raise OSError("offline")

    monkeypatch.setattr("sklearn.datasets.fetch_file", offline)
    monkeypatch.setenv("SKDCF_DATA", str(tmp_path))
    assert main(["demo", "--data", "felm"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("skdcf demo: https://") and "(offline)" in said


def test_help_runs_as_a_module():
    run = [sys.executable, "-m", "skdcf", "--help"]
    assert b"filter" in subprocess.run(run, capture_output=True, check=True).stdout
