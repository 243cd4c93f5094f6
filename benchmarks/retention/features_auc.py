"""Measure how well the built-in features predict false claims on PERL gsm8k and math.

    python -m benchmarks.retention.features_auc [--data-home FOLDER]

The program prints the out-of-fold AUC of a logistic regression for two labels. For "any", all false
claims are errors. For "native", only claims that are wrong given their premises are errors. It also
prints the precision of the arithmetic check and the AUC of each column alone. The features require
no model.
"""

import argparse

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold

from skdcf.datasets import fetch_perl
from skdcf.features import reasoning_features

LABELS = ("any", "native")


def out_of_fold(features, false, groups, seed):
    """Scores of all claims: standardised, clipped at 3, C = 0.3, five folds."""
    score = np.zeros(len(false))
    folds = GroupKFold(5, shuffle=True, random_state=seed)
    for train, test in folds.split(features, false, groups):
        center, scale = features[train].mean(axis=0), features[train].std(axis=0)
        z = np.clip((features - center) / np.where(scale > 0, scale, 1.0), -3, 3)
        model = LogisticRegression(C=0.3, max_iter=1000).fit(z[train], false[train])
        score[test] = model.decision_function(z[test])
    return score


def table_row(name, features, false, groups, seeds):
    """Mean and spread of the AUC over the seeds."""
    runs = [
        roc_auc_score(false, out_of_fold(features, false, groups, seed))
        for seed in range(seeds)
    ]
    print(f"{name:28s} {np.mean(runs):.3f} +- {np.std(runs):.3f}")


def main(data_home, seeds):
    """Print the tables."""
    bunches = {label: fetch_perl(label=label, data_home=data_home) for label in LABELS}
    data = bunches["any"]
    batch = reasoning_features().fit_transform(data.graphs)
    false = {k: ~np.concatenate(b.labels).astype(bool) for k, b in bunches.items()}
    groups = np.asarray(data.groups)[batch.problem_of]
    source = np.array([str(i).split("/")[1].split("_")[0] for i in batch.ids])
    source = source[batch.problem_of]
    print(batch)
    print(f"\nAUC for false claims, 5 folds by question, {seeds} seeds")
    for label in LABELS:
        for part in ("gsm8k + math", "gsm8k", "math"):
            rows = np.isin(source, part.split(" + "))
            x, y = batch.features[rows], false[label][rows]
            table_row(f"{label}, {part}", x, y, groups[rows], seeds)

    flagged = batch.features[:, batch.feature_names.index("arithmetic_wrong")] > 0
    print(f"\nclaims with a failing equality: {flagged.sum()} of {len(flagged)}")
    for label in LABELS:
        precision = false[label][flagged].mean()
        recall = flagged[false[label]].mean()
        print(f"{label:28s} precision {precision:.3f}, recall {recall:.3f}")

    print(f"\n{'column alone (AUC)':28s} " + " ".join(f"{k:>7s}" for k in LABELS))
    for name, column in zip(batch.feature_names, batch.features.T, strict=True):
        values = (roc_auc_score(false[label], column) for label in LABELS)
        print(f"{name:28s} " + " ".join(f"{value:7.3f}" for value in values))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-home", help="folder of the data")
    parser.add_argument("--seeds", type=int, default=5)
    chosen = parser.parse_args()
    main(chosen.data_home, chosen.seeds)
