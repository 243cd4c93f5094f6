"""Measure time and memory for up to a million problems and a file of ten million claims.

    python -m benchmarks.speed.scaling [--problems 1000000] [--claims 10000000]

Each size runs in a separate process. The program prints the exponents of time and of additional
memory, which are fitted to the logarithms by least squares. An exponent of 1 means linear growth.
"""

import argparse
import json
import multiprocessing
import os
import resource
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

import skdcf
from skdcf import GraphBatch, HardCF
from skdcf.datasets import jsonl_partitions
from skdcf.features import GraphFeatures

CLAIMS = 6  # per problem: small ones, so that a million fit into any machine
RUN = multiprocessing.get_context("spawn")


def problems(n, seed=0):
    """Chains with a branch, their features and labels, without a loop over problems."""
    rng = np.random.default_rng(seed)
    features = rng.random((n * CLAIMS, 2)).round(6)
    first = np.repeat(np.arange(n) * CLAIMS, CLAIMS - 1)
    child = np.tile(np.arange(1, CLAIMS), n)
    parent = np.tile(np.append(np.arange(CLAIMS - 2), 1), n)
    edges = np.column_stack([first + parent, first + child])
    offsets = np.arange(n + 1) * CLAIMS
    names = ["frequency-score", "other"]
    batch = GraphBatch.from_arrays(features, offsets, edges, feature_names=names)
    labels = (rng.random(n * CLAIMS) < features[:, 0] ** 0.1).astype(np.int8)
    return batch, labels


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(n, pipe):
    """Seconds and megabytes of each kind of work on n problems."""
    warnings.simplefilter("ignore")
    out = {}
    warm, warm_labels = problems(200)
    cf = HardCF("frequency-score").fit(warm, warm_labels)
    GraphFeatures().fit_transform(warm)
    before = peak()
    batch, labels = problems(n)
    out["made"] = 0.0, peak() - before
    for name, work in (
        ("calibrate", lambda: cf.calibrate(batch, labels)),
        ("predict", lambda: cf.predict(batch)),
        ("features", lambda: GraphFeatures().fit_transform(batch)),
        ("path epoch", lambda: path_epoch(batch, labels)),
    ):
        seconds = []
        for _ in range(3):  # new memory costs more the first time
            start = time.perf_counter()
            work()
            seconds.append(time.perf_counter() - start)
        out[name] = min(seconds), peak() - before
    pipe.send(out)


def path_epoch(batch, labels):
    """One value and gradient of the loss that training minimises."""
    from skdcf.scorers import ConfTrScorer, FitTask
    from skdcf.training import Adam, SoftTraining

    training = SoftTraining(Adam(max_iter=1, validation_size=0.01))
    ConfTrScorer().fit(batch, labels, FitTask(0.1, training=training))


def in_process(target, *arguments):
    mine, theirs = RUN.Pipe(duplex=False)
    process = RUN.Process(target=target, args=(*arguments, theirs))
    process.start()
    theirs.close()
    out = mine.recv()
    process.join()
    return out


def show_exponents(largest):
    sizes = [1_000, 10_000, 100_000, 1_000_000]
    sizes = [n for n in sizes if n <= max(largest, 100_000)]
    found = {n: in_process(measure, n) for n in sizes}
    print(f"{CLAIMS} claims per problem; seconds, and megabytes at the peak so far.")
    print(f"Exponents from {sizes[1]:,} problems on: below, fixed costs rule.")
    print("work        " + "".join(f"{n:>18,}" for n in sizes) + "   exponents")
    for name in ("calibrate", "predict", "features", "path epoch"):
        rows = np.array([found[n][name] for n in sizes])
        cells = "".join(f"{s:10.3f} {m:7.0f}" for s, m in rows)
        slopes = [slope(sizes[1:], column[1:]) for column in rows.T]
        print(f"{name:12}{cells}   time {slopes[0]:.2f}, memory {slopes[1]:.2f}")


def slope(sizes, values):
    return np.polyfit(np.log(sizes), np.log(np.maximum(values, 1e-3)), 1)[0]


def write_large(path, n_claims):
    """A file as another program would write it."""
    n, block = n_claims // 10, 10_000
    edges = json.dumps([[i, i + 1] for i in range(9)])
    names = '["frequency-score"]'
    with open(path, "w", encoding="ascii") as file:
        for start in range(0, n, block):
            rng = np.random.default_rng(start)
            values = rng.random((min(block, n - start), 10)).round(6)
            true = (rng.random(values.shape) < values**0.1).astype(int)
            for row, label in zip(values.tolist(), true.tolist(), strict=True):
                table = json.dumps([[x] for x in row])
                file.write(
                    f'{{"features": {table}, "feature_names": {names}, "edges": {edges}, '
                    f'"labels": {label}}}\n'
                )


def filter_large(path, saved, pipe):
    cf, start = skdcf.load(saved), time.perf_counter()
    parts = jsonl_partitions(path, 5_000)
    found = time.perf_counter()
    first = (part.read() for part in parts[:20])
    cf.calibrate_parts([cf.calibration_part(one.graphs, one.labels) for one in first])
    calibrated = time.perf_counter()
    kept = claims = 0
    for masks in (cf.predict(part.read().graphs) for part in parts):
        kept += sum(int(mask.sum()) for mask in masks)
        claims += sum(len(mask) for mask in masks)
    times = found - start, calibrated - found, time.perf_counter() - calibrated
    pipe.send((len(parts), claims, kept, times, peak()))


def show_large(n_claims):
    with tempfile.TemporaryDirectory() as folder:
        path, saved = Path(folder) / "large.jsonl", Path(folder) / "cf.skops"
        write_large(path, n_claims)
        batch, labels = problems(200)
        cf = HardCF("frequency-score").fit(batch, labels)
        skdcf.save(cf, saved)
        size = path.stat().st_size / 1e9
        parts, claims, kept, times, megabytes = in_process(filter_large, path, saved)
    print(
        f"\nA file of {claims:,} claims, {size:.2f} GB, in {parts} parts, one process"
    )
    print(
        f"cut {times[0]:.0f} s, calibrated on 100,000 problems {times[1]:.0f} s, ",
        end="",
    )
    print(f"filtered {times[2]:.0f} s, {kept:,} claims kept")
    print(f"peak memory of the process: {megabytes:.0f} MB")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=1_000_000)
    parser.add_argument("--claims", type=int, default=10_000_000)
    options = parser.parse_args()
    if options.problems:
        show_exponents(options.problems)
    if options.claims:
        show_large(options.claims)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
