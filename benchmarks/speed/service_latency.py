"""How long the running service takes to filter one answer: median and 99th percentile.

    python -m benchmarks.speed.service_latency [--before FOLDER]

``skdcf serve`` runs in a process of its own and writes its journal to a folder. A client with
one open connection sends one answer at a time. With ``--before`` the service of an older
checkout runs as well, with a filter that the older checkout has fitted. The two services then
take turns, answer by answer, so a busy machine slows down both.
"""

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parents[2]
TESTS = str(HERE / "tests")
sys.path.insert(0, TESTS)

from serving import GRAPHS, Serving, body_of  # noqa: E402

HOST = b"127.0.0.1"
BODIES = [body_of(graph) for graph in GRAPHS[200:]]
N_WARM = 200  # requests before the measurement
FIT = """
import sys
sys.path.insert(0, {tests!r})
import skdcf
from serving import GRAPHS, Y
cf = skdcf.HardCF("frequency-score", alpha=0.2).fit(GRAPHS[:200], Y[:200])
skdcf.save(cf, {path!r})
assert skdcf.__file__.startswith({checkout!r}), skdcf.__file__
"""


def serve(stack, checkout, folder):
    """Fit a filter and start a service, both with the package of a checkout."""
    path = str(folder / "filter.skops")
    # The safe path excludes the current folder, which may contain another checkout.
    environment = {"PYTHONPATH": str(checkout.resolve()), "PYTHONSAFEPATH": "1"}
    program = FIT.format(tests=TESTS, path=path, checkout=str(checkout.resolve()))
    words = [sys.executable, "-c", program]
    subprocess.run(words, env=os.environ | environment, check=True)
    serving = Serving(path, "--folder", folder / "journal", **environment)
    return stack.enter_context(serving)


def measure(services, n_requests):
    """Return the seconds of each request to each service."""
    with ExitStack() as stack:
        links = [stack.enter_context(linked(service.port)) for service in services]
        seconds = np.empty((N_WARM + n_requests, len(links)))
        for i, row in enumerate(seconds):
            for k, link in enumerate(links):
                begin = time.perf_counter()
                ask(link, BODIES[i % len(BODIES)])
                row[k] = time.perf_counter() - begin
    return seconds[N_WARM:]


def linked(port):
    """Return an open connection."""
    link = socket.create_connection((HOST, port), timeout=60)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return link


def body_in(reply):
    """Return the body of a reply, or None while some of it is missing."""
    head, end, body = reply.partition(b"\r\n\r\n")
    length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
    return body if end and len(body) >= int(length) else None


def ask(link, content):
    """Send a request to filter an answer, and read the whole reply."""
    link.sendall(
        b"POST /v1/filter HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n%s" % (HOST, len(content), content)
    )
    reply = b""
    while body_in(reply) is None:
        reply += link.recv(65536)
    assert reply.startswith(b"HTTP/1.1 200"), reply


def main(before, n_requests):
    """Print a line per checkout."""
    checkouts = {"now": HERE} | ({} if before is None else {"before": before})
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        services = []
        for name, checkout in checkouts.items():
            (place := Path(folder) / name).mkdir()
            services.append(serve(stack, checkout, place))
        seconds = measure(services, n_requests)
    print(f"{n_requests} answers, one at a time, in milliseconds")
    print(f"{'package':<8}  median  99th percentile")
    for name, column in zip(checkouts, 1e3 * seconds.T, strict=True):
        median, high = np.quantile(column, [0.5, 0.99])
        print(f"{name:<8}  {median:6.2f}  {high:15.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, help="folder of an older checkout")
    parser.add_argument("--n-requests", type=int, default=4000)
    options = parser.parse_args()
    main(options.before, options.n_requests)
