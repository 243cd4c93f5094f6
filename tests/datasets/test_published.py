"""Published data: counts, quirks, the cache, and nothing that reveals a label."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from counts import counts_of

from skdcf import GraphBatch, ReasoningGraph
from skdcf.datasets import (
    fetch_coherent_math,
    fetch_felm,
    fetch_mr_ben,
    fetch_process_bench,
    labels_from_first_error,
)
from skdcf.datasets.fetch import SOURCES
from skdcf.edges import chain_edges
from skdcf.labels import pack_labels
from skdcf.ops.hard import nonconformity_scores, path_risk

LLAMA = "coherent_factuality/MATH_open_subclaims_with_scores.json"


# --- the published numbers --------------------------------------------------------------


@pytest.mark.parametrize(
    ("fetch", "names", "expected"),
    [
        # Problems, claims, edges, false claims, unknown claims, questions, dropped
        (fetch_coherent_math, "gpt", (50, 293, 305, 25, 0, 50, 0)),
        (fetch_felm, "all", (847, 4426, 3579, 787, 0, 844, 0)),
        (fetch_felm, "math", (194, 599, 405, 125, 0, 194, 0)),
        (fetch_mr_ben, "math", (918, 7148, 6230, 769, 3783, 303, 0)),
        (fetch_mr_ben, "biology", (1033, 6287, 5254, 416, 1411, 345, 2)),
        (fetch_mr_ben, "chemistry", (848, 5518, 4670, 466, 1752, 279, 0)),
        (fetch_process_bench, "gsm8k", (400, 2082, 1682, 207, 514, 375, 0)),
        (fetch_process_bench, "math", (1000, 6505, 5505, 594, 2139, 955, 0)),
    ],
)
def test_counts(data_home, fetch, names, expected):
    data = fetch(names, data_home=data_home)
    assert (*counts_of(data), len(data.dropped)) == expected
    assert data.graphs.edges_known.all() and "Source: https://" in data.DESCR


def test_coherent_math_agrees_with_the_reference(data_home):
    reference = json.loads(
        (data_home / "reference/coherent_factuality_oracle.json").read_text("utf-8")
    )
    data = fetch_coherent_math(data_home=data_home)
    rows = zip(data.graphs, data.labels, reference["problems"], strict=True)
    for graph, y, row in rows:
        assert graph.features[:, 0].tolist() == row["frequency"]
        assert y.tolist() == row["label"]
        parents = [[] for _ in range(graph.n_claims)]
        for u, v in graph.edges.tolist():
            parents[v].append(u)
        assert parents == [sorted(p) for p in row["parents"]]


# --- quirks, on made-up problems with the same structure ----------------------------


def open_problem(matrix, label="1"):
    claims = [
        {"subclaim": f"claim {v}", "frequency-score": v, "gpt-score": 0.5}
        | {"manual_annotation": label}
        for v in range(len(matrix))
    ]
    return {"prompt": "?", "claims": claims, "dep_graph": matrix}


def test_coherent_math_with_claims_before_their_parents(place):
    """A reversed chain: claim i builds on claim i + 1. A cyclic graph is dropped."""
    problems = [
        open_problem([[0, 1, 0], [0, 0, 1], [0, 0, 0]]),
        open_problem([[0, 1], [1, 0]]),
        open_problem([[0]], label="2"),
    ]
    data = fetch_coherent_math("llama", data_home=place(LLAMA, {"data": problems}))
    assert data.graphs[0].edges.tolist() == [[1, 0], [2, 1]]
    names, reasons = zip(*data.dropped, strict=True)
    assert names == ("coherent_math/llama/1", "coherent_math/llama/2")
    assert "cycle" in reasons[0] and "'2'" in reasons[1]


def test_mr_ben_steps_without_numbers(place):
    lines = ["Well.", "Step 1: a", "", "more", "Step 3: b", "  ", "Solution: Choice_A"]
    lines.append("(by far)")
    record = {"Question_UUID": "u", "Question": "Why?", "Options": "A: x"}
    record |= {"Subject": "s"}
    answers = [
        record
        | {"Sampled_Model": model, "Model_Solution_Steps": steps}
        | {"Model_Solution_First_Error_Step": first}
        for model, steps, first in (
            ("b", lines, "3"),
            ("c", lines[:2], "N/A"),
            ("a", lines, "2"),
        )
    ]
    data = fetch_mr_ben("math", data_home=place("mr_ben/math.json", {"u": answers}))
    claims = ("Well.", "Step 1: a\nmore", "Step 3: b", "Solution: Choice_A\n(by far)")
    assert data.graphs[0].claims == claims and data.graphs[0].problem == "Why?\nA: x"
    assert [y.tolist() for y in data.labels] == [[1, 1, 0, -1], [1, 1]]
    assert [name for name, _ in data.dropped] == ["mr_ben/math/u/2"]
    # A dropped answer is still an alternative, and models are in the order of their names.
    assert data.graphs[0].alternatives == ("\n".join(lines), "Well.\nStep 1: a")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fetch_coherent_math("gpt4"), "version .*'gpt4'"),
        (lambda: fetch_mr_ben("coding"), "subjects .*'coding'"),
        (lambda: fetch_process_bench([]), "subset .*'gsm8k'"),
        (lambda: fetch_felm(["math", "maths"]), "domains .*'maths'"),
    ],
)
def test_unknown_names(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# --- labels up to the first error -----------------------------------------------------


def test_the_first_error_alone_gives_the_same_scores_on_a_chain():
    """Against full labels, and against the smallest path risk found by hand."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(0, 9, size=300)
    batch = GraphBatch.from_graphs(
        ReasoningGraph(np.zeros((n, 1)), chain_edges(["?"] * n)) for n in sizes.tolist()
    )
    risk = rng.integers(0, 5, size=batch.n_claims).astype(float)  # with ties
    full = [rng.integers(0, 2, size=n) for n in sizes]
    firsts = [y.tolist().index(0) if 0 in y else -1 for y in full]
    part = [labels_from_first_error(n, k) for n, k in zip(sizes, firsts, strict=True)]
    highest = path_risk(risk, batch)
    scores = [
        nonconformity_scores(highest, pack_labels(y, batch), batch.offsets)
        for y in (full, part)
    ]
    assert scores[0].tolist() == scores[1].tolist()
    by_hand = [
        min((row[: v + 1].max() for v in np.flatnonzero(y == 0)), default=np.inf)
        for row, y in zip(np.split(risk, batch.offsets[1:-1]), full, strict=True)
    ]
    assert scores[1].tolist() == by_hand


@pytest.mark.parametrize("first_error", [3, -2, 0.0, "1", True])
def test_first_error_that_is_no_claim(first_error):
    with pytest.raises(ValueError, match=rf"first_error .*3 claims.*{first_error}"):
        labels_from_first_error(3, first_error)


# --- the cache ------------------------------------------------------------------------


def test_every_source_is_pinned_and_read(monkeypatch, tmp_path):
    """Neither is a file without a source asked for, nor is one forgotten."""
    asked = []

    def fetch_file(url, folder, local_filename, sha256):
        asked.append(url)
        content = {"felm": "", "mr_ben": "{}", "process_bench": "[]"}
        text = content.get(Path(folder).name, '{"data": []}')
        (Path(folder) / local_filename).write_text(text)
        assert re.fullmatch("[0-9a-f]{64}", sha256)

    monkeypatch.setattr("sklearn.datasets.fetch_file", fetch_file)
    fetchers = [fetch_coherent_math, fetch_felm, fetch_mr_ben, fetch_process_bench]
    for fetch in [*fetchers, lambda **home: fetch_coherent_math("llama", **home)]:
        with pytest.raises(ValueError, match="at least one problem"):
            fetch(data_home=tmp_path)
    assert sorted(asked) == sorted(url for url, _ in SOURCES.values())
    host = r"https://raw\.githubusercontent\.com/[^/]+/[^/]+"
    assert all(re.match(rf"{host}/[0-9a-f]{{40}}/", url) for url in asked)


def test_a_failed_download_names_the_address_and_the_file(monkeypatch, tmp_path):
    def fail(*args, **options):
        raise OSError("no network")

    monkeypatch.setattr("sklearn.datasets.fetch_file", fail)
    with pytest.raises(OSError, match=rf"{SOURCES[LLAMA][0]} .*{tmp_path / LLAMA}"):
        fetch_coherent_math("llama", data_home=tmp_path)
