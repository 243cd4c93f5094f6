"""How long the running service takes to filter one answer: median and 99th percentile.

    python -m benchmarks.speed.service_latency

``skdcf serve`` runs in a process of its own and stores its answers in a folder. A client with
one open connection sends one answer at a time. In turn with the service, ``predict`` filters
the same answer in this process, so a busy machine slows down both.
"""

import argparse
import http.client
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import numpy as np

import skdcf

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from serving import GRAPHS, Serving, Y, body_of

BODIES = [body_of(graph) for graph in GRAPHS[200:]]
N_WARM = 200  # requests before the measurement
HEADERS = {"Content-Type": "application/json"}


def seconds_of(work):
    """Return the duration of a function call."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def measure(cf, link, n_requests):
    """Return the seconds of the service and of predict for each answer."""

    def ask(i):
        link.request("POST", "/v1/filter", BODIES[i], HEADERS)
        reply = link.getresponse()
        content = reply.read()
        assert reply.status == 200, content

    seconds = []
    for k in range(N_WARM + n_requests):
        i = k % len(BODIES)
        service = seconds_of(lambda i=i: ask(i))
        predict = seconds_of(lambda i=i: cf.predict([GRAPHS[200 + i]]))
        seconds.append((service, predict))
    return np.array(seconds[N_WARM:])


def main(n_requests):
    """Print a line for the service, and a line for predict."""
    cf = skdcf.HardCF("frequency-score", alpha=0.2).fit(GRAPHS[:200], Y[:200])
    with tempfile.TemporaryDirectory() as folder:
        path = skdcf.save(cf, f"{folder}/filter.skops")
        with (
            Serving(path, "--folder", f"{folder}/answers") as service,
            closing(http.client.HTTPConnection("127.0.0.1", service.port)) as link,
        ):
            seconds = measure(cf, link, n_requests)
    print(f"{n_requests} answers, one at a time, in milliseconds")
    print(f"{'':<8}  median  99th percentile")
    for name, column in zip(("service", "predict"), 1e3 * seconds.T, strict=True):
        median, high = np.quantile(column, [0.5, 0.99])
        print(f"{name:<8}  {median:6.2f}  {high:15.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n-requests", type=int, default=4000)
    main(parser.parse_args().n_requests)
