"""Measure time, requests and lost answers of a client while a server refuses calls.

    python -m benchmarks.speed.refusals [--before FOLDER]

A local server splits forty answers into claims and refuses some requests with status 429, in one
of several ways. With the defaults of `ChatClient`, at most eight calls are concurrent. Each
measurement runs in a separate process. With ``--before``, an older checkout is measured as well,
directly after this one. A run that takes longer than two minutes is stopped and reported as
unfinished.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from chat_server import ChatServer, Status

HERE = Path(__file__).resolve().parents[2]
MOST_SECONDS = 120

N_ANSWERS = 40
REPLY = json.dumps({"claims": ["A claim."]})


class FirstThirty:
    """Refuse the first thirty requests, each with ``Retry-After: 0.2``."""

    def __init__(self):
        self.n_left = 30

    def refuse(self):
        self.n_left -= 1
        return "0.2" if self.n_left >= 0 else None


class AtRandom:
    """Refuse 70 % of all requests, each with ``Retry-After: 1``."""

    def __init__(self):
        self.random = random.Random(0)

    def refuse(self):
        return "1" if self.random.random() < 0.7 else None


class Bucket:
    """Take four requests a second, and refuse the others."""

    def __init__(self, retry_after):
        self.retry_after = retry_after
        self.n_free = 4.0
        self.filled = time.monotonic()

    def refuse(self):
        now = time.monotonic()
        self.n_free = min(self.n_free + 4 * (now - self.filled), 4.0)
        self.filled = now
        if self.n_free < 1:
            return self.retry_after
        self.n_free -= 1
        return None


SERVERS = {
    "the first thirty, Retry-After: 0.2": FirstThirty,
    "70 % at random, Retry-After: 1": AtRandom,
    "a bucket of four a second, Retry-After: 1": lambda: Bucket("1"),
    "a bucket of four a second, no header": lambda: Bucket(""),
}


def measure(limit):
    """Seconds, requests, refused requests, and answers without a claim."""
    try:
        from skdcf.apps import llm
    except ImportError:  # The older checkout may have the package at another place.
        from skdcf import llm
    from skdcf.edges import no_edges

    lock = threading.Lock()
    refused = []

    def script(request, n):
        with lock:
            wait = limit.refuse()
        if wait is None:
            return REPLY
        refused.append(wait)
        return Status(429, {"Retry-After": wait} if wait else {})

    def extract(server, answers):
        client = llm.ChatClient(server.url, key_variable=None)
        extractor = llm.ClaimExtractor(
            "any", client, graph=no_edges, on_failure="abstain"
        )
        return extractor.transform(answers)

    answers = [(f"question {i}", f"answer {i}") for i in range(N_ANSWERS)]
    with ChatServer(lambda request, n: REPLY) as server:
        extract(server, answers[:1])  # import all packages before the measurement
    with ChatServer(script) as server:
        begin = time.perf_counter()
        give_up = threading.Timer(MOST_SECONDS, stop_process)
        give_up.start()
        try:
            n_lost = sum(graph.n_claims == 0 for graph in extract(server, answers))
        except llm.CallError:
            n_lost = N_ANSWERS
        give_up.cancel()
        return time.perf_counter() - begin, len(server.requests), len(refused), n_lost


def stop_process():
    """Print that the measurement did not end, and end the process."""
    print(f"not finished within {MOST_SECONDS} s", flush=True)
    os._exit(0)


def measure_in(checkout, name):
    """Return the numbers of one measurement as text, with the package of a checkout."""
    words = [sys.executable, str(Path(__file__).resolve()), "--once", name]
    path = os.environ | {"PYTHONPATH": str(checkout.resolve())}
    done = subprocess.run(words, env=path, stdout=subprocess.PIPE, check=True)
    return done.stdout.decode().rstrip()


def main(before):
    """Print a line per server and checkout."""
    checkouts = {"now": HERE} | ({} if before is None else {"before": before})
    print(f"{'server':<44} {'package':<8} seconds  requests  refused  lost")
    for name in SERVERS:
        for version, checkout in checkouts.items():
            print(f"{name:<44} {version:<8} {measure_in(checkout, name)}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, help="folder of an older checkout")
    parser.add_argument(
        "--once", choices=SERVERS, help="measure one server in this process"
    )
    options = parser.parse_args()
    if options.once:
        seconds, n_requests, n_refused, n_lost = measure(SERVERS[options.once]())
        print(f"{seconds:7.1f}  {n_requests:8}  {n_refused:7}  {n_lost:4}")
    else:
        main(options.before)
