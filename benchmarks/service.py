"""What the service adds to a plain call: one request at a time, and 1,000 at once.

The same problems are filtered by a plain call, one problem each, and over HTTP by a service
in a process of its own. One at a time, it should add at most one plain call to the time; at
once, it should filter at least half as many a second as plain calls do.
"""

import argparse
import asyncio
import http.client
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from test_service import GRAPHS, Serving, Y, at_once, body_of

import skdcf
from skdcf.inspection import explain


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n-requests", type=int, default=1000)
    n = parser.parse_args().n_requests
    cf = skdcf.HardCF("frequency-score", alpha=0.2).fit(GRAPHS[:200], Y[:200])
    graphs = [GRAPHS[200 + i % 200] for i in range(n)]
    contents = [body_of(graph) for graph in graphs]
    explain(cf, graphs[0])  # the first call loads modules
    plain = timed(explain, [(cf, graph) for graph in graphs])
    with tempfile.TemporaryDirectory() as folder:
        path = skdcf.save(cf, Path(folder) / "filter.skops")
        with Serving(path, "--folder", folder) as serving:
            link = http.client.HTTPConnection("127.0.0.1", serving.port)
            ask(link, contents[0])
            single = timed(ask, [(link, content) for content in contents])
            begin = time.perf_counter()
            replies = asyncio.run(at_once(serving.port, contents))
            together = n / (time.perf_counter() - begin)
    assert all(status == 200 for status, _ in replies)
    usual, over = np.median(plain), np.median(single)
    print(f"plain call {1e3 * usual:.2f} ms; over HTTP {1e3 * over:.2f} ms: adds "
          f"{(over - usual) / usual:.2f} plain calls")  # fmt: skip
    rate = n / plain.sum()
    print(
        f"plain calls {rate:.0f}/s; {n} at once {together:.0f}/s: {together / rate:.2f}"
    )


def timed(function, items):
    """Seconds of each call."""
    out = []
    for item in items:
        begin = time.perf_counter()
        function(*item)
        out.append(time.perf_counter() - begin)
    return np.array(out)


def ask(link, content):
    """One request over a connection that stays open."""
    link.request("POST", "/v1/filter", content, {"Content-Type": "application/json"})
    reply = link.getresponse()
    assert reply.status == 200, json.loads(reply.read())
    return reply.read()


if __name__ == "__main__":
    main()
