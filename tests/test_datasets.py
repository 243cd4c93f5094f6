"""Published data: counts, quirks, the cache, and nothing that reveals a label."""

import copy
import hashlib
import http.server
import json
import sys
import threading
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from skdcf import HardCF
from skdcf.datasets import _files as files
from skdcf.datasets import (
    fetch_coherent_math,
    fetch_conformal_factuality,
    fetch_felm,
    fetch_perl,
    get_data_home,
    question_groups,
)
from skdcf.datasets._sources import SOURCES, Source
from skdcf.edges import number_flow_edges

COHERENT = "coherent_factuality/MATH_annotations.json"
LLAMA = "coherent_factuality/MATH_open_subclaims_with_scores.json"
UNSCORED = "coherent_factuality/MATH_open_annotations.json"
GSM = "perl/gsm8k/gsm8k_positives.json"
INPUTS = {"subclaim", "frequency-score", "gpt-score"}
KINDS = ("negatives", "positives", "positives_perturbed")


def sha256_of(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def counts(data):
    """Problems, claims, edges, false claims, fully correct problems."""
    false = sum(int((y == 0).sum()) for y in data.labels)
    right = sum(bool(y.all()) for y in data.labels)
    sizes = len(data.graphs), data.graphs.n_claims, len(data.graphs.edges)
    return (*sizes, false, right)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Put a made-up file in a data directory in the place of a published one."""

    def put(name, content, lines=False):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        content = content if lines else [content]
        path.write_text("\n".join(map(json.dumps, content)) + "\n", encoding="utf-8")
        source = Source("http://127.0.0.1:9/none", sha256_of(path))
        monkeypatch.setitem(SOURCES, name, source)
        return tmp_path

    return put


# --- the files at hand: counts of the published tables ---------------------------------

PERL_COUNTS = {
    ("gsm8k", "negatives"): (57, 294, 279, 164, 3),
    ("gsm8k", "positives"): (50, 224, 204, 7, 46),
    ("gsm8k", "positives_perturbed"): (48, 223, 200, 143, 0),
    ("math", "negatives"): (44, 379, 379, 237, 1),
    ("math", "positives"): (53, 332, 309, 29, 43),
    ("math", "positives_perturbed"): (42, 257, 236, 118, 2),
}
PERL_NATIVE = dict(zip(PERL_COUNTS, (72, 6, 66, 74, 14, 48), strict=True))


@pytest.mark.parametrize(("subset", "kind"), PERL_COUNTS)
def test_perl_counts(data_home, subset, kind):
    found = fetch_perl(subset, kind, "any", data_home=data_home)
    assert counts(found) == PERL_COUNTS[subset, kind]
    native = fetch_perl(subset, kind, data_home=data_home)
    assert counts(native)[3] == PERL_NATIVE[subset, kind]
    assert counts(native)[4] == PERL_COUNTS[subset, kind][4]
    assert list(native.graphs) == list(found.graphs)
    assert native.graphs.ids[17] == f"perl/{subset}_{kind}/17"


def test_perl_together(data_home):
    data = fetch_perl(label="any", data_home=data_home)
    assert counts(data) == (294, 1709, 1607, 698, 95)
    assert data.feature_names is None
    assert data.graphs.features is None
    roots = np.bincount(data.graphs.edges[:, 1], minlength=1709) == 0
    assert roots.sum() == 481


def test_perl_coherent_labels(data_home):
    """53 claims are labelled true below a false ancestor; by file as published."""
    found = []
    for subset, kind in PERL_COUNTS:
        data = fetch_perl(subset, kind, "any", data_home=data_home)
        found.append(
            sum(
                int(y[v]) and not y[graph.ancestors(v)].all()
                for graph, y in zip(data.graphs, data.labels, strict=True)
                for v in range(graph.n_claims)
            )
        )
    assert found == [0, 6, 3, 19, 16, 9]


def test_perl_numbering_trap(data_home):
    """The links of this problem use numbers that the text prints, with gaps."""
    graph = fetch_perl("gsm8k", "positives", data_home=data_home).graphs[13]
    printed = [int(text.split(":")[0].removeprefix("Step ")) for text in graph.claims]
    assert printed == [1, 2, 3, 5, 6, 7, 9, 10, 11, 12, 13, 14]
    links = [(printed[u], printed[v]) for u, v in graph.edges.tolist()]
    expected = [(1, 2), (2, 3), (3, 5), (5, 6), (2, 7), (7, 9), (5, 10), (9, 10)]
    expected += [(5, 11), (9, 11), (5, 12), (9, 12), (5, 13), (9, 13)]
    assert links == [*expected, (12, 14), (13, 14)]


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
    ("subset", "expected"),
    [
        ("factscore", (50, 408, 0, 121, 13)),
        ("nq", (50, 294, 0, 18, 39)),
        ("math", (50, 293, 0, 31, 37)),
    ],
)
def test_conformal_factuality_counts(data_home, subset, expected):
    data = fetch_conformal_factuality(subset, data_home=data_home)
    assert counts(data) == expected
    assert data.feature_names == ["frequency-score", "gpt-score"]
    chain = fetch_conformal_factuality(subset, graph="chain", data_home=data_home)
    assert len(chain.graphs.edges) == expected[1] - expected[0]


@pytest.mark.parametrize(
    ("domains", "expected"),
    [
        ("all", (847, 4426, 3579, 787, 565)),
        (("math", "reasoning", "science", "wk"), (711, 2840, 2129, 520, 476)),
        ("math", (194, 599, 405, 125, 130)),
    ],
)
def test_felm_counts(data_home, domains, expected):
    data = fetch_felm(domains, data_home=data_home)
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


def test_groups_are_questions_across_files(data_home):
    groups = {
        (subset, kind): fetch_perl(subset, kind, data_home=data_home).groups
        for subset, kind in PERL_COUNTS
    }
    gsm, math = ({k: groups[s, k] for k in KINDS} for s in ("gsm8k", "math"))
    shared = np.isin(gsm["positives_perturbed"], gsm["positives"])
    assert shared.sum() == 48
    shared = np.isin(math["positives_perturbed"], math["positives"])
    assert np.flatnonzero(~shared).tolist() == [14, 18]
    assert not np.isin(gsm["negatives"], gsm["positives"]).any()
    coherent = fetch_coherent_math(data_home=data_home).groups
    assert [np.isin(math[kind], coherent).sum() for kind in KINDS] == [1, 1, 1]
    together = fetch_perl(["gsm8k", "math"], "all", data_home=data_home).groups
    assert together.tolist() == np.concatenate(list(groups.values())).tolist()


def test_groups_ignore_case_and_white_space():
    a, b, c = question_groups(["What  is\n2?", " what is 2? ", "What is 3?"])
    assert a == b != c
    assert a > 0


FETCH = {
    "coherent_math": fetch_coherent_math,
    "perl": fetch_perl,
    "factscore": fetch_conformal_factuality,
    "nq": lambda **kw: fetch_conformal_factuality("nq", graph="chain", **kw),
    "felm": fetch_felm,
}


@pytest.mark.parametrize("name", FETCH)
def test_filtered_end_to_end(data_home, name):
    graphs, labels = FETCH[name](return_X_y=True, data_home=data_home)
    half = len(graphs) // 2

    def confidence(batch):
        if batch.features is not None:
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


def test_perl_reads_no_field_that_reveals_labels(data_home, place):
    name = "perl/gsm8k/gsm8k_negatives.json"
    records = json.loads((data_home / name).read_text("utf-8"))
    before = fetch_perl("gsm8k", "negatives", data_home=data_home)
    for record in records:
        record |= {"ground_truth_answer": "?", "ground_truth_solution": "?"}
        record |= {"model_answer": "?", "is_correct": True}
        for entry in record["error_annotation"]["error_annotations"]["step_level"]:
            entry |= {"has_error": False, "errors": []}
        for entry in record["premise_annotation"]["steps"]:
            entry["original_step"] = "?"
            entry["premises"] = [[number, "?"] for number, _ in entry["premises"]]
    after = fetch_perl("gsm8k", "negatives", data_home=place(name, records))
    assert list(after.graphs) == list(before.graphs)
    assert all(y.all() for y in after.labels)


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


def perl_problem(steps, premises, errors=(), numbers=None):
    """As PERL stores a problem; errors: {position: [type, ...]}."""
    numbers = numbers or list(range(1, len(steps) + 1))
    errors = dict(errors)
    entries = [{"step_number": 0, "original_step": "{question}", "premises": []}]
    for number, text, cited in zip(numbers, steps, premises, strict=True):
        entry = {"step_number": number, "original_step": text[:3]}
        entries.append(entry | {"premises": [[u, "note"] for u in cited]})
    levels = []
    for v in range(len(steps)):
        kinds = errors.get(v, [])
        found = [{"error_type": kind, "error_description": "?"} for kind in kinds]
        levels.append({"step_number": v + 1, "has_error": bool(found), "errors": found})
    return {
        "question": "How many?",
        "steps": steps,
        "premise_annotation": {"steps": entries},
        "error_annotation": {"error_annotations": {"step_level": levels}},
    }


def perl(place, *problems, **options):
    home = place(GSM, list(problems))
    return fetch_perl("gsm8k", "positives", data_home=home, **options)


def test_perl_made_up_quirks(place):
    problem = perl_problem(
        ["Step 1: a", "Step 2: b", "Step 4: c", "Step 5: d"],
        [[0, 0], [0, 1, 1], [2, 0, 2], [4, 1]],  # numbers as printed; 3 is missing
        {1: ["Accumulation_Error"], 2: ["Accumulation_Error", "Missing_Steps"]},
        numbers=[1, 2, 4, 5],
    )
    data = perl(place, problem)
    assert data.graphs[0].edges.tolist() == [[0, 1], [1, 2], [0, 3], [2, 3]]
    assert data.labels[0].tolist() == [1, 1, 0, 1]
    assert perl(place, problem, label="any").labels[0].tolist() == [1, 0, 0, 1]
    assert data.graphs[0].claims[2] == "Step 4: c"  # as it stands
    assert data.graphs[0].problem == "How many?"


def test_perl_step_zero_may_cite_itself(place):
    problem = perl_problem(["a"], [[0]])
    problem["premise_annotation"]["steps"][0]["premises"] = [[0, "note"], [0, "more"]]
    assert len(perl(place, problem).graphs.edges) == 0


def broken_perl():
    good = perl_problem(["a", "b"], [[0], [1]])
    unknown = perl_problem(["a", "b"], [[0], [7]])
    cycle = perl_problem(["a", "b"], [[2], [1]])
    short = copy.deepcopy(good)
    short["premise_annotation"]["steps"].pop()
    doubtful = copy.deepcopy(good)
    levels = doubtful["error_annotation"]["error_annotations"]["step_level"]
    levels[0]["has_error"] = True
    fewer = copy.deepcopy(good)
    fewer["error_annotation"]["error_annotations"]["step_level"].pop()
    absent = {key: good[key] for key in ("question", "steps")}
    return good, {
        "cites step 7": unknown,
        "cycle": cycle,
        "premises for the steps": short,
        "has has_error True": doubtful,
        "error entries for 1": fewer,
        "'premise_annotation' is missing": absent,
    }


@pytest.mark.parametrize("reason", list(broken_perl()[1]))
def test_perl_broken_problems(place, reason):
    good, broken = broken_perl()
    problems = [good, broken[reason], good]
    with pytest.raises(ValueError, match=rf'"perl/gsm8k_positives/1": .*{reason}'):
        perl(place, *problems)
    data = perl(place, *problems, on_invalid="drop")
    assert list(data.graphs.ids) == ["perl/gsm8k_positives/0", "perl/gsm8k_positives/2"]
    assert len(data.labels) == len(data.groups) == 2
    ((name, said),) = data.dropped
    assert name == "perl/gsm8k_positives/1"
    assert reason in said


def test_nothing_left(place):
    _, broken = broken_perl()
    with pytest.raises(ValueError, match="no problem is left: 1 were dropped"):
        perl(place, broken["cycle"], on_invalid="drop")


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
        reasons, ("cycle", "self-loop", "'2', but must be 0 or 1", "shape"), strict=True
    ):
        assert word in reason


def test_llama_gold_graph_with_self_loop(place):
    problem = open_problem([[0, 0], [1, 0]], gold_graph=[[1, 0], [1, 0]])
    home = place(LLAMA, {"data": [problem]})
    assert len(fetch_coherent_math("llama", data_home=home).graphs) == 1
    with pytest.raises(ValueError, match="claim 0 is its own parent"):
        fetch_coherent_math("llama", graph="gold_graph", data_home=home)


def test_llama_has_no_other_labels(place):
    home = place(LLAMA, {"data": [open_problem([[0]])]})
    with pytest.raises(ValueError, match="'annotation' is missing"):
        fetch_coherent_math("llama", label="annotation", data_home=home)


def test_felm_broken_lines(place):
    record = {"index": "1", "domain": "math", "prompt": "?"}
    record |= {"segmented_response": ["a\\nb", "c"], "labels": [True, False]}
    broken = [{"index": "2", "labels": [True]}, {"index": "3", "labels": ["yes", "no"]}]
    broken = [record | changes for changes in broken]
    home = place("felm/all.jsonl", [record, *broken], lines=True)
    with pytest.raises(ValueError, match="2 segments but 1 labels"):
        fetch_felm(data_home=home)
    data = fetch_felm(data_home=home, on_invalid="drop")
    assert data.labels[0].tolist() == [1, 0]
    assert data.graphs[0].claims == ("a\\nb", "c")
    assert len(data.dropped) == 2
    assert data.metadata == [{"domain": "math"}]


def test_conformal_factuality_verdicts(place):
    name = "conformal_factuality/nq_subclaims_with_scores.jsonl"
    claims = [
        {"subclaim": "s", "frequency-score": 1.0, "gpt-score": 1.0, "annotation": mark}
        for mark in ("Y", "S", "N", "U", "Y" + " " * 300)
    ]
    problem = {"prompt": "?", "claims": claims}
    home = place(name, {"data": [problem]})
    data = fetch_conformal_factuality("nq", data_home=home)
    assert data.labels[0].tolist() == [1, 1, 0, 0, 1]
    claims[1]["annotation"] = "X"
    with pytest.raises(ValueError, match="claim 1: annotation is 'X'"):
        fetch_conformal_factuality("nq", data_home=place(name, {"data": [problem]}))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fetch_perl("gsm9k"), "subset is 'gsm9k', but must be one of"),
        (lambda: fetch_perl(kind="neutral"), "kind is 'neutral'"),
        (lambda: fetch_perl([]), "subset is empty"),
        (lambda: fetch_perl(label="all"), "label is 'all'"),
        (lambda: fetch_perl(on_invalid="skip"), "on_invalid is 'skip'"),
        (lambda: fetch_coherent_math("gpt4"), "version is 'gpt4'"),
        (lambda: fetch_felm("maths"), "domains is 'maths'"),
        (lambda: fetch_felm(graph="tree"), "graph is 'tree'"),
        (lambda: fetch_conformal_factuality("gsm8k"), "subset is 'gsm8k'"),
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
    assert len(SOURCES) == 11 + 9 + 24 + 1 + 6 + 1 + 21 + 2 + 1
    by_sha1 = [name for name, source in SOURCES.items() if len(source.checksum) == 40]
    assert by_sha1 == ["mr_ben/logic.json"]
    for name, source in SOURCES.items():
        host, *rest = source.url.split("/")[2:]
        lfs = name == "prm800k/phase2_test.jsonl"
        assert host == f"{'media' if lfs else 'raw'}.githubusercontent.com"
        owner, repository, commit, *path = rest[lfs:]
        assert owner
        assert repository
        assert len(commit) == 40
        int(commit, 16)
        assert len(source.checksum) in (40, 64)
        int(source.checksum, 16)
        assert name.split("/")[-1] == path[-1]


def test_files_at_hand_have_the_pinned_checksums(data_home):
    present = [name for name in SOURCES if (data_home / name).is_file()]
    assert len(present) >= 11
    for name in present:
        assert files.checksum_of(data_home / name, SOURCES[name]) == (
            SOURCES[name].checksum
        )


def test_a_cached_file_needs_no_pooch_and_nothing_is_written(place, monkeypatch):
    home = place(LLAMA, {"data": [open_problem([[0]])]})
    monkeypatch.setitem(sys.modules, "pooch", None)
    before = sorted((p, p.stat().st_mtime_ns) for p in home.rglob("*"))
    (home / "coherent_factuality").chmod(0o555)
    home.chmod(0o555)
    try:
        assert len(fetch_coherent_math("llama", data_home=home).graphs) == 1
    finally:
        home.chmod(0o755)
        (home / "coherent_factuality").chmod(0o755)
    assert sorted((p, p.stat().st_mtime_ns) for p in home.rglob("*")) == before


def test_missing_file(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"is missing.*https://raw\.github"):
        fetch_coherent_math(data_home=tmp_path, download_if_missing=False)
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match="pip install pooch"):
        fetch_coherent_math(data_home=tmp_path)


@pytest.mark.parametrize("subset", ["gsm8k", "math", "metamathqa", "orcamath"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_perl_file_has_a_source(tmp_path, subset, kind):
    with pytest.raises(FileNotFoundError, match=rf"{subset}_{kind}\.json is missing"):
        fetch_perl(subset, kind, data_home=tmp_path, download_if_missing=False)


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
    with pytest.raises(FileNotFoundError, match=rf"factuality/{file}\.json is missing"):
        fetch_coherent_math(version, data_home=tmp_path, download_if_missing=False)


def test_changed_file_is_not_used(tmp_path):
    path = tmp_path / COHERENT
    path.parent.mkdir()
    path.write_text('{"data": []}')
    with pytest.raises(OSError, match=r"has checksum [0-9a-f]{64}, expected c189c6db"):
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
    pytest.importorskip("pooch")
    serve(server, monkeypatch, {"data": [open_problem([[0]])]})
    for _ in range(2):
        data = fetch_coherent_math("llama", data_home=tmp_path / "new")
        assert data.graphs.n_claims == 1
    assert len(server[2]) == 1  # the second time from the cache
    found = [p.name for p in (tmp_path / "new").rglob("*") if p.is_file()]
    assert found == [Path(LLAMA).name]  # no temporary file is left


def test_download_replaces_a_changed_file(server, monkeypatch, tmp_path):
    pytest.importorskip("pooch")
    serve(server, monkeypatch, {"data": [open_problem([[0]])]})
    path = tmp_path / LLAMA
    path.parent.mkdir()
    path.write_text("half a fi")
    assert len(fetch_coherent_math("llama", data_home=tmp_path).graphs) == 1


def test_download_with_another_checksum(server, monkeypatch, tmp_path):
    pytest.importorskip("pooch")
    serve(server, monkeypatch, {"data": [open_problem([[0]])]}, sha256="0" * 64)
    with pytest.raises(ValueError, match="does not match"):
        fetch_coherent_math("llama", data_home=tmp_path)
    assert not [p for p in tmp_path.rglob("*") if p.is_file()]


def test_download_into_a_read_only_directory(monkeypatch, tmp_path):
    pooch = pytest.importorskip("pooch")

    def refuse(*args, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(pooch, "retrieve", refuse)
    with pytest.raises(PermissionError, match="choose another data_home"):
        fetch_coherent_math(data_home=tmp_path)
