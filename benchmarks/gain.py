"""What is kept, and how many answers come out empty, by what kept claims are worth.

    python benchmarks/gain.py [--splits 20]

PERL, halves by question, leave-one-out on the second half; logistic regression beside it.
"""

import argparse

import numpy as np
from sklearn.model_selection import GroupShuffleSplit

from skdcf import HardCF
from skdcf.datasets import fetch_perl
from skdcf.features import reasoning_features
from skdcf.metrics import leave_one_out
from skdcf.scorers import ClassifierScorer, MixtureScorer

ALPHAS = (0.05, 0.1, 0.2)
SCORERS = {
    "logistic regression": ClassifierScorer(),
    'auto, gain="claims"': MixtureScorer(),
    'auto, gain="answers"': MixtureScorer(gain="answers"),
}


def main():
    """Print retention and the share of empty answers per level."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=20)
    n_splits = parser.parse_args().splits
    data = fetch_perl(label="any")
    graphs = reasoning_features().fit_transform(data.graphs)
    halves = GroupShuffleSplit(n_splits, test_size=0.5, random_state=0)
    halves = list(halves.split(np.zeros(len(graphs)), groups=data.groups))
    print(f"{n_splits} halves of {len(graphs)} problems; alpha = {ALPHAS}")
    print("scorer                true claims kept       emptied answers")
    for name, scorer in SCORERS.items():
        rows = []
        for first, second in halves:
            known = graphs[first], [data.labels[i] for i in first]
            new = graphs[second], [data.labels[i] for i in second]
            reports = []
            for alpha in ALPHAS:  # calibrated on one problem only: new ones calibrate
                cf = HardCF(scorer, alpha=alpha, calibration_size=1, random_state=0)
                reports.append(leave_one_out(cf.fit(*known), *new, [alpha]))
            rows.append([[r.retention[0], r.abstention[0]] for r in reports])
        kept, empty = np.mean(rows, axis=0).T
        print(
            f"{name:20}",
            *(f"{v:6.3f}" for v in kept),
            " ",
            *(f"{v:6.3f}" for v in empty),
        )


if __name__ == "__main__":
    import warnings

    from skdcf.exceptions import CalibrationWarning

    warnings.simplefilter("ignore", CalibrationWarning)
    main()
