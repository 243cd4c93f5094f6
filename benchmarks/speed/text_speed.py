"""Measure the claims per second of the text features and the graph metrics on one core.

    python -m benchmarks.speed.text_speed [--problems N] [--data-home FOLDER]
    python -m benchmarks.speed.text_speed --against CHECKOUT [--rounds 8]

PERL gsm8k and math are repeated until there are N problems. In each copy, the short words are
replaced, so few texts occur twice, and the arithmetic is unchanged.

With --against, the code is compared with that of another checkout. In each round, both checkouts
are measured in new processes. A process first reads some of PERL. It then reads, for the first
time, all texts of ProcessBench gsm8k without other answers, and all texts of the GSM8K solutions
with three alternatives. The result is the processor time of one transform of
``reasoning_features``.
"""

import argparse
import gc
import json
import os
import re
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np

from benchmarks.data import fetch_gsm8k_solutions, fetch_perl
from skdcf import GraphBatch
from skdcf.datasets import fetch_process_bench, make_reasoning_graphs
from skdcf.features import GraphFeatures, TextFeatures, reasoning_features


def copies(graphs, n_problems):
    """Problems like those given, as many as asked for."""
    n = len(graphs)
    batch = graphs[np.arange(n_problems) % n]
    copy = np.arange(n_problems) // n
    letters = "abcdefghijklmnopqrstuvw"
    words = [f"q{a}{b}" for a in letters for b in letters]
    renamed = [
        re.sub(r"\b(the|and|for)\b", words[k % len(words)], text)
        for k, text in zip(copy[batch.problem_of], batch.claims, strict=True)
    ]
    return GraphBatch.from_arrays(
        None, batch.offsets, batch.edges, claims=renamed, problems=batch.problems
    )


def timed(transformer, batch):
    """Wall and processor seconds of one transform."""
    transformer = transformer.fit(batch)
    wall, cpu = time.perf_counter(), time.process_time()
    transformer.transform(batch)
    return time.perf_counter() - wall, time.process_time() - cpu


def main(n_problems, data_home):
    """Print the table."""
    graphs = fetch_perl(data_home=data_home).graphs
    batch = copies(graphs, n_problems)
    size = np.mean([len(text) for text in batch.claims])
    print(
        f"{len(batch):,} problems, {batch.n_claims:,} claims of {size:.0f} characters"
    )
    for part in (len(batch) // 10, len(batch)):
        wall, cpu = timed(TextFeatures(), batch[:part])
        n = batch[:part].n_claims
        print(
            f"text, {part:,} problems: {n / wall:,.0f} claims/s "
            f"({n / cpu:,.0f} per processor second)"
        )
    few = batch[: min(len(batch), 1000)]
    first, again = timed(TextFeatures(), few)[0], timed(TextFeatures(), few)[0]
    print(f"text, {len(few):,} problems once more: {first / again:.1f} times as fast")
    reasoning = timed(reasoning_features(), batch)[0]
    print(f"reasoning_features: {batch.n_claims / reasoning:,.0f} claims/s")
    tracemalloc.start()
    TextFeatures().fit(batch[: len(batch) // 10]).transform(batch[: len(batch) // 10])
    print(f"peak memory, a tenth: {tracemalloc.get_traced_memory()[1] / 2**20:.0f} MB")
    tracemalloc.stop()
    drawn = make_reasoning_graphs(len(batch), random_state=0).graphs
    for name, graphs in (("PERL's", batch), ("generated", drawn)):
        wall, _ = timed(GraphFeatures(), graphs)
        print(f"metrics of {name} graphs: {graphs.n_claims / wall:,.0f} claims/s")


def read_once(data_home):
    """Print microseconds a claim of each set, whose texts this process has not read."""
    given = fetch_process_bench("gsm8k", data_home=data_home).graphs
    bare = GraphBatch.from_arrays(
        None, given.offsets, given.edges, claims=given.claims, problems=given.problems
    )
    solutions = fetch_gsm8k_solutions(data_home=data_home).graphs[:1300]
    perl = fetch_perl(data_home=data_home).graphs[:100].replace_features(None)
    timed(reasoning_features(), perl)
    timed(reasoning_features(), solutions[-100:])
    half = len(given) // 2  # other texts for each of the two ways
    for name, batch in (
        ("ProcessBench", given[:half]),
        ("ProcessBench without other answers", bare[half:]),
        ("GSM8K solutions, three alternatives", solutions[:-100]),
    ):
        gc.collect()
        cpu = timed(reasoning_features(), batch.replace_features(None))[1]
        print(json.dumps([name, 1e6 * cpu / batch.n_claims]))


def compare(checkout, n_rounds, data_home):
    """Print how the code of another checkout and this one compare."""
    here = str(Path(__file__).resolve().parents[2])
    seconds = {}
    for k in range(n_rounds):
        for folder in (checkout, here)[:: 1 if k % 2 else -1]:
            command = [sys.executable, __file__, "--once"]
            command += ["--data-home", data_home] if data_home else []
            environment = os.environ | {"PYTHONPATH": os.path.abspath(folder)}
            done = subprocess.run(
                command, env=environment, check=True, capture_output=True, text=True
            )
            for line in done.stdout.splitlines():
                name, took = json.loads(line)
                seconds.setdefault(name, {checkout: [], here: []})[folder].append(took)
    for name, took in seconds.items():
        old, new = np.array(took[checkout]), np.array(took[here])
        low, middle, high = np.percentile(old / new, [25, 50, 75])
        print(
            f"{name}: {np.median(old):.0f} -> {np.median(new):.0f} us a claim (smallest "
            f"{old.min():.0f} -> {new.min():.0f}), {middle:.2f} times as fast (quartiles "
            f"{low:.2f} and {high:.2f}, {n_rounds} rounds)"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=100_000)
    parser.add_argument("--data-home", help="folder of the data")
    parser.add_argument("--against", help="other checkout to compare with")
    parser.add_argument(
        "--rounds", type=int, default=8, help="rounds of the comparison"
    )
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.once:
        read_once(chosen.data_home)
    elif chosen.against:
        compare(chosen.against, chosen.rounds, chosen.data_home)
    else:
        main(chosen.problems, chosen.data_home)
