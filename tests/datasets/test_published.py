"""Published data: counts, quirks, the cache, and nothing that reveals a label."""

import hashlib
import http.server
import inspect
import json
import re
import threading
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from skdcf import GraphBatch, HardCF, ReasoningGraph
from skdcf.datasets import fetch as files
from skdcf.datasets import (
    fetch_coherent_math,
    fetch_felm,
    fetch_mr_ben,
    fetch_process_bench,
    labels_from_first_error,
    read_jsonl,
    write_jsonl,
)
from skdcf.datasets.fetch import SOURCES, Source, get_data_home, other_answers
from skdcf.edges import chain_edges, number_flow_edges
from skdcf.identity import question_groups, text_code
from skdcf.labels import pack_labels
from skdcf.ops.hard import nonconformity_scores, path_risk

COHERENT = "coherent_factuality/MATH_annotations.json"
LLAMA = "coherent_factuality/MATH_open_subclaims_with_scores.json"
UNSCORED = "coherent_factuality/MATH_open_annotations.json"
INPUTS = {"subclaim", "frequency-score", "gpt-score"}


def sha256_of(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def counts(data):
    """Problems, claims, edges, false claims, fully correct problems."""
    false = sum(int((y == 0).sum()) for y in data.labels)
    right = sum(bool(y.all()) for y in data.labels)
    sizes = len(data.graphs), data.graphs.n_claims, len(data.graphs.edges)
    return (*sizes, false, right)


# --- the files at hand: counts of the published tables ---------------------------------


def test_coherent_math_counts(data_home):
    data = fetch_coherent_math(data_home=data_home)
    assert counts(data) == (50, 293, 305, 25, 36)
    assert data.feature_names == ["frequency-score", "gpt-score"]
    assert (data.graphs.features[:, 0] == 5).sum() == 135
    assert set(data.graphs.features[:, 1]) == {0.5, 0.7, 0.8, 0.9, 1.0}
    coherent = sum(
        int(y[v] and y[graph.ancestors(v)].all())
        for graph, y in zip(data.graphs, data.labels, strict=True)
        for v in range(graph.n_claims)
    )
    assert coherent == 243
    assert len(set(data.groups)) == 50


def test_coherent_math_agrees_with_the_reference(data_home):
    reference = json.loads(
        (data_home / "reference/coherent_factuality_oracle.json").read_text("utf-8")
    )
    data = fetch_coherent_math(data_home=data_home)
    for graph, y, row in zip(
        data.graphs, data.labels, reference["problems"], strict=True
    ):
        assert graph.features[:, 0].tolist() == row["frequency"]
        assert y.tolist() == row["label"]
        parents = [[] for _ in range(graph.n_claims)]
        for u, v in graph.edges.tolist():
            parents[v].append(u)
        assert parents == [sorted(p) for p in row["parents"]]


def test_coherent_math_other_labels_and_graphs(data_home):
    data = fetch_coherent_math(label="annotation", data_home=data_home)
    assert counts(data)[3] == 29 + 2  # N and U; the padded Y of problem 47 is true
    assert data.labels[47][0] == 1
    gold = fetch_coherent_math(
        graph="gold_graph", on_invalid="drop", data_home=data_home
    )
    assert (len(gold.graphs), len(gold.graphs.edges)) == (10, 44)
    assert len(gold.labels) == len(gold.groups) == 10
    assert gold.dropped[0][0] == "coherent_math/gpt/10"
    with pytest.raises(ValueError, match=r'"coherent_math/gpt/10": .*gold_graph'):
        fetch_coherent_math(graph="gold_graph", data_home=data_home)


@pytest.mark.parametrize(
    ("domains", "expected"),
    [
        ("all", (847, 4426, 3579, 787, 565)),
        (("math", "reasoning", "science", "wk"), (711, 2840, 2129, 520, 476)),
        ("math", (194, 599, 405, 125, 130)),
    ],
)
def test_felm_counts(data_home, domains, expected):
    data = fetch_felm(domains=domains, data_home=data_home)
    assert counts(data) == expected
    assert data.graphs.features is None


def test_felm_graphs_and_domains(data_home):
    data = fetch_felm(data_home=data_home)
    assert Counter(row["domain"] for row in data.metadata) == {
        "math": 194,
        "reasoning": 208,
        "science": 125,
        "wk": 184,
    }
    assert len(data.graphs) - len(set(data.groups)) == 3
    assert "chain" in data.DESCR
    alone = fetch_felm(graph="none", data_home=data_home)
    assert len(alone.graphs.edges) == 0
    flow = fetch_felm("math", graph=number_flow_edges, data_home=data_home)
    assert "number_flow_edges" in flow.DESCR
    graph = flow.graphs[5]
    expected = number_flow_edges(graph.claims, graph.problem)
    assert sorted(map(tuple, graph.edges.tolist())) == sorted(expected)


# --- larger sets: counts of their table, and of what is looked at otherwise ------------

LARGE = {
    "mr_ben": lambda **kw: fetch_mr_ben("math", **kw),
    "mr_ben/biology": lambda **kw: fetch_mr_ben("biology", **kw),
    "mr_ben/chemistry": lambda **kw: fetch_mr_ben("chemistry", **kw),
    "process_bench": lambda **kw: fetch_process_bench("gsm8k", **kw),
    "process_bench/math": lambda **kw: fetch_process_bench("math", **kw),
}


@pytest.fixture
def large(data_home):
    """Load a larger set, or skip where its files are not there."""

    def fetch(name, **options):
        folder = name.partition("/")[0]
        if not (data_home / folder).is_dir():
            pytest.skip(f"no real data: SKDCF_DATA has no {folder}/")
        return read_large(name, data_home, **options)

    return fetch


@cache
def read_large(name, data_home, **options):
    return LARGE[name](data_home=data_home, download_if_missing=False, **options)


@pytest.mark.parametrize(
    ("name", "expected", "unknown", "questions"),
    [
        ("mr_ben", (918, 7148, 6230, 769, 149), 3783, 303),
        ("mr_ben/biology", (1033, 6287, 5254, 416, 617), 1411, 345),
        ("mr_ben/chemistry", (848, 5518, 4670, 466, 382), 1752, 279),
        ("process_bench", (400, 2082, 1682, 207, 193), 514, 375),
        ("process_bench/math", (1000, 6505, 5505, 594, 406), 2139, 955),
    ],
)
def test_large_counts(large, name, expected, unknown, questions):
    data = large(name)
    flat = pack_labels(data.labels, data.graphs)
    right = sum(bool((y == 1).all()) for y in data.labels)
    sizes = len(data.graphs), data.graphs.n_claims, len(data.graphs.edges)
    assert (*sizes, int((flat == 0).sum()), right) == expected
    assert (flat == -1).sum() == unknown
    assert len(set(data.groups.tolist())) == questions
    assert data.feature_names is None
    assert "Source: https://" in data.DESCR
    dropped = {"mr_ben/biology": 2}
    assert len(data.dropped) == dropped.get(name, 0)
    assert [row["group"] for row in data.metadata] == data.groups.tolist()
    assert data.graphs.edges_known.all()


@pytest.mark.parametrize("name", LARGE)
def test_large_metadata_survives_json_lines(large, name, tmp_path):
    data = large(name)
    some = np.arange(0, len(data.graphs), 97)
    labels, metadata = (
        [values[i] for i in some] for values in (data.labels, data.metadata)
    )
    groups = data.groups[some]
    path = tmp_path / "some.jsonl"
    write_jsonl(path, data.graphs[some], labels, groups=groups, metadata=metadata)
    back = read_jsonl(path)
    assert back.metadata == metadata
    assert back.groups.tolist() == groups.tolist()
    assert list(back.graphs) == [data.graphs[int(i)] for i in some]
    assert all((a == b).all() for a, b in zip(back.labels, labels, strict=True))


def test_mr_ben_first_errors_bear_their_number(large, data_home):
    records = json.loads((data_home / "mr_ben/math.json").read_text("utf-8"))
    data = large("mr_ben")
    for graph, y in zip(data.graphs, data.labels, strict=True):
        _, _, uuid, k = graph.id.split("/")
        first = records[uuid][int(k)]["Model_Solution_First_Error_Step"]
        false = np.flatnonzero(y == 0).tolist()
        assert len(false) == (first != "N/A")
        if false:
            assert re.match(rf"\s*Step\s+{first}\b", graph.claims[false[0]])
    assert {len(others) for others in data.graphs.alternatives} == {2}
    uuid = data.graphs.ids[0].split("/")[2]
    texts = ["\n".join(r["Model_Solution_Steps"]) for r in records[uuid]]
    assert [r["Sampled_Model"] for r in records[uuid]] == [
        "Claude2",
        "GPT3.5",
        "mistral-medium",
    ]
    assert data.graphs.alternatives[1] == (texts[0], texts[2])


def mr_ben_answer(first, lines, model="a"):
    answer = {
        "Question_UUID": "u",
        "Question": "Why?",
        "Options": "A: x",
        "Subject": "s",
    }
    answer |= {"Sampled_Model": model, "Model_Solution_Steps": lines}
    return answer | {"Model_Solution_First_Error_Step": first}


def test_mr_ben_made_up_quirks(place):
    lines = ["Well.", "Step 1: a", "", "more", "Step 3: b", "  ", "Solution: Choice_A"]
    lines.append("(by far)")
    answers = [mr_ben_answer("3", lines, "b"), mr_ben_answer("N/A", lines[:2], "c")]
    answers += [mr_ben_answer("2", lines, "a")]
    home = place("mr_ben/math.json", {"u": answers})
    data = fetch_mr_ben("math", data_home=home)
    assert data.graphs[0].claims == (
        "Well.",
        "Step 1: a\nmore",
        "Step 3: b",
        "Solution: Choice_A\n(by far)",
    )
    assert data.graphs[0].problem == "Why?\nA: x"
    assert [y.tolist() for y in data.labels] == [[1, 1, 0, -1], [1, 1]]
    name, reason = data.dropped[0]
    assert name == "mr_ben/math/u/2"
    assert "the first error must be one of the steps" in reason
    # the answer that is no problem is an alternative all the same
    assert data.graphs.alternatives[0] == ("\n".join(lines), "Well.\nStep 1: a")
    with pytest.raises(ValueError, match="mr_ben/math/u/2"):
        fetch_mr_ben("math", data_home=home, on_invalid="raise")


def test_other_answers_in_the_order_of_their_keys():
    groups, keys = [7, 8, 7, 7, 9, 7], ["b", "a", "c", "a", "a", "b"]
    others = other_answers(groups, keys, "uvwxyz")
    assert list(map("".join, others)) == ["xzw", "", "xuz", "uzw", "", "xuw"]
    with pytest.raises(ValueError, match="zip"):
        other_answers(groups, keys, "uv")


# --- labels up to the first error -----------------------------------------------------


@pytest.mark.parametrize(
    ("first_error", "expected"),
    [(None, [1, 1, 1]), (-1, [1, 1, 1]), (0, [0, -1, -1]), (2, [1, 1, 0])],
)
def test_labels_from_first_error(first_error, expected):
    assert labels_from_first_error(3, first_error).tolist() == expected
    assert labels_from_first_error(np.int64(3), first_error).tolist() == expected


@pytest.mark.parametrize("first_error", [3, -2, 0.0, "1", True])
def test_first_error_that_is_no_claim(first_error):
    with pytest.raises(ValueError, match=r"first_error.*position"):
        labels_from_first_error(3, first_error)


def test_the_first_error_alone_gives_the_same_scores_on_a_chain():
    """Against full labels, and against the smallest path risk found by hand."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(0, 9, size=300)
    graphs = [
        ReasoningGraph(np.zeros((n, 1)), chain_edges(["?"] * n)) for n in sizes.tolist()
    ]
    batch = GraphBatch.from_graphs(graphs)
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
    rows = np.split(risk, batch.offsets[1:-1])
    by_hand = [
        min((row[: v + 1].max() for v in np.flatnonzero(y == 0)), default=np.inf)
        for row, y in zip(rows, full, strict=True)
    ]
    assert scores[1].tolist() == by_hand
    assert np.isinf(by_hand).any()


def test_groups_ignore_case_and_white_space():
    a, b, c = map(text_code, ["What  is\n2?", " what is 2? ", "What is 3?"])
    assert a == b != c
    assert a > 0


FETCH = {"coherent_math": fetch_coherent_math, "felm": fetch_felm}


@pytest.mark.parametrize("name", FETCH)
@pytest.mark.filterwarnings("ignore:.*answers to:skdcf.exceptions.GuaranteeWarning")
def test_filtered_end_to_end(data_home, name):
    graphs, labels = FETCH[name](return_X_y=True, data_home=data_home)
    half = len(graphs) // 2

    def confidence(batch):
        if name == "coherent_math":
            return batch.features[:, 0]
        return -np.array([float(len(text)) for text in batch.claims])

    cf = HardCF(confidence, alpha=0.2).fit(graphs[:half], labels[:half])
    kept = cf.predict(graphs[half:])
    safe = [
        not (mask & (y == 0)).any() for mask, y in zip(kept, labels[half:], strict=True)
    ]
    assert np.mean(safe) > 0.6
    assert sum(mask.sum() for mask in kept) > 0
    for mask, graph in zip(kept, graphs[half:], strict=True):
        assert all(mask[u] for u, v in graph.edges.tolist() if mask[v])


@pytest.mark.parametrize("name", FETCH)
def test_return_x_y_and_description(data_home, name):
    data = FETCH[name](data_home=data_home)
    graphs, labels = FETCH[name](return_X_y=True, data_home=data_home)
    assert list(graphs) == list(data.graphs)
    assert all((a == b).all() for a, b in zip(labels, data.labels, strict=True))
    assert len(data.groups) == len(data.graphs)
    assert data.dropped == []
    assert "Source: https://" in data.DESCR


# --- nothing reveals a label ---------------------------------------------------------


def test_coherent_math_reads_no_field_that_reveals_labels(data_home, place):
    content = json.loads((data_home / COHERENT).read_text("utf-8"))
    before = fetch_coherent_math(data_home=data_home)
    for problem in content["data"]:
        problem |= {"original-output": "?", "graph_annotations": {"y": [], "n": []}}
        for claim in problem["claims"]:
            claim |= dict.fromkeys(set(claim) - INPUTS, "0")
    after = fetch_coherent_math(data_home=place(COHERENT, content))
    assert list(after.graphs) == list(before.graphs)
    assert not any(y.any() for y in after.labels)


def test_felm_reads_no_field_that_reveals_labels(data_home, place):
    name = "felm/all.jsonl"
    before = fetch_felm("all", data_home=data_home)
    lines = (data_home / name).read_text("utf-8").split("\n")
    records = [json.loads(line) for line in lines if line]
    for record in records:
        record |= {"labels": [True] * len(record["labels"]), "response": "?"}
        record |= {"comment": "?", "type": "?", "ref": "?", "ref_contents": "?"}
    after = fetch_felm("all", data_home=place(name, records, lines=True))
    assert list(after.graphs) == list(before.graphs)
    assert all(y.all() for y in after.labels)


# --- quirks, on made-up problems with the same structure ----------------------------


def open_problem(matrix, labels=None, **more):
    n = len(matrix)
    claims = [
        {"subclaim": f"claim {v}", "frequency-score": v, "gpt-score": 0.5}
        | {"manual_annotation": labels[v] if labels else "1"}
        for v in range(n)
    ]
    return {"prompt": "?", "claims": claims, "dep_graph": matrix, **more}


def test_llama_claims_before_what_they_build_on(place):
    """A reversed chain: claim i builds on claim i + 1."""
    home = place(LLAMA, {"data": [open_problem([[0, 1, 0], [0, 0, 1], [0, 0, 0]])]})
    data = fetch_coherent_math("llama", data_home=home)
    assert data.graphs[0].edges.tolist() == [[1, 0], [2, 1]]
    assert data.graphs[0].ancestors(0).tolist() == [1, 2]
    assert data.graphs.ids[0] == "coherent_math/llama/0"


def test_llama_early_versions(place):
    """Cyclic graphs, a label '2' and no scores."""
    good = open_problem([[0, 0], [1, 0]], ["1", "0"])
    problems = [
        good,
        open_problem([[0, 1], [1, 0]]),  # cycle
        open_problem([[1, 0], [1, 0]]),  # self-loop
        open_problem([[0, 0], [1, 0]], ["2", "1"]),
        open_problem([[0, 0, 0], [1, 0, 0]]),  # not square
        good,
    ]
    for problem in problems:
        for claim in problem["claims"]:
            claim.pop("frequency-score", None)
            claim.pop("gpt-score", None)
    home = place(UNSCORED, {"data": problems})
    with pytest.raises(ValueError, match=r'"coherent_math/llama-unscored/1": .*cycle'):
        fetch_coherent_math("llama-unscored", data_home=home)
    data = fetch_coherent_math("llama-unscored", on_invalid="drop", data_home=home)
    assert data.graphs.features is None
    assert data.feature_names is None
    assert [y.tolist() for y in data.labels] == [[1, 0], [1, 0]]
    reasons = [reason for _, reason in data.dropped]
    for reason, word in zip(
        reasons,
        ("cycle", "self-loop", "got '2'", "shape"),
        strict=True,
    ):
        assert word in reason


def test_llama_gold_graph_with_self_loop(place):
    problem = open_problem([[0, 0], [1, 0]], gold_graph=[[1, 0], [1, 0]])
    home = place(LLAMA, {"data": [problem]})
    assert len(fetch_coherent_math("llama", data_home=home).graphs) == 1
    with pytest.raises(ValueError, match=r'0": .*self-loop'):
        fetch_coherent_math("llama", graph="gold_graph", data_home=home)


def test_llama_has_no_other_labels(place):
    home = place(LLAMA, {"data": [open_problem([[0]])]})
    with pytest.raises(ValueError, match=r"'annotation'.*missing"):
        fetch_coherent_math("llama", label="annotation", data_home=home)


def test_felm_broken_lines(place):
    record = {"index": "1", "domain": "math", "prompt": "?"}
    record |= {"segmented_response": ["a\\nb", "c"], "labels": [True, False]}
    broken = [{"index": "2", "labels": [True]}, {"index": "3", "labels": ["yes", "no"]}]
    broken = [record | changes for changes in broken]
    home = place("felm/all.jsonl", [record, *broken], lines=True)
    with pytest.raises(ValueError, match=r"2.*1"):
        fetch_felm(data_home=home)
    data = fetch_felm(data_home=home, on_invalid="drop")
    assert data.labels[0].tolist() == [1, 0]
    assert data.graphs[0].claims == ("a\\nb", "c")
    assert len(data.dropped) == 2
    assert data.metadata == [{"domain": "math", "group": text_code("?")}]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fetch_coherent_math("gpt4"), "version .*'gpt4'"),
        (lambda: fetch_mr_ben("coding"), "subjects .*'coding'"),
        (lambda: fetch_process_bench("omnimath"), "subset .*'omnimath'"),
        (lambda: fetch_felm("maths"), "domains .*'maths'"),
        (lambda: fetch_felm(graph="tree"), "graph .*'tree'"),
    ],
)
def test_unknown_names(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# --- the cache ------------------------------------------------------------------------


def test_data_home(monkeypatch, tmp_path):
    monkeypatch.setenv("SKDCF_DATA", str(tmp_path / "a"))
    assert get_data_home() == tmp_path / "a"
    assert get_data_home(tmp_path / "b") == tmp_path / "b"
    monkeypatch.delenv("SKDCF_DATA")
    assert get_data_home() == Path.home() / ".cache" / "skdcf"
    assert get_data_home("~/x") == Path.home() / "x"


def test_every_source_is_pinned():
    assert len(SOURCES) == 4 + 1 + 2 + 6
    by_sha1 = [name for name, source in SOURCES.items() if len(source.checksum) == 40]
    assert by_sha1 == ["mr_ben/logic.json"]
    for name, source in SOURCES.items():
        host, *rest = source.url.split("/")[2:]
        assert host == "raw.githubusercontent.com"
        owner, repository, commit, *path = rest
        assert owner
        assert repository
        assert len(commit) == 40
        int(commit, 16)
        assert len(source.checksum) in (40, 64)
        int(source.checksum, 16)
        # Other sets of one publisher differ in what follows the name.
        assert path[-1].startswith(Path(name).stem)


def test_files_at_hand_have_the_pinned_checksums(data_home):
    present = [name for name in SOURCES if (data_home / name).is_file()]
    assert len(present) >= 4
    for name in present:
        assert files.checksum_of(data_home / name, SOURCES[name]) == (
            SOURCES[name].checksum
        )


def test_where_a_file_is_cached_nothing_is_written(place):
    home = place(LLAMA, {"data": [open_problem([[0]])]})
    before = sorted((p, p.stat().st_mtime_ns) for p in home.rglob("*"))
    (home / "coherent_factuality").chmod(0o555)
    home.chmod(0o555)
    try:
        assert len(fetch_coherent_math("llama", data_home=home).graphs) == 1
    finally:
        home.chmod(0o755)
        (home / "coherent_factuality").chmod(0o755)
    assert sorted((p, p.stat().st_mtime_ns) for p in home.rglob("*")) == before


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"is missing.*https://raw\.github"):
        fetch_coherent_math(data_home=tmp_path, download_if_missing=False)


@pytest.mark.parametrize(
    ("version", "file"),
    [
        ("gpt", "MATH_annotations"),
        ("llama", "MATH_open_subclaims_with_scores"),
        ("llama-uncorrected", "misc/MATH_open_subclaims_with_scores"),
        ("llama-unscored", "MATH_open_annotations"),
    ],
)
def test_every_version_has_a_source(tmp_path, version, file):
    with pytest.raises(FileNotFoundError, match=rf"factuality/{file}\.json.*missing"):
        fetch_coherent_math(version, data_home=tmp_path, download_if_missing=False)


@pytest.mark.parametrize(
    ("folder", "fetch", "content"),
    [
        ("mr_ben", lambda: fetch_mr_ben("all"), "{}"),
        ("process_bench", fetch_process_bench, "[]"),
        ("felm", fetch_felm, ""),
    ],
)
def test_all_sources_are_read(tmp_path, monkeypatch, folder, fetch, content):
    """Neither is a file without a source asked for, nor is one forgotten."""
    asked = []

    def local_file(name, **options):
        asked.append(name)
        path = tmp_path / Path(name).name
        path.write_text(content)
        return path

    monkeypatch.setattr("skdcf.datasets.fetch.local_file", local_file)
    with pytest.raises(ValueError, match=r"data.*contain.*problem"):
        fetch()
    assert len(set(asked)) == len(asked)
    assert set(asked) == {n for n in SOURCES if n.startswith(folder + "/")}


def test_a_file_known_by_its_git_blob(place, monkeypatch):
    home = place("mr_ben/logic.json", {"u": [mr_ben_answer("N/A", ["Step 1: a"])]})
    content = (home / "mr_ben/logic.json").read_bytes()
    blob = hashlib.sha1(f"blob {len(content)}\0".encode() + content).hexdigest()
    source = Source("http://127.0.0.1:9/none", blob)
    monkeypatch.setitem(SOURCES, "mr_ben/logic.json", source)
    data = fetch_mr_ben(subjects="logic", data_home=home, download_if_missing=False)
    about = {"model": "a", "subject": "logic", "topic": "s", "group": text_code("Why?")}
    assert data.metadata == [about]
    (home / "mr_ben/logic.json").write_bytes(content + b" ")
    with pytest.raises(OSError, match=r"checksum [0-9a-f]{40}.* checksum [0-9a-f]{40}"):
        fetch_mr_ben("logic", data_home=home, download_if_missing=False)


def test_git_blob_of_a_known_text(tmp_path):
    """``echo hello | git hash-object --stdin`` prints this."""
    path = tmp_path / "hello"
    path.write_bytes(b"hello\n")
    blob = "ce013625030ba8dba906f756967f9e9ca394464a"
    assert files.checksum_of(path, Source("?", blob)) == blob


def test_changed_file_is_not_used(tmp_path):
    path = tmp_path / COHERENT
    path.parent.mkdir()
    path.write_text('{"data": []}')
    with pytest.raises(OSError, match=r"c189c6db.* checksum [0-9a-f]{64}"):
        fetch_coherent_math(data_home=tmp_path, download_if_missing=False)


@pytest.fixture
def server(tmp_path_factory):
    """A web server on this machine; gives its folder, its address and the log."""
    folder, log = tmp_path_factory.mktemp("web"), []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=str(folder))

        def log_message(self, message, *args):
            log.append(message % args)

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as web:
        thread = threading.Thread(target=web.serve_forever, daemon=True)
        thread.start()
        yield folder, f"http://127.0.0.1:{web.server_address[1]}", log
        web.shutdown()
        thread.join()


def serve(server, monkeypatch, content, sha256=None):
    folder, address, _ = server
    path = folder / "file.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    source = Source(f"{address}/file.json", sha256 or sha256_of(path))
    monkeypatch.setitem(SOURCES, LLAMA, source)


def test_download(server, monkeypatch, tmp_path):
    serve(server, monkeypatch, {"data": [open_problem([[0]])]})
    for _ in range(2):
        data = fetch_coherent_math("llama", data_home=tmp_path / "new")
        assert data.graphs.n_claims == 1
    assert len(server[2]) == 1  # the second time from the cache
    found = [p.name for p in (tmp_path / "new").rglob("*") if p.is_file()]
    assert found == [Path(LLAMA).name]  # no temporary file is left


def test_download_replaces_a_changed_file(server, monkeypatch, tmp_path):
    serve(server, monkeypatch, {"data": [open_problem([[0]])]})
    path = tmp_path / LLAMA
    path.parent.mkdir()
    path.write_text("half a fi")
    with pytest.warns(UserWarning, match="re-downloading"):
        assert len(fetch_coherent_math("llama", data_home=tmp_path).graphs) == 1


@pytest.mark.parametrize("digits", [40, 64])
def test_download_with_another_checksum(server, monkeypatch, tmp_path, digits):
    serve(server, monkeypatch, {"data": [open_problem([[0]])]}, sha256="0" * digits)
    with pytest.raises(OSError, match=r"could.*downloaded"):
        fetch_coherent_math("llama", data_home=tmp_path)
    assert not [p for p in tmp_path.rglob("*") if p.is_file()]


@pytest.mark.long
def test_download_that_fails_is_tried_again(server, monkeypatch, tmp_path):
    source = Source(f"{server[1]}/nothing.json", "0" * 64)
    monkeypatch.setitem(SOURCES, LLAMA, source)
    options = {"data_home": tmp_path, "n_retries": 2, "delay": 0.01}
    with pytest.warns(UserWarning, match="Retry"), pytest.raises(OSError, match="404"):
        fetch_coherent_math("llama", **options)
    assert len([line for line in server[2] if "404" in line and "GET" in line]) == 3


def test_download_into_a_read_only_directory(monkeypatch, tmp_path):
    def refuse(*args, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("sklearn.datasets.fetch_file", refuse)
    with pytest.raises(PermissionError, match="data_home"):
        fetch_coherent_math(data_home=tmp_path)


# --- what all of them take and give ------------------------------------------------------

ALL = [fetch_coherent_math, fetch_felm, fetch_mr_ben, fetch_process_bench]


@pytest.mark.parametrize("fetch", ALL)
def test_options_are_those_of_scikit_learn(fetch, tmp_path):
    parameters = inspect.signature(fetch).parameters
    shown = {p.name: p.default for p in parameters.values()}
    assert shown["n_retries"] == 3
    assert shown["delay"] == 1.0
    assert not shown["return_X_y"] and not shown["return_groups"]
    assert not any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    with pytest.raises(TypeError, match=r"unexpected.*'retries'"):
        fetch(retries=3)
    with pytest.raises(FileNotFoundError, match="is missing"):
        fetch(data_home=tmp_path, download_if_missing=False)


def test_groups_beside_graphs_and_labels(data_home):
    graphs, labels, groups = fetch_felm(
        data_home=data_home, return_X_y=True, return_groups=True
    )
    assert len(graphs) == len(labels) == len(groups) == 711
    assert len(set(groups.tolist())) == 708
    assert (groups == question_groups(graphs)).all()
    with pytest.raises(ValueError, match=r"return_groups=True.*return_X_y=True"):
        fetch_felm(data_home=data_home, return_groups=True)
