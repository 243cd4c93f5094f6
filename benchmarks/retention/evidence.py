"""Compare the default filter with and without each kind of evidence.

    python -m benchmarks.retention.evidence [--jobs N] [--splits N] [--output DIR] [--only NAME]

* "passages": the source passages of an answer (QAGS, summaries of news)
* "frequency": how many of five other answers contain a claim (conformal factuality)
* "others": two other answers to the question, compared word by word (Mr-Ben biology)
* "check": one check by a person for each answer, in the order of `ReviewOrder` (ProcessBench math)

Half of the questions are used for training, and the other half is evaluated leave-one-out. For
"check", the filter is calibrated on the first half, and the labels replace the verdicts of a
person. The time of the columns is that of one core.
"""

from time import process_time

import numpy as np

from benchmarks.data import fetch_conformal_factuality
from benchmarks.methods import TIES, fit_levels
from benchmarks.real_data import load, with_alternatives
from benchmarks.saving import halves, options, wanted, write
from skdcf import CoherentConformalFilter, GraphBatch
from skdcf.apps.labelling import ReviewOrder
from skdcf.evaluation import compare_filters
from skdcf.features import reasoning_features
from skdcf.identity import question_groups

LEVELS = [0.05, 0.1]
NUMBERS = ("retention", "shown", "false_among_shown")


def columns(graphs):
    """The problems with their columns, and the milliseconds per problem."""
    batch = GraphBatch.from_graphs(list(graphs)).replace_features(None)
    start = process_time()
    table = reasoning_features().fit_transform(batch)
    return table, 1000 * (process_time() - start) / len(batch)


def text_alone(graphs):
    """The problems with nothing but question, claims and edges."""
    return [graph.replace(context=None) for graph in with_alternatives(graphs, 0)]


def passages():
    """Summaries of news, without and with the article."""
    data = load("qags-cnndm")
    with_passages, milliseconds = columns(data.graphs)
    both = columns(text_alone(data.graphs))[0], with_passages
    return both, data.labels, data.groups, 40, milliseconds


def frequency():
    """Answers without and with the proportion of other answers that contain a claim."""
    parts = [fetch_conformal_factuality(name) for name in ("factscore", "nq", "math")]
    graphs = GraphBatch.from_graphs([g for part in parts for g in part.graphs])
    labels = [y for part in parts for y in part.labels]
    groups = np.concatenate([part.groups for part in parts])
    scores = graphs.features[:, [graphs.feature_names.index("frequency-score")]]
    text, milliseconds = columns(text_alone(graphs))
    counted = text.replace_features(
        np.hstack([scores, text.features]), ["frequency-score", *text.feature_names]
    )
    return (text, counted), labels, groups, 40, milliseconds


def others():
    """Answers to exam questions, without and with answers by two other models."""
    data = load("mr-ben-biology")
    with_others, milliseconds = columns(with_alternatives(data.graphs, 2))
    both = columns(text_alone(data.graphs))[0], with_others
    return both, data.labels, data.groups, 16, milliseconds


def rounded(values):
    """Numbers with five decimals."""
    return [round(float(value), 5) for value in values]


def compared(made, n_splits, n_jobs):
    """Numbers without and with the evidence, one row for each level."""
    both, labels, groups, usual, milliseconds = made
    reports = [
        compare_filters(
            {"default": CoherentConformalFilter(**TIES)},
            X,
            labels,
            LEVELS,
            protocol="leave-one-out",
            cv=halves(n_splits or usual, groups),
            groups=groups,
            n_jobs=n_jobs,
            random_state=0,
        ).rows
        for X in both
    ]
    for without, having in zip(*reports, strict=True):
        yield {
            "alpha": without["alpha"],
            "without": rounded(without[name] for name in NUMBERS),
            "with": rounded(having[name] for name in NUMBERS),
            "milliseconds": round(milliseconds, 2),
        }


def numbers(masks, truth):
    """True claims kept, share of answers shown, and share of these with a false claim."""
    pairs = list(zip(masks, truth, strict=True))
    shown = np.array([mask.any() for mask in masks])
    wrong = np.array([(mask & (y != 1)).any() for mask, y in pairs])
    kept = np.mean([(mask & (y == 1)).sum() for mask, y in pairs])
    return kept, shown.mean(), wrong.sum() / max(1, shown.sum())


def reviewed(filter, X, truth, alpha):
    """Numbers without a check, and with as many checks as answers."""
    review = ReviewOrder(filter, X, alpha)
    yield numbers(review.masks(), truth)
    while review.n_checks < len(X) and (asked := review.asked()):
        problem, claim = asked[0]
        is_true = truth[problem][claim] == 1
        review.verdicts_[problem, claim] = "true" if is_true else "false"
    yield numbers(review.masks(), truth)


def checked(chosen):
    """Numbers without and with checks by a person, one row for each level."""
    data = load("process-bench-math")
    X, _ = columns(text_alone(data.graphs))
    groups = question_groups(X, data.groups)
    found = {alpha: [] for alpha in LEVELS}
    for seed, (train, rest) in enumerate(halves(chosen.splits or 6, groups)):
        cf = CoherentConformalFilter(**TIES, random_state=seed)
        y, truth = ([data.labels[i] for i in rows] for rows in (train, rest))
        for alpha, fitted in fit_levels(cf, X[train], y, LEVELS, groups[train]).items():
            found[alpha].append(list(reviewed(fitted, X[rest], truth, alpha)))
    for alpha, rows in found.items():
        without, having = np.mean(rows, axis=0)
        yield {"alpha": alpha, "without": rounded(without), "with": rounded(having)}


def main(chosen):
    """Run all comparisons, and save them."""
    if not wanted("evidence", chosen):
        return
    rows = []
    for made in (passages, others, frequency):
        for row in compared(made(), chosen.splits, chosen.jobs):
            rows.append({"evidence": made.__name__} | row)
            print(rows[-1], flush=True)
    for row in checked(chosen):
        rows.append({"evidence": "check"} | row)
        print(rows[-1], flush=True)
    write("evidence", chosen, {"numbers": NUMBERS, "rows": rows})


if __name__ == "__main__":
    main(options(__doc__))
