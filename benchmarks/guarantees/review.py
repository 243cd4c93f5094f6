"""Measure how many true claims are added by checks, depending on the order of the checks.

    python -m benchmarks.guarantees.review [splits]

The default filter is fitted on half of the questions. The labels of the other half replace the
verdicts of a person. The number of checks is the number of answers. "where it pays" uses the order
of `ReviewOrder` over the whole batch. "one in each" checks one claim in every answer, the claim
with the smallest path risk that could be added. The program prints the true claims kept per answer,
with the naive standard error over the splits.
"""

import sys
import warnings

import numpy as np
from sklearn.model_selection import GroupShuffleSplit

from benchmarks.methods import fit_levels
from skdcf import CoherentConformalFilter
from skdcf.apps.labelling import ReviewOrder
from skdcf.datasets import fetch_felm, fetch_process_bench
from skdcf.features import reasoning_features
from skdcf.identity import question_groups

SETS = {"ProcessBench math": lambda: fetch_process_bench("math"), "FELM": fetch_felm}
ALPHAS = (0.05, 0.1)


def review_curve(filter, X, y, alpha, checks=(0, 1, 2, 3)):
    """True claims kept per answer after each mean number of checks, with y as the verdicts."""
    review = ReviewOrder(filter, X, alpha)
    curve = []
    for per_answer in checks:
        while review.n_checks < round(per_answer * len(X)) and (asked := review.next()):
            is_true = y[asked.problem][asked.claim] == 1
            review.told(asked.problem, asked.claim, "true" if is_true else "false")
        rows = zip(review.masks(), y, strict=True)
        curve.append(sum((mask & (row == 1)).sum() for mask, row in rows) / len(X))
    return curve


def one_in_each(filter, graphs, labels, alpha):
    """True claims kept per answer with one check in every answer."""
    n_true = 0
    for i, row in enumerate(labels):
        review = ReviewOrder(filter, graphs[i : i + 1], alpha)
        if check := review.next():
            is_true = row[check.claim] == 1
            review.told(0, check.claim, "true" if is_true else "false")
        n_true += int((review.masks()[0] & (row == 1)).sum())
    return n_true / len(labels)


def main(splits):
    """Print the table."""
    print(f"{splits} splits; true claims kept per answer")
    print(
        "set                alpha   no check       one in each    where it pays  two      three"
    )
    for name, fetch in SETS.items():
        data = fetch()
        graphs = reasoning_features().fit_transform(data.graphs)
        groups = question_groups(graphs)
        cut = GroupShuffleSplit(splits, train_size=0.5, random_state=0)
        rows = {alpha: [] for alpha in ALPHAS}
        for seed, (train, test) in enumerate(cut.split(groups, groups=groups)):
            filters = fit_levels(
                CoherentConformalFilter(random_state=seed),
                graphs[train],
                [data.labels[i] for i in train],
                ALPHAS,
                groups[train],
            )
            truth = [data.labels[i] for i in test]
            for alpha, filter in filters.items():
                curve = review_curve(filter, graphs[test], truth, alpha)
                each = one_in_each(filter, graphs[test], truth, alpha)
                rows[alpha].append([curve[0], each, *curve[1:]])
        for alpha, values in rows.items():
            mean = np.mean(values, axis=0)
            error = np.std(values, axis=0, ddof=1) / np.sqrt(splits)
            cells = [f"{m:.2f} +- {e:.2f}" for m, e in zip(mean, error, strict=True)]
            print(f"{name:18} {alpha:5.2f}   " + "   ".join(cells), flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore", UserWarning)
    main(int(sys.argv[1]) if sys.argv[1:] else 4)
