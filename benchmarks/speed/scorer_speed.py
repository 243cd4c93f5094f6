"""Measure the training time of two scorers by the numbers of problems and levels.

Bounds: 0.25 s per level at 300 problems, growth at most linear to 20,000 problems.

    python -m benchmarks.speed.scorer_speed [--sizes 300 2000 20000]
"""

import argparse
from time import perf_counter

import numpy as np

from skdcf.datasets import make_reasoning_graphs
from skdcf.graphs import pack_labels
from skdcf.ops.neyman_pearson import log_price
from skdcf.scorers import FitTask, NeymanPearsonScorer, StackingScorer

LEVELS = {1: [0.1], 4: [0.02, 0.05, 0.1, 0.2], 10: np.linspace(0.02, 0.2, 10)}


def timed(function, repeats):
    """The least of some repetitions, in seconds."""
    best = np.inf
    for _ in range(repeats):
        start = perf_counter()
        function()
        best = min(best, perf_counter() - start)
    return best


def fit_mixture(batch, labels, alphas):
    """What `CoherentConformalFilter` with ``scorer="stack"`` trains, for each level."""
    tasks = [FitTask(alpha, rng=np.random.RandomState(0)) for alpha in alphas]
    return StackingScorer().fit_levels(batch, labels, tasks)


def measure(n_problems, n_levels):
    """Seconds per level of the mixture, and of the parts of its second member."""
    batch, y = make_reasoning_graphs(n_problems, random_state=0, return_X_y=True)
    labels = pack_labels(y, batch)
    _ = batch.closure  # structure is worked out once per fit of a filter
    repeats = 3 if n_problems < 5000 else 1
    auto = {
        k: timed(lambda k=k: fit_mixture(batch, labels, LEVELS[k]), repeats) / k
        for k in n_levels
    }
    scorer = NeymanPearsonScorer()
    fit = timed(lambda: scorer.fit(batch, labels), repeats)
    hazard = scorer.hazard(batch)
    score = timed(lambda: scorer.confidence(batch), repeats)
    price = timed(lambda: log_price(hazard, batch), repeats)
    return auto, fit, score, price


def main(sizes, n_levels):
    """Print the table."""
    head = "".join(f"{f'auto, {k} levels':>16}" for k in n_levels)
    print("Seconds; those of auto per level")
    print(f"{'problems':>8}{head}{'NP fit':>10}{'NP score':>10}{'prices':>10}")
    first = None
    for n in sizes:
        auto, fit, score, price = measure(n, n_levels)
        row = "".join(f"{auto[k]:16.3f}" for k in n_levels)
        print(f"{n:8d}{row}{fit:10.3f}{score:10.3f}{price:10.4f}", flush=True)
        first = first or (n, auto)
    growth = {k: auto[k] / first[1][k] / (n / first[0]) for k in n_levels}
    print("growth over linear:", *(f"{g:.2f} ({k} levels)" for k, g in growth.items()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[300, 2000, 20_000])
    parser.add_argument(
        "--levels", type=int, nargs="+", default=[1, 4, 10], choices=LEVELS
    )
    options = parser.parse_args()
    main(options.sizes, options.levels)
