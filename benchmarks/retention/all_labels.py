"""Compare filters that use all labels twice with filters that split the labels.

    python -m benchmarks.retention.all_labels [--sets 24] [--jobs 2] [--data NAME ...]

For each number of labels, one answer to each of as many random questions is labelled. Both filters
are fitted at each level and filter one answer to each of 100 other questions. The table has the
true claims kept, the share of answers shown and the share with a false claim ("miss"), as means
over the label sets. "spread" is the standard deviation of the miss over the label sets. In PERL the
claims form a DAG, and in the other sets a chain. Answers of PERL in which a claim other than the
first has no parent are left out, because filters that use all labels refuse them.
"""

import argparse
import warnings

import numpy as np
from joblib import Parallel, delayed

from benchmarks.retention.default_scorer import problems_of
from benchmarks.retention.rivals import measured
from skdcf import CoherentConformalFilter

SETS = ("felm", "process-bench-math", "mr-ben-biology", "perl")
ALPHAS = (0.05, 0.1, 0.2)
LABELS = (20, 30, 40, 60)
SIZES = {"all labels": "all", "split": None}


def one_set(problems, n, seed):
    """Numbers of both filters at all levels for one random set of n labels."""
    graphs, labels, questions = problems
    order = np.random.default_rng(seed).permutation(len(graphs))
    n_roots = np.bincount(graphs.problem_of[graphs.depth == 0], minlength=len(graphs))
    order = order[n_roots[order] < 2]
    _, first = np.unique(questions[order], return_index=True)
    chosen = order[np.sort(first)]
    known, new = chosen[:n], chosen[n : n + 100]
    y, truth = ([labels[i] for i in rows] for rows in (known, new))
    numbers = np.empty((len(SIZES), len(ALPHAS), 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i, size in enumerate(SIZES.values()):
            for j, alpha in enumerate(ALPHAS):
                cf = CoherentConformalFilter(
                    alpha=alpha, calibration_size=size, random_state=seed
                ).fit(graphs[known], y, groups=False)
                kept, safe, shown, _ = measured(cf.predict(graphs[new]), truth)
                numbers[i, j] = kept, shown, 1 - safe
    return numbers


def main(chosen):
    """Print one line for each data set, number of labels and filter."""
    levels = "".join(f"{f'alpha {alpha:g}':28}" for alpha in ALPHAS)
    print(f"{'':44}{levels}\n{'':44}" + 3 * "kept  shown miss  spread     ")
    for name in chosen.data:
        problems = problems_of(name)
        for n in LABELS:
            run = delayed(one_set)
            sets = Parallel(chosen.jobs)(
                run(problems, n, seed) for seed in range(chosen.sets)
            )
            spread = np.std(sets, axis=0, ddof=1)[..., 2:]
            rows = np.concatenate([np.mean(sets, axis=0), spread], axis=2)
            for filter, row in zip(SIZES, rows, strict=True):
                cells = ("{:4.2f}  {:4.2f}  {:.3f} {:.3f}     ".format(*c) for c in row)
                line = f"{name:20}{n:4} labels  {filter:13}{''.join(cells)}"
                print(line.rstrip(), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=24, help="number of label sets")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--data", nargs="+", default=SETS)
    main(parser.parse_args())
