"""Simulate the coverage of filters that use all labels for training and for calibration.

    python -m benchmarks.guarantees.all_labels [--draws 1200] [--jobs 2]

In each draw, a filter is fitted on n labelled answers and filters one new answer. The table has the
share of draws in which a false claim was kept, with its standard error. It must not exceed alpha by
more than two errors. Rare columns are sparse: one indicator for each answer, and 150 words that
occur in few answers. In "sorted", the rows are sorted by label, and more answers are labelled than
calibrate.
"""

import argparse
import warnings

import numpy as np
from joblib import Parallel, delayed

from skdcf import CoherentConformalFilter, ReasoningGraph

ALPHAS = (0.05, 0.1, 0.2)
KINDS = ("chain", "dag", "ties", "unknown", "empty", "indicators", "words", "sorted")


def answer(rng, kind, number):
    """A graph, and its labels with and without gaps."""
    n = int(rng.integers(2, 7)) * (kind != "empty" or rng.random() > 0.3)
    skill = rng.normal()
    X = rng.normal(size=(n, 3))
    true = rng.random(n) < 1 / (1 + np.exp(-2.2 - 0.7 * skill - X[:, 0]))
    if kind == "ties":
        X = np.round(X)
    if kind == "indicators":
        X = np.tile(np.arange(45) == number, (n, 1)) * 1.0
    if kind == "words":
        X = np.hstack([X, rng.random((n, 150)) < 0.01])
    edges = [(v - 1, v) for v in range(1, n)]
    if kind == "dag":
        edges = [(int(rng.integers(v)), v) for v in range(1, n)]
        edges += [(int(rng.integers(v)), v) for v in range(2, n)]
    gaps = (kind == "unknown") & (rng.random(n) < 0.1) & (np.arange(n) > 0)
    return ReasoningGraph(X, edges), np.where(gaps, -1, true), true


def misses(kind, n, seed):
    """Whether a false claim was kept at each level, at all of which n answers calibrate."""
    rng = np.random.default_rng([seed, n, KINDS.index(kind)])
    n_labelled = n + 3 * (kind == "sorted")
    drawn = [answer(rng, kind, i) for i in range(n_labelled + 1)]
    *known, (new, _, truth) = drawn
    if kind == "sorted":
        known.sort(key=lambda row: row[1].mean())
    graphs, labels, _ = zip(*known, strict=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cf = CoherentConformalFilter(calibration_size="all", alpha=ALPHAS[0])
        masks = cf.fit(graphs, labels, groups=False).predict([new], ALPHAS)
    return [bool((kept[0] & ~truth).any()) for kept in masks]


def main(chosen):
    """Print one line for each kind of answers and number of labels."""
    print(f"{'':17}" + "".join(f"alpha {alpha:<12g}" for alpha in ALPHAS))
    for kind in KINDS:
        for n in (19, 39):
            run = delayed(misses)
            found = Parallel(chosen.jobs)(
                run(kind, n, seed) for seed in range(chosen.draws)
            )
            rate = np.mean(found, axis=0)
            error = np.sqrt(rate * (1 - rate) / chosen.draws)
            cells = (
                f"{r:.3f} ± {e:.3f}{'  !' if r > a + 2 * e else '':6}"
                for r, e, a in zip(rate, error, ALPHAS, strict=True)
            )
            print(f"{kind:11} n = {n}", *cells, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=1200)
    parser.add_argument("--jobs", type=int, default=2)
    main(parser.parse_args())
