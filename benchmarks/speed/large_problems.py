"""Measure time and memory for one problem with thousands of claims among 230 small problems.

    python -m benchmarks.speed.large_problems [--growth]

Each line is measured in a separate process, so its peak memory is measured separately. Processor
time is measured, so other processes have little influence.

With --growth, the sums over ancestors are timed at several sizes,
and the exponent of the time is fitted.
"""

import argparse
import resource
import subprocess
import sys
import time
import warnings

import numpy as np

N_SMALL = 230
SECONDS, GIGABYTES = 10, 2  # bounds


def chain(n):
    return np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)


def star(n):
    return np.stack([np.zeros(n - 1, dtype=int), np.arange(1, n)], axis=1)


def complete(n):
    return np.stack(np.triu_indices(n, 1), axis=1)


def premises(n):
    return np.stack([np.arange(n - 1), np.full(n - 1, n - 1)], axis=1)


def two_back(n):
    return np.concatenate([chain(n), np.stack([np.arange(n - 2), np.arange(2, n)], 1)])


def unconnected(n):
    return np.empty((0, 2), dtype=int)


SHAPES = {
    "chain": (chain, 100_000),
    "complete": (complete, 3_000),
    "star": (star, 100_000),
    "unconnected": (unconnected, 4_000),
    "premises": (premises, 20_000),
    "two back": (two_back, 20_000),
}
BARS = ("chain", "complete", "star", "unconnected")


def problems(shape, n):
    """230 generated problems and, among them, a large one, with features and labels."""
    from skdcf import GraphBatch
    from skdcf.datasets import make_reasoning_graphs

    small, labels = make_reasoning_graphs(N_SMALL, random_state=0, return_X_y=True)
    rng = np.random.default_rng(0)
    rows = rng.integers(small.n_claims, size=n)
    whole = GraphBatch.from_arrays(
        np.concatenate([small.features, small.features[rows]]),
        [*small.offsets, small.n_claims + n],
        np.concatenate([small.edges, SHAPES[shape][0](n) + small.n_claims]),
        feature_names=small.feature_names,
    )
    own = rng.random(n) < 1 - 1 / n
    order = rng.permutation(N_SMALL + 1)
    labels = [*labels, own.astype(int)]
    return whole[order], [labels[i] for i in order]


def texts(shape, n):
    """The large problem alone, as a batch without features."""
    from skdcf import GraphBatch

    rng = np.random.default_rng(0)
    rows = rng.integers(2, 99, (n, 2)).tolist()
    claims = [
        f"Step {k}: then {a} + {b} = {a + b} eggs" for k, (a, b) in enumerate(rows)
    ]
    edges = SHAPES[shape][0](n)
    question = ["What are 12 and 30 eggs?"]
    return GraphBatch.from_arrays(None, [0, n], edges, claims=claims, problems=question)


def run(task, shape, n):
    """Seconds of one task."""
    from skdcf import CoherentConformalFilter, HardCF
    from skdcf.features import reasoning_features

    if task == "features":
        batch = texts(shape, n)
        start = time.process_time()
        reasoning_features().fit_transform(batch)
        return time.process_time() - start
    filters = {
        "HardCF": HardCF("frequency-score"),
        # Nearly all problems train, the large one among them.
        "default": CoherentConformalFilter(calibration_size=30, random_state=0),
    }
    batch, labels = problems(shape, n)
    start = time.process_time()
    filters[task].fit(batch, labels).predict(batch)
    return time.process_time() - start


def report(task, shape, n):
    """Run one task and print its line."""
    warnings.simplefilter("ignore")
    try:
        seconds, verdict = run(task, shape, n), ""
    except ValueError as error:
        seconds, verdict = float("nan"), f"refused: {str(error)[:76]}..."
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    if not verdict and shape in BARS:
        good = seconds < SECONDS and peak < GIGABYTES
        verdict = "" if good else f"above {SECONDS} s or {GIGABYTES} GB"
    print(f"{shape:12} {n:7,} {task:9} {seconds:6.2f} s {peak:5.2f} GB  {verdict}")


def growth():
    """Time of the sum over ancestors, and its exponent in the number of claims."""
    from skdcf import GraphBatch
    from skdcf.ops.ancestors import sum_ancestors

    for shape, sizes in {
        "chain": (3_000, 10_000, 30_000, 100_000),
        "star": (3_000, 10_000, 30_000, 100_000),
        "complete": (300, 1_000, 3_000),
        "two back": (1_000, 3_000, 10_000, 30_000),
    }.items():
        times = []
        for n in sizes:
            edges = SHAPES[shape][0](n)
            batch = GraphBatch.from_arrays(np.ones((n, 1)), [0, n], edges)
            values, best = batch.features[:, 0], np.inf
            for _ in range(3):
                fresh = batch[[0]]
                start = time.process_time()
                sum_ancestors(values, fresh)
                best = min(best, time.process_time() - start)
            times.append(best)
        slope = np.polyfit(np.log(sizes), np.log(times), 1)[0]
        by_size = ", ".join(
            f"{n:,}: {1e3 * t:.1f} ms" for n, t in zip(sizes, times, strict=True)
        )
        print(f"sum over ancestors, {shape}: {by_size}; exponent {slope:.2f}")


def main(with_growth):
    """Print the table."""
    print(
        f"fit and predict of {N_SMALL} problems and a large one; features of the latter"
    )
    for shape, (_, n) in SHAPES.items():
        for task in ("HardCF", "default", "features"):
            command = [sys.executable, __file__, "--one", task, shape, str(n)]
            subprocess.run(command, check=True)
    if with_growth:
        growth()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--growth", action="store_true", help="also fit exponents")
    parser.add_argument("--one", nargs=3, help="task, shape and size to measure here")
    options = parser.parse_args()
    if options.one:
        report(*options.one[:2], int(options.one[2]))
    else:
        main(options.growth)
