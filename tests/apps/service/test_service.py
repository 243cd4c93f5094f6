"""The service: called in this process, and over real connections to processes of its own."""

import asyncio
import json
import sqlite3
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("fastapi", reason="fastapi is not installed")
pytest.importorskip("uvicorn", reason="uvicorn is not installed")

import serving
from serving import GRAPHS, Y, as_lines, body_of, call, lines_of

import skdcf
from skdcf import HardCF
from skdcf.apps.cli import main
from skdcf.apps.service import create_app
from skdcf.exceptions import GuaranteeWarning
from skdcf.inspection import explain
from skdcf.monitoring import CoverageMonitor

GOOD = json.loads(body_of(GRAPHS[200]))
TOKEN = "a-secret-of-the-service-24680"


@pytest.fixture(scope="module")
def fitted():
    return HardCF("frequency-score", alpha=0.2).fit(GRAPHS[:200], Y[:200])


@pytest.fixture(scope="module")
def online():
    cf = HardCF("frequency-score", alpha=0.1, online=True)
    return cf.fit(GRAPHS[:200], Y[:200])


@pytest.fixture(scope="module")
def model(fitted, tmp_path_factory):
    path = tmp_path_factory.mktemp("service") / "m.skops"
    skdcf.save(fitted, path)
    return path


def rows_of(folder):
    """The stored answers, as another program reads them."""
    with closing(sqlite3.connect(folder / "answers.sqlite")) as db:
        return db.execute("SELECT id, mask, labels, judged FROM answers").fetchall()


# --- POST /v1/filter


def test_answers_are_compared_with_those_before():
    graphs = [
        g.replace(problem=f"question {i}", alternatives=["a"] * 5, metadata=None)
        for i, g in enumerate(GRAPHS[:220])
    ]
    cf = HardCF("frequency-score", alpha=0.2).fit(graphs[:200], Y[:200])
    app = create_app(cf)

    def warnings_of(graph):
        return " ".join(call(app, "/v1/filter", body_of(graph))[1]["warnings"])

    new = [graph.replace(edges=()) for graph in graphs[200:]]
    assert "1 of 1 problems" in warnings_of(new[0].replace(alternatives=["a"]))
    assert "1 of 2 problems" in warnings_of(new[1])
    for graph in new[2:]:
        last = warnings_of(graph)
    assert "answers to" not in last and "has edges" in last
    assert "2 answers to 1 question" in warnings_of(graphs[205])
    assert "3 answers to 1 question" in warnings_of(graphs[205])
    assert not warnings_of(graphs[0].replace(problem="another question"))


def test_the_reply_equals_predict(fitted, tmp_path):
    app = create_app(fitted, folder=tmp_path)
    graphs = GRAPHS[200:220]
    explained = [explain(fitted, graph) for graph in graphs]
    texts = fitted.filter(graphs, output="text")
    strict = fitted.predict(graphs, 0.1)
    for graph, mask, text, less, why in zip(
        graphs, fitted.predict(graphs), texts, strict, explained, strict=True
    ):
        _, reply, _ = call(app, "/v1/filter", body_of(graph))
        assert reply["mask"] == mask.tolist() and reply["alpha"] == 0.2
        assert reply["text"].split() == text.split()
        assert reply["reasons"] == {str(v): said for v, said in why.reasons.items()}
        assert reply["passes"] and reply["warnings"] == []
        record = json.loads(body_of(graph)) | {"alpha": 0.1}
        _, reply, _ = call(app, "/v1/filter", record)
        assert reply["mask"] == less.tolist() and reply["alpha"] == 0.1
    assert len(rows_of(tmp_path)) == 40
    for file in tmp_path.iterdir():  # no texts, and nothing for other users
        assert b"of 200" not in file.read_bytes() and file.stat().st_mode % 64 == 0


def answered(n, kept="keep"):
    """Answers with two sentences each, in the format of a log."""
    for i in range(n):
        text = f"The branch {i} opens at 9. It closes at {i % 7}, or {kept} does."
        yield {"problem": f"When, {i}?", "context": [text[:20]], "answer": text}


def test_an_answer_is_split_as_the_calibration_answers(tmp_path):
    def split(name, lines, *options):
        path, out = tmp_path / name, tmp_path / f"{name}.split"
        path.write_text("\n".join(map(json.dumps, lines)))
        assert main(["split", str(path), "-o", str(out), *options]) == 0
        return skdcf.datasets.read_jsonl(out).graphs

    graphs = split("old", answered(60))
    labels = [[1] + [i % 2] * (graph.n_claims - 1) for i, graph in enumerate(graphs)]
    cf = HardCF("context_trigrams", features=skdcf.features.reasoning_features())
    cf.set_params(alpha=0.2).fit(graphs, labels)
    app = create_app(cf)
    lines = [*answered(5, kept="nobody")]
    for line, graph in zip(lines, split("new", lines), strict=True):
        line["question"] = line.pop("problem") + " Now?"
        asked = graph.replace(problem=line["question"])
        status, reply, _ = call(app, "/v1/filter", line)
        assert status == 200
        assert reply["mask"] == cf.predict([asked])[0].tolist()
        assert [reply["text"]] == cf.filter([asked], output="text")
    both = lines[0] | {"claims": ["The branch opens."]}
    assert call(app, "/v1/filter", both)[0] == 422
    # The built-in list of sentences without a claim cannot stand in for another one.
    (tmp_path / "list").write_text("Hello")
    other = split("old", answered(60), "--no-claim", str(tmp_path / "list"))
    status, reply, _ = call(create_app(cf.fit(other, labels)), "/v1/filter", lines[0])
    assert status == 422 and "no_claim" in reply["detail"]


def test_the_guards_of_predict_apply(fitted):
    app = create_app(fitted)
    status, reply, _ = call(app, "/v1/filter", GOOD | {"context": ["a passage"]})
    with pytest.raises(ValueError, match="context") as caught:
        fitted.predict([GRAPHS[200].replace(context=["a passage"])])
    assert status == 422 and reply["detail"][:40] == str(caught.value)[:40]
    made = [g.replace(provenance={"model": "a"}) for g in GRAPHS[:200]]
    cf = HardCF("frequency-score", alpha=0.2).fit(made, Y[:200])
    with pytest.warns(GuaranteeWarning, match="model") as caught:
        cf.predict([GRAPHS[200]])
    status, reply, _ = call(create_app(cf), "/v1/filter", GOOD)
    assert status == 200
    assert reply["warnings"] == [str(warning.message) for warning in caught]


# --- POST /v1/stream

LINES = {"content_type": "application/x-ndjson"}


@pytest.mark.parametrize("i", [201, 207, 215])
def test_a_stream_equals_predict(online, i):
    app = create_app(online)
    graph = GRAPHS[i]
    [mask] = online.predict([graph])
    _, lines, _ = call(app, "/v1/stream", as_lines(lines_of(graph)), **LINES)
    expected = [{"claim": v, "keep": keep} for v, keep in enumerate(mask.tolist())]
    assert lines[:-1] == expected
    _, reply, _ = call(app, "/v1/filter", body_of(graph))
    assert lines[-1] | {"id": 0} == reply | {"id": 0}
    strict = as_lines(lines_of(graph, alpha=0.05))
    _, lines, _ = call(app, "/v1/stream", strict, **LINES)
    assert lines[-1]["mask"] == online.predict([graph], 0.05)[0].tolist()


def test_each_decision_is_sent_before_the_next_claim_is_read(online):
    app = create_app(online)
    lines = [*lines_of(GRAPHS[210])]
    sent, read = [], []

    async def receive():
        k = len(read)
        assert len(sent) >= k - 1  # the head, and then one decision for each claim
        read.append(k)
        more = k + 1 < len(lines)
        return {"type": "http.request", "body": as_lines([lines[k]]), "more_body": more}

    async def send_on(scope, _, send):
        async def record(message):
            if b"keep" in message.get("body", b""):
                sent.append(message)
            await send(message)

        await app(scope, receive, record)

    status, *_ = asyncio.run(serving.reply_of(send_on, "/v1/stream", [], **LINES))
    assert status == 200 and len(sent) == len(lines) - 1


def test_bad_streams_save_nothing(online, fitted, tmp_path):
    app = create_app(online, folder=tmp_path)
    head, claim, *_ = lines_of(GRAPHS[210])
    late = claim | {"parents": [7]}
    for lines in ([head | {"claims": ["a"]}], []):
        status, [reply], _ = call(app, "/v1/stream", as_lines(lines), **LINES)
        assert status == 422 and reply["detail"]
    for lines in ([head, late], [head, claim, {"txt": "?"}], [head, claim, 1]):
        _, replies, _ = call(app, "/v1/stream", as_lines(lines), **LINES)
        assert replies[-1]["detail"]
    half = as_lines([head, claim])[:-5]
    assert "JSON" in call(app, "/v1/stream", half, **LINES)[1][-1]["detail"]
    assert rows_of(tmp_path) == []
    [reply] = call(create_app(fitted), "/v1/stream", as_lines([head]), **LINES)[1]
    assert "online=True" in reply["detail"]


# --- POST /v1/labels and GET /v1/status


def test_labels_feed_the_monitor_once(fitted, tmp_path):
    app = create_app(fitted, folder=tmp_path)
    losses = []
    for i in range(200, 260):
        _, reply, _ = call(app, "/v1/filter", body_of(GRAPHS[i]))
        labels = [int(y) for y in Y[i]]
        verdicts = {"id": reply["id"], "labels": labels}
        losses.append(((np.array(labels) != 1) & reply["mask"]).any())
        assert call(app, "/v1/labels", verdicts)[:2] == (200, {"alarm": False})
        assert call(app, "/v1/labels", verdicts)[0] == 200
        other = verdicts | {"labels": [1 - y for y in labels]}
        assert call(app, "/v1/labels", other)[0] == 409
    _, reply, _ = call(app, "/v1/filter", GOOD | {"alpha": 0.1})  # another level
    verdicts = {"id": reply["id"], "labels": [1] * len(reply["mask"])}
    assert call(app, "/v1/labels", verdicts | {"labels": [1]})[0] == 409
    assert call(app, "/v1/labels", verdicts | {"labels": [2]})[0] == 422
    assert call(app, "/v1/labels", verdicts)[0] == 200
    assert call(app, "/v1/labels", {"id": "nobody", "labels": [1]})[0] == 404
    expected = CoverageMonitor().fit(fitted).update_losses(losses).summary()
    for again in (app, create_app(fitted, folder=tmp_path)):
        _, status, _ = call(again, "/v1/status", method="GET")
        assert status["guarantee"] == fitted.describe()
        assert status["answers"] == status["labelled_answers"] == 61
        masks = [json.loads(row[1]) for row in rows_of(tmp_path)]
        assert status["claims"] == sum(map(len, masks))
        assert status["kept_claims"] == sum(map(sum, masks))
        for name in ("n_problems", "n_errors", "p_value", "alarm"):
            assert status["monitor"][name] == expected[name]
    # The labels belong to the filter that decided.
    other = HardCF("frequency-score", alpha=0.2).fit(GRAPHS[50:300], Y[50:300])
    _, status, _ = call(create_app(other, folder=tmp_path), "/v1/status", method="GET")
    assert status["answers"] == 0 and status["monitor"]["n_problems"] == 0


def test_only_the_first_answer_to_a_new_question_counts():
    asked = [graph.replace(problem=f"{i}?") for i, graph in enumerate(GRAPHS)]
    app = create_app(HardCF("frequency-score", alpha=0.2).fit(asked[:200], Y[:200]))
    for question, n in (("3?", 0), ("300?", 1), ("300?", 1), ("301?", 2)):
        _, reply, _ = call(app, "/v1/filter", GOOD | {"question": question})
        call(app, "/v1/labels", {"id": reply["id"], "labels": [1] * len(reply["mask"])})
        _, status, _ = call(app, "/v1/status", method="GET")
        assert status["monitor"]["n_problems"] == n


# --- bad input and the token

BAD = {
    "half a body": (b'{"claims": ["a", ', 422, "JSON"),
    "a surrogate": (b'{"claims": ["\\ud800"]}', 400, "surrogate"),
    "not a number": (b'{"features": [[NaN]]}', 422, "NaN"),
    "the same key twice": (b'{"claims": ["a"], "claims": ["b"]}', 422, "'claims'"),
    "an unknown key": (b'{"claims": ["a"], "labesl": [1]}', 422, "'labesl'"),
    "another type": (b'{"claims": [1]}', 422, "'claims.0'"),
    "deep brackets": (b"[" * 100_000, 422, "recursion"),
    "no claims": (b"{}", 422, "claims or features"),
    "a wrong level": (GOOD | {"alpha": 7}, 422, "alpha"),
    "2 MB of edges": (GOOD | {"edges": [[0, 999]] * 220_000}, 422, "out of range"),
    "9 MB": (b'{"claims": ["' + b"a" * (9 << 20) + b'"]}', 413, "8,388,608 bytes"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_gets_a_reason_and_saves_nothing(name, fitted, tmp_path):
    content, status, reason = BAD[name]
    app = create_app(fitted, folder=tmp_path)
    found, reply, _ = call(app, "/v1/filter", content)
    assert found == status and reason in reply["detail"]
    assert rows_of(tmp_path) == []
    assert call(app, "/v1/filter", GOOD)[0] == 200


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner),
)
KEYS = st.sampled_from(
    [*GOOD, "answer", "logprobs", "alpha", "edges", "labels", "text"]
)


@pytest.mark.long
@given(st.sampled_from(["filter", "stream", "labels"]), st.dictionaries(KEYS, VALUES))
def test_no_request_ends_in_an_error_of_the_server(online, path, fields):
    """Such an error would be raised here."""
    app = create_app(online)
    for content in (fields, GOOD | fields):
        assert call(app, f"/v1/{path}", content)[0] in (200, 404, 422)


def test_a_body_whose_client_has_left_saves_nothing(fitted, tmp_path):
    app = create_app(fitted, folder=tmp_path)
    part = {"type": "http.request", "body": body_of(GRAPHS[200]), "more_body": True}
    messages = iter([part, {"type": "http.disconnect"}])

    async def receive():
        return next(messages)

    reply = serving.reply_of(app, "/v1/filter", [], receive=receive)
    assert asyncio.run(reply)[0] == 422
    assert rows_of(tmp_path) == []


def test_the_token_is_needed_everywhere_but_for_what_says_nothing(fitted, tmp_path):
    app = create_app(fitted, token=TOKEN, folder=tmp_path)
    right = {"authorization": f"Bearer {TOKEN}", "host": "example.org"}
    for path in ("/v1/filter", "/v1/stream", "/v1/labels"):
        for wrong in ({}, {"authorization": "Bearer wrong"}, {"authorization": TOKEN}):
            status, reply, _ = call(app, path, GOOD, **wrong)
            assert status == 401 and "token" in str(reply)
    assert call(app, "/v1/status", method="GET")[0] == 401
    assert call(app, "/health", method="GET")[:2] == (200, {"status": "ok"})
    assert rows_of(tmp_path) == []
    assert call(app, "/v1/filter", GOOD, **right)[0] == 200
    with pytest.raises(ValueError, match="token must not be empty"):
        create_app(fitted, token="")


def test_without_a_token_only_this_machine_is_answered(fitted):
    hosts = {"localhost:8000": 200, "[::1]:8000": 200, "evil.example": 403}
    for host, status in hosts.items():
        assert call(create_app(fitted), "/v1/filter", GOOD, host=host)[0] == status


def test_the_command_serves_the_filter(model, fitted, tmp_path, monkeypatch):
    apps = []
    monkeypatch.setattr("uvicorn.run", lambda app, **options: apps.append(app))
    monkeypatch.setenv("TOKEN", TOKEN)
    serve = ["serve", str(model), "--folder", str(tmp_path), "--token-variable"]
    assert main([*serve, "TOKEN"]) == 0
    right = {"authorization": f"Bearer {TOKEN}"}
    _, reply, _ = call(apps[0], "/v1/filter", GOOD, **right)
    assert reply["mask"] == fitted.predict([GRAPHS[200]])[0].tolist()
    assert call(apps[0], "/v1/filter", GOOD)[0] == 401 and len(rows_of(tmp_path)) == 1
