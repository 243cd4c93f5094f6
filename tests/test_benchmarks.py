"""Cells of experiments are computed once, and the pages say what the files hold."""

import json
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
BENCHMARKS = ROOT / "benchmarks"


CALLS = []


def square(x, _):
    CALLS.append(x)
    return {"value": x * x}


def test_cells_are_computed_once(tmp_path, monkeypatch):
    from benchmarks import cells

    def run(numbers, more="a"):
        CALLS.clear()
        wanted = {f"n={n}": (square, (n, more)) for n in numbers}
        found = cells.compute(tmp_path, "squares", wanted, n_jobs=1)
        assert {key: cell["value"] for key, cell in found.items()} == {
            f"n={n}": n * n for n in numbers
        }
        return list(CALLS)

    assert run([1, 2]) == [1, 2]
    assert run([1, 2, 3]) == [3]
    assert run([1, 2], more="b") == [1, 2]  # other arguments, another cell
    files = list((tmp_path / "cells" / "squares").iterdir())
    files[0].write_text("{half a fi")
    assert len(run([1, 2, 3], more="b")) == 2  # the broken one, and 3
    monkeypatch.setattr(cells, "code_of_package", lambda: "changed")
    assert run([3], more="b") == [3]


def test_pages_say_what_the_files_hold():
    """Whoever changes a result, or a page, runs benchmarks/pages/report.py."""
    from benchmarks.pages import report

    results = BENCHMARKS / "results"
    referees = ROOT / "docs" / "referees"
    saved = report.read(results)
    assert report.results_page(saved) == (referees / "results.rst").read_text("utf-8")
    from benchmarks.pages import paper_page

    paper = json.loads((results / "paper.json").read_text("utf-8"))
    assert paper_page.page(paper) == (referees / "paper.rst").read_text("utf-8")
    readme = (ROOT / "README.md").read_text("utf-8")
    assert report.with_tables(readme, saved) == readme


def test_the_plain_way_and_the_package_agree_before_they_are_timed(capsys):
    """`make bench` ends where they do not, and nobody else runs the program."""
    from benchmarks.speed import hard_speed

    hard_speed.main(300, 299)
    assert "times the plain way" in capsys.readouterr().out


def test_a_half_has_numbers_for_each_level():
    """Nobody else runs the program between two releases."""
    from benchmarks.retention.default_scorer import ALPHAS, NUMBERS, one_half
    from skdcf.datasets import make_reasoning_graphs

    X, y = make_reasoning_graphs(120, random_state=0, return_X_y=True)
    problems = X, y, np.arange(120) // 2
    numbers = one_half(problems, "priced regression", 0)
    assert np.shape(numbers) == (len(ALPHAS), len(NUMBERS))
    assert np.all(np.asarray(numbers)[:, 1] <= 1)


@pytest.mark.filterwarnings("ignore::skdcf.exceptions.CalibrationWarning")
def test_programs_that_nobody_runs_between_two_releases(capsys):
    """They broke when the functions that they call changed."""
    from benchmarks.guarantees import groups, online
    from benchmarks.retention.reproduce import on_fold
    from skdcf import HardCF
    from skdcf.datasets import make_reasoning_graphs

    online.compare_stream(20)
    assert " 0 are decided otherwise" in capsys.readouterr().out

    X, y = make_reasoning_graphs(120, random_state=0, return_X_y=True)
    rows = np.arange(120)
    filters = {alpha: HardCF(0) for alpha in (0.1, 0.2)}
    numbers = on_fold(filters, X, y, None, [], np.split(rows, [60, 90]), 0)
    assert [*numbers] == ["0.1", "0.2"]
    assert 0 < numbers["0.1"]["kept_true"] <= numbers["0.2"]["kept_true"]

    calibrated, found = groups.measure(X, y, rows, {"one": None}, 20)
    names = np.where(rows < 60, "a", "b")
    lines, missed = groups.table(names, rows, calibrated, found["one"], found["one"])
    assert lines[3].split()[:2] == ["a", "60"] and np.shape(missed) == (2, 2)
