"""The service and clients that are slow, go away, or are many; and what it says of itself."""

import asyncio
import json
import logging
import re
import signal
import socket
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="fastapi is not installed")
pytest.importorskip("uvicorn", reason="uvicorn is not installed")

from serving import (
    GOOD,
    GRAPHS,
    LINES,
    Serving,
    Y,
    as_lines,
    body_of,
    call,
    lines_of,
    reply_of,
    rows_of,
)

import skdcf
from skdcf.apps.service import JsonFormatter, create_app

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")


@pytest.fixture(scope="module")
def fitted():
    return skdcf.HardCF("frequency-score", alpha=0.2).fit(GRAPHS[:200], Y[:200])


@pytest.fixture(scope="module")
def online():
    online = skdcf.HardCF("frequency-score", alpha=0.2, online=True)
    return online.fit(GRAPHS[:200], Y[:200])


@pytest.fixture(scope="module")
def model(fitted, tmp_path_factory):
    path = tmp_path_factory.mktemp("service") / "m.skops"
    skdcf.save(fitted, path)
    return path


async def never():
    """What a client sends that sends nothing more."""
    await asyncio.Event().wait()


def sending(*pieces):
    """A client that sends some pieces, and then nothing more."""
    pieces = list(pieces)

    async def receive():
        if not pieces:
            await never()
        return {"type": "http.request", "body": pieces.pop(0), "more_body": True}

    return receive


async def gone():
    return {"type": "http.disconnect"}


# --- slow clients


@pytest.mark.parametrize("pieces", [[], [b'{"cl'], [b" "] * 3])
def test_a_body_that_does_not_come_in_time_is_given_up(fitted, monkeypatch, pieces):
    monkeypatch.setattr("skdcf.apps.web.guard._BODY", 0.05)
    app = create_app(fitted)
    for path in ("/v1/filter", "/v1/labels"):
        work = reply_of(app, path, receive=sending(*pieces))
        status, reply, _ = asyncio.run(work)
        assert status == 408 and "within 0.05 seconds" in reply["error"]
    assert call(app, "/v1/filter", GOOD)[0] == 200


def test_a_stream_has_a_deadline_for_its_first_line_and_one_for_each_other(
    online, monkeypatch
):
    monkeypatch.setattr("skdcf.apps.web.guard._BODY", 0.05)
    monkeypatch.setattr("skdcf.apps.web.guard._IDLE", 0.1)
    app = create_app(online)
    head, claim, *_ = lines_of(GRAPHS[200])
    for pieces, seconds in (([b'{"question"'], "0.05"), ([as_lines([head])], "0.1")):
        work = reply_of(app, "/v1/stream", receive=sending(*pieces), **LINES)
        status, reply, _ = asyncio.run(work)
        assert status == 408 and f"within {seconds} seconds" in reply["error"]
    pieces = [as_lines([head]), as_lines([claim]), b'{"text": "half']
    work = reply_of(app, "/v1/stream", receive=sending(*pieces), **LINES)
    status, reply, _ = asyncio.run(work)
    first, last = map(json.loads, reply.splitlines())
    assert status == 200 and list(first) == ["claim", "keep"]
    assert "within 0.1 seconds" in last["error"]


def test_lines_may_come_in_any_pieces(online):
    app = create_app(online)
    content = as_lines(lines_of(GRAPHS[200]))
    whole = call(app, "/v1/stream", content, **LINES)[1].splitlines()[:-1]
    for size in (1, 7, 100):
        pieces = [content[k : k + size] for k in range(0, len(content), size)]
        for last in (pieces, [*pieces[:-1], pieces[-1].rstrip(b"\n")]):
            work = reply_of(app, "/v1/stream", b"".join(last), pieces=last, **LINES)
            assert asyncio.run(work)[1].splitlines()[:-1] == whole


@pytest.mark.parametrize("bound", ["_MOST_BODIES", "_MOST_BYTES"])
def test_the_oldest_body_is_given_up_for_a_new_one(fitted, monkeypatch, bound):
    """4,020 that were slow kept everybody else out, whoever asked for /health included."""
    monkeypatch.setattr(f"skdcf.apps.web.guard.{bound}", 3)
    app = create_app(fitted)

    async def many():
        first = b"  " if bound == "_MOST_BYTES" else b""
        slow = []
        for _ in range(5):
            work = reply_of(app, "/v1/filter", receive=sending(first))
            slow.append(asyncio.create_task(work))
            await asyncio.sleep(0.01)
        if bound == "_MOST_BODIES":
            assert (await reply_of(app, "/v1/filter", GOOD))[0] == 200
        assert (await reply_of(app, "/health", method="GET"))[0] == 200
        ended = [task.result() for task in slow if task.done()]
        for task in slow:
            task.cancel()
        await asyncio.gather(*slow, return_exceptions=True)
        return ended, [task.cancelled() for task in slow]

    ended, still_there = asyncio.run(many())
    assert len(ended) >= 2 and {status for status, *_ in ended} == {503}
    assert still_there == sorted(still_there)  # the newest stay
    assert all("Try again" in reply["error"] for _, reply, _ in ended)
    assert app.guard._bodies._n_bytes == {} and app.guard._bodies._total == 0


def test_health_and_status_stand_outside_the_bound(fitted, monkeypatch):
    monkeypatch.setattr("skdcf.apps.web.guard._MOST_WAITING", 0)
    app = create_app(fitted)
    assert call(app, "/v1/filter", GOOD)[0] == 503
    assert call(app, "/health", method="GET")[0] == 200
    assert call(app, "/v1/status", method="GET")[0] == 200


def test_too_many_streams_are_asked_to_come_later(online, monkeypatch):
    monkeypatch.setattr("skdcf.apps.web.guard._MOST_STREAMS", 0)
    app = create_app(online)
    assert call(app, "/v1/stream", as_lines(lines_of(GRAPHS[200])), **LINES)[0] == 503
    assert call(app, "/v1/filter", GOOD)[0] == 200


# --- clients that go away


@pytest.mark.parametrize("headers", [{}, LINES])
def test_a_client_that_goes_away_is_no_error(online, caplog, headers):
    app = create_app(online)
    path = "/v1/stream" if headers else "/v1/filter"
    assert asyncio.run(reply_of(app, path, receive=gone, **headers)) is None
    assert not caplog.records


@pytest.mark.parametrize("headers", [{}, LINES])
def test_a_reply_that_nobody_takes_is_no_error(online, caplog, headers):
    app = create_app(online)
    content = as_lines(lines_of(GRAPHS[200])) if headers else GOOD
    path = "/v1/stream" if headers else "/v1/filter"
    assert asyncio.run(reply_of(app, path, content, broken=True, **headers)) is None
    assert app.guard.n_streams == 0 and not caplog.records


# --- what it says of itself


def test_the_log_can_be_lines_of_json(fitted, caplog):
    caplog.set_level(logging.INFO, logger="skdcf.apps.service")
    app = create_app(fitted)
    call(app, "/v1/filter", GOOD)
    call(app, "/elsewhere", GOOD)
    lines = [json.loads(JsonFormatter().format(record)) for record in caplog.records]
    assert [line["route"] for line in lines] == ["/v1/filter", "other"]
    assert [line["status"] for line in lines] == [200, 404]
    assert all(line["seconds"] > 0 and line["level"] == "info" for line in lines)
    assert "claim" not in json.dumps(lines)


def test_a_reply_says_whether_its_origin_is_known():
    """Calibrated on claims that a model extracted; asked about claims of unknown origin."""
    told = {"extraction": {"model": "a", "steps": {}}}
    made = [graph.replace(metadata=told) for graph in GRAPHS[:220]]
    cf = skdcf.HardCF("frequency-score", alpha=0.2)
    with_origin = create_app(cf.fit(made[:200], Y[:200]))
    status, reply, _ = call(with_origin, "/v1/filter", body_of(made[210]))
    assert status == 200
    assert (reply["origin"], reply["text_guarantee"]) == ("as calibrated", "claims")
    with pytest.warns(UserWarning, match="extraction.*is unknown"):
        _, reply, _ = call(with_origin, "/v1/filter", body_of(GRAPHS[210]))
    assert (reply["origin"], reply["text_guarantee"]) == ("unknown", "none")
    other = GRAPHS[210].replace(metadata={"extraction": {"model": "b", "steps": {}}})
    status, reply, _ = call(with_origin, "/v1/filter", body_of(other))
    assert status == 400 and "operator of the service" in reply["error"]
    without = create_app(cf.fit(GRAPHS[:200], Y[:200]))
    _, reply, _ = call(without, "/v1/filter", body_of(GRAPHS[210]))
    assert (reply["origin"], reply["text_guarantee"]) == ("unknown", "claims")


# --- another filter, and what is remembered


def test_another_filter_takes_the_place_of_this_one(fitted, tmp_path):
    app = create_app(fitted, folder=tmp_path)
    _, reply, _ = call(app, "/v1/filter", GOOD)
    said = {"id": reply["id"], "labels": [0] * len(reply["mask"]), "sampling": "random"}
    other = skdcf.HardCF("frequency-score", alpha=0.05).fit(GRAPHS[:200], Y[:200])
    app.replace(other)
    assert call(app, "/v1/filter", GOOD)[1]["alpha"] == 0.05
    assert call(app, "/v1/labels", json.dumps(said).encode())[1]["said"] == "saved"
    assert call(app, "/v1/status", method="GET")[1]["n_judged"] == 0
    app.replace(fitted)  # its labels are those of the journal
    assert call(app, "/v1/status", method="GET")[1]["n_judged"] == 1
    before = app.served
    app.replace(fitted)
    assert app.served is before


@pytest.mark.parametrize("has_folder", [False, True])
def test_answers_that_memory_has_dropped_are_looked_up(
    fitted, tmp_path, monkeypatch, has_folder
):
    monkeypatch.setattr("skdcf.apps.service._journal._MOST_IN_MEMORY", 5)
    app = create_app(fitted, folder=tmp_path if has_folder else None)
    ids = [call(app, "/v1/filter", GOOD)[1]["id"] for _ in range(8)]
    labels = [1] * GRAPHS[200].n_claims
    statuses = []
    for name in ids:
        content = json.dumps({"id": name, "labels": labels}).encode()
        statuses.append(call(app, "/v1/labels", content)[0])
    assert statuses == [200] * 8 if has_folder else statuses == [404] * 3 + [200] * 5
    if has_folder:
        assert [name for (name,) in rows_of(tmp_path, "id")] == ids


# --- a process of its own


def connected(port):
    client = socket.create_connection(("127.0.0.1", port), timeout=60)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client


@pytest.mark.long
@POSIX
def test_4000_slow_clients_keep_nobody_out(model, fitted):
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 10_000:
        pytest.skip(f"at most {hard} open files are allowed here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    head = b"POST /v1/filter HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000\r\n"
    head += b"Content-Type: application/json\r\n\r\n{"
    mask = fitted.predict([GRAPHS[200]])[0].tolist()
    clients = []
    try:
        patience = "import skdcf.apps.web.guard as module\nmodule._BODY = 15.0\n"
        with Serving(model, before=patience) as serving:
            for _ in range(4100):
                clients.append(connected(serving.port))
                clients[-1].sendall(head)
            assert serving.ask("GET", "/health")[0] == 200  # all others stand before it
            for _ in range(5):
                begin = time.monotonic()
                assert serving.ask("GET", "/health")[0] == 200
                status, reply = serving.ask("POST", "/v1/filter", json.loads(GOOD))
                assert status == 200 and json.loads(reply)["mask"] == mask
                assert time.monotonic() - begin < 5
            # Each is told at its deadline.
            assert all(client.recv(100).startswith(b"HTTP/1.1") for client in clients)
    finally:
        for client in clients:
            client.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.long
@POSIX
def test_a_connection_on_which_no_request_begins_is_ended(model):
    impatient = "import skdcf.apps.web.server as module\nmodule._HEAD = 0.5\n"
    with Serving(model, before=impatient) as serving:
        with connected(serving.port) as silent, connected(serving.port) as begun:
            begun.sendall(b"POST /v1/filter HTTP/1.1\r\nHost: 127")
            assert silent.recv(10) == b"" and begun.recv(10) == b""
        assert serving.ask("POST", "/v1/filter", json.loads(GOOD))[0] == 200


@pytest.mark.long
@POSIX
def test_half_sent_headers_have_the_same_time_in_every_request(model):
    """Those of the second request of a connection stood open for more than 60 s."""
    impatient = "import skdcf.apps.web.server as module\nmodule._HEAD = 1.0\n"
    with Serving(model, before=impatient) as serving, connected(serving.port) as client:
        for _ in range(3):
            client.sendall(whole_request())
            reply = b""
            while not reply.endswith(b"}"):
                reply += client.recv(65536)
            assert reply.startswith(b"HTTP/1.1 200")
            time.sleep(0.5)  # a pause between requests is no fault
        begin = time.monotonic()
        for piece in (b"POST /v1/filter HTTP/1.1\r\n", b"Host: 127", b".0.0.1"):
            client.sendall(piece)
            time.sleep(0.2)
        assert client.recv(10) == b""
        assert 0.5 < time.monotonic() - begin < 5


@pytest.mark.long
@POSIX
def test_clients_that_hang_up_leave_no_line_in_the_log(model):
    with Serving(model) as serving:
        for cut in (20, 140, 150):
            for _ in range(20):
                client = connected(serving.port)
                client.sendall(whole_request()[:cut])
                client.close()
        for _ in range(20):  # and while the reply is made
            client = connected(serving.port)
            client.sendall(whole_request())
            client.close()
        assert serving.ask("POST", "/v1/filter", json.loads(GOOD))[0] == 200
        serving.process.terminate()
        said = serving.process.communicate(timeout=60)[1]
    assert said.count("\n") == 1 and "Ctrl-C" in said


def whole_request():
    head = f"POST /v1/filter HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(GOOD)}"
    return f"{head}\r\nContent-Type: application/json\r\n\r\n".encode() + GOOD


@pytest.mark.long
@POSIX
def test_a_signal_loads_the_filter_anew_and_a_broken_one_keeps_the_old(
    fitted, tmp_path
):
    path = tmp_path / "m.skops"
    skdcf.save(fitted, path)
    other = skdcf.HardCF("frequency-score", alpha=0.05).fit(GRAPHS[:200], Y[:200])
    with Serving(path, "--json-logs") as serving:

        def alpha_of():
            reply = serving.ask("POST", "/v1/filter", json.loads(GOOD))[1]
            return json.loads(reply)["alpha"]

        assert alpha_of() == 0.2
        good = path.read_bytes()
        path.write_bytes(good[:-100])
        serving.process.send_signal(signal.SIGHUP)
        time.sleep(2)
        assert alpha_of() == 0.2
        skdcf.save(other, path)
        serving.process.send_signal(signal.SIGHUP)
        end = time.monotonic() + 30
        while alpha_of() != 0.05:
            assert time.monotonic() < end
            time.sleep(0.1)
        serving.process.terminate()
        said = serving.process.communicate(timeout=60)[1]
    first, *lines = said.splitlines()
    lines = [json.loads(line) for line in lines]
    assert "Ctrl-C" in first
    assert any("the previous filter stays" in line["message"] for line in lines)
    assert any("was reloaded" in line["message"] for line in lines)
    assert sum(line.get("route") == "/v1/filter" for line in lines) >= 3


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("has_folder", [False, True])
def test_8000_requests_leave_the_memory_as_it_was(model, tmp_path, has_folder):
    options = ["--folder", tmp_path] if has_folder else []
    few = "import skdcf.apps.service._journal as journal\njournal._MOST_IN_MEMORY = 1000\n"
    used = []
    request = whole_request()
    with (
        Serving(model, *options, before=few) as serving,
        connected(serving.port) as client,
    ):
        for n in range(1, 8001):
            client.sendall(request)
            reply = b""
            while not reply.endswith(b"}"):
                reply += client.recv(65536)
            assert reply.startswith(b"HTTP/1.1 200")
            if n % 1000 == 0:
                status = Path(f"/proc/{serving.process.pid}/status").read_text()
                used.append(int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024)
    # An answer that stayed for ever would take 130 bytes, .8 MB in these 6,000. In a
    # folder as much goes to the pages that SQLite keeps in memory, at most 2 MB in all.
    assert np.ptp(used[1:]) < (1.5 if has_folder else 0.5), used
