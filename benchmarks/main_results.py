"""Filters on generated problems, beside the paper's main results.

    python benchmarks/main_results.py [--jobs N] [--splits N] [--output DIR] [--only NAME]

Generated problems are free, so every split draws new ones: 350 to train on, 350 for exact
leave-one-out evaluation. The paper's own protocol follows, folds that calibrate and test
on different problems: it is what puts coverage to the test.
"""

import numpy as np
from methods import (
    AUTO,
    LINEAR,
    LOGISTIC,
    with_frequency,
)
from paper import PROBLEMS
from saving import options, run

from skdcf.datasets import make_reasoning_graphs

DRAWS = 5
ALPHAS = {"math": [0.03, 0.05, 0.07, 0.1], "felm": [0.01, 0.03, 0.05, 0.1]}
LEFT_OUT = (
    "independent, frequency",
    "independent, logistic regression",
    "independent, boosted",
    "DCF, sharpened grid",
)


def independent_draws(n_train, n_test, n_draws):
    """Splits of (train, test) that share no problem with each other."""
    rows = np.arange(n_draws * (n_train + n_test)).reshape(n_draws, -1)
    return [(row[:n_train], row[n_train:]) for row in rows]


def folds(n, n_splits=20):
    """The paper's 70/15/15: what trains, what calibrates, what is tested."""
    bounds = np.round(n * np.array([0.7, 0.85])).astype(int)
    rng = np.random.default_rng(0)
    return [np.split(rng.permutation(n), bounds) for _ in range(n_splits)]


def main(chosen):
    """Run and save the comparisons."""
    for kind, alphas in ALPHAS.items():
        look = f"{kind.upper()}-like"
        n = DRAWS * 700
        X, y = make_reasoning_graphs(n, kind, random_state=0, return_X_y=True)
        filters = with_frequency(kind, alphas)
        entries = {k: (X, f) for k, f in filters.items() if k not in LEFT_OUT}
        cv = independent_draws(350, 350, DRAWS)
        title = f"{look}, 350 problems to train on"
        run(f"main-{kind}", entries, y, alphas, cv, chosen, title=title)
    n = PROBLEMS["felm"]
    X, y = make_reasoning_graphs(n, "felm", random_state=1, return_X_y=True)
    filters = with_frequency("felm", ALPHAS["felm"])
    entries = {k: (X, filters[k]) for k in (LOGISTIC, LINEAR, AUTO)}
    title = f"FELM-like, the paper's folds of {n} problems"
    run("folds-felm", entries, y, ALPHAS["felm"], folds(n), chosen, title=title)


if __name__ == "__main__":
    main(options(__doc__))
