"""The published data that the experiments use, and their columns."""

import numpy as np

from benchmarks.data import (
    fetch_conformal_rag,
    fetch_gsm8k_solutions,
    fetch_perl,
    fetch_prmbench,
    fetch_qags,
    fetch_refchecker,
)
from skdcf import GraphBatch
from skdcf.datasets import fetch_felm, fetch_mr_ben, fetch_process_bench

NATURAL = ("negatives", "positives")  # of PERL: no error was written into these
# What is fetched where nothing else is there, and what the page says of its labels.
SETS = {
    "prmbench": lambda: fetch_prmbench("train"),
    "process-bench": lambda: fetch_process_bench("gsm8k"),
    "process-bench-math": lambda: fetch_process_bench("math"),
    "felm": fetch_felm,
    "mr-ben": lambda: fetch_mr_ben("math"),
    "mr-ben-biology": lambda: fetch_mr_ben("biology"),
    "mr-ben-chemistry": lambda: fetch_mr_ben("chemistry"),
    "gsm8k-solutions": fetch_gsm8k_solutions,
    "perl": lambda: fetch_perl(label="any"),
    "perl-natural": lambda: fetch_perl(kind=NATURAL, label="any"),
    "qags-cnndm": lambda: fetch_qags("cnndm"),
    "qags-xsum": lambda: fetch_qags("xsum"),
    "refchecker": lambda: fetch_refchecker(["accurate_context", "noisy_context"]),
    "conformal-rag": fetch_conformal_rag,
}


def load(name):
    """The Bunch of a data set."""
    return SETS[name]()


def with_alternatives(graphs, most):
    """The problems with at most so many other answers, drawn at random; 0 is unknown."""
    if not most:
        return GraphBatch.from_graphs([g.replace(alternatives=None) for g in graphs])
    rng = np.random.default_rng(0)
    cut = []
    for graph in graphs:  # shuffled, as the first ones are always the same models'
        others = [
            graph.alternatives[i] for i in rng.permutation(len(graph.alternatives))
        ]
        cut.append(graph.replace(alternatives=others[:most]))
    return GraphBatch.from_graphs(cut)
