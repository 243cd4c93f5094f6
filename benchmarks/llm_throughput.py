"""How long 1,000 answers take with 8 calls in flight, against the ideal time.

A server in a process of its own replies to every call after the same delay; the ideal
time is the number of calls times the delay, over the calls in flight. Printed are the ratio
with an empty cache, with a full one, and the processor time of the client per call.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent / "tests"
sys.path.insert(0, str(TESTS))

from scripted_model import ScriptedModel, make_question  # noqa: E402

from skdcf.apps.llm import ChatClient, ClaimExtractor  # noqa: E402
from skdcf.edges import number_flow_edges  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n-answers", type=int, default=1000)
    parser.add_argument("--in-flight", type=int, default=8)
    parser.add_argument("--delay", type=float, default=0.5, help="seconds per reply")
    options = parser.parse_args()
    serve = [sys.executable, TESTS / "chat_server.py", "--delay", str(options.delay)]
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as server,
    ):
        try:
            url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
            measure(url, Path(folder, "cache.sqlite"), options)
        finally:
            server.kill()


def measure(url, cache, options):
    """Print the times of a run with one call per answer."""
    rng, model = random.Random(0), ScriptedModel()
    questions = [f"{make_question(rng)} ({i})" for i in range(options.n_answers)]
    answers = [(q, model.solve(q, rng) + f"\nThis is answer {q}.") for q in questions]
    client = ChatClient(url, cache=cache, in_flight=options.in_flight)
    extractor = ClaimExtractor(
        "m", client, graph=number_flow_edges, confirm=lambda e: True
    )
    ideal = options.n_answers * options.delay / options.in_flight
    for name in ("empty cache", "full cache"):
        wall, processor = time.perf_counter(), time.process_time()
        extractor.transform(answers)
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
        print(
            f"{name}: {wall:6.2f} s, {wall / ideal:.3f} of the ideal {ideal:.2f} s; "
            f"{1000 * processor / options.n_answers:.2f} ms of processor time per answer; "
            f"{extractor.usage_.calls} calls"
        )


if __name__ == "__main__":
    main()
