"""Measure the overhead of the service, with single requests and with 1,000 parallel requests.

A plain call filters one answer and returns the text of the kept claims. A request returns the mask,
the text, the reasons and an id, and is written to the journal. The same answers are filtered in
three ways: by plain calls, by calls of the application in this process, and over HTTP on one open
connection to a service in a separate process. The three ways alternate answer by answer, so other
processes affect all of them equally. To measure the time of the connection and the operating
system, two other applications run on the same server: one replies immediately, and one makes a
plain call first.

With single requests, a request should add at most the time of one plain call. With parallel
requests, the service should filter at least half as many answers per second as plain calls.
Parallel requests are sent twice: on open connections, and each on a new connection. The filter is
the fastest one, so the overhead has the largest effect. With --auto, the default filter is used.
"""

import argparse
import asyncio
import selectors
import socket
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np

TESTS = str(Path(__file__).resolve().parents[2] / "tests")
sys.path.insert(0, TESTS)

from serving import GRAPHS, Serving, Y, at_once, body_of  # noqa: E402

import skdcf  # noqa: E402
from skdcf.apps.service import create_app  # noqa: E402
from skdcf.inspection import explain  # noqa: E402

HOST = b"127.0.0.1"
CONTENTS = [body_of(graph) for graph in GRAPHS[200:400]]
# In place of the service: every reply is as long as one of its own, and before it comes a
# plain call for the next of the graphs, or nothing.
BARE = """
import itertools
sys.path.insert(0, {tests!r})
import skdcf.apps.cli._serve as door
HEAD = [(b"content-type", b"application/json"), (b"content-length", b"500")]
class Bare:
    def __init__(self, filters):
        [filter] = filters.values()
        if {plain}:
            from serving import GRAPHS
            graphs = itertools.cycle(GRAPHS[200:400])
            self.work = lambda: filter.filter([next(graphs)], output="text")
        else:
            self.work = lambda: None
    def replace(self, filters, calibrated):
        pass
    async def __call__(self, scope, receive, send):
        if scope["type"] == "http":
            while (await receive()).get("more_body"):
                pass
            self.work()
            await send({{"type": "http.response.start", "status": 200, "headers": HEAD}})
            await send({{"type": "http.response.body", "body": b" " * 500}})
door.create_app = lambda filter, **options: Bare(filter)
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n-rounds", type=int, default=10)
    parser.add_argument("--n-at-once", type=int, default=1000)
    parser.add_argument("--auto", action="store_true", help="the default filter")
    options = parser.parse_args()
    cf = skdcf.HardCF("frequency-score", alpha=0.2)
    if options.auto:
        cf = skdcf.CoherentConformalFilter(alpha=0.2, random_state=0)
    cf.fit(GRAPHS[:200], Y[:200])
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        path = skdcf.save(cf, Path(folder) / "filter.skops")
        bare = {plain: BARE.format(tests=TESTS, plain=plain) for plain in (True, False)}
        serving = stack.enter_context(Serving(path, "--folder", f"{folder}/there"))
        ways = {
            "plain call": lambda graph, _: cf.filter([graph], output="text"),
            "explain": lambda graph, _: explain(cf, graph),
            "in process": inside(create_app(cf, folder=folder)),
            "over HTTP": over_http(stack, serving),
        }
        for name, plain in (("plain over HTTP", True), ("empty over HTTP", False)):
            other = stack.enter_context(Serving(path, before=bare[plain]))
            ways[name] = over_http(stack, other)
        report_single(ways, options.n_rounds)
        report_at_once(ways["plain call"], serving.port, options)


def report_single(ways, n_rounds):
    """Print the time of each way, and what it adds, in plain calls, round by round."""
    seconds = np.empty((n_rounds + 1, len(CONTENTS), len(ways)))
    for row in seconds:  # the ways take turns, answer by answer
        for i, item in enumerate(zip(GRAPHS[200:400], CONTENTS, strict=True)):
            row[i] = [timed(way, *item) for way in ways.values()]
    times = dict(zip(ways, np.median(seconds[1:], axis=1).T, strict=True))
    for name, found in times.items():
        added = found / times["plain call"] - 1
        print(f"{name:16s} {1e3 * np.median(found):.2f} ms: {shown(added)} plain calls")
    added = times["over HTTP"] / times["plain over HTTP"] - 1
    print(f"over HTTP, in plain calls over HTTP: {shown(added)}")


def timed(function, *given):
    """Seconds of a call."""
    begin = time.perf_counter()
    function(*given)
    return time.perf_counter() - begin


def report_at_once(plain, port, options):
    """Print how many a second are filtered by plain calls, and of many at once."""
    many = [CONTENTS[i % len(CONTENTS)] for i in range(options.n_at_once)]
    rates = []
    for _ in range(max(3, options.n_rounds // 2)):
        one = np.mean([timed(plain, graph, None) for graph in GRAPHS[200:400]])
        with ExitStack() as stack:
            links = [stack.enter_context(linked(port)) for _ in many]
            kept = timed(all_on, links, many)
        begin = time.perf_counter()
        replies = asyncio.run(at_once(port, many))
        anew = time.perf_counter() - begin
        rates.append([1 / one, len(many) / kept, len(many) / anew])
        assert all(status == 200 for status, _ in replies)
    one, *together = np.transpose(rates)
    print(f"plain calls {np.median(one):.0f}/s")
    for name, found in zip(("open", "new"), together, strict=True):
        print(
            f"{len(many)} at once on {name} connections {np.median(found):.0f}/s: "
            f"{shown(found / one)}"
        )


def all_on(links, contents):
    """Send a request on each connection, and then read all replies as they come."""
    begun, waiting = {}, selectors.DefaultSelector()
    for link, content in zip(links, contents, strict=True):
        link.sendall(request_of(content))
        waiting.register(link, selectors.EVENT_READ)
    while len(waiting.get_map()):
        for key, _ in waiting.select():
            link = key.fileobj
            begun[link] = begun.get(link, b"") + link.recv(65536)
            if (whole := body_in(begun[link])) is not None:
                assert begun[link].startswith(b"HTTP/1.1 200"), whole
                waiting.unregister(link)


def shown(values):
    """A median, and the range."""
    return f"{np.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def inside(app):
    """A function that calls an application as a server does, without one."""
    headers = [(b"host", HOST), (b"content-type", b"application/json")]
    scope = {
        "type": "http",
        "method": "POST",
        "query_string": b"",
        "path": "/v1/filter",
        "headers": headers,
    }
    loop = asyncio.new_event_loop()

    async def send(message):
        assert message.get("status", 200) == 200, message

    def call(_, content):
        async def receive():
            return {"type": "http.request", "body": content, "more_body": False}

        loop.run_until_complete(app(dict(scope), receive, send))

    return call


def over_http(stack, serving):
    """A function that sends a request over a connection that stays open."""
    link = stack.enter_context(linked(serving.port))
    return lambda _, content: ask(link, content)


def linked(port):
    """An open connection."""
    link = socket.create_connection((HOST, port), timeout=60)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return link


def request_of(content):
    """A request to filter an answer."""
    return (
        b"POST /v1/filter HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n%s" % (HOST, len(content), content)
    )


def body_in(reply):
    """The body of a reply, or None as long as some of it is missing."""
    head, end, body = reply.partition(b"\r\n\r\n")
    length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
    return body if end and len(body) >= int(length) else None


def ask(link, content):
    """Send a request and read the whole reply."""
    link.sendall(request_of(content))
    reply = b""
    while body_in(reply) is None:
        reply += link.recv(65536)
    assert reply.startswith(b"HTTP/1.1 200"), reply


if __name__ == "__main__":
    main()
