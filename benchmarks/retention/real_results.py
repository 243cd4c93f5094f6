"""Compare all filters and columns on published answers of language models.

    python -m benchmarks.retention.real_results [--jobs N] [--splits N] [--output DIR] [--only NAME]

The answers are divided into halves by question. Filters are trained on one half and evaluated on
the other half by leave-one-out. The data are read from the folder $SKDCF_DATA.
"""

import numpy as np

from benchmarks.cells import columns
from benchmarks.methods import (
    MARGIN,
    OWN_SCORE,
    PUBLISHED,
    TIES,
    compared,
    published,
)
from benchmarks.real_data import agreement, base, load
from benchmarks.saving import halves, options, run, wanted
from skdcf import HardCF
from skdcf.features import reasoning_features

STRICT = [0.01, 0.02, 0.05, 0.1, 0.2]
FEW = [0.02, 0.05, 0.1, 0.2]  # for sets of some hundred problems
# Levels, and the number of splits.
EXPERIMENTS = {
    "prmbench": (STRICT, 8),
    "process-bench": (FEW, 10),
    "process-bench-math": (FEW, 6),
    "mr-ben": (STRICT, 6),
    "mr-ben-biology": (FEW, 6),
    "mr-ben-chemistry": (FEW, 6),
    "gsm8k-solutions": (STRICT, 10),
    "perl-natural": (FEW, 10),
    "felm": (FEW, 10),
    "qags-cnndm": (FEW, 40),
    "qags-xsum": (FEW, 40),
    "refchecker": (FEW, 10),
    "conformal-rag": (FEW, 6),
}
# The number of other answers to a question, and what the filters are called that see them.
OTHERS = {
    "mr-ben-biology": (3, "agreement"),
    "mr-ben-chemistry": (3, "agreement"),
    "gsm8k-solutions": (3, "3 others"),
    "refchecker": (6, "6 others"),
}
TITLES = {
    "prmbench": "PRMBench, errors planted by a model",
    "process-bench": "ProcessBench (gsm8k), natural errors",
    "mr-ben": "Mr-Ben (mathematics), natural errors",
    "gsm8k-solutions": "GSM8K solutions, natural errors, derived labels",
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


def entries_of(name, data, folder):
    """Problems and filter of each entry, by name."""
    if name == "conformal-rag":
        bare = data.graphs.replace_features(None)
        X = columns(folder, f"{name}-texts", reasoning_features(), bare)
    else:
        X = base(folder, name, data)
    entries = {key: (X, filter) for key, filter in compared().items()}
    if name in OTHERS:
        most, said = OTHERS[name]
        more = agreement(folder, name, data, most)
        entries |= {f"{key}, {said}": (more, one) for key, one in compared().items()}
    if name == "felm":
        entries[PUBLISHED] = X, {a: published(a) for a in FEW}
        entries[MARGIN] = X, {a: published(a, margin=0.1) for a in FEW}
    if name == "conformal-rag":
        entries[OWN_SCORE] = data.graphs, HardCF("similarity-score", **TIES)
    return entries


def compare(name, chosen):
    """Halves by question, and what a reader should know of the data."""
    data, (alphas, n_splits) = load(name), EXPERIMENTS[name]
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
        entries_of(name, data, chosen.output),
        data.labels,
        alphas,
        halves(n_splits, data.groups),
        chosen,
        groups=data.groups,
        title=TITLES[name],
        data=sizes,
    )


def main(chosen):
    """Run and save every comparison."""
    for name in EXPERIMENTS:
        if wanted(name, chosen):
            compare(name, chosen)


if __name__ == "__main__":
    main(options(__doc__))
