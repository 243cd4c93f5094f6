"""Measure the retention with the context columns on QAGS.

    python -m benchmarks.retention.context [--splits 40]

QAGS (Wang, Cho, Lewis, 2020) contains summaries of news articles. Three people judged each
sentence, and the article is the context. A random half of the summaries is used for training. Each
summary of the other half is filtered with the threshold from all other summaries of that half. All
articles are different, so each article is a group.
"""

import argparse
import warnings

import numpy as np
from sklearn.model_selection import ShuffleSplit

from benchmarks.data import fetch_qags
from benchmarks.methods import fit_levels
from skdcf import CoherentConformalFilter, GraphBatch, HardCF
from skdcf.evaluation import leave_one_out
from skdcf.exceptions import CalibrationWarning
from skdcf.features import reasoning_features

ALPHAS = (0.05, 0.1, 0.2, 0.3)


def entries(graphs):
    """Filters by name, with the problems as each of them sees them."""
    seen = reasoning_features().fit_transform(graphs)
    bare = GraphBatch.from_graphs([graph.replace(context=None) for graph in graphs])
    blind = reasoning_features().fit_transform(bare)
    auto = CoherentConformalFilter(calibration_size=1)
    return {
        "auto without context columns": (blind, auto),
        "auto": (seen, auto),
        "context_trigrams, untrained": (seen, HardCF("context_trigrams")),
    }


def keep(subset, n_splits):
    """Print true claims kept per summary, with naive errors over the splits."""
    data = fetch_qags(subset)
    halves = ShuffleSplit(n_splits, test_size=0.5, random_state=0)
    for name, (graphs, filter) in entries(data.graphs).items():
        kept = []
        for seed, (first, second) in enumerate(halves.split(data.labels)):
            known = graphs[first], [data.labels[i] for i in first]
            new = graphs[second], [data.labels[i] for i in second]
            if "random_state" in filter.get_params():
                filter.set_params(random_state=seed)
            levels = fit_levels(filter, *known, ALPHAS)
            reports = [leave_one_out(levels[alpha], *new, [alpha]) for alpha in ALPHAS]
            kept.append([report.retention[0] for report in reports])
        error = np.std(kept, axis=0, ddof=1) / np.sqrt(n_splits)
        row = zip(np.mean(kept, axis=0), error, strict=True)
        print(f"{subset:6} {name:30}", *(f"{a:.3f} +- {b:.3f}" for a, b in row))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=40)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore", CalibrationWarning)
    for name in ("cnndm", "xsum"):
        keep(name, chosen.splits)
