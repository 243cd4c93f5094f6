"""A server on loopback that speaks the chat-completions protocol over real HTTP.

What it says is scripted: ``script(request, n)`` gets the request's JSON and how often the
same request came before, and returns a text or one of the outcomes below.
"""

import hashlib
import json
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Say:
    """A reply, after a delay in seconds."""

    text: str
    delay: float = 0.0
    finish: str = "stop"
    top_logprobs: list = field(default_factory=list)


@dataclass
class Status:
    """An error."""

    code: int
    headers: dict = field(default_factory=dict)
    body: str = '{"error": {"message": "scripted"}}'


@dataclass
class Raw:
    """A body as it stands; with ``promised`` bytes announced and the rest never sent."""

    body: bytes
    promised: int | None = None


@dataclass
class HangUp:
    """No response at all: the connection is closed."""


class ChatServer(ThreadingHTTPServer):
    """Serves a script; a context manager. ``url`` is what clients need."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, script):
        super().__init__(("127.0.0.1", 0), Handler)
        self.script = script
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1"
        self.lock = threading.Lock()
        self.seen = Counter()  # requests by their digest
        self.requests = []  # (time, headers, JSON)
        self.in_flight = self.most_in_flight = 0

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *error):
        self.shutdown()
        self.server_close()

    def handle_error(self, request, client_address):
        """Clients that hang up are part of the game."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *args):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        key = hashlib.sha256(body).hexdigest()
        server = self.server
        with server.lock:
            n = server.seen[key]
            server.seen[key] += 1
            server.requests.append(
                (time.monotonic(), lowered(self.headers), json.loads(body))
            )
            server.in_flight += 1
            server.most_in_flight = max(server.most_in_flight, server.in_flight)
        try:
            out = server.script(json.loads(body), n)
            time.sleep(getattr(out, "delay", 0))
        finally:
            # A client that has read the reply may send the next request before this thread runs.
            with server.lock:
                server.in_flight -= 1
        self.answer(out)

    def answer(self, out):
        out = Say(out) if isinstance(out, str) else out
        if isinstance(out, HangUp):
            self.close_connection = True
            self.connection.close()
        elif isinstance(out, Raw):
            self.send(200, {}, out.body, out.promised)
            self.close_connection = out.promised is not None
        elif isinstance(out, Status):
            self.send(out.code, out.headers, out.body.encode())
        else:
            self.send(200, {}, json.dumps(completion(out)).encode())

    def send(self, code, headers, body, promised=None):
        self.send_response(code)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, str(value))
        self.send_header("Content-Length", str(promised or len(body)))
        self.end_headers()
        self.wfile.write(body)


def lowered(headers):
    """Headers with names in lower case: clients write them either way."""
    return {name.lower(): value for name, value in headers.items()}


def completion(said):
    """The JSON of a chat completion."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": said.text},
        "finish_reason": said.finish,
    }
    if said.top_logprobs:
        rows = [
            {
                "token": max(row, key=row.get),
                "logprob": max(row.values()),
                "top_logprobs": [{"token": t, "logprob": p} for t, p in row.items()],
            }
            for row in said.top_logprobs
        ]
        choice["logprobs"] = {"content": rows}
    n = len(said.text) // 4 + 1
    usage = {"prompt_tokens": 10, "completion_tokens": n, "total_tokens": 10 + n}
    about = {"id": "1", "object": "chat.completion", "created": 0, "model": "scripted"}
    return about | {"choices": [choice], "usage": usage}
