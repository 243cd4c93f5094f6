"""The command that labels, without its page; and that no key is lost by any command."""

import csv
import json
import re

import pytest

import skdcf
from skdcf import ReasoningGraph
from skdcf.apps.cli import main
from skdcf.apps.labelling import LabelStore, RandomOrder, to_label_studio
from skdcf.datasets import make_word_problems, read_jsonl, write_jsonl


def run(*arguments):
    return main([str(a) for a in arguments])


def full_problems(n, seed=0):
    """Problems with every key that a line may hold, and their labels."""
    data = make_word_problems(n, random_state=seed)
    graphs = []
    for i, graph in enumerate(data.graphs):
        metadata = {
            "answer": " ".join(graph.claims),
            "own": {"page": i},
            "model": "m1",
            "group": f"g{i // 2}",
        }
        graphs.append(
            ReasoningGraph(
                [[0.1 * v] for v in range(graph.n_claims)],
                graph.edges,
                claims=graph.claims,
                problem=graph.problem,
                alternatives=graph.alternatives,
                context=[f"passage {i}"],
                feature_names=["x"],
                id=f"id {i}",
                provenance={"label_meaning": "true"},
                metadata=metadata,
            )
        )
    return graphs, data.labels


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    graphs, labels = full_problems(120)
    write_jsonl(folder / "p.jsonl", graphs, labels)
    plain = make_word_problems(120, random_state=0)
    assert len(plain.graphs) == 120
    fit = ("fit", folder / "p.jsonl", "-o", folder / "m", "--features", "given")
    assert run(*fit, "--scorer", "x", "--alpha", 0.3, "--show", 1) == 0
    return folder


#: What each command may add or change.
CHANGED = {
    "filter": {"mask"},
    "label": {"labels", "provenance"},
}
ADDED = {
    "filter": {"filtered"},
    "label": set(),
}


@pytest.mark.parametrize("command", CHANGED)
def test_every_key_survives_every_command(folder, tmp_path, command):
    before, out = folder / "p.jsonl", tmp_path / "out.jsonl"
    arguments = {
        "filter": ["filter", folder / "m", before],
        "label": ["label", before, "--no-page", "--journal", tmp_path / "j"],
    }
    store = LabelStore(read_jsonl(before).graphs, tmp_path / "j")
    store.label(0, 0, "true", by="ann")
    more = ["--annotator", "ann"] if command == "label" else []
    assert run(*arguments[command], "-o", out, *more) == 0
    rows = [
        [json.loads(line) for line in path.read_text().splitlines()]
        for path in (before, out)
    ]
    if command == "label":  # Only answers with a verdict are written.
        written = {row["id"] for row in rows[1]}
        rows[0] = [row for row in rows[0] if row["id"] in written]
    for old, new in zip(*rows, strict=True):
        metadata = {k: new["metadata"][k] for k in old["metadata"]}
        assert metadata == old["metadata"]
        assert set(new["metadata"]) - set(old["metadata"]) <= ADDED[command]
        same = old.keys() - {"metadata"} - CHANGED[command]
        assert {"group"} <= same | old["metadata"].keys()
        assert {k: new[k] for k in same} == {k: old[k] for k in same}


def test_answers_are_written_up_to_the_last_judged_one(folder, tmp_path):
    """In random order skipped answers are written too, by doubt only the judged ones."""
    graphs = list(read_jsonl(folder / "p.jsonl").graphs)
    empty = ReasoningGraph(None, (), claims=[], problem="?")
    graphs = [g if i % 6 else empty.replace(id=g.id) for i, g in enumerate(graphs)]
    made = {"label_order": "x"}
    graphs = [
        g.replace(features=None, feature_names=None, provenance=made) for g in graphs
    ]
    write_jsonl(tmp_path / "p.jsonl", graphs, [[1] * g.n_claims for g in graphs])
    journal, out = tmp_path / "j", tmp_path / "out.jsonl"
    command = ["label", tmp_path / "p.jsonl", "--no-page", "--journal", journal]
    command += ["--annotator", "ann", "-o", out]
    assert run(*command) == 0 and not out.exists()
    store = LabelStore(graphs, journal)
    listed = RandomOrder().order(store)
    with_claims = [i for i in listed if graphs[i].n_claims]
    judged = [*with_claims[:3], with_claims[9]]
    for i in judged:
        store.label(i, 0, "true", by="ann")
    assert run(*command) == 0
    read = read_jsonl(out)
    until = listed[: listed.index(judged[-1]) + 1]
    assert [g.id for g in read.graphs] == [graphs[i].id for i in sorted(until)]
    for i, graph, labels in zip(sorted(until), read.graphs, read.labels, strict=True):
        assert graph.provenance["label_order"] == "random"
        assert graph.provenance["label_source"] == "person"
        # The labels that the file had are not a person's.
        assert labels.tolist() == [
            1 if i in judged and v == 0 else -1 for v in range(graph.n_claims)
        ]


def test_where_no_label_can_move_the_threshold_no_page_is_opened(
    folder, tmp_path, capsys
):
    known = ["label", folder / "p.jsonl", "--filter", folder / "m"]
    known += ["--journal", tmp_path / "j", "-o", tmp_path / "out.jsonl"]
    assert run(*known) == 0
    assert "No further label can change the threshold." in capsys.readouterr().err
    assert not (tmp_path / "out.jsonl").exists()


def test_what_is_judged_can_be_looked_at_again(tmp_path, capsys, monkeypatch):
    """The page opens where nothing is left to judge, for whoever has judged."""
    monkeypatch.setattr("skdcf.apps.cli._label._wait", lambda: None)
    data = make_word_problems(2, random_state=0)
    file = write_jsonl(tmp_path / "new.jsonl", data.graphs)
    store = LabelStore(read_jsonl(file).graphs, tmp_path / "j")
    for i, graph in enumerate(data.graphs):
        for v in range(graph.n_claims):
            store.label(i, v, "true", by="ann")
    command = ["label", file, "--journal", tmp_path / "j", "--no-browser"]
    assert run(*command, "--annotator", "ann") == 0
    said = capsys.readouterr().err
    assert "judging as ann: http" in said and "Every claim is judged." in said
    assert "same command again" not in said
    assert run(*command, "--annotator", "bob", "--no-page") == 0
    assert "same command again" in capsys.readouterr().err


def test_tables_and_results_of_label_studio_are_taken(folder, tmp_path, capsys):
    command = ["label", folder / "p.jsonl", "--no-page", "--journal", tmp_path / "j"]
    command += ["--annotator", "ann"]
    store = LabelStore(read_jsonl(folder / "p.jsonl").graphs, tmp_path / "j")
    store.label(2, 1, "false", by="ann")
    table, tasks = tmp_path / "t.csv", tmp_path / "t.json"
    assert run(*command, "--csv", table, "--label-studio", tasks) == 0
    said = capsys.readouterr().err
    assert str(table) in said and "apostrophe" in said and "claim_number" in said
    for path in (table, tasks):
        again = [*command, "--import", path]
        again[again.index(tmp_path / "j")] = tmp_path / f"{path.name}.j"
        assert run(*again) == 0
        assert "1 judgement of ann" in capsys.readouterr().err
        back = LabelStore(store.graphs, tmp_path / f"{path.name}.j")
        assert back.said(2, "ann")[1] == "false"
    bad = tmp_path / "bad.csv"
    bad.write_text("problem_id,claim_number,label\nid 0,99,true\n")
    assert run(*command, "--import", bad) == 2
    assert re.search(r"bad\.csv, row 2.*'id 0'.*'99'", capsys.readouterr().err)


def test_a_table_filled_from_the_top_is_a_random_sample(folder, tmp_path, capsys):
    problems, table, out = (tmp_path / name for name in ("p.jsonl", "t.csv", "o"))
    graphs = read_jsonl(folder / "p.jsonl").graphs
    write_jsonl(problems, [graph.replace(id=None) for graph in graphs])
    command = ["label", problems, "--no-page", "--annotator", "ann", "-o", out]
    assert run(*command, "--journal", tmp_path / "j", "--csv", table) == 0
    with table.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    n_rows = sum(len(graphs[int(i) - 1].claims) for i in drawn(rows)[:7])
    for reverse in (False, True):
        filled = [dict(row) for row in (rows[::-1] if reverse else rows)]
        for row in filled[:n_rows]:
            row["label"] = "yes"
        with table.open("w", newline="", encoding="utf-8") as file:
            written = csv.DictWriter(file, list(rows[0]))
            written.writeheader()
            written.writerows(filled)
        again = ["--journal", tmp_path / f"j{reverse}", "--import", table]
        capsys.readouterr()
        assert run(*command, *again) == 0
        read = read_jsonl(out)
        judged = [(labels == 1).all() for labels in read.labels]
        assert all(judged) == (not reverse)


def drawn(rows):
    """The problems of a table in their order."""
    return list(dict.fromkeys(row["problem_id"] for row in rows))


def test_labels_of_who_judged_elsewhere_are_written(folder, tmp_path, capsys):
    """Label Studio says a number; our own login name has judged nothing then."""
    graphs = read_jsonl(folder / "p.jsonl").graphs
    words = [["true"] * n for n in graphs.sizes]
    tasks = to_label_studio(graphs, words)
    for task in tasks:
        task["annotations"][0]["completed_by"] = 1
    results, out = tmp_path / "results.json", tmp_path / "out.jsonl"
    command = ["label", folder / "p.jsonl", "--no-page", "--journal", tmp_path / "j"]
    command += ["-o", out, "--import", results]
    results.write_text(json.dumps(tasks))
    assert run(*command) == 0
    assert all((labels == 1).all() for labels in read_jsonl(out).labels)
    tasks[0]["annotations"][0]["completed_by"] = 2
    results.write_text(json.dumps(tasks))
    command[command.index(tmp_path / "j")] = tmp_path / "k"
    assert run(*command) == 2
    assert "--annotator with one of ['1', '2']" in capsys.readouterr().err
    assert run(*command, "--annotator", "zoe") == 2  # who has judged nothing
    assert run(*command, "--annotator", "2") == 0
    assert len(LabelStore(graphs, tmp_path / "k").annotators()) == 2


def test_rows_without_a_name_join_those_of_who_takes_them(folder, tmp_path):
    """A table has the judgements so far; somebody fills in the rows between."""
    store = LabelStore(read_jsonl(folder / "p.jsonl").graphs, tmp_path / "j")
    store.label(5, 0, "true", by="ann")
    table, out = tmp_path / "t.csv", tmp_path / "out.jsonl"
    command = ["label", folder / "p.jsonl", "--no-page", "--annotator", "ann"]
    assert run(*command, "--journal", tmp_path / "j", "--csv", table) == 0
    with table.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows[:3]:
        row["label"] = "false"
    with table.open("w", newline="", encoding="utf-8") as file:
        written = csv.DictWriter(file, list(rows[0]))
        written.writeheader()
        written.writerows(rows)
    for journal in ("j", "k"):
        again = ["--journal", tmp_path / journal, "--import", table, "-o", out]
        assert run(*command, *again) == 0
        after = LabelStore(store.graphs, tmp_path / journal)
        words = [word for i in range(120) for word in after.said(i, "ann")]
        assert words.count("false") == 3 and words.count("true") == 1


def test_what_labels_mean_is_kept_and_not_mixed(folder, tmp_path, capsys):
    graphs = [
        ReasoningGraph(None, (), claims=["a"], problem=f"q{i}", context=["passage"])
        for i in range(3)
    ]
    path, out = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    write_jsonl(path, graphs)
    store = LabelStore(graphs, tmp_path / "j")
    for i in range(3):
        store.label(i, 0, "true", by="ann")
    command = ["label", path, "--no-page", "-o", out, "--annotator", "ann"]
    command += ["--journal", tmp_path / "j"]
    assert run(*command) == 0
    made = [graph.provenance["label_meaning"] for graph in read_jsonl(out).graphs]
    assert made == ["supported"] * 3
    command[1] = out
    assert run(*command, "--meaning", "true") == 2
    assert "must be 'supported'" in capsys.readouterr().err
    assert skdcf.load(folder / "m").alpha == 0.3


def test_one_corrected_edge_does_not_spoil_a_file_without_edges(tmp_path, capsys):
    """What a person links in one answer says nothing of the others, and `fit` still works."""
    data = make_word_problems(60, random_state=0)
    graphs = [graph.replace(edges=None) for graph in data.graphs]
    file = write_jsonl(tmp_path / "new.jsonl", graphs, data.labels)
    store = LabelStore(read_jsonl(file).graphs, tmp_path / "j")
    store.correct_edges(0, [[0, 1]], by="ann")
    for i, row in enumerate(data.labels):
        for v, label in enumerate(row):
            store.label(i, v, "true" if label else "false", by="ann")
    judged = tmp_path / "judged.jsonl"
    command = ["label", file, "--no-page", "--annotator", "ann"]
    command += ["--journal", tmp_path / "j", "-o", judged]
    assert run(*command) == 0
    said = capsys.readouterr().err
    assert "1 of 60 problems" in said
    assert "edges" not in json.loads(judged.read_text("utf-8").splitlines()[0])
    fit = ["fit", judged, "-o", tmp_path / "m", "--alpha", "0.2", "--features"]
    assert run(*fit, "built-in", "--scorer", "arithmetic_right", "--no-edges") == 0

    store.state_edges_known(True, by="ann")
    assert run(*command) == 0
    assert "skdcf fit --no-edges" in capsys.readouterr().err
    assert read_jsonl(judged).graphs.edges_known.all()
