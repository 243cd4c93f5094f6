"""A log under keys of its own: passages are never dropped without a word."""

import json

import pytest

from skdcf.cli import main
from skdcf.datasets import read_jsonl

PASSAGES = [
    "The bridge in Sydney was opened in March 1932 after nine years of work.",
    "Trams crossed it on two tracks until 1958, when these became lanes for cars.",
]
CLAIMS = ["It was opened in 1932.", "Trams crossed it."]


def write(folder, **more):
    """A file with one answer, whose passages stand under a key of the caller's."""
    record = {"problem": "When was it opened?", "claims": CLAIMS} | more
    path = folder / "log.jsonl"
    path.write_text(json.dumps(record) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "key", ["contexts", "passages", "documents", "retrieved_contexts"]
)
def test_usual_names_are_read_as_the_context(tmp_path, capsys, key):
    path = write(tmp_path, **{key: PASSAGES})
    [graph] = read_jsonl(path).graphs
    assert list(graph.context) == PASSAGES and key not in (graph.metadata or {})
    assert main(["check", str(path)]) == 0
    assert f"{key} as context" in capsys.readouterr().out


def test_the_question_of_a_chat_is_one(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps({"user_input": "When?", "claims": CLAIMS}), "utf-8")
    assert read_jsonl(path).graphs[0].problem == "When?"


@pytest.mark.parametrize("key", ["retrieved_docs", "chunks", "sources", "evidence"])
def test_texts_under_an_unknown_key_stop_and_say_what_to_do(tmp_path, capsys, key):
    path = write(tmp_path, **{key: PASSAGES})
    with pytest.raises(ValueError, match=f'the key "{key}" holds 2 texts of 14 words'):
        read_jsonl(path)
    out = tmp_path / "out.jsonl"
    assert main(["features", str(path), "-o", str(out)]) == 2
    said = capsys.readouterr().err
    assert f"--map {key}=context" in said and f"--own {key}" in said
    assert "line 1" in said and not out.exists()
    assert [p.name for p in tmp_path.iterdir()] == ["log.jsonl"]

    [graph] = read_jsonl(path, rename={key: "context"}).graphs
    assert list(graph.context) == PASSAGES
    [graph] = read_jsonl(path, own=[key]).graphs
    assert graph.context is None and graph.metadata[key] == PASSAGES
    assert main(["features", str(path), "-o", str(out), "--own", f"x,{key}"]) == 0
    assert json.loads(out.read_text("utf-8"))[key] == PASSAGES


@pytest.mark.parametrize(
    "values",
    [
        ["bridge", "Sydney", "1932"],  # keywords
        [1.0, 2.0],
        [],
        "one text of a good many words that is no list of texts at all",
        [{"page_content": "an object, which is not a text of the answer's context"}],
    ],
)
def test_what_is_no_list_of_passages_stays_ones_own(tmp_path, values):
    [graph] = read_jsonl(write(tmp_path, notes_of_mine=values)).graphs
    assert graph.metadata["notes_of_mine"] == values


def test_beside_a_context_nothing_is_asked(tmp_path):
    path = write(tmp_path, context=["It opened in 1932."], passages=PASSAGES)
    [graph] = read_jsonl(path).graphs
    assert list(graph.context) == ["It opened in 1932."]
    assert graph.metadata["passages"] == PASSAGES


def test_labels_of_support_without_a_context_are_refused(tmp_path, capsys):
    supported = {"labels": [1, 0], "metadata": {"label_meaning": "supported"}}
    path = write(tmp_path, **supported)
    out = tmp_path / "model.skops"
    assert main(["fit", str(path), "-o", str(out)]) == 2
    assert "no line has a context" in capsys.readouterr().err
    assert not out.exists()
