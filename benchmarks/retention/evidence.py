"""Compare the default filter with and without each kind of evidence.

    python -m benchmarks.retention.evidence [--jobs N] [--splits N] [--output DIR] [--only NAME]

* the passages that an answer was to be supported by: summaries of news;
* how often claims come back when a model is asked again: the data of conformal factuality,
  three sets of 50 answers, whose authors drew five others;
* two other answers to the same question, compared word by word: biology, first errors;
* one check by a person for each answer, spent where it pays: mathematics, first errors.

The time of the columns is that of one core.
"""

from time import process_time

import numpy as np
from sklearn.base import clone

from benchmarks.cells import columns, compute
from benchmarks.data import fetch_conformal_factuality
from benchmarks.guarantees.review import review_curve
from benchmarks.methods import AUTO, FREQUENCY, TIES, compared, fit_levels
from benchmarks.real_data import agreement, base, load, with_alternatives
from benchmarks.saving import SEED, fewer, halves, options, run, wanted, write
from skdcf import GraphBatch, HardCF
from skdcf.features import reasoning_features

LEVELS = [0.05, 0.1, 0.2]
TEXT, PASSAGES = f"{AUTO}, text alone", f"{AUTO}, passages"
COUNTED, OTHERS = f"{AUTO}, frequency", f"{AUTO}, other answers"
CHECKED = {"process-bench-math": "ProcessBench math", "felm": "FELM"}


def without_evidence(graphs):
    """The problems with nothing but question, claims and edges."""
    graphs = [graph.replace(context=None) for graph in with_alternatives(graphs, 0)]
    return GraphBatch.from_graphs(graphs).replace_features(None)


def passages(chosen):
    """Summaries of news, without and with the article."""
    data = load("qags-cnndm")
    auto = compared()[AUTO]
    name = "evidence-passages"
    bare = without_evidence(data.graphs)
    text = columns(chosen.output, name, reasoning_features(), bare)
    entries = {
        TEXT: (text, auto),
        PASSAGES: (base(chosen.output, "qags-cnndm", data), auto),
    }
    splits = halves(40, data.groups)
    about = {"groups": data.groups, "title": "What passages are worth, QAGS (CNN/DM)"}
    run(name, entries, data.labels, LEVELS, splits, chosen, **about)


def frequency(chosen):
    """Answers whose claims were looked for in five other answers, by a model."""
    parts = [fetch_conformal_factuality(name) for name in ("factscore", "nq", "math")]
    graphs = GraphBatch.from_graphs([g for part in parts for g in part.graphs])
    labels = [y for part in parts for y in part.labels]
    groups = np.concatenate([part.groups for part in parts])
    scores = graphs.features[:, [graphs.feature_names.index("frequency-score")]]
    name, auto = "evidence-frequency", compared()[AUTO]
    text = columns(chosen.output, name, reasoning_features(), without_evidence(graphs))
    counted = text.replace_features(
        np.hstack([scores, text.features]), ["frequency-score", *text.feature_names]
    )
    entries = {
        TEXT: (text, auto),
        FREQUENCY: (counted, HardCF("frequency-score", **TIES)),
        COUNTED: (counted, auto),
    }
    splits = halves(40, groups)
    about = {"groups": groups, "title": "What the frequency of claims is worth"}
    run(name, entries, labels, LEVELS, splits, chosen, **about)


def answers(chosen):
    """Answers to questions of exams, without and with those of two other models."""
    name, auto = "mr-ben-biology", compared()[AUTO]
    data = load(name)
    entries = {
        TEXT: (base(chosen.output, name, data), auto),
        OTHERS: (agreement(chosen.output, name, data), auto),
    }
    splits = halves(16, data.groups)
    about = {"groups": data.groups, "title": "What other answers are worth, biology"}
    run("evidence-answers", entries, data.labels, LEVELS, splits, chosen, **about)


def check_cell(X, labels, groups, parts, seed):
    """[true claims kept without a check, with one check per answer] at each level."""
    train, rest = parts
    auto = clone(compared()[AUTO]).set_params(random_state=seed)
    y, truth = ([labels[i] for i in rows] for rows in parts)
    filters = fit_levels(auto, X[train], y, LEVELS, groups[train])
    return [
        review_curve(filter, X[rest], truth, alpha, checks=(0, 1))
        for alpha, filter in filters.items()
    ]


def checks(chosen):
    """A person's checks, as many as there are answers, spent where they pay."""
    rows = []
    for name in CHECKED:
        data = load(name)
        X, groups = base(chosen.output, name, data), np.asarray(data.groups)
        splits = fewer(halves(6, groups), chosen)
        cells = {
            f"{name}/{k}": (check_cell, (X, data.labels, groups, parts, SEED + k))
            for k, parts in enumerate(splits)
        }
        found = compute(chosen.output, "evidence-checks", cells, chosen.jobs)
        kept = np.mean([found[f"{name}/{k}"] for k in range(len(splits))], axis=0)
        for alpha, (without, with_check) in zip(LEVELS, kept.tolist(), strict=True):
            row = {"data": name, "alpha": alpha}
            rows.append(row | {"no check": without, "one check": with_check})
            print(rows[-1], flush=True)
    title = "One check by a person for each answer"
    write("evidence-checks", chosen, {"title": title, "rows": rows})


def seconds(chosen):
    """Milliseconds per answer that the columns take, on one core, of problems read anew."""
    articles, exams = load("qags-cnndm"), load("mr-ben-biology")
    timed = {
        "text alone": without_evidence(exams.graphs),
        "passages": GraphBatch.from_graphs(list(articles.graphs)),
        "other answers": with_alternatives(exams.graphs, 2),
    }
    rows = []
    for name, graphs in timed.items():
        start = process_time()
        reasoning_features().fit_transform(graphs)
        spent = process_time() - start
        rows.append({"evidence": name, "milliseconds": 1000 * spent / len(graphs)})
        print(rows[-1], flush=True)
    title = "Milliseconds per answer for the columns"
    write("evidence-seconds", chosen, {"title": title, "rows": rows})


PARTS = {
    "evidence-passages": passages,
    "evidence-frequency": frequency,
    "evidence-answers": answers,
    "evidence-checks": checks,
    "evidence-seconds": seconds,
}


def main(chosen):
    """Run and save every comparison."""
    for name, part in PARTS.items():
        if wanted(name, chosen):
            part(chosen)


if __name__ == "__main__":
    main(options(__doc__))
