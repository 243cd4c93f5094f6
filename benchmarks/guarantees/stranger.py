"""Run the commands of the tutorial on an unfamiliar log, and measure the coverage independently.

python -m benchmarks.guarantees.stranger [--draws N]

The log contains 750 answers of the simulated help desk under keys that skdcf does not know, with an
instruction instead of the question and without edges. First, the program runs the five commands of
the tutorial, which must succeed. Then, random samples of 20 to 300 answers are judged, and the kept
texts of the other answers are compared with the truth without using the package. Finally, 10,000
answers are filtered to measure time and memory. The program saves results/stranger.json and
results/stranger.csv.
"""

import argparse
import csv
import io
import json
import os
import random
import resource
import runpy
import subprocess
import sys
import tempfile
import time
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np

from benchmarks import ROOT
from benchmarks.saving import RESULTS
from skdcf.apps.cli import main

NAMES = "--map prompt=problem,reply=answer --map retrieved=context --group-by context"
SIZES, ALPHA, MANY = (20, 50, 100, 300), 0.1, 10_000


def skdcf(command):
    """Run a command; what it printed is shown where it fails."""
    printed = io.StringIO()
    with redirect_stdout(printed), redirect_stderr(printed):
        code = main(command.split())
    if code:
        raise SystemExit(f"skdcf {command}\n{printed.getvalue()}")


def write_log(name, n, seed):
    """A log under a stranger's keys, and the truth: the false sentences of each answer."""
    draw = runpy.run_path(str(ROOT / "docs/guide/tutorial/make_log.py"))["draw"]
    rng = random.Random(seed)
    truth = {}
    with open(name, "w", encoding="utf-8") as file:
        for i in range(n):
            _, passages, sentences, verdicts = draw(rng, i)
            row = {
                "ticket": f"T{i}",
                "prompt": "Summarise what was found.",
                "retrieved": passages,
                "reply": " ".join(sentences),
            }
            file.write(json.dumps(row) + "\n")
            truth[row["ticket"]] = dict(zip(sentences, verdicts, strict=True))
    return truth


def walk(truth):
    """The five commands of the tutorial, with 150 answers that a person judges in a table."""
    skdcf(f"split log.jsonl -o new.jsonl {NAMES}")
    lines = Path("new.jsonl").read_text("utf-8").splitlines(keepends=True)
    drawn = random.Random(0).sample(lines, 150)
    for name, part in (("judged", drawn[:100]), ("test", drawn[100:])):
        Path(f"{name}_new.jsonl").write_text("".join(part), encoding="utf-8")
        skdcf(f"label {name}_new.jsonl --no-page --csv {name}.csv")
        tickets = [json.loads(line)["ticket"] for line in part]
        with open(f"{name}.csv", encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            verdicts = truth[tickets[int(row["problem_id"]) - 1]]
            row["label"] = "true" if verdicts[row["claim"]] else "false"
        with open(f"{name}.csv", "w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, list(rows[0]))
            table.writeheader()
            table.writerows(rows)
        judge_by = f"--no-page --annotator ann --import {name}.csv"
        skdcf(f"label {name}_new.jsonl -o {name}.jsonl {judge_by}")
    skdcf(f"fit judged.jsonl -o filter.skops --alpha {ALPHA}")
    skdcf(f"evaluate filter.skops test.jsonl --alphas {ALPHA}")
    skdcf("filter filter.skops new.jsonl -o kept.jsonl --text-key reply")


def judge(drawn, truth):
    """What `skdcf label` writes for answers that a person judged wholly."""
    with open("judged.jsonl", "w", encoding="utf-8") as file:
        for row in drawn:
            verdicts = truth[row["ticket"]]
            labels = [verdicts[claim] for claim in row["claims"]]
            metadata = row["metadata"] | {"label_meaning": "supported"}
            line = row | {"labels": labels, "metadata": metadata}
            file.write(json.dumps(line) + "\n")


def count(truth, judged):
    """Share of new answers without a false sentence in their text, and true ones kept."""
    clean, kept = [], []
    for line in Path("kept.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        if row["ticket"] in judged:
            continue
        verdicts = truth[row["ticket"]]
        clean.append(not any(c in row["reply"] for c, v in verdicts.items() if not v))
        kept.append(sum(c in row["reply"] for c, v in verdicts.items() if v))
    return float(np.mean(clean)), float(np.mean(kept))


def measure(n_draws):
    """{number of labels: coverage and true sentences with their errors}."""
    truth = write_log("log.jsonl", 750, seed=5)
    walk(truth)
    rows = [json.loads(line) for line in Path("new.jsonl").read_text().splitlines()]
    out = {}
    for n in SIZES:
        seen = []
        for seed in range(n_draws):
            drawn = random.Random(seed).sample(rows, n)
            judge(drawn, truth)
            skdcf(f"fit judged.jsonl -o m.skops --alpha {ALPHA}")
            skdcf("filter m.skops new.jsonl -o kept.jsonl --text-key reply")
            seen.append(count(truth, {row["ticket"] for row in drawn}))
        mean = np.mean(seen, axis=0)
        error = np.std(seen, axis=0, ddof=1) / np.sqrt(n_draws)
        out[n] = {"coverage": [mean[0], error[0]], "true_kept": [mean[1], error[1]]}
        print(n, out[n], flush=True)
    return out


def filter_many():
    """Seconds and megabytes that `skdcf filter` takes for many answers."""
    write_log("many.jsonl", MANY, seed=6)
    skdcf(f"split many.jsonl -o many_new.jsonl {NAMES}")
    command = "filter m.skops many_new.jsonl -o many_kept.jsonl --text-key reply"
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "skdcf", *command.split()],
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    seconds = time.perf_counter() - start
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "answers": MANY,
        "seconds": seconds,
        "processor_seconds": usage.ru_utime + usage.ru_stime,
        "megabytes": usage.ru_maxrss / 1024,
    }


def write_table(by_labels):
    """The table of the tutorial."""
    with open(RESULTS / "stranger.csv", "w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(
            ["judged", "nothing false left", "true sentences kept per answer"]
        )
        for n, row in by_labels.items():
            cells = (
                f"{m:.3f} ± {e:.3f}" for m, e in (row["coverage"], row["true_kept"])
            )
            table.writerow([n, *cells])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=20, help="sets of judged answers")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        found = {"labels": measure(chosen.draws), "filter": filter_many()}
    found["draws"] = chosen.draws
    write_table(found["labels"])
    text = json.dumps(found, indent=1)
    (RESULTS / "stranger.json").write_text(text + "\n", encoding="utf-8")
    print(text)
