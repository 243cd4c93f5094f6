"""The default fit: how long it takes.

    python benchmarks/default_fit.py [--sizes 230 2300 20000]

Seconds are those of the processor. Seen: 0.23 s for 230 problems, 9.5 s for 20,000
(bounds 0.25 and 10 s). What it keeps is measured by ``benchmarks/default_scorer.py``.
"""

import argparse
import resource
from time import process_time

import numpy as np

from skdcf.datasets import make_reasoning_graphs
from skdcf.graphs import pack_labels
from skdcf.scorers import FitTask, MixtureScorer, NeymanPearsonScorer

ALPHAS = (0.02, 0.05, 0.1, 0.2)


def fastest(function, repeats):
    """The least of some repetitions, in seconds."""
    best = np.inf
    for _ in range(repeats):
        start = process_time()
        function()
        best = min(best, process_time() - start)
    return best


def time_fit(n):
    """Seconds for one level, four, the second member alone, and to score all problems."""
    batch, y = make_reasoning_graphs(n, random_state=0, return_X_y=True)
    labels = pack_labels(y, batch)
    _ = batch.closure  # structure is worked out once per fit of a filter
    repeats = max(1, min(7, 5000 // n))

    def fit(alphas):
        tasks = [FitTask(alpha, rng=np.random.RandomState(0)) for alpha in alphas]
        return MixtureScorer().fit_levels(batch, labels, tasks)[0]

    scorer = fit([0.1])
    return (
        fastest(lambda: fit([0.1]), repeats),
        fastest(lambda: fit(ALPHAS), repeats),
        fastest(lambda: NeymanPearsonScorer().fit(batch, labels), repeats),
        fastest(lambda: scorer.confidence(batch), repeats),
    )


def time_fits(sizes):
    """Print seconds, and the largest memory so far."""
    print(
        "problems   auto s  neyman-pearson s  four levels / one  confidence s  peak MB"
    )
    for n in sizes:
        one, four, second, asked = time_fit(n)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{n:8d}  {one:7.3f}  {second:16.3f}  {four / one:17.2f}  {asked:12.3f}"
            f"  {peak:7.0f}",
            flush=True,
        )


def main():
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[230, 2300, 20_000])
    time_fits(parser.parse_args().sizes)


if __name__ == "__main__":
    main()
