"""Measure the waiting time of typical commands, optionally for two checkouts.

    python -m benchmarks.speed.waits [--before FOLDER] [--only NAME] [--rounds 3]

Each measurement runs in a separate process. With ``--before``, the two checkouts alternate. The
result is the processor time of the fastest run of each.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parents[2]
N_LINES = 20_000
SIZES = (64, 65, 100, 200, 250)
WORDS = [
    "blue",
    "quick",
    "small",
    "eggs",
    "coins",
    "trains",
    "boxes",
    "apples",
    "rivers",
    "birds",
]


def write_texts(path, n_lines):
    """Write answers with a question, passages, claims and edges."""
    import numpy as np

    rng = np.random.default_rng(0)
    with path.open("w", encoding="utf-8") as file:
        for i in range(n_lines):
            n = int(rng.integers(3, 10))
            numbers = rng.integers(2, 99, (n, 2)).tolist()
            words = rng.choice(WORDS, (n, 3)).tolist()
            labels = (rng.random(n) < 0.9).astype(int).tolist()
            claims = [
                f"There are {a} {w[0]} {w[1]} and {b} {w[2]}, so {a} + {b} = {a + b + 1 - y}."
                for (a, b), w, y in zip(numbers, words, labels, strict=True)
            ]
            record = {
                "id": f"q{i}",
                "problem": f"How many {' '.join(words[0])} are there in case {i}?",
                "context": [" ".join(claims[::2])],
                "claims": claims,
                "edges": [[k - 1, k] for k in range(1, n)],
                "labels": labels,
            }
            file.write(json.dumps(record) + "\n")


def write_numbers(path, n_lines):
    """Write answers with one column of numbers, edges and labels."""
    import numpy as np

    rng = np.random.default_rng(0)
    with path.open("w", encoding="utf-8") as file:
        for i in range(n_lines):
            likely = rng.random(int(rng.integers(3, 10)))
            record = {
                "id": f"q{i}",
                "features": likely[:, None].round(4).tolist(),
                "feature_names": ["likely"],
                "edges": [[k - 1, k] for k in range(1, len(likely))],
                "labels": (rng.random(len(likely)) < 0.6 + 0.4 * likely)
                .astype(int)
                .tolist(),
                "group": f"q{i}",
            }
            file.write(json.dumps(record) + "\n")


def long_problems(n_claims, n_problems=40):
    """Problems of one size in which each claim has two parents."""
    import numpy as np

    from skdcf import GraphBatch

    rng = np.random.default_rng(0)
    child = np.repeat(np.arange(1, n_claims), 2)
    edges = np.unique(np.stack([rng.integers(0, child), child], axis=1), axis=0)
    all_edges = [edges + i * n_claims for i in range(n_problems)]
    offsets = np.arange(n_problems + 1) * n_claims
    features = rng.random((offsets[-1], 1))
    return GraphBatch.from_arrays(features, offsets, np.concatenate(all_edges))


def command(*words):
    """Run one command of the package in this process."""
    from skdcf.apps.cli import main

    with open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere):
        code = main([str(word) for word in words])
    if code:
        raise SystemExit(code)


def prepare(folder):
    """Write the files that the measurements read."""
    write_texts(folder / "texts.jsonl", N_LINES)
    lines = (folder / "texts.jsonl").read_text(encoding="utf-8").splitlines(True)
    (folder / "judged.jsonl").write_text("".join(lines[:300]), encoding="utf-8")
    (folder / "one.jsonl").write_text(lines[-1], encoding="utf-8")
    command("fit", folder / "judged.jsonl", "-o", folder / "texts.skops", "--show", 1)
    write_numbers(folder / "numbers.jsonl", N_LINES)
    lines = (folder / "numbers.jsonl").read_text(encoding="utf-8").splitlines(True)
    (folder / "few.jsonl").write_text("".join(lines[:300]), encoding="utf-8")
    words = ["-o", folder / "column.skops", "--show", 1, "--scorer", "likely"]
    command("fit", folder / "few.jsonl", *words)


def filter_texts(folder):
    """``skdcf filter`` of 20,000 lines whose columns are computed from texts."""
    command(
        "filter", folder / "texts.skops", folder / "texts.jsonl", "-o", folder / "out"
    )


def filter_numbers(folder):
    """``skdcf filter`` of 20,000 lines whose scores are a column of the file."""
    command(
        "filter",
        folder / "column.skops",
        folder / "numbers.jsonl",
        "-o",
        folder / "out",
    )


def filter_one(folder):
    """``skdcf filter`` of one line, from the start of the process."""
    command(
        "filter", folder / "texts.skops", folder / "one.jsonl", "-o", folder / "out"
    )
    return time.process_time()


def read_texts(folder):
    """Read the 20,000 lines into a batch."""
    from skdcf.datasets import read_jsonl

    start = time.process_time()
    read_jsonl(folder / "texts.jsonl")
    return time.process_time() - start


def parse_texts(folder):
    """Parse the 20,000 lines without reading them, for comparison."""
    with (folder / "texts.jsonl").open("rb") as file:
        records = [json.loads(line) for line in file]
    assert len(records) == N_LINES


def stream_answers(folder):
    """``stream`` of 50 answers of 10 to 20 claims, with columns of texts."""
    from skdcf import CoherentConformalFilter
    from skdcf.datasets import read_jsonl
    from skdcf.features import reasoning_features

    data = read_jsonl(folder / "judged.jsonl")
    settings = {"features": reasoning_features(), "online": True, "random_state": 0}
    cf = CoherentConformalFilter(**settings).fit(data.graphs, data.labels)
    start = time.process_time()
    for graph in list(data.graphs)[:100]:
        parents = [[v - 1] if v else [] for v in range(graph.n_claims)]
        claims = [
            {"text": text, "parents": above}
            for text, above in zip(graph.claims, parents, strict=True)
        ]
        list(cf.stream(claims, problem=graph.problem, context=graph.context))
    return time.process_time() - start


def graph_features(n_claims):
    """Columns of graphs of 40 problems."""
    from skdcf.features import GraphFeatures

    batch = long_problems(n_claims)
    transformer = GraphFeatures().fit(batch)
    start = time.process_time()
    transformer.transform(batch)
    return time.process_time() - start


def predict(n_claims):
    """``predict`` of 40 problems, five times."""
    from skdcf import HardCF

    batch = long_problems(n_claims)
    cf = HardCF(0).fit(batch, [[1] * n_claims] * len(batch))
    start = time.process_time()
    for _ in range(5):
        cf.predict(batch[list(range(len(batch)))])
    return time.process_time() - start


MEASURES = {
    f.__name__: f
    for f in (
        filter_texts,
        filter_numbers,
        filter_one,
        read_texts,
        parse_texts,
        stream_answers,
    )
}
BY_SIZE = {f.__name__: f for f in (graph_features, predict)}


def run(name, folder):
    """Seconds of one measurement in this process."""
    warnings.simplefilter("ignore")
    name, _, size = name.partition("-")
    if name in BY_SIZE:
        return BY_SIZE[name](int(size))
    start = time.process_time()
    own_seconds = MEASURES[name](folder)
    return time.process_time() - start if own_seconds is None else own_seconds


def run_in(checkout, name, folder):
    """Seconds of one measurement by the package of a checkout."""
    found = subprocess.run(
        [sys.executable, "-W", "ignore", __file__, "--once", name, str(folder)],
        env=os.environ | {"PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(found.stdout.splitlines()[-1])


def main(chosen):
    """Print a line per measurement."""
    names = [*MEASURES, *(f"{name}-{n}" for name in BY_SIZE for n in SIZES)]
    names = [name for name in names if name.startswith(chosen.only)]
    checkouts = [HERE] if chosen.before is None else [HERE, chosen.before]
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder))
        for name in names:
            rounds = [
                [run_in(checkout, name, folder) for checkout in checkouts]
                for _ in range(chosen.rounds)
            ]
            seconds, *before = map(min, zip(*rounds, strict=True))
            line = f"{name:20} {seconds:7.3f} s"
            if before:
                line += (
                    f"   before {before[0]:7.3f} s   {before[0] / seconds:5.2f} times"
                )
            print(line, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, help="folder of an older checkout")
    parser.add_argument("--only", default="", help="prefix of the names to measure")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--once", nargs=2, help="run one measurement of a folder in this process"
    )
    options = parser.parse_args()
    if options.once:
        print(run(options.once[0], Path(options.once[1])))
    else:
        main(options)
