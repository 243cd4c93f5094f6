"""Measure the processor time of a comparison of fast filters, optionally for two versions.

    python -m benchmarks.speed.compare_speed [--before FOLDER]

If the folder of an older checkout is given, the two checkouts alternate in running the same
comparison, and the ratio of the fastest runs is printed.

Observed: 0.55 to 0.59 s on an idle machine, and 0.63 s when all scores were compared to find equal
scores. Commit aa6d9dc takes twice as long, and commit 7265a4a takes half as long, because questions
are now counted and copies are now detected at each level of each split.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

N_PROBLEMS, N_SPLITS = 400, 20
ALPHAS = (0.02, 0.05, 0.1, 0.2, 0.3)
HERE = Path(__file__).resolve().parents[2]


def run():
    """Seconds of one comparison of three filters that learn nothing."""
    from skdcf import HardCF, SingleFeatureCF
    from skdcf.datasets import make_reasoning_graphs
    from skdcf.evaluation import compare_filters

    X, y = make_reasoning_graphs(N_PROBLEMS, random_state=0, return_X_y=True)
    filters = {
        "frequency": HardCF("frequency-score"),
        "reachability": SingleFeatureCF("nx_reachability"),
        "index": SingleFeatureCF("claim_index"),
    }
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        compare_filters(filters, X, y, ALPHAS, cv=N_SPLITS, random_state=0)
        best = min(best, time.process_time() - start)
    return best


def run_in(folder):
    """Seconds of the comparison by the package in a folder."""
    found = subprocess.run(
        [sys.executable, "-W", "ignore", __file__, "--once"],
        env=os.environ | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(found.stdout)


def main(before):
    """Print the seconds, and the ratio."""
    folders = [HERE] if before is None else [HERE, before]
    seconds = [
        min(times)
        for times in zip(*[map(run_in, folders) for _ in range(3)], strict=True)
    ]
    print(
        f"{N_PROBLEMS} problems, {N_SPLITS} splits, 3 cheap filters, {len(ALPHAS)} "
        f"levels: {seconds[0]:.3f} s"
    )
    if before is not None:
        print(f"before: {seconds[1]:.3f} s, {seconds[1] / seconds[0]:.2f} times")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, help="folder of an older checkout")
    parser.add_argument("--once", action="store_true", help="measure once, here")
    options = parser.parse_args()
    if options.once:
        print(run())
    else:
        main(options.before)
