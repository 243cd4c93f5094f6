"""Measure the wall time of a fit, a comparison and a search with one job and with two jobs.

The program also checks that the decisions are identical to the bit. Both processes are started
before the time is measured, as in a session that has already used ``n_jobs``. Run the program on an
idle machine, because other processes reduce the ratio.

Observed on two cores, with a load of 1 from other processes: 1.45 for a default fit of 20,000
problems and .85 for one of 2,000, 1.32 for a comparison of 2,000, and .71 and .76 for the search.

    OMP_NUM_THREADS=1 python -m benchmarks.speed.jobs [--sizes 2000 20000] [--repeats 3]
"""

import argparse
import os
import warnings
from time import perf_counter

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

from skdcf import CoherentConformalFilter, HardCF
from skdcf._jobs import all_finished
from skdcf.datasets import make_reasoning_graphs
from skdcf.evaluation import CalibratedSearch, compare_filters
from skdcf.exceptions import CalibrationWarning


def default_fit(graphs, y, n_jobs):
    """What `CoherentConformalFilter().fit` decides."""
    cf = CoherentConformalFilter(random_state=0, n_jobs=n_jobs).fit(graphs, y)
    return [cf.threshold_, *cf.nonconformity_scores_]


def comparison(graphs, y, n_jobs):
    """What `compare_filters` measures with the default and logistic regression."""
    filters = {
        "default": CoherentConformalFilter(),
        "logistic regression": HardCF(LogisticRegression(max_iter=2000)),
    }
    report = compare_filters(
        filters, graphs, y, [0.1], cv=4, n_jobs=n_jobs, random_state=0
    )
    return [*report.retention.ravel(), *report.coverage.ravel()]


def calibrated_search(graphs, y, n_jobs):
    """What `CalibratedSearch` chooses, and decides with it."""
    cf = HardCF(LogisticRegression(max_iter=2000), random_state=0)
    search = GridSearchCV(cf, {"scorer__C": [0.01, 0.1, 1.0, 10.0]}, cv=3)
    best = CalibratedSearch(search, random_state=0, n_jobs=n_jobs).fit(graphs, y)
    return [best.best_params_["scorer__C"], best.best_estimator_.threshold_]


TASKS = {
    "default fit": default_fit,
    "compare_filters": comparison,
    "CalibratedSearch": calibrated_search,
}


def measure(task, graphs, y, repeats):
    """The least seconds with one job and with two, which take turns."""
    seconds = {1: np.inf, 2: np.inf}
    decisions = {}
    for _ in range(repeats):
        for n_jobs in seconds:
            start = perf_counter()
            decisions[n_jobs] = task(graphs, y, n_jobs)
            seconds[n_jobs] = min(seconds[n_jobs], perf_counter() - start)
    np.testing.assert_array_equal(decisions[1], decisions[2])
    return seconds


def main(sizes, repeats, names):
    """Print the table."""
    all_finished([os.getpid] * 4, 2)
    print("Seconds, and how many times as fast two jobs are")
    print(f"{'':18}{'problems':>10}{'1 job':>9}{'2 jobs':>9}{'ratio':>8}")
    for name in names:
        for n in sizes:
            graphs, y = make_reasoning_graphs(n, random_state=0, return_X_y=True)
            one, two = measure(TASKS[name], graphs, y, repeats).values()
            print(f"{name:18}{n:10,}{one:9.2f}{two:9.2f}{one / two:8.2f}", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore", CalibrationWarning)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[2000, 20_000])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", nargs="+", default=list(TASKS), choices=TASKS)
    options = parser.parse_args()
    main(options.sizes, options.repeats, options.only)
