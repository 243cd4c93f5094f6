"""A service to talk to: called in this process, or served by another one over HTTP."""

import asyncio
import http.client
import json
import os
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

from skdcf.datasets import make_reasoning_graphs
from skdcf.datasets.jsonl import format_jsonl

DATA = make_reasoning_graphs(400, random_state=0)


GRAPHS = [
    graph.replace(claims=[f"claim {v} of {i}" for v in range(graph.n_claims)])
    for i, graph in enumerate(DATA.graphs)
]


Y = DATA.labels


TOKEN = "a-secret-of-the-service-24680"


def body_of(graph):
    return next(format_jsonl([graph])).encode()


def call(app, path, content=b"", method="POST", **headers):
    return asyncio.run(reply_of(app, path, content, method, **headers))


async def reply_of(
    app,
    path,
    content=b"",
    method="POST",
    *,
    pieces=None,
    receive=None,
    broken=False,
    **headers,
):
    """Status, body and headers, or None without a reply; no lifespan is ever sent.

    A client may send its request in pieces, or by a function of its own; a broken one takes
    no reply.
    """
    headers = {"host": "127.0.0.1:1", "content_type": "application/json", **headers}
    pairs = [(k.replace("_", "-").encode(), v.encode()) for k, v in headers.items()]
    pieces = pieces or [content[k : k + 65536] for k in range(0, len(content), 65536)]
    pieces = list(pieces) or [b""]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "scheme": "http",
        "query_string": b"",
        "headers": [pair for pair in pairs if pair[1] != b"-"],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 1),
    }
    sent = []

    async def receive_piece():
        if not pieces:  # the client waits for its reply
            await asyncio.Event().wait()
        piece = pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(pieces)}

    async def send(message):
        if broken:
            raise OSError("the connection is closed")
        sent.append(message)

    await app(scope, receive or receive_piece, send)
    if not sent or sent[0]["status"] == 499:  # which nobody sees
        return None
    raw = b"".join(m.get("body", b"") for m in sent[1:])
    head = {k.decode(): v.decode() for k, v in sent[0]["headers"]}
    text = raw.decode()
    reply = json.loads(text) if head.get("content-type") == "application/json" else text
    return sent[0]["status"], reply, head


def rows_of(folder, columns):
    """Rows of the journal of answers, as another program reads them."""
    with closing(sqlite3.connect(folder / "journal.sqlite")) as db:
        return db.execute(f"SELECT {columns} FROM answers ORDER BY number").fetchall()


GOOD = body_of(GRAPHS[200])


def lines_of(graph, **about):
    """What is known beforehand, and each claim, as lines."""
    yield {
        "question": graph.problem,
        "feature_names": list(graph.feature_names),
        **about,
    }
    for v in range(graph.n_claims):
        parents = graph.edges[graph.edges[:, 1] == v, 0].tolist()
        features = graph.features[v].tolist()
        yield {"text": graph.claims[v], "parents": parents, "features": features}


def as_lines(records):
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


LINES = {"content_type": "application/x-ndjson"}


class Serving:
    """``skdcf serve`` in another process; ``before`` is run in it first."""

    def __init__(self, model, *options, before="", **environment):
        program = (
            f"import sys\n{before}\nfrom skdcf.__main__ import main\nsys.exit(main())"
        )
        for _ in range(3):  # another program may take the port that was found free
            self._start(program, model, options, environment)
            if self._answers():
                return
            self.process.kill()
            said = self.process.communicate()[1]
        raise AssertionError(f"it did not start: {said}")

    def _start(self, program, model, options, environment):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        command = [sys.executable, "-c", program, "serve", str(model)]
        command += ["--port", str(self.port), *map(str, options)]
        self.process = subprocess.Popen(
            command, stderr=subprocess.PIPE, env=os.environ | environment, text=True
        )

    def _answers(self):
        end = time.monotonic() + 120
        while self.process.poll() is None and time.monotonic() < end:
            try:
                return self.ask("GET", "/health")[0] == 200
            except OSError:
                time.sleep(0.1)
        return False

    def ask(self, method, path, record=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        content = None if record is None else json.dumps(record)
        headers = {"Content-Type": "application/json", **headers}
        try:
            connection.request(method, path, content, headers)
            reply = connection.getresponse()
            return reply.status, reply.read()
        finally:
            connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


async def at_once(port, contents):
    """All requests are sent before any reply is read."""

    async def one(content):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = (
            "POST /v1/filter HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
            "Content-Type: application/json\r\n"
            f"Content-Length: {len(content)}\r\n\r\n"
        )
        writer.write(head.encode() + content)
        await writer.drain()
        reply = await reader.read()
        writer.close()
        top, _, body = reply.partition(b"\r\n\r\n")
        return int(top.split()[1]), json.loads(body)

    return await asyncio.gather(*(one(content) for content in contents))
