"""The service: over real connections to a process of its own, and called in this one."""

import asyncio
import importlib
import json
import os
import signal
import socket
import sys
import time

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="fastapi is not installed")
pytest.importorskip("uvicorn", reason="uvicorn is not installed")

from serving import (
    GOOD,
    GRAPHS,
    LINES,
    TOKEN,
    Serving,
    Y,
    as_lines,
    at_once,
    body_of,
    call,
    lines_of,
    reply_of,
    rows_of,
)

import skdcf
from skdcf import HardCF
from skdcf.apps.cli import main
from skdcf.apps.service import create_app
from skdcf.edges import chain_edges
from skdcf.estimators import passing_answers
from skdcf.graphs import question_groups
from skdcf.guarantees import ExpectedFalse, NoFalseClaim
from skdcf.inspection import explain
from skdcf.monitoring import CoverageMonitor


@pytest.fixture(scope="module")
def fitted():
    return skdcf.HardCF("frequency-score", alpha=0.2).fit(GRAPHS[:200], Y[:200])


@pytest.fixture(scope="module")
def model(fitted, tmp_path_factory):
    path = tmp_path_factory.mktemp("service") / "m.skops"
    skdcf.save(fitted, path)
    return path


# --- called in this process, as any ASGI server calls it


def test_answers_are_those_of_the_filter(fitted):
    app = create_app(fitted)
    masks, strict = (
        fitted.predict(GRAPHS[200:220]),
        fitted.predict(GRAPHS[200:220], 0.1),
    )
    names = set()
    for graph, mask, less in zip(GRAPHS[200:220], masks, strict, strict=True):
        status, reply, _ = call(app, "/v1/filter", body_of(graph))
        assert status == 200
        assert reply["mask"] == mask.tolist() and reply["alpha"] == 0.2
        kept = [c for c, keep in zip(graph.claims, mask, strict=True) if keep]
        assert reply["text"].split("\n") == kept or not kept
        assert len(reply["reasons"]) == (~mask).sum()
        assert reply["text_guarantee"] == "claims"
        names.add(reply["id"])
        other = json.loads(body_of(graph)) | {"alpha": 0.1}
        _, reply, _ = call(app, "/v1/filter", json.dumps(other, indent=1).encode())
        assert reply["mask"] == less.tolist() and reply["alpha"] == 0.1
    assert len(names) == 20


async def replies_of(app, contents):
    """Replies to requests that all wait at the same time, without their ids."""
    asked = (reply_of(app, "/v1/filter", content) for content in contents)
    found = [(status, reply) for status, reply, _ in await asyncio.gather(*asked)]
    ids = [reply.pop("id") for status, reply in found if status == 200]
    assert len(set(ids)) == len(ids)
    return found


def changed(i, **other):
    return json.dumps(json.loads(body_of(GRAPHS[i])) | other).encode()


BESIDE = [  # what waits beside answers as they should be
    changed(301, feature_names=[f"x{j}" for j in range(len(GRAPHS[0].feature_names))]),
    changed(302, features=None, feature_names=None),
    changed(303, claims=None),
    changed(304, edges=None),
    changed(305, context=["a passage"]),
    changed(306, alpha=0.1),
    changed(307, alpha=0.05),
    changed(308, alpha="0.1"),
    changed(309, alpha=0.2, claims=[1]),
    changed(310, metadata={"label_meaning": "supported"}),
    b'{"claims": [], "features": [], "parents": []}',
    b"{",
]


@pytest.mark.filterwarnings("ignore::skdcf.exceptions.GuaranteeWarning")
@pytest.mark.parametrize("kind", ["frequency", "linear", "online"])
def test_requests_that_wait_are_decided_as_each_by_itself(kind, fitted, online):
    if kind == "linear":
        cf = skdcf.CoherentConformalFilter("linear", alpha=0.2, random_state=0)
        fitted = cf.fit(GRAPHS[:200], Y[:200])
    filter = online if kind == "online" else fitted
    contents = [body_of(graph) for graph in GRAPHS[200:240]]
    for k, other in enumerate(BESIDE):
        contents.insert(3 * k, other)

    app = create_app(filter)
    for _ in range(2):  # each time in a loop of its own
        together = asyncio.run(replies_of(app, contents))
    alone = [asyncio.run(replies_of(app, [content]))[0] for content in contents]
    assert together == alone
    assert {status for status, _ in alone} == {200, 400}
    masks = filter.predict(GRAPHS[200:240])
    good = [
        r["mask"] for (_, r), c in zip(alone, contents, strict=True) if c not in BESIDE
    ]
    assert good == [mask.tolist() for mask in masks]


def test_a_fault_of_one_answer_is_not_that_of_others(fitted, monkeypatch):
    def broken(filter, graphs, **options):
        if any(graph.problem == "broken" for graph in graphs):
            raise RuntimeError("a scorer fails")
        return explain(filter, graphs, **options)

    monkeypatch.setattr("skdcf.apps.service._served.explain", broken)
    contents = [body_of(graph) for graph in GRAPHS[200:220]]
    contents[7] = changed(207, problem="broken")
    contents.append(changed(220, problem="long", context=["x" * 20_000]))
    found = asyncio.run(replies_of(create_app(fitted), contents))
    assert [i for i, (status, _) in enumerate(found) if status == 500] == [7]
    good = [*range(200, 207), *range(208, 220)]
    masks = fitted.predict([GRAPHS[i] for i in good])
    shown = [reply["mask"] for status, reply in found if status == 200]
    assert shown == [mask.tolist() for mask in masks]


def test_labels_feed_the_monitor_once_and_only_where_they_were_drawn(fitted, tmp_path):
    app, judged, masks = create_app(fitted, folder=tmp_path), [], []
    for i in range(200, 260):
        _, reply, _ = call(app, "/v1/filter", body_of(GRAPHS[i]))
        labels = [int(v) for v in Y[i]]
        drawn = "random" if i % 3 else None
        said = {"id": reply["id"], "labels": labels, "sampling": drawn}
        assert call(app, "/v1/labels", json.dumps(said).encode())[0] == 200
        assert call(app, "/v1/labels", json.dumps(said).encode())[0] == 200
        other = said | {"labels": [1 - v for v in labels]}
        assert call(app, "/v1/labels", json.dumps(other).encode())[0] == 409
        short = said | {"labels": [*labels, 1]}
        assert call(app, "/v1/labels", json.dumps(short).encode())[0] == 400
        if drawn:
            judged.append(labels)
            masks.append(np.array(reply["mask"]))
    asked = json.loads(body_of(GRAPHS[300])) | {"alpha": 0.1}
    _, reply, _ = call(app, "/v1/filter", json.dumps(asked).encode())
    said = {"id": reply["id"], "labels": [0] * len(reply["mask"]), "sampling": "random"}
    assert call(app, "/v1/labels", json.dumps(said).encode())[0] == 200  # another alpha
    unknown = {"id": "nobody", "labels": [1]}
    assert call(app, "/v1/labels", json.dumps(unknown).encode())[0] == 404
    lost = [
        ((np.array(y) != 1) & kept).any() for y, kept in zip(judged, masks, strict=True)
    ]
    expected = CoverageMonitor(fitted).update_losses(lost).summary()
    for again in (app, create_app(fitted, folder=tmp_path)):
        _, found, _ = call(again, "/v1/status", method="GET")
        assert found["n_judged"] == len(judged) == 40
        assert found["n_errors"] == expected["n_errors"]
        assert found["wealth"] == pytest.approx(expected["wealth"])
    other = skdcf.HardCF("frequency-score", alpha=0.2).fit(GRAPHS[50:300], Y[50:300])
    _, found, _ = call(create_app(other, folder=tmp_path), "/v1/status", method="GET")
    assert found["n_judged"] == 0
    for path in tmp_path.iterdir():
        assert b"claim 0 of" not in path.read_bytes()
        if os.name == "posix":
            assert path.stat().st_mode & 0o777 == 0o600, path


GUARANTEES = {
    "none": NoFalseClaim(),
    "max_false": NoFalseClaim(max_false=1),
    "delta": NoFalseClaim(delta=0.1),
    "by": NoFalseClaim(by="kind"),
    "share": ExpectedFalse(bound=0.2),
    "show": NoFalseClaim(show=0.5),
}


@pytest.mark.filterwarnings("ignore::skdcf.exceptions.GuaranteeWarning")
@pytest.mark.parametrize("name", GUARANTEES)
def test_every_guarantee_is_served_and_watched_by_its_own_quantity(name, caplog):
    """Filters with by= were refused, and a mean was not watched."""
    kinds = [
        graph.replace(metadata={"kind": "ab"[i % 2]}) for i, graph in enumerate(GRAPHS)
    ]
    cf = skdcf.HardCF("frequency-score", alpha=0.2, guarantee=GUARANTEES[name])
    cf.fit(kinds[:200], Y[:200])
    app = create_app(cf)
    monitor = CoverageMonitor(cf)
    guarantee = cf.calibration_.guarantee
    assert monitor.why_not_watched() is None
    assert "is not monitored" not in caplog.text
    n_passing = 0
    for i in range(200, 240):
        status, reply, _ = call(app, "/v1/filter", body_of(kinds[i]))
        kept = cf.predict([kinds[i]])[0]
        assert status == 200 and reply["mask"] == kept.tolist()
        said = {
            "id": reply["id"],
            "labels": [int(v) for v in Y[i]],
            "sampling": "random",
        }
        assert call(app, "/v1/labels", json.dumps(said).encode())[0] == 200
        passes = passing_answers(cf, [kinds[i]])[0]  # of the others nothing is watched
        n_passing += passes
        if passes:
            lost = guarantee.loss(Y[i], kept, np.array([0, len(kept)]))
            group = "ab"[i % 2] if name == "by" else None
            monitor.update_losses(lost, group, shown=[kept.any()])
    found = app.watched().monitor.summary()
    expected = monitor.summary()
    for key in ("n_problems", "n_errors", "wealth", "groups", "shown"):
        np.testing.assert_equal(found[key], expected[key])
    assert found["n_problems"] == n_passing
    assert (n_passing < 40) == (name == "show")
    assert call(app, "/v1/status", method="GET")[1]["not_watched"] is None


@pytest.mark.parametrize("token", [None, TOKEN])
def test_the_monitor_counts_a_question_once(token, tmp_path):
    """Ten answers to one question, each of them wrong, were ten errors."""
    asked = [
        graph.replace(problem=f"What is {i}?") for i, graph in enumerate(GRAPHS[:200])
    ]
    cf = skdcf.HardCF("frequency-score", alpha=0.2).fit(asked, Y[:200])
    sent = {"authorization": f"Bearer {TOKEN}"} if token else {}
    app = create_app(cf, token=token, folder=tmp_path)
    again = GRAPHS[300].replace(problem="Who  asks THIS?")
    others = [GRAPHS[301], GRAPHS[302], GRAPHS[303].replace(problem="Another?")]
    chosen = cf._calibrated["question"]
    calibrated = [g for g in asked if question_groups([g])[0] in chosen][:2]
    for graph in [again, again.replace(problem="who asks this?"), *others, *calibrated]:
        _, reply, _ = call(app, "/v1/filter", body_of(graph), **sent)
        labels = {"id": reply["id"], "labels": [0] * len(reply["mask"])}
        content = json.dumps(labels | {"sampling": "random"}).encode()
        assert call(app, "/v1/labels", content, **sent)[1]["said"] == "saved"
    for same in (app, create_app(cf, token=token, folder=tmp_path)):
        monitor = same.watched().monitor
        assert monitor.summary()["n_problems"] == 4
        assert monitor.n_repeated_ == 3
        _, reply, _ = call(same, "/v1/filter", body_of(again), **sent)
    names = [name for (name,) in rows_of(tmp_path, "question")]
    assert len({name for name in names if name}) == 4
    files = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"asks" not in files
    assert str(int(question_groups([again])[0])).encode() not in files
    other = tmp_path / "other"
    other.mkdir()
    elsewhere = create_app(cf, token=TOKEN[::-1], folder=other)
    call(
        elsewhere,
        "/v1/filter",
        body_of(again),
        authorization=f"Bearer {TOKEN[::-1]}",
    )
    [[name]] = rows_of(other, "question")
    assert name not in names


def test_a_journal_that_is_none_is_refused(fitted, model, tmp_path, capsys):
    path = tmp_path / "journal.sqlite"
    path.write_text("a text, and no table " * 100)
    with pytest.raises(ValueError, match=r"journal\.sqlite.*journal"):
        create_app(fitted, folder=tmp_path)
    assert main(["serve", str(model), "--folder", str(tmp_path)]) == 2
    assert "another folder" in capsys.readouterr().err
    assert path.read_text() == "a text, and no table " * 100


def test_a_full_disk_loses_nothing_that_was_there(fitted, tmp_path, caplog):
    resource = pytest.importorskip("resource", reason="limits of POSIX")
    app = create_app(fitted, folder=tmp_path)
    _, reply, _ = call(app, "/v1/filter", GOOD)
    said = {"id": reply["id"], "labels": [1] * len(reply["mask"])}
    before, (soft, hard) = (
        rows_of(tmp_path, "*"),
        resource.getrlimit(resource.RLIMIT_FSIZE),
    )
    content = json.dumps(said).encode()
    for room in (0, 20):
        size = (tmp_path / "journal.sqlite-wal").stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + room, hard))
        try:
            found = [call(app, "/v1/filter", GOOD), call(app, "/v1/labels", content)]
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert [status for status, *_ in found] == [500, 500]
        assert rows_of(tmp_path, "*") == before
    assert "disk" in caplog.text
    assert call(app, "/v1/labels", content)[1]["said"] == "saved"
    again = create_app(fitted, folder=tmp_path)
    assert "were known" in call(again, "/v1/labels", content)[1]["said"]


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[1]", 400),
        (b"[" * 100_000, 400),
        (b'{"claims": ["a"]', 400),
        (b'{"claims": [NaN]}', 400),
        (b'{"claims": "a"}', 400),
        (b'{"claims": ["a"], "edges": [[0, 0]]}', 400),
        (b'{"claims": ["a"], "features": [["x"]]}', 400),
        (GOOD[:-1] + b', "alpha": "0.1"}', 400),
        (GOOD[:-1] + b', "alpha": 2}', 400),
        (GOOD[:-1] + b', "alpha": true}', 400),
        (b'{"claims": ["' + b"x" * (9 * 2**20) + b'"]}', 413),
        (b"\xff\xfe", 400),
    ],
)
def test_bad_requests_are_answered_with_a_sentence(fitted, content, status):
    app = create_app(fitted)
    given, reply, _ = call(app, "/v1/filter", content)
    assert (given, list(reply)) == (status, ["error"]) and reply["error"]
    assert call(app, "/v1/filter", GOOD)[0] == 200


# --- while an answer is written


@pytest.fixture(scope="module")
def online():
    cf = skdcf.HardCF(out_degree, alpha=0.1, online=True)
    return cf.fit(GRAPHS[:200], Y[:200])


def out_degree(batch):
    """A score that looks ahead, so that only the setting makes it one of prefixes."""
    built_on = np.bincount(batch.edges[:, 0], minlength=batch.n_claims)
    return batch.features[:, 0] - built_on


def stream(app, content):
    status, text, head = call(app, "/v1/stream", content, **LINES)
    kind = head["content-type"].partition(";")[0]
    assert kind == ("application/x-ndjson" if status == 200 else "application/json")
    return status, [json.loads(x) for x in text.splitlines()] if status == 200 else text


@pytest.mark.parametrize("alpha", [None, 0.05])
def test_streamed_decisions_are_those_of_predict(online, alpha):
    app, masks = create_app(online), online.predict(GRAPHS[200:230], alpha)
    about = {} if alpha is None else {"alpha": alpha}
    for graph, mask in zip(GRAPHS[200:230], masks, strict=True):
        status, (*told, end) = stream(app, as_lines(lines_of(graph, **about)))
        assert status == 200 and [d["keep"] for d in told] == mask.tolist()
        assert [d["claim"] for d in told] == list(range(graph.n_claims))
        kept = [c for c, keep in zip(graph.claims, mask, strict=True) if keep]
        assert (end["mask"], end["text"]) == (mask.tolist(), "\n".join(kept))
        assert end["alpha"] == (alpha or 0.1)
        said = {"id": end["id"], "labels": [1] * len(mask)}
        assert call(app, "/v1/labels", json.dumps(said).encode())[0] == 200
    assert 0 < np.concatenate(list(masks)).mean() < 1


def test_what_is_wrong_with_a_stream_is_said(fitted, online):
    head, first, *_ = lines_of(GRAPHS[200])
    app = create_app(online)
    late = {**first, "parents": [3]}
    for records in ([head, late], [head | {"alpha": "x"}], [{"context": 3}, first]):
        status, reply = stream(app, as_lines(records))
        assert (status, list(reply)) == (400, ["error"]), records
    assert stream(app, b"[1]\n")[0] == 400
    status, said = stream(app, as_lines([head, first, late]))
    assert status == 200 and said[0]["claim"] == 0
    assert "positions of earlier claims" in said[1]["error"] and len(said) == 2
    _, said = stream(app, as_lines([head, first]) + b"{")
    assert [list(line) for line in said] == [["claim", "keep"], ["error"]]
    status, reply = stream(create_app(fitted), as_lines([head, first]))
    assert status == 400 and "send the whole answer" in reply["error"]
    assert app.guard.n_waiting == app.guard.n_streams == 0


@pytest.mark.parametrize(
    "record",
    [
        {"id": 1, "labels": [1]},
        {"id": "x"},
        {"id": "x", "labels": "1"},
        {"id": "x", "labels": [2]},
        {"id": "x", "labels": [0.5]},
        {"id": "x", "labels": [1], "sampling": "chosen"},
    ],
)
def test_bad_labels_are_refused(fitted, record):
    status, reply, _ = call(
        create_app(fitted), "/v1/labels", json.dumps(record).encode()
    )
    assert status == 400 and "error" in reply


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 403),
        ({"host": "127.0.0.1.evil.example:80"}, 403),
        ({"host": "-"}, 403),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"content_type": "text/plain"}, 415),
        ({"content_type": "application/x-www-form-urlencoded"}, 415),
        ({"host": "localhost:80"}, 200),
        ({"host": "[::1]:80"}, 200),
        ({"host": "127.0.0.1"}, 200),
    ],
)
def test_without_a_token_only_this_machine_is_answered(fitted, headers, status):
    assert call(create_app(fitted), "/v1/filter", GOOD, **headers)[0] == status


@pytest.mark.parametrize("path", ["/v1/filter", "/v1/labels", "/v1/status"])
@pytest.mark.parametrize(
    "given", ["-", "", "Bearer", "Bearer wrong", TOKEN, "Bearer é"]
)
def test_with_a_token_nobody_else_is_answered(fitted, path, given):
    app = create_app(fitted, token=TOKEN)
    method = "GET" if path == "/v1/status" else "POST"
    status, reply, head = call(app, path, GOOD, method, authorization=given)
    assert (
        status == 401 and "mask" not in reply and head["www-authenticate"] == "Bearer"
    )
    assert TOKEN not in json.dumps(reply)
    own = {"authorization": f"Bearer {TOKEN}", "host": "service.example"}
    assert call(app, "/v1/filter", GOOD, **own)[0] == 200
    assert call(app, "/health", method="GET", host="service.example")[0] == 200


def test_paths_and_methods_that_there_are_none(fitted):
    app = create_app(fitted)
    for path, method, status in (
        ("/v1/filter", "GET", 405),
        ("/v1/status", "POST", 405),
        ("/../etc/passwd", "GET", 404),
    ):
        given, reply, _ = call(app, path, method=method)
        assert (given, list(reply)) == (status, ["error"])
    for bad in ("", "two\nlines", "umläut"):
        with pytest.raises(ValueError, match="token"):
            create_app(fitted, token=bad)


def test_without_fastapi_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "fastapi", None)
    monkeypatch.delitem(sys.modules, "skdcf.apps.service")
    with pytest.raises(ImportError, match=r'pip install "\.\[apps\]"'):
        importlib.import_module("skdcf.apps.service")


def test_too_many_requests_are_asked_to_come_later(fitted, monkeypatch):
    monkeypatch.setattr("skdcf.apps.web.guard._MOST_WAITING", 0)
    status, reply, head = call(create_app(fitted), "/v1/filter", GOOD)
    assert status == 503 and "again" in reply["error"]
    assert head["retry-after"] == "1"


def test_a_fault_inside_shows_no_text(fitted, monkeypatch, caplog):
    def broken(*_, **__):
        raise RuntimeError("claim 0 of 200 is private")

    monkeypatch.setattr("skdcf.apps.service._served.explain", broken)
    status, reply, _ = call(create_app(fitted), "/v1/filter", GOOD)
    assert status == 500 and "private" not in json.dumps(reply)
    assert "RuntimeError" in caplog.text and "private" not in caplog.text


def test_status_says_what_runs(fitted):
    _, told, _ = call(create_app(fitted), "/v1/status", method="GET")
    assert told["alpha"] == 0.2
    assert told["n_calibration"] == fitted.n_calibration_
    assert "no false claim is kept" in told["guarantee"]


def test_behind_a_token_health_says_that_it_is_alive_and_no_more(fitted):
    app = create_app(fitted, token=TOKEN)
    status, reply, _ = call(app, "/health", method="GET", host="service.example")
    assert status == 200 and reply == {"status": "ok"}


def test_answers_of_too_many_claims_are_refused(fitted):
    line = {"question": "?", "claims": ["a"] * 2_001, "parents": [[]] * 2_001}
    status, reply, _ = call(create_app(fitted), "/v1/filter", json.dumps(line).encode())
    assert status == 413 and "at most 2,000 claims" in json.dumps(reply)


# --- a process of its own

POSIX = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


@pytest.mark.long
@POSIX
def test_1000_at_once_are_neither_lost_nor_mixed_up(fitted, model, tmp_path):
    numbers = [200 + i % 200 for i in range(1000)]
    masks = fitted.predict(GRAPHS[200:])
    contents = [body_of(GRAPHS[i]) for i in numbers]
    with Serving(model, "--folder", tmp_path) as serving:
        replies = asyncio.run(at_once(serving.port, contents))
        for i, (status, reply) in zip(numbers, replies, strict=True):
            mask = masks[i - 200]
            assert status == 200 and reply["mask"] == mask.tolist()
            kept = [c for c, k in zip(GRAPHS[i].claims, mask, strict=True) if k]
            assert reply["text"] == "\n".join(kept)
        assert len({reply["id"] for _, reply in replies}) == 1000
    assert len(rows_of(tmp_path, "id")) == 1000


@pytest.mark.long
@POSIX
def test_each_decision_comes_before_the_next_claim_is_sent(tmp_path):
    online = skdcf.HardCF("frequency-score", alpha=0.2, online=True)
    skdcf.save(online.fit(GRAPHS[:200], Y[:200]), tmp_path / "m.skops")
    graph = max(GRAPHS[200:230], key=lambda g: g.n_claims)
    head, *claims = lines_of(graph)
    mask, told = online.predict([graph])[0].tolist(), []
    with (
        Serving(tmp_path / "m.skops") as serving,
        socket.create_connection(("127.0.0.1", serving.port), timeout=60) as client,
    ):
        reply = client.makefile("rb")

        def send(content):
            client.sendall(b"%x\r\n%s\r\n" % (len(content), content))

        client.sendall(
            b"POST /v1/stream HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: "
            b"application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        send(as_lines([head]))
        for v, claim in enumerate(claims):
            send(as_lines([claim]))
            while not (line := reply.readline()).startswith(b"{"):
                assert line, "the reply ends too early"
            told.append(json.loads(line))
            assert told[-1] == {"claim": v, "keep": mask[v]}
        client.sendall(b"0\r\n\r\n")
        while not (line := reply.readline()).startswith(b"{"):
            assert line, "the reply ends too early"
        assert json.loads(line)["mask"] == mask


@pytest.mark.long
@POSIX
def test_kill_9_loses_no_label(model, tmp_path):
    rng = np.random.default_rng(0)
    saved = []
    for _ in range(2):
        with Serving(model, "--folder", tmp_path) as serving:
            end = time.monotonic() + rng.uniform(0.1, 0.5)
            while time.monotonic() < end or not saved:
                i = int(rng.integers(200, 400))
                _, reply = serving.ask(
                    "POST", "/v1/filter", json.loads(body_of(GRAPHS[i]))
                )
                labels = [int(v) for v in Y[i]]
                said = {"id": json.loads(reply)["id"], "labels": labels}
                said["sampling"] = "random"
                assert serving.ask("POST", "/v1/labels", said)[0] == 200
                saved.append(said)
            serving.process.send_signal(signal.SIGKILL)
        with open(tmp_path / "journal.sqlite-wal", "ab") as file:
            file.write(b"half of something that was to be written")
    with Serving(model, "--folder", tmp_path) as serving:
        for said in saved:
            status, reply = serving.ask("POST", "/v1/labels", said)
            assert status == 200 and b"were known" in reply
        assert json.loads(serving.ask("GET", "/v1/status")[1])["n_judged"] == len(saved)


# What skdcf serve shows in /v1/status, and the monitor in Python in its summary.
NUMBERS = {
    "n_judged": "n_problems",
    "n_errors": "n_errors",
    "wealth": "wealth",
    "alarm": "alarm",
}


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::skdcf.exceptions.GuaranteeWarning")
@pytest.mark.parametrize("name", GUARANTEES)
def test_the_command_has_the_numbers_of_the_same_stream_in_python(name, tmp_path):
    kinds = [
        graph.replace(metadata={"kind": "ab"[i % 2]}) for i, graph in enumerate(GRAPHS)
    ]
    cf = skdcf.HardCF("frequency-score", alpha=0.2, guarantee=GUARANTEES[name])
    cf.fit(kinds[:200], Y[:200])
    skdcf.save(cf, tmp_path / "m.skops")
    monitor = CoverageMonitor(cf)
    with Serving(tmp_path / "m.skops", "--folder", tmp_path) as serving:
        for i in range(200, 300):
            asked = json.loads(body_of(kinds[i]))
            reply = json.loads(serving.ask("POST", "/v1/filter", asked)[1])
            labels = [int(v) for v in Y[i]] if i < 240 else [0] * len(Y[i])
            said = {"id": reply["id"], "labels": labels, "sampling": "random"}
            assert serving.ask("POST", "/v1/labels", said)[0] == 200
            monitor.update([kinds[i]], [labels])
            if i in (239, 299):
                found = json.loads(serving.ask("GET", "/v1/status")[1])
                summary = monitor.summary()
                for field, key in NUMBERS.items():
                    assert found[field] == pytest.approx(float(summary[key]))
                assert summary["alarm"] == (i == 299)


@pytest.mark.long
@POSIX
def test_what_runs_is_finished_and_no_secret_is_logged(model):
    slow = (
        "import time, skdcf.apps.service._served as app\nplain = app.explain\n"
        "def explain(*a, **k): time.sleep(2); return plain(*a, **k)\n"
        "app.explain = explain"
    )
    options = ["--token-variable", "SERVICE_TOKEN"]
    with Serving(model, *options, before=slow, SERVICE_TOKEN=TOKEN) as serving:
        content = body_of(GRAPHS[200])
        with socket.create_connection(
            ("127.0.0.1", serving.port), timeout=60
        ) as client:
            head = (
                "POST /v1/filter HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                f"Authorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(content)}\r\n\r\n"
            )
            client.sendall(head.encode() + content)
            time.sleep(1)  # The request is being answered.
            serving.process.send_signal(signal.SIGTERM)
            reply = b""
            while piece := client.recv(65536):
                reply += piece
        assert reply.startswith(b"HTTP/1.1 200") and b'"mask"' in reply
        _, said = serving.process.communicate(timeout=60)
        assert TOKEN not in said and "claim" not in said


def test_without_a_token_it_stays_on_this_machine(model, capsys, monkeypatch):
    assert main(["serve", str(model), "--host", "0.0.0.0"]) == 2
    assert "requires a token" in capsys.readouterr().err
    monkeypatch.setenv("EMPTY", " ")
    assert main(["serve", str(model), "--token-variable", "EMPTY"]) == 2
    assert "variable EMPTY must contain" in capsys.readouterr().err


def test_of_a_written_answer_the_first_claim_tells_whether_it_passes():
    """Streams of a filter with a share are watched as whole answers are."""
    chains = [g.replace(edges=chain_edges(g.claims)) for g in GRAPHS]
    guarantee = NoFalseClaim(show=0.5)
    cf = HardCF(
        "frequency-score",
        alpha=0.3,
        guarantee=guarantee,
        online=True,
        edges=chain_edges,
        ties="jitter",
    ).fit(chains[:200], Y[:200])
    app = create_app(cf)
    monitor = CoverageMonitor(cf)
    passing = passing_answers(cf, chains[200:240])
    assert 0 < passing.sum() < len(passing)
    masks = cf.predict(chains[200:240])
    for i, passes, kept in zip(range(200, 240), passing, masks, strict=True):
        _, (*_, end) = stream(app, as_lines(lines_of(chains[i])))
        assert (end["mask"], end["passes"]) == (kept.tolist(), passes)
        said = {"id": end["id"], "labels": Y[i].tolist(), "sampling": "random"}
        assert call(app, "/v1/labels", json.dumps(said).encode())[0] == 200
        if passes:
            lost = guarantee.loss(Y[i], kept, np.array([0, len(kept)]))
            monitor.update_losses(lost, shown=[kept.any()])
    found = app.watched().monitor
    assert found.n_unwatched_ == (~passing).sum()
    for key in ("n_problems", "n_errors", "wealth", "shown"):
        np.testing.assert_equal(found.summary()[key], monitor.summary()[key])


def test_a_written_answer_without_claims_does_not_pass():
    cf = HardCF(
        "frequency-score",
        alpha=0.3,
        guarantee=NoFalseClaim(show=0.5),
        online=True,
        edges=chain_edges,
    ).fit(GRAPHS[:200], Y[:200])
    _, [end] = stream(create_app(cf), as_lines([{"question": "Is it so?"}]))
    assert (end["mask"], end["passes"]) == ([], False)
