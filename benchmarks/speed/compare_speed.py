"""Measure the processor time of frequent tasks, optionally for two versions of the package.

    python -m benchmarks.speed.compare_speed [--before FOLDER] [--rounds 3] [--only TASK ...]

Each task runs in a process of its own, so texts are read for the first time. If the folder of an
older checkout is given, the two checkouts alternate, and the ratio of the fastest runs is printed.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from skdcf import CoherentConformalFilter, GraphBatch, HardCF, SingleFeatureCF
from skdcf.datasets import fetch_process_bench, make_reasoning_graphs
from skdcf.evaluation import compare_filters
from skdcf.features import reasoning_features

HERE = Path(__file__).resolve().parents[2]
ALPHAS = (0.02, 0.05, 0.1, 0.2, 0.3)


def comparison():
    """Compare three filters that learn nothing, on 400 problems and 20 splits."""
    X, y = make_reasoning_graphs(400, random_state=0, return_X_y=True)
    filters = {
        "frequency": HardCF("frequency-score"),
        "reachability": SingleFeatureCF("nx_reachability"),
        "index": SingleFeatureCF("claim_index"),
    }
    return lambda: compare_filters(filters, X, y, ALPHAS, cv=20, random_state=0)


def default_fit():
    """Fit the default filter to 500 problems."""
    problems = make_reasoning_graphs(500, random_state=0, return_X_y=True)
    return lambda: CoherentConformalFilter(random_state=0).fit(*problems)


def default_answers():
    """Filter 200 answers with the default filter, one at a time."""
    X, y = make_reasoning_graphs(700, random_state=0, return_X_y=True)
    cf = CoherentConformalFilter(random_state=0).fit(X[:500], y[:500])
    return lambda: [cf.predict([X[i]]) for i in range(500, 700)]


def text_features():
    """Compute the features of 400 texts."""
    texts = fetch_process_bench("gsm8k").graphs.replace_features(None)
    return lambda: reasoning_features().fit_transform(texts)


def large_problem(n, edges):
    """Fit and filter 230 problems and a large one."""
    X, y = make_reasoning_graphs(230, random_state=0, return_X_y=True)
    rng = np.random.default_rng(0)
    rows = rng.integers(X.n_claims, size=n)
    features = np.concatenate([X.features, X.features[rows]])
    offsets = [*X.offsets, X.n_claims + n]
    edges = np.concatenate([X.edges, edges + X.n_claims])
    labels = [*y, (rng.random(n) < 1 - 1 / n).astype(int)]

    def fit():
        X = GraphBatch.from_arrays(features, offsets, edges)
        HardCF(0).fit(X, labels).predict(X)

    return fit


def long_chain():
    """A problem with 100,000 claims, each of which depends on the claim before."""
    n = 100_000
    return large_problem(n, np.c_[: n - 1, 1:n])


def dense_graph():
    """A problem with 1,000 claims, each of which depends on all claims before."""
    return large_problem(1000, np.transpose(np.triu_indices(1000, 1)))


TASKS = {
    task.__name__: task
    for task in (
        comparison,
        default_fit,
        default_answers,
        text_features,
        long_chain,
        dense_graph,
    )
}


def seconds_in(folder, task):
    """Processor time of a task with the package in a folder."""
    found = subprocess.run(
        [sys.executable, "-W", "ignore", __file__, "--once", task],
        env=os.environ | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(found.stdout)


def main(options):
    """Print the seconds of each task, and the ratio."""
    for task in options.only:
        here, before = [], []
        for _ in range(options.rounds):
            here.append(seconds_in(HERE, task))
            if options.before:
                before.append(seconds_in(options.before, task))
        line = f"{task:16} {min(here):7.3f} s"
        if before:
            ratio = min(here) / min(before)
            line += f", before {min(before):7.3f} s, ratio {ratio:.2f}"
        print(line, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, help="folder of an older checkout")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", default=list(TASKS), choices=TASKS)
    parser.add_argument("--once", choices=TASKS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.once:
        work = TASKS[options.once]()
        start = time.process_time()
        work()
        print(time.process_time() - start)
    else:
        main(options)
