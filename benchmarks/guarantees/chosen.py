"""Measure the coverage and the error rate of shown texts if one of k answers is chosen.

    python -m benchmarks.guarantees.chosen [trainings] [splits of each]

The program prints benchmarks/results/chosen.txt. In each training, the default filter is trained on
all answers to half of the questions. In each split, half of the other questions are used for
calibration, with one answer each. The remaining questions are filtered, also with one answer each.
"sampled" is a random answer. "safest-claim" and "whole" are the rules of `skdcf.estimators.choose`.
"joined" combines all answers into one problem and counts the claims in the answer with the most
kept claims. The thresholds are order statistics, which this program computes from path risks and
labels. An unknown label counts as false.
"""

import sys
import warnings
from functools import partial

import numpy as np

from skdcf import CoherentConformalFilter
from skdcf.datasets import fetch_gsm8k_solutions, fetch_mr_ben, fetch_refchecker
from skdcf.estimators import choose
from skdcf.features import reasoning_features

SETS = {
    "GSM8K solutions": fetch_gsm8k_solutions,
    "Mr-Ben, mathematics": partial(fetch_mr_ben, "math"),
    "RefChecker": partial(fetch_refchecker, ["accurate_context", "noisy_context"]),
}
ALPHAS = (0.05, 0.1, 0.2)
#: The rule that chose the calibration answers, and the one that chose the filtered answers.
WAYS = (
    ("sampled", "sampled"),
    ("sampled", "safest-claim"),
    ("safest-claim", "safest-claim"),
    ("sampled", "whole"),
    ("whole", "whole"),
    ("joined", "joined"),
)


def threshold(scores, alpha):
    """The floor(alpha (n + 1))-th smallest score; -inf if that rank is 0."""
    rank = int(np.floor(alpha * (len(scores) + 1) + 1e-9))
    return np.sort(scores)[rank - 1] if rank else -np.inf


def score(risk, label):
    """The smallest path risk of a claim that is not known to be true."""
    return risk[label != 1].min(initial=np.inf)


def measure(risks, labels, rows, cut):
    """Missed, shown and true claims kept for each question, of the answers in ``rows``."""
    values = []
    for answers in rows:
        kept = [risks[i] < cut for i in answers]
        most = max(range(len(answers)), key=lambda k: kept[k].sum())
        label = labels[answers[most]]
        missed = any(
            (labels[i][m] != 1).any() for i, m in zip(answers, kept, strict=True)
        )
        values.append((missed, kept[most].any(), (label[kept[most]] == 1).sum()))
    return np.mean(values, axis=0)


def train(data, seed):
    """Path risks of the answers to half of the questions, and the answers of each rule."""
    rng = np.random.default_rng(seed)
    questions = rng.permutation(np.unique(data.groups))
    half = questions[: len(questions) // 2]
    learns = np.isin(data.groups, half)
    train_rows, rest = np.flatnonzero(learns), np.flatnonzero(~learns)
    filter = CoherentConformalFilter(
        features=reasoning_features(), calibration_size=0.2, random_state=seed
    ).fit(
        data.graphs[train_rows],
        [data.labels[i] for i in train_rows],
        groups=data.groups[train_rows],
    )
    graphs, groups = data.graphs[rest], data.groups[rest]
    risks = filter.path_risk(graphs)
    labels = [np.asarray(data.labels[i]) for i in rest]
    members = [np.flatnonzero(groups == q) for q in dict.fromkeys(groups.tolist())]
    rows = {
        rule: [[int(i)] for i in choose(filter, graphs, groups, rule=rule)]
        for rule in ("safest-claim", "whole")
    }
    rows["sampled"] = [[int(rng.choice(answers))] for answers in members]
    rows["joined"] = [answers.tolist() for answers in members]
    return risks, labels, rows, len(members)


def split(trained, seed):
    """For each alpha and way the means over the filtered questions."""
    risks, labels, rows, n = trained
    order = np.random.default_rng(seed).permutation(n)
    calibrate, test = order[: n // 2], order[n // 2 :]
    table = []
    for alpha in ALPHAS:
        for by, used in WAYS:
            answers = [rows[by][q] for q in calibrate]
            scores = [min(score(risks[i], labels[i]) for i in row) for row in answers]
            cut = threshold(np.array(scores), alpha)
            table.append(measure(risks, labels, [rows[used][q] for q in test], cut))
    return table


def error_of_mean(values, n_trainings):
    """The standard error of the mean over splits, which are ordered by training.

    The splits of a training share its scorer, so their mean may vary more than that of as many
    independent splits. With few trainings it may also vary less by chance. The larger of both
    estimates is returned. With one training, only the splits are compared.
    """
    by_training = values.reshape(n_trainings, -1, *values.shape[1:]).mean(axis=1)
    errors = [
        sample.std(axis=0, ddof=1) / np.sqrt(len(sample))
        for sample in (by_training, values)
        if len(sample) > 1
    ]
    return np.max(errors, axis=0)


def main(n_trainings, n_splits):
    """Print a table for each data set."""
    warnings.simplefilter("ignore")  # some sets have answers without claims
    for name, fetch in SETS.items():
        data = fetch()
        data.groups = np.asarray(data.groups)
        counts = np.unique(np.unique(data.groups, return_counts=True)[1])
        values = []
        for training in range(n_trainings):
            trained = train(data, training)
            values += [split(trained, 1000 * training + k) for k in range(n_splits)]
        values = np.array(values)
        means = values.mean(axis=0)
        errors = error_of_mean(values, n_trainings)
        print(
            f"{name}: {len(np.unique(data.groups))} questions, {len(data.graphs)} answers, "
            f"k = {', '.join(map(str, counts))}; {n_trainings} trainings x {n_splits} splits"
        )
        print(
            "alpha  calibrated    used          missed           shown            "
            "true claims      false among shown"
        )
        for row, (mean, error) in enumerate(zip(means, errors, strict=True)):
            by, used = WAYS[row % len(WAYS)]
            columns = "   ".join(
                f"{m:.3f} +- {e:.3f}" for m, e in zip(mean, error, strict=True)
            )
            among = "" if by == "joined" else f"{mean[0] / max(mean[1], 1e-9):.3f}"
            alpha = ALPHAS[row // len(WAYS)]
            print(f"{alpha:5.2f}  {by:12}  {used:12}  {columns}   {among}", flush=True)
        print()


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:]] or [6, 100]
    if len(numbers) != 2 or numbers[0] < 1 or numbers[1] < 2:
        sys.exit(f"pass at least 1 training and at least 2 splits, got {numbers}")
    main(*numbers)
