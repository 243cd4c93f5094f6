"""The command that labels and reviews, with and without its page."""

import json
import re

import numpy as np
import pytest
from command_line import run

import skdcf
from skdcf import ReasoningGraph
from skdcf.apps.labelling import LabelStore, RandomOrder, ReviewOrder
from skdcf.datasets import make_word_problems, read_jsonl, write_jsonl
from skdcf.features import reasoning_features


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Labelled answers, new answers with keys of their own, and a strict filter."""
    folder = tmp_path_factory.mktemp("label")
    data = make_word_problems(260, random_state=0)
    metadata = [{"own": i} for i in range(60)]
    write_jsonl(folder / "old.jsonl", data.graphs[:200], data.labels[:200])
    write_jsonl(folder / "new.jsonl", data.graphs[200:], metadata=metadata)
    fit = ("fit", folder / "old.jsonl", "-o", folder / "m", "--alpha", 0.05)
    assert run(*fit, "--show", 1) == 0
    return folder


@pytest.fixture
def label(folder, tmp_path):
    """Run the command on the new answers, without its page."""

    def call(*options, file=folder / "new.jsonl", by="ann"):
        journal = ["--journal", tmp_path / "journal", "--annotator", by]
        return run("label", file, "--no-page", *journal, *options)

    call.store = LabelStore(
        read_jsonl(folder / "new.jsonl").graphs, tmp_path / "journal"
    )
    return call


def test_answers_are_written_up_to_the_last_judged_one(folder, label, tmp_path):
    """In random order skipped answers are written too, else only the judged ones."""
    out = tmp_path / "out.jsonl"
    assert label("-o", out) == 0 and not out.exists()
    listed = RandomOrder().order(label.store)
    for i in (listed[1], listed[6]):
        label.store.label(i, 0, "true", by="ann")
    assert label("-o", out) == 0
    judged = read_jsonl(out)
    assert [m["own"] for m in judged.metadata] == sorted(listed[:7])
    assert sum((row >= 0).sum() for row in judged.labels) == 2
    made = judged.graphs[0].provenance
    assert made["label_order"] == "random" and made["label_source"] == "person"
    train = read_jsonl(folder / "old.jsonl")
    cf = skdcf.HardCF("arithmetic_right", features=reasoning_features())
    skdcf.save(cf.fit(train.graphs, train.labels), tmp_path / "plain")
    assert label("-o", out, "--filter", tmp_path / "plain") == 0
    doubtful = read_jsonl(out)
    assert {m["own"] for m in doubtful.metadata} == {listed[1], listed[6]}
    assert doubtful.graphs[0].provenance["label_order"] == "doubtful"


def test_sheets_and_label_studio_bring_labels(label, tmp_path, capsys):
    sheet, tasks, out = (tmp_path / name for name in ("s.csv", "t.json", "out"))
    assert label("--csv", sheet, "--label-studio", tasks) == 0
    listed = RandomOrder().order(label.store)
    rows = sheet.read_text("utf-8-sig").splitlines()
    assert rows[1].startswith(str(label.store.graphs[listed[0]].id or listed[0] + 1))
    done = json.loads(tasks.read_text())
    choice = {
        "from_name": "verdict",
        "to_name": "claim",
        "type": "choices",
        "value": {"choices": ["false"]},
    }
    done[0]["annotations"] = [{"result": [choice], "completed_by": 7}]
    tasks.write_text(json.dumps(done))
    assert label("--import", tasks, "-o", out, by="7") == 0
    assert "1 verdict of 7" in capsys.readouterr().err
    [judged] = read_jsonl(out).labels
    assert judged.tolist()[0] == 0
    assert label("--import", tasks, "-o", out, by="bob") == 2
    assert re.search(r"\['7'\].*'bob'", capsys.readouterr().err)
    for content in ("[1]\n[2]\n", "[{", "PK\x03\x04\0"):
        tasks.write_text(content)
        assert label("--import", tasks) == 2
        assert "t.json" in capsys.readouterr().err


@pytest.mark.parametrize("kept", ["true", "supported"])
def test_labels_of_two_meanings_are_not_mixed(label, tmp_path, capsys, kept):
    made = {"label_meaning": kept}
    graphs = [
        ReasoningGraph(None, (), claims=["a"], context=["b"], id=i, provenance=made)
        for i in range(2)
    ]
    path = tmp_path / "p.jsonl"
    write_jsonl(path, graphs)
    LabelStore(graphs, tmp_path / "journal").label(0, 0, "true", by="ann")
    other = {"true": "supported", "supported": "true"}[kept]
    assert label("--meaning", other, file=path) == 2
    assert re.search("--meaning.*'supported', 'true'", capsys.readouterr().err)
    assert label("-o", tmp_path / "out", file=path) == 0
    assert read_jsonl(tmp_path / "out").graphs[0].provenance["label_meaning"] == kept


def test_patterns_are_proposed_for_sentences_that_always_make_no_claim(
    label, tmp_path, capsys
):
    claims = ["I\u2019m  (well):\n```\n# 1\n```", "So", "Once"]
    graphs = [ReasoningGraph(None, None, claims=claims, id=i) for i in range(2)]
    write_jsonl(tmp_path / "p.jsonl", graphs)
    store = LabelStore(graphs, tmp_path / "journal")
    for i, v, word in ((0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 1), (0, 2, 0)):
        store.label(i, v, ("no claim", "true")[word], by=("ann", "bob")[i])
    assert label("-o", tmp_path / "out", file=tmp_path / "p.jsonl") == 0
    lines = capsys.readouterr().err.splitlines()
    # split compares a sentence on one line and with a plain apostrophe.
    proposed = r"I'm\ \(well\):\ ```\ \#\ 1\ ```"
    assert proposed in lines and not {"So", "Once"} & {*lines}
    assert any("copy of" in line for line in lines)


# --- reviews


def test_a_review_keeps_what_people_found_true(folder, tmp_path, capsys):
    truth = make_word_problems(260, random_state=0).labels[200:]
    cf = skdcf.load(folder / "m")
    new = read_jsonl(folder / "new.jsonl").graphs
    before = cf.predict(new)
    store = LabelStore(new, tmp_path / "journal", purpose="review")
    order = ReviewOrder(cf, new)
    for _ in range(20):
        [(i, (v,)), *_] = order(store, "ann")
        store.label(i, v, "true" if truth[i][v] == 1 else "false", by="ann")
    order(store, "ann")
    review = ["label", folder / "new.jsonl", "--review", folder / "m", "--no-page"]
    review += ["--journal", tmp_path / "journal", "--annotator"]
    out = tmp_path / "out.jsonl"
    assert run(*review, "ann", "--json", "-o", out) == 0
    text = capsys.readouterr().err
    assert order.describe() in text and f"with {sum(map(np.sum, before))}" in text
    kept = read_jsonl(out)
    for i, mask in enumerate(order.masks()):
        assert kept.masks[i].tolist() == mask.tolist()
        decision = kept.metadata[i]["filtered"]
        assert decision["checked"] == np.flatnonzero(mask & ~before[i]).tolist()
        assert decision["reasons"].keys() == {str(v) for v in np.flatnonzero(~mask)}
        judged = {v for j, v in store.in_order("ann") if j == i}
        assert {*np.flatnonzero(kept.labels[i] >= 0).tolist()} == judged
    assert kept.graphs[0].provenance["label_order"] == "review"
    assert run(*review, "ann", "-o", out) == 0
    assert len(out.read_text("utf-8").splitlines()) == 60
    # Verdicts of other people do not count, and nothing calibrates.
    assert run(*review, "bob", "--json", "-o", out) == 0
    assert all(map(np.array_equal, read_jsonl(out).masks, before))
    assert run("calibrate", folder / "m", out, "-o", tmp_path / "c") == 2


def test_no_page_is_opened_if_nothing_can_be_judged(tmp_path, capsys):
    write_jsonl(tmp_path / "p", [ReasoningGraph(None, (), claims=[])])
    assert run("label", tmp_path / "p", "--annotator", "ann") == 0
    assert RandomOrder.done in capsys.readouterr().err
