"""How much slower a fit gets beside a busy process, with thread variables unset.

    python tests/attacks/busy_neighbour.py

Small boosted trees and products that wake threads for every step wait for a busy core at
every step. Each fit runs in a fresh process without OMP_NUM_THREADS, alone and beside one
process that keeps a core busy; the ratio is of the fastest of three fits.

The machine must be idle. On one of two cores where nine other processes ran, ratios of
1.8 to 3.8 were seen, and with one thread forced the same ones: 1.6 to 3.1.
"""

import os
import subprocess
import sys

FIT = """
import time
from skdcf import CoherentConformalFilter
from skdcf.datasets import make_reasoning_graphs
X, y = make_reasoning_graphs(330, random_state=0, return_X_y=True)
best = float("inf")
for _ in range(4):
    start = time.perf_counter()
    CoherentConformalFilter({scorer!r}, alpha=0.2, random_state=0).fit(X, y)
    best = min(best, time.perf_counter() - start)
print(best)
"""
BUSY = "while True: pass"


def seconds(scorer):
    """Of the fastest fit in a process of its own, threads as the machine has them."""
    unset = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    env = {key: value for key, value in os.environ.items() if key not in unset}
    run = [sys.executable, "-c", FIT.format(scorer=scorer)]
    return float(subprocess.check_output(run, env=env, text=True))


def main():
    """Print one line per scorer."""
    print(f"{os.cpu_count()} cores; seconds per fit of 231 problems")
    print("scorer            alone  beside a busy process  ratio")
    for scorer in ("stack", "linear", "linear"):
        alone = seconds(scorer)
        neighbour = subprocess.Popen([sys.executable, "-c", BUSY])
        try:
            beside = seconds(scorer)
        finally:
            neighbour.kill()
            neighbour.wait()
        print(f"{scorer:16}  {alone:5.2f}  {beside:21.2f}  {beside / alone:5.2f}")


if __name__ == "__main__":
    main()
