"""Claims per second of the text features, on one core, and of the graph metrics.

    python benchmarks/text_speed.py [--problems N] [--data-home FOLDER]

PERL gsm8k + math is repeated up to N problems, in each copy with other short words:
hardly a text occurs twice, and the arithmetic stays what it is.

Seen: a text that was read before takes a third of the time, one that was not takes as
long as in commit 9085a2f (48 us a claim of PERL, 50 of ProcessBench), with the same
columns to the bit. PRMBench, where two thirds of the claims repeat others, takes 0.77
times as long. Twice as fast for new texts was the aim and is not reached: reading is
spread over many short calls. Of PERL's time, equalities take two fifths, cleaning, words
and numbers a quarter, comparing with premises a fifth.
"""

import argparse
import re
import time
import tracemalloc

import numpy as np

from skdcf import GraphBatch
from skdcf.datasets import fetch_perl, make_reasoning_graphs
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


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=100_000)
    parser.add_argument("--data-home", help="where the data lie")
    chosen = parser.parse_args()
    main(chosen.problems, chosen.data_home)
