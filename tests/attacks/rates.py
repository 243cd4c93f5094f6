"""What the programs beside this one share: a world of answers, and a rate with its error."""

import argparse
import warnings
from collections.abc import Callable

import numpy as np

from skdcf import GraphBatch

NO_EDGES = np.empty((0, 2), dtype=int)


def run(
    measure: Callable[[int], float], stated: float, name: str, n: int = 400
) -> None:
    """Print a rate over many seeds, beside the one that is stated.

    ``measure(seed)`` returns the rate of one calibration; NaN says that it was refused.
    """
    parser = argparse.ArgumentParser(description=name)
    parser.add_argument("--n", type=int, default=n, help="number of calibrations")
    n = parser.parse_known_args()[0].n
    warnings.simplefilter("ignore")
    rates = np.array([measure(seed) for seed in range(n)], dtype=float)
    counted = rates[~np.isnan(rates)]
    line = f"{name}: refused {n - len(counted)} of {n}"
    if len(counted):
        error = counted.std() / np.sqrt(len(counted))
        line += f"; {counted.mean():.3f} +- {error:.3f} for {stated:g}"
    print(line, flush=True)


def one_claim_each(columns, **more) -> GraphBatch:
    """A batch of answers of one claim."""
    columns = np.asarray(columns, dtype=float).reshape(len(columns), -1)
    offsets = np.arange(len(columns) + 1)
    return GraphBatch.from_arrays(columns, offsets, NO_EDGES, **more)
