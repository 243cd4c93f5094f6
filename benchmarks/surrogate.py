"""How faithful are the relaxations? The paper's first research question.

On generated problems and on PERL: Pearson r and mean absolute error of soft against hard
nonconformity scores and thresholds, and the agreement about single claims, with the
paper's validation settings and with sharper ones.
"""

import argparse

import numpy as np
from sklearn.model_selection import GroupShuffleSplit

from skdcf import CoherentConformalFilter
from skdcf.datasets import fetch_perl, make_reasoning_graphs
from skdcf.features import reasoning_features
from skdcf.inspection import surrogate_agreement
from skdcf.relaxation import GridRelaxation, PathRelaxation

PAPER = "scores r = 0.921, MAE = 0.34; thresholds r = 0.976, MAE = 0.12; agree 90-100 %"


def relaxations():
    """Name and relaxation."""
    validation = GridRelaxation.from_paper("validation")
    sharp = {
        "keep_temperature": 1e-7,
        "keep_shift": 1e-5,
        "violation_temperature": 1e-2,
        "sharpness": 1e5,
        "gate_temperature": 1e-8,
        "gate_shift": 1e-6,
        "quantile_strength": 1e7,
        "margin": 1.0,
    }
    return {
        "grid, the paper's validation settings": validation,
        "the same, violation_weight 1.05": clone_with(
            validation, violation_weight=1.05
        ),
        "the same, sharpness 200, margin 1": clone_with(
            validation, sharpness=200.0, margin=1.0
        ),
        "grid, sharp, violation_weight 1": GridRelaxation(
            violation_weight=1.0, **sharp
        ),
        "grid, sharp, violation_weight 1.05": GridRelaxation(
            violation_weight=1.05, **sharp
        ),
        "path, as trained": PathRelaxation(),
        "path, sharp": PathRelaxation(keep_temperature=1e-4, quantile_temperature=1e-4),
    }


def clone_with(relaxation, **changes):
    """A copy with other parameters."""
    return type(relaxation)(**relaxation.get_params() | changes)


def problems(source, n_problems, seed):
    """Graphs, labels and groups, twice as many as are compared."""
    if source in ("math", "felm"):
        data = make_reasoning_graphs(2 * n_problems, source, random_state=seed)
    else:
        data = fetch_perl(label="any")
        data.graphs = reasoning_features().fit_transform(data.graphs)
    return data


def main(n_problems, seed):
    """Print a report per source and relaxation."""
    for source in ("math", "felm", "perl"):
        data = problems(source, n_problems, seed)
        rows = next(
            GroupShuffleSplit(1, test_size=0.5, random_state=seed).split(
                data.labels, groups=data.groups
            )
        )
        train, test = rows
        dcf = CoherentConformalFilter("linear", alpha=0.05, random_state=seed)
        dcf.fit(data.graphs[train], [data.labels[i] for i in train], data.groups[train])
        labels = [data.labels[i] for i in test]
        print(f"\n=== {source}, {len(test)} problems; in the paper, on MATH: {PAPER}")
        for name, relaxation in relaxations().items():
            report = surrogate_agreement(
                dcf,
                data.graphs[test],
                labels,
                np.arange(1, 16) / 100,
                relaxation=relaxation,
            )
            print(f"\n{name}\n{report}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n-problems", type=int, default=202)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    main(options.n_problems, options.seed)
