"""Several answers to a question on the command line."""

import json

import pytest

import skdcf
from skdcf.apps.cli import main
from skdcf.choosing import choose, chosen_answers
from skdcf.datasets import make_word_problems, read_jsonl, write_jsonl


def run(*arguments):
    return main([str(a) for a in arguments])


def write(path, first, n, k, labelled=True):
    """N answers, k to each question."""
    data = make_word_problems(1100, random_state=0)
    graphs = [
        graph.replace(metadata={"group": f"{first}-{i // k}"})
        for i, graph in enumerate(data.graphs[first : first + n])
    ]
    labels = data.labels[first : first + n] if labelled else None
    write_jsonl(path, graphs, labels)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("choose")
    train = write(folder / "train.jsonl", 0, 300, 1)
    assert run("fit", train, "-o", folder / "m", "--show", 1) == 0
    answers = write(folder / "answers.jsonl", 300, 300, 3)
    chosen = ("calibrate", folder / "m", answers, "--choose", "-o", folder / "chosen")
    assert run(*chosen) == 0
    return folder


def test_the_same_answers_are_chosen_as_by_the_function(folder, tmp_path, capsys):
    new = write(tmp_path / "new.jsonl", 600, 300, 3, labelled=False)
    kept = tmp_path / "kept.jsonl"
    assert run("filter", folder / "chosen", new, "--choose", "-o", kept) == 0
    assert "100 of 300 answers were chosen" in capsys.readouterr().err
    filter = skdcf.load(folder / "chosen")
    assert filter.provenance_["chosen_from"] == [3]
    graphs = read_jsonl(new).graphs
    lines = [json.loads(line) for line in kept.read_text().splitlines()]
    assert [line["claims"] for line in lines] == [
        list(graphs[i].claims) for i in choose(filter, graphs)
    ]
    masks = filter.predict(chosen_answers(filter, graphs))
    assert [line["mask"] for line in lines] == [mask.tolist() for mask in masks]
    assert lines[0]["group"] == "600-0"


def test_another_number_of_answers_and_sampled_ones_are_refused(
    folder, tmp_path, capsys
):
    many = write(tmp_path / "many.jsonl", 600, 100, 5, labelled=False)
    out = tmp_path / "kept.jsonl"
    assert run("filter", folder / "chosen", many, "--choose", "-o", out) == 2
    assert "chosen_from" in capsys.readouterr().err
    one = write(tmp_path / "one.jsonl", 600, 20, 1, labelled=False)
    assert run("filter", folder / "chosen", one, "-o", out) == 2
    assert "chosen_by" in capsys.readouterr().err
    assert not out.exists()
