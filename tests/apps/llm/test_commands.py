"""The way from answers to filtered text by the command line: extract, label, fit, filter."""

import json
import os
import random
import signal
import subprocess
import sys
import urllib.request

import pytest

pytest.importorskip("openai", reason="the openai client is not installed")
pytest.importorskip("skops", reason="skops is not installed")

from chat_server import ChatServer, Status
from scripted_model import ScriptedModel, is_right, make_question

from skdcf.apps.cli import main
from skdcf.apps.labelling import LabelStore
from skdcf.datasets import read_jsonl

KEY = "sk-command-line-13579"


def run(*arguments):
    return main([str(a) for a in arguments])


def write_answers(path, n, seed):
    rng, model = random.Random(seed), ScriptedModel()
    with open(path, "w", encoding="utf-8") as file:
        for i in range(n):
            question = make_question(rng)
            answer = model.solve(question, random.Random(f"{seed} {i}"))
            row = {
                "id": f"{seed}/{i}",
                "problem": question,
                "answer": answer,
                "group": i // 2,
            }
            file.write(json.dumps(row) + "\n")
    return path


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with ChatServer(ScriptedModel()) as server:
        yield server


@pytest.mark.long
def test_from_answers_to_filtered_text(server, tmp_path, capsys, checkout, monkeypatch):
    extract = ["--model", "m", "--base-url", server.url, "--samples", 1]
    extract += ["--features", "frequency", "verify"]
    old, new = (tmp_path / f"{name}.jsonl" for name in ("old", "new"))
    for path, n, seed in ((old, 80, 1), (new, 20, 2)):
        answers = write_answers(tmp_path / "answers.jsonl", n, seed)
        assert run("extract", answers, "-o", path, *extract) == 0
    data = read_jsonl(old)
    assert data.groups.tolist() == [i // 2 for i in range(80)]
    assert data.graphs.ids[3] == "1/3"
    assert data.graphs[0].provenance["model"] == "m"

    store = LabelStore(data.graphs, f"{old}.labels")
    for i, graph in enumerate(store.graphs):
        for v, text in enumerate(graph.claims):
            store.label(i, v, "true" if is_right(text) else "false", by="ann")
    labelled, tasks = tmp_path / "labelled.jsonl", tmp_path / "tasks.json"
    label = ["label", old, "--annotator", "ann", "--no-page"]
    assert run(*label, "-o", labelled, "--label-studio", tasks) == 0
    assert "judged by people" in capsys.readouterr().err
    assert len(json.loads(tasks.read_text())) == data.graphs.n_claims

    model = tmp_path / "filter.skops"
    fit = ["fit", labelled, "-o", model, "--alpha", 0.2, "--scorer", "judge_log_odds"]
    assert run(*fit) == 0
    assert "judged by people" in capsys.readouterr().err
    assert run("filter", model, new, "--text", "-o", tmp_path / "kept.txt") == 0
    kept = (tmp_path / "kept.txt").read_text().splitlines()
    assert len(kept) == 20 and any(kept)


def test_extract_goes_on_where_it_was(server, tmp_path, capsys):
    answers = write_answers(tmp_path / "a.jsonl", 6, 3)
    command = ["extract", answers, "-o", tmp_path / "o.jsonl", "--model", "m"]
    command += ["--base-url", server.url]
    assert run(*command) == 0
    n, first = len(server.requests), (tmp_path / "o.jsonl").read_bytes()
    assert run(*command) == 0
    assert len(server.requests) == n
    assert (tmp_path / "o.jsonl").read_bytes() == first
    assert "0 calls were made" in capsys.readouterr().err
    assert all(KEY.encode() not in path.read_bytes() for path in tmp_path.iterdir())


def test_what_is_sent_is_said_on_the_command_line_or_in_a_file(
    server, tmp_path, capsys, monkeypatch
):
    monkeypatch.setenv("MY_TEAM", "team-7")
    answers = write_answers(tmp_path / "a.jsonl", 1, 3)
    out = tmp_path / "o.jsonl"
    command = ["extract", answers, "-o", out, "--model", "m", "--base-url", server.url]
    options = ["--header", "X-Team=MY_TEAM", "--extra", '{"top_k": 1}']
    options += ["--max-tokens", 500, "--timeout", 30, "--max-retries", 1]
    options += ["--features", "verify", "--per", "answer", "--no-log-odds"]
    assert run(*command, *options) == 0
    config = tmp_path / "c.toml"
    config.write_text(
        'max-tokens = 500\ntimeout = 30\nmax-retries = 1\nfeatures = ["verify"]\n'
        'per = "answer"\nno-log-odds = true\ncache = "second"\n'
        '[extra]\ntop_k = 1\n[header]\nX-Team = "MY_TEAM"\n'
    )
    monkeypatch.chdir(tmp_path)
    assert run(*command, "--config", config) == 0
    sent = server.requests
    first, second = sent[: len(sent) // 2], sent[len(sent) // 2 :]
    assert [body for _, _, body in first] == [body for _, _, body in second]
    assert len(first) == 3  # claims, graph, and the verdicts in one call
    for _, headers, body in sent:
        assert headers["x-team"] == "team-7"
        assert body["top_k"] == 1 and body["max_tokens"] == 500
    for wrong in (["--extra", "top_k=1"], ["--extra", "[1]"], ["--header", "X-Team"]):
        assert run(*command, *wrong) == 2
        assert wrong[0] in capsys.readouterr().err


def test_one_answer_that_fails_does_not_lose_the_others(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    answers = write_answers(tmp_path / "a.jsonl", 3, 3)
    first = json.loads(answers.read_text().splitlines()[1])["answer"]

    def script(request, n):
        bad = first in json.loads(request["messages"][1]["content"]).get("answer", "")
        return Status(400) if bad else ScriptedModel()(request, n)

    with ChatServer(script) as server:
        command = ["extract", answers, "-o", tmp_path / "o.jsonl", "--model", "m"]
        command += ["--base-url", server.url]
        assert run(*command, "--on-failure", "raise") == 2
        assert not (tmp_path / "o.jsonl").exists()
        assert run(*command) == 0
    assert 'problem "3/1": extraction failed: status 400' in capsys.readouterr().err
    graphs = read_jsonl(tmp_path / "o.jsonl").graphs
    assert [g.n_claims > 0 for g in graphs] == [True, False, True]
    assert graphs[1].metadata["flags"][0].startswith("extraction failed")


def test_extract_ends_with_the_share_of_flagged_claims(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    answers, out = tmp_path / "a.jsonl", tmp_path / "o.jsonl"
    row = {"problem": "How many?", "answer": "There are 3. It is red. It is big."}
    answers.write_text(json.dumps(row))
    claims = ["There are 4.", "It is red.", "It is round.", "It is red."]

    def script(request, n):
        is_cut = "answer" in json.loads(request["messages"][1]["content"])
        premises = [{"claim": v, "builds_on": []} for v in range(1, 5)]
        return json.dumps({"claims": claims} if is_cut else {"premises": premises})

    with ChatServer(script) as server:
        command = ["extract", answers, "-o", out, "--model", "m"]
        assert run(*command, "--base-url", server.url) == 0
    last = capsys.readouterr().err.splitlines()[-1]
    assert "3 of 4 claims (75%)" in last


def test_extract_takes_options_from_a_file(server, tmp_path, capsys):
    answers = write_answers(tmp_path / "a.jsonl", 3, 3)
    config = tmp_path / "c.toml"
    config.write_text(
        f'base-url = "{server.url}"\nfeatures = ["verify"]\nsamples = 1\n'
    )
    command = ["extract", answers, "-o", tmp_path / "o.jsonl", "--model", "m"]
    command += ["--config", config]
    assert run(*command, "--judge", "other", "--no-log-odds") == 0
    graphs = read_jsonl(tmp_path / "o.jsonl").graphs
    assert list(graphs.feature_names) == ["judge_verdict", "flagged"]
    assert {"m", "other"} == {sent["model"] for _, _, sent in server.requests}
    config.write_text("nonsense = 3\n")
    assert run(*command) == 2
    assert 'the option "--nonsense" does not exist' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2: "),
        (
            '{"problem": "q"}',
            """under the key "answer", but only the keys ['problem'] contain strings""",
        ),
        ("[]", "line 2: each line must be an object, got list"),
    ],
)
def test_extract_names_the_line_that_is_wrong(tmp_path, capsys, line, message):
    path = tmp_path / "a.jsonl"
    path.write_text('{"answer": "x"}\n' + line)
    assert run("extract", path, "-o", tmp_path / "o", "--model", "m") == 2
    assert message in capsys.readouterr().err


def test_extract_reads_the_keys_that_other_commands_read(server, tmp_path, capsys):
    """A question is a question, --map counts, and keys of the user's own come back."""
    record = {"asked": "Start with 3, add 4.", "answered": "3 + 4 = 7.", "shift": 2}
    record["passages"] = ["Sums are sums."]
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(record) + "\n", "utf-8")
    out = tmp_path / "o.jsonl"
    extract = ["extract", path, "-o", out, "--model", "m", "--base-url", server.url]
    assert run(*extract) == 2
    assert "--map KEY=answer" in capsys.readouterr().err and not out.exists()
    names = ["--map", "asked=problem", "--map", "answered=answer"]
    assert run(*extract, *names, "--group-by", "shift") == 0
    [graph] = read_jsonl(out).graphs
    assert (
        graph.problem == record["asked"] and list(graph.context) == record["passages"]
    )
    assert graph.metadata["shift"] == graph.metadata["group"] == 2
    assert graph.metadata["answer"] == graph.metadata["answered"] == record["answered"]


def test_extract_says_what_went_wrong(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    answers = write_answers(tmp_path / "a.jsonl", 2, 3)
    command = ["extract", answers, "-o", tmp_path / "o.jsonl", "--model", "m"]
    with ChatServer(lambda request, n: Status(401, body=f"bad key {KEY}")) as server:
        assert run(*command, "--base-url", server.url) == 2
    said = capsys.readouterr().err
    assert "skdcf extract: status 401: bad key ***" in said
    assert not (tmp_path / "o.jsonl").exists()


@pytest.mark.long
@pytest.mark.skipif(os.name != "posix", reason="Ctrl-C is sent as on POSIX")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_the_page_is_served_until_it_is_ended(tmp_path, server, name):
    answers = write_answers(tmp_path / "a.jsonl", 2, 3)
    out, labelled = tmp_path / "o.jsonl", tmp_path / "labelled.jsonl"
    command = ["extract", answers, "-o", out, "--model", "m", "--base-url", server.url]
    assert run(*command) == 0
    serve = [sys.executable, "-m", "skdcf", "label", out, "-o", labelled]
    serve += ["--annotator", "ann", "--no-browser"]
    with subprocess.Popen(serve, stderr=subprocess.PIPE, text=True) as process:
        url = process.stderr.readline().split()[-1]
        page, _, token = url.partition("?token=")
        request = urllib.request.Request(
            f"{page}label",
            json.dumps({"problem": 0, "claim": 0, "label": "false"}).encode(),
            {"X-Token": token, "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert answer.status == 200
        process.send_signal(getattr(signal, name))
        try:
            _, said = process.communicate(timeout=240)
        finally:
            process.kill()
    assert process.returncode == 0
    assert "1 judged by people" in said
    assert read_jsonl(labelled).labels[0][0] == 0
