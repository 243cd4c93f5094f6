"""Compare your own method with the paper's method on its folds (`make paper METHOD=...`).

    python -m benchmarks.retention.own_method module:factory [--folds N] [--jobs N] [--kind KIND]

``factory()`` returns an unfitted filter. The module is imported from the current folder. All
methods are calibrated and tested on the same problems, and the printed errors account for this.
"""

import argparse
import os
import sys
from importlib import import_module

import numpy as np

from benchmarks.methods import AUTO, LOGISTIC, TIES
from benchmarks.retention.paper import ALPHAS
from benchmarks.retention.reproduce import (
    CF,
    FOLDS,
    TABLED,
    blocks,
    folds,
    printed,
    problems,
)
from skdcf import CoherentConformalFilter, HardCF
from skdcf.evaluation import compare_filters
from skdcf.scorers import ClassifierScorer


def load(name):
    """The filter that ``module:factory`` makes; ValueError says what is wrong with it."""
    module, _, factory = name.partition(":")
    if not module or not factory:
        raise ValueError(f"METHOD is {name!r}, but must be module:factory")
    sys.path.insert(0, os.getcwd())
    made = getattr(import_module(module), factory)()
    if not hasattr(made, "calibrate"):
        raise ValueError(f"{name} made a {type(made).__name__}, but must make a filter")
    return made


def compare(name, kind, n_folds, jobs):
    """A report for each block of levels, whose problems have columns of their own."""
    X, y = problems(kind)
    cv = list(folds(np.arange(len(X)), n_splits=n_folds))
    for table, alphas in blocks(kind, X):
        filters = {
            CF: HardCF("frequency-score", **TIES),
            TABLED: printed(kind, alphas),
            LOGISTIC: HardCF(ClassifierScorer(gain=None), **TIES),
            AUTO: CoherentConformalFilter(**TIES),
            name: load(name),
        }
        if "frequency-score" not in table.feature_names:
            del filters[CF]
        yield compare_filters(
            filters, table, y, alphas, cv=cv, n_jobs=jobs, random_state=0
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("method", help="module:factory")
    parser.add_argument(
        "--folds", type=int, default=FOLDS, help="number of folds of the paper"
    )
    parser.add_argument("--jobs", type=int, default=2, help="number of parallel folds")
    parser.add_argument("--kind", choices=list(ALPHAS), default="math")
    chosen = parser.parse_args()
    for report in compare(chosen.method, chosen.kind, chosen.folds, chosen.jobs):
        print(report)
