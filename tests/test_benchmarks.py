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


def test_cells_are_computed_once(tmp_path):
    from benchmarks.cells import compute

    def run(numbers, more="a"):
        CALLS.clear()
        cells = {f"n={n}": (square, (n, more)) for n in numbers}
        found = compute(tmp_path, "squares", cells, n_jobs=1)
        return {key: cell["value"] for key, cell in found.items()}, list(CALLS)

    assert run([1, 2]) == ({"n=1": 1, "n=2": 4}, [1, 2])
    assert run([1, 2, 3]) == ({"n=1": 1, "n=2": 4, "n=3": 9}, [3])
    assert run([1, 2], more="b")[1] == [1, 2]  # other arguments, another cell
    files = list((tmp_path / "cells" / "squares").iterdir())
    files[0].write_text("{half a fi")
    assert len(run([1, 2, 3], more="b")[1]) == 2  # the broken one, and 3
    assert run([1, 2, 3], more="b")[1] == []


def test_cells_of_other_code_are_computed_anew(tmp_path, monkeypatch):
    from benchmarks import cells

    one = {"n=3": (square, (3, "a"))}
    cells.compute(tmp_path, "squares", one, n_jobs=1)
    CALLS.clear()
    monkeypatch.setattr(cells, "code_of_package", lambda: "changed")
    cells.compute(tmp_path, "squares", one, n_jobs=1)
    assert CALLS == [3]


def test_an_interrupted_write_leaves_the_file_of_before(tmp_path):
    from benchmarks.cells import Writing

    path = tmp_path / "folder" / "file"
    with Writing(path) as file:
        file.write(b"whole")
    with pytest.raises(KeyboardInterrupt), Writing(path) as file:
        file.write(b"ha")
        raise KeyboardInterrupt
    assert path.read_bytes() == b"whole"
    assert [p.name for p in path.parent.iterdir()] == ["file"]


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


def test_partial_results_leave_those_of_the_page(tmp_path, monkeypatch):
    from argparse import Namespace

    from benchmarks.retention import reproduce

    fetched, counts = [], iter([(3, 5), (5, 5), (3, 5), (3, 5)])

    def gathered(run):
        done, total = next(counts)
        return {"seconds": {"main-math": [1.5, done, total]}}

    monkeypatch.setattr(reproduce, "gathered", gathered)
    for name in ("fetch_coherent_math", "fetch_felm"):
        monkeypatch.setattr(reproduce, name, lambda name=name: fetched.append(name))
    chosen = Namespace(minutes=1, output=tmp_path, only=None, jobs=1)
    reproduce.main(chosen)
    assert fetched == ["fetch_coherent_math", "fetch_felm"]
    assert [path.name for path in tmp_path.iterdir()] == ["paper.json"]
    whole = (tmp_path / "paper.json").read_bytes()
    reproduce.main(chosen)
    assert (tmp_path / "paper.json").read_bytes() == whole
    partial = json.loads((tmp_path / "paper-partial.json").read_text())
    assert partial["seconds"] == {"main-math": [1.5, 3, 5]}


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
