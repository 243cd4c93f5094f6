"""Cells of experiments are computed once, and the pages say what the files hold."""

import json
from pathlib import Path

import numpy as np
import pytest

from skdcf import HardCF

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
    monkeypatch.setattr(cells, "code_of", lambda parts: "changed")
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


def test_cells_join_to_the_report_of_one_comparison():
    """Filter by filter and split by split, or all at once: the same numbers."""
    from benchmarks.saving import join, run_cell
    from skdcf.datasets import make_reasoning_graphs
    from skdcf.evaluation import compare_filters

    X, y = make_reasoning_graphs(120, random_state=0, return_X_y=True)
    filters = {"a": HardCF("frequency-score"), "b": HardCF("nx_reachability")}
    splits = [(np.arange(60), np.arange(60, 120)), (np.arange(60, 120), np.arange(60))]
    alphas = [0.05, 0.2]
    whole = compare_filters(
        filters, X, y, alphas, protocol="leave-one-out", cv=splits, random_state=0
    )
    rows = [
        [
            run_cell(filter, X, y, None, alphas, parts, "leave-one-out", 0)
            for parts in splits
        ]
        for filter in filters.values()
    ]
    joined = join(rows, list(filters), alphas, "leave-one-out")
    for name in ("coverage", "retention", "abstention", "true_claims", "sizes"):
        np.testing.assert_allclose(getattr(joined, name), getattr(whole, name))
    assert joined.rows()[0].keys() == whole.rows()[0].keys()
    np.testing.assert_allclose(joined.retention_error, whole.retention_error)


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


def test_the_mean_over_sets_is_that_of_the_textbook():
    """The BCG trials of Colditz et al. (1994), as metafor prints them for "DL"."""
    from benchmarks.pages.pooling import random_effects

    trials = """4 119 11 128 / 6 300 29 274 / 3 228 11 209 / 62 13536 248 12619
    / 33 5036 47 5761 / 180 1361 372 1079 / 8 2537 10 619 / 505 87886 499 87892
    / 29 7470 45 7232 / 17 1699 65 1600 / 186 50448 141 27197 / 5 2493 3 2338
    / 27 16886 29 17825"""
    ill, well, ill_c, well_c = np.array(
        [row.split() for row in trials.split("/")], float
    ).T
    effects = np.log(ill / (ill + well)) - np.log(ill_c / (ill_c + well_c))
    errors = np.sqrt(1 / ill - 1 / (ill + well) + 1 / ill_c - 1 / (ill_c + well_c))
    pooled = random_effects(effects, errors)
    assert round(pooled.mean, 4) == -0.7141
    assert round(pooled.error, 4) == 0.1787
    assert round(pooled.tau**2, 4) == 0.3088
    assert round(100 * pooled.share, 2) == 92.12
    assert pooled.p_same < 1e-4 and pooled.p_value < 1e-4
    assert pooled.n_sets == 13
    # Where sets agree better than chance would have it, nothing is between them.
    same = random_effects([0.1, 0.1], [0.3, 0.4])
    assert (same.tau, same.share) == (0.0, 0.0)
    assert same.mean == pytest.approx(0.1)
    assert same.error == pytest.approx((1 / 0.09 + 1 / 0.16) ** -0.5)


def test_ratios_of_what_is_kept_have_the_error_of_their_logarithm():
    """Against the spread of the logarithm over draws of independent splits."""
    from benchmarks.saving import differences
    from skdcf.evaluation import ComparisonReport

    rng = np.random.default_rng(0)
    n_splits = 40

    def draw():
        luck = rng.normal(0, 0.05, n_splits)  # shared by both filters
        kept = np.array([[1.0], [1.5]]) + luck + rng.normal(0, 0.1, (2, n_splits))
        empty = np.zeros((2, n_splits, 1))
        report = ComparisonReport.__new__(ComparisonReport)
        for name, value in {
            "names": ("a", "b"),
            "alpha": np.array([0.1]),
            "retention": kept[:, :, None],
            "coverage": empty,
            "sizes": np.tile([10**9, 1], (n_splits, 1)),  # no overlap to correct for
        }.items():
            object.__setattr__(report, name, value)
        [row] = [row for row in differences(report) if row["filter"] == "b"]
        return row["log_ratio"], row["log_ratio_error"]

    ratios, errors = np.array([draw() for _ in range(400)]).T
    assert ratios.mean() == pytest.approx(np.log(1.5), abs=0.01)
    assert errors.mean() == pytest.approx(ratios.std(), rel=0.1)
