"""Compare all filters and columns on published answers of language models.

    python -m benchmarks.retention.real_results [--jobs N] [--splits N] [--output DIR] [--only NAME]

The answers are divided into halves by question. Filters are trained on one half and evaluated on
the other half by leave-one-out. The data are read from the folder $SKDCF_DATA.
"""

import json

import numpy as np
from scipy.sparse import block_array, coo_matrix
from scipy.sparse.csgraph import connected_components

from benchmarks.cells import columns
from benchmarks.methods import (
    AUTO,
    LOGISTIC,
    MARGIN,
    NEYMAN_PEARSON,
    OWN_LABEL,
    OWN_SCORE,
    PUBLISHED,
    TIES,
    UNTRAINED,
    compared,
    for_answers,
    labelled,
    published,
)
from benchmarks.real_data import agreement, base, load
from benchmarks.saving import halves, options, run, wanted
from skdcf import HardCF
from skdcf.datasets.fetch import get_data_home
from skdcf.features import reasoning_features
from skdcf.graphs import question_groups

STRICT = [0.01, 0.02, 0.05, 0.1, 0.2]
FEW = [0.02, 0.05, 0.1, 0.2]  # for sets of some hundred problems
ANSWERS = 'auto, gain="answers"'


def entries_of(X, filters=None, suffix=""):
    """Filters by name, all with the same columns."""
    filters = compared() if filters is None else filters
    return {name + suffix: (X, filter) for name, filter in filters.items()}


def some(*names):
    """Some of the filters that are compared."""
    return {name: filter for name, filter in compared().items() if name in names}


def planted(chosen):
    """PRMBench: errors that a language model wrote into right answers."""
    data = load("prmbench")
    X = base(chosen.output, "prmbench", data)
    entries = entries_of(X, compared())
    compare("prmbench", data, entries, STRICT, 8, chosen)
    by_wording = wordings(data)
    title = "PRMBench, halves by the wording of the question"
    run(
        "prmbench-wording",
        entries_of(X, some(LOGISTIC, AUTO)),
        data.labels,
        STRICT,
        halves(4, by_wording),
        chosen,
        groups=by_wording,
        title=title,
    )


def wordings(data):
    """Groups by `original_question`, and by the question that it became."""
    asked = {}
    for file in {name.split("/")[1] for name in data.graphs.ids}:
        path = get_data_home() / "prmbench" / f"{file}.jsonl"
        for i, line in enumerate(path.read_text("utf-8").split("\n")):
            if line.strip():
                asked[f"prmbench/{file}/{i}"] = json.loads(line)["original_question"]
    names = [name.removesuffix("/original") for name in data.graphs.ids]
    wording = np.unique([asked[name] for name in names], return_inverse=True)[1]
    # Two wordings may have become one question: no half may hold both.
    question = np.unique(question_groups(data.graphs), return_inverse=True)[1]
    shape = (wording.max() + 1, question.max() + 1)
    pairs = coo_matrix((np.ones(len(wording)), (wording, question)), shape=shape)
    _, component = connected_components(
        block_array([[None, pairs], [pairs.T, None]], format="csr"), directed=False
    )
    return component[wording]


def process_bench(chosen):
    """ProcessBench: natural errors of twelve models."""
    for name, n_splits in (("process-bench", 10), ("process-bench-math", 6)):
        data = load(name)
        X = base(chosen.output, name, data)
        compare(name, data, entries_of(X), FEW, n_splits, chosen)


def mr_ben(chosen):
    """Mr-Ben, mathematics: natural errors of three models."""
    data = load("mr-ben")
    X = base(chosen.output, "mr-ben", data)
    more = agreement(chosen.output, "mr-ben", data)
    entries = entries_of(X) | entries_of(more, suffix=", agreement")
    compare("mr-ben", data, entries, STRICT, 6, chosen)


def gsm8k(chosen):
    """Solutions of four models with exact graphs; labels are derived from answers."""
    name = "gsm8k-solutions"
    data = load(name)
    X = base(chosen.output, name, data)
    entries = entries_of(X)
    for most in (1, 2):
        more = agreement(chosen.output, name, data, most)
        few = some(LOGISTIC, AUTO) | {"agreement alone": HardCF("answer_agreement")}
        entries |= entries_of(more, few, f", {most} others")
    more = agreement(chosen.output, name, data)
    entries |= entries_of(more, suffix=", 3 others")
    alone = {
        "agreement alone": HardCF("answer_agreement"),
        "agreement alone, ties jittered": HardCF("answer_agreement", **TIES),
    }
    entries |= entries_of(more, alone, ", 3 others")
    compare(name, data, entries, STRICT, 10, chosen)


def perl(chosen):
    """PERL, whole and without the answers into which errors were written."""
    for name in ("perl", "perl-natural"):
        data = load(name)
        X = base(chosen.output, name, data)
        entries = entries_of(X, compared() | {ANSWERS: for_answers()})
        compare(name, data, entries, FEW, 10, chosen)


def felm(chosen):
    """FELM: answers to questions of four domains."""
    data = load("felm")
    X = base(chosen.output, "felm", data)
    entries = entries_of(X, some(LOGISTIC, AUTO) | {OWN_LABEL: labelled()[OWN_LABEL]})
    entries[PUBLISHED] = X, {a: published(a) for a in FEW}
    entries[MARGIN] = X, {a: published(a, margin=0.1) for a in FEW}
    compare("felm", data, entries, FEW, 10, chosen)


def sciences(chosen):
    """Mr-Ben's biology and chemistry, of which half of the answers are right."""
    for name in ("mr-ben-biology", "mr-ben-chemistry"):
        data, few = load(name), some(LOGISTIC, NEYMAN_PEARSON, AUTO)
        X = base(chosen.output, name, data)
        more = agreement(chosen.output, name, data)
        entries = entries_of(X, few) | entries_of(more, few, ", agreement")
        compare(name, data, entries, FEW, 6, chosen)


def qags(chosen):
    """QAGS: summaries, whose articles are the context."""
    for name in ("qags-cnndm", "qags-xsum"):
        data = load(name)
        X = base(chosen.output, name, data)
        entries = entries_of(X, some(LOGISTIC, NEYMAN_PEARSON, AUTO))
        entries[UNTRAINED] = X, HardCF("context_trigrams", **TIES)
        compare(name, data, entries, FEW, 40, chosen)


def refchecker(chosen):
    """RefChecker: triplets from answers of seven models, without and with the other six."""
    data, few = load("refchecker"), some(LOGISTIC, NEYMAN_PEARSON, AUTO)
    X = base(chosen.output, "refchecker", data)
    more = agreement(chosen.output, "refchecker", data, 6)
    entries = entries_of(X, few) | entries_of(more, few, ", 6 others")
    compare("refchecker", data, entries, FEW, 10, chosen)


def conformal_rag(chosen):
    """Conformal-RAG: answers with passages, judged by a model, and its authors' score."""
    name, few = "conformal-rag", some(LOGISTIC, AUTO)
    data = load(name)
    bare = data.graphs.replace_features(None)
    X = columns(chosen.output, f"{name}-texts", reasoning_features(), bare)
    more = base(chosen.output, name, data)
    entries = entries_of(X, few) | entries_of(more, few, ", its score")
    entries[OWN_SCORE] = data.graphs, HardCF("similarity-score", **TIES)
    compare(name, data, entries, FEW, 6, chosen)


def hazard_labels(chosen):
    """What a logistic regression should learn: three labels on five sets."""
    for name in ("perl", "prmbench", "gsm8k-solutions", "process-bench", "felm"):
        data = load(name)
        X = base(chosen.output, name, data)
        run(
            f"hazard-labels-{name}",
            entries_of(X, labelled()),
            data.labels,
            FEW,
            halves(40, data.groups),
            chosen,
            groups=data.groups,
            title=f"{TITLES[name]}: labels to learn",
        )


TITLES = {
    "prmbench": "PRMBench, errors planted by a model",
    "process-bench": "ProcessBench (gsm8k), natural errors",
    "mr-ben": "Mr-Ben (mathematics), natural errors",
    "gsm8k-solutions": "GSM8K solutions, natural errors, derived labels",
    "perl": "PERL (gsm8k and math), natural and planted errors",
    "perl-natural": "PERL, natural errors only",
    "process-bench-math": "ProcessBench (math), natural errors",
    "felm": "FELM (four domains), natural errors",
    "mr-ben-biology": "Mr-Ben (biology), natural errors",
    "mr-ben-chemistry": "Mr-Ben (chemistry), natural errors",
    "qags-cnndm": "QAGS (CNN/DM), summaries of news",
    "qags-xsum": "QAGS (XSum), summaries of one sentence",
    "refchecker": "RefChecker, triplets from answers of seven models",
    "conformal-rag": "Conformal-RAG, long answers with passages, judged by a model",
}


def compare(name, data, entries, alphas, n_splits, chosen):
    """Halves by question, and what a reader should know of the data."""
    sizes = {
        "n_problems": len(data.labels),
        "n_claims": int(sum(map(len, data.labels))),
        "n_false": int(sum(np.sum(labels == 0) for labels in data.labels)),
        "n_unknown": int(sum(np.sum(labels < 0) for labels in data.labels)),
        "n_clean": int(sum(np.all(labels == 1) for labels in data.labels)),
        "n_questions": len(set(data.groups.tolist())),
    }
    run(
        name,
        entries,
        data.labels,
        alphas,
        halves(n_splits, data.groups),
        chosen,
        groups=data.groups,
        title=TITLES[name],
        data=sizes,
    )


PARTS = {
    "prmbench": planted,
    "process-bench": process_bench,
    "mr-ben": mr_ben,
    "gsm8k-solutions": gsm8k,
    "perl": perl,
    "felm": felm,
    "mr-ben-": sciences,
    "qags": qags,
    "refchecker": refchecker,
    "conformal-rag": conformal_rag,
    "hazard-labels": hazard_labels,
}


def main(chosen):
    """Run and save every comparison."""
    for name, part in PARTS.items():
        if wanted(name, chosen):
            part(chosen)


if __name__ == "__main__":
    main(options(__doc__))
