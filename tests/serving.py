"""A service to talk to: called in this process, or served by another one over HTTP."""

import asyncio
import json

from skdcf.datasets import make_reasoning_graphs
from skdcf.datasets.jsonl import format_jsonl

DATA = make_reasoning_graphs(400, random_state=0)


GRAPHS = [
    graph.replace(claims=[f"claim {v} of {i}" for v in range(graph.n_claims)])
    for i, graph in enumerate(DATA.graphs)
]


Y = DATA.labels


def body_of(graph):
    return next(format_jsonl([graph])).encode()


def call(app, path, content=b"", method="POST", **headers):
    """Status, body and headers of a reply; the body is a list if it has several lines."""
    if not isinstance(content, bytes):
        content = json.dumps(content).encode()
    pieces = [content[k : k + 65536] for k in range(0, len(content), 65536)]
    return asyncio.run(reply_of(app, path, pieces or [b""], method, **headers))


async def reply_of(app, path, pieces, method="POST", receive=None, **headers):
    """A client may also send its request by a function of its own. No lifespan is ever sent."""
    headers = {"host": "127.0.0.1:1", "content_type": "application/json", **headers}
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
        "headers": [
            (k.replace("_", "-").encode(), v.encode()) for k, v in headers.items()
        ],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 1),
    }
    sent = []
    pieces = list(pieces)

    async def receive_piece():
        if not pieces:  # the client waits for its reply
            await asyncio.Event().wait()
        piece = pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(pieces)}

    async def send(message):
        sent.append(message)

    await app(scope, receive or receive_piece, send)
    text = b"".join(m.get("body", b"") for m in sent[1:]).decode()
    head = {k.decode(): v.decode() for k, v in sent[0]["headers"]}
    if path != "/v1/stream":
        return sent[0]["status"], json.loads(text), head
    return sent[0]["status"], [*map(json.loads, text.splitlines())], head


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
