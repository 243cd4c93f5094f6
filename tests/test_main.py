"""The demonstration, as users start it."""

import subprocess
import sys

import numpy as np
import pytest

from skdcf.__main__ import halves, main


@pytest.mark.parametrize("source", ["math", "felm"])
def test_demo_prints_tables_and_writes_pictures(source, tmp_path, capsys):
    out = str(tmp_path / "pictures")
    arguments = ["--data", source, "--n-problems", "500", "--output", out]
    assert main(arguments) == 0
    text = capsys.readouterr().out
    for name in ("IndependentFactuality", "HardCF", "CoherentConformalFilter"):
        assert name in text
    assert "theory band" in text
    assert "claim 0: builds on nothing" in text
    assert "--data coherent-math" in text
    pictures = sorted(p.name for p in (tmp_path / "pictures").iterdir())
    assert pictures == ["coverage_and_retention.png", "one_problem.png"]


@pytest.mark.parametrize("source", ["coherent-math", "perl"])
def test_demo_on_real_data(source, data_home, tmp_path, capsys):
    assert main(["--data", source, "--output", str(tmp_path)]) == 0
    assert "FALSE" in capsys.readouterr().out


def test_demo_without_data_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SKDCF_DATA", str(tmp_path))
    monkeypatch.setattr(
        "skdcf.datasets.fetch_perl", lambda: (_ for _ in ()).throw(OSError("offline"))
    )
    assert main(["--data", "perl"]) == 2
    assert "skdcf: offline" in capsys.readouterr().err


def test_halves_share_no_group():
    groups = np.random.default_rng(0).integers(0, 30, 100)
    first, second = halves(groups, 0)
    assert not set(groups[first]) & set(groups[second])
    assert len(first) + len(second) == 100


def test_help_runs_as_a_module():
    run = [sys.executable, "-m", "skdcf", "--help"]
    assert b"--alpha" in subprocess.run(run, capture_output=True, check=True).stdout
