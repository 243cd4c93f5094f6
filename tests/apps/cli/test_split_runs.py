"""``skdcf split --runs``: from a log of an agent to a filter that stops it."""

import json

import numpy as np
import pytest

from skdcf.adapters import from_runs
from skdcf.apps.cli import main
from skdcf.datasets import read_jsonl
from skdcf.persistence import load


def log(n, seed=0):
    """Runs of two searches and an answer; long calls are wrong more often."""
    rng = np.random.default_rng(seed)
    for number in range(n):
        messages = [{"role": "user", "content": f"Question {number}?"}]
        labels = {}
        for step in range(3):
            length = int(rng.integers(1, 40))
            labels[str(len(messages))] = int(rng.random() > length / 60)
            text = " ".join(["word"] * length)
            function = {"name": "search", "arguments": json.dumps({"query": text})}
            calls = [{"id": "a", "function": function}]
            messages += [
                {"role": "assistant", "content": "", "tool_calls": calls},
                {"role": "tool", "tool_call_id": "a", "content": f"found {step}"},
            ]
        yield {"asked": number, "customer": "c", "messages": messages, "labels": labels}


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_a_log_becomes_problems_and_a_filter(tmp_path, capsys):
    rows = list(log(200))
    source = write(tmp_path / "log.jsonl", rows)
    new, model = str(tmp_path / "new.jsonl"), str(tmp_path / "model.skops")
    options = ["split", "--runs", source, "-o", new, "--map", "asked=task"]
    assert main(options) == 0
    assert "600 steps" in capsys.readouterr().err

    # The same as in Python, with what is the user's own beside it.
    data = read_jsonl(new)
    runs = [{**row, "task": row["asked"]} for row in rows]
    expected = from_runs(runs)
    assert np.array_equal(data.graphs.features, expected.graphs.features)
    assert data.graphs.claims.tolist() == expected.graphs.claims.tolist()
    assert data.graphs.edges.tolist() == expected.graphs.edges.tolist()
    assert all(
        np.array_equal(a, b) for a, b in zip(data.labels, expected.labels, strict=True)
    )
    assert list(data.groups) == [str(number) for number in range(200)]
    assert data.metadata[0]["customer"] == "c"
    assert data.metadata[0]["messages"] == [1, 3, 5]

    fit = ["fit", new, "-o", model, "--online", "--alpha", "0.2"]
    assert main(fit) == 0
    cf = load(model)
    graph = data.graphs[0]
    steps = [
        {"text": text, "features": row, "parents": [v - 1] if v else []}
        for v, (text, row) in enumerate(zip(graph.claims, graph.features, strict=True))
    ]
    about = {"feature_names": graph.feature_names, "problem": graph.problem}
    mask = cf.predict([graph])[0]
    assert list(cf.stream(steps, stop=True, **about)) == mask[: mask.sum() + 1].tolist()


@pytest.mark.parametrize(
    ("edges", "n_edges"), [(None, 2), ("chain", 2), ("none", 0), ("data", 0)]
)
def test_edges_of_runs(tmp_path, edges, n_edges):
    source = write(tmp_path / "log.jsonl", log(1))
    new = str(tmp_path / "new.jsonl")
    options = ["--edges", edges] if edges else []
    names = ["--map", "asked=task"]
    assert main(["split", "--runs", source, "-o", new, *names, *options]) == 0
    graph = read_jsonl(new).graphs[0]
    assert len(graph.edges) == n_edges and graph.edges_known


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "lines 1 to 2: task must be"),
        (["--map", "asked=task", "--group-by", "customer"], "with --map KEY=task"),
        (["--map", "asked=job"], "'job' is not a"),
    ],
)
def test_what_is_wrong_is_said_and_no_file_is_left(tmp_path, capsys, options, message):
    source = write(tmp_path / "log.jsonl", log(2))
    new = tmp_path / "new.jsonl"
    assert main(["split", "--runs", source, "-o", str(new), *options]) == 2
    assert message in capsys.readouterr().err
    assert not new.exists()


def test_data_flow_is_of_runs(tmp_path, capsys):
    source = write(tmp_path / "log.jsonl", [{"answer": "One. Two."}])
    assert main(["split", source, "-o", "-", "--edges", "data"]) == 2
    assert "--runs" in capsys.readouterr().err
