"""Measure the retention and the speed of the context columns on QAGS.

    python -m benchmarks.retention.context [--splits 40] [--speed]

QAGS (Wang, Cho, Lewis, 2020) contains summaries of news articles. Three people judged each
sentence, and the article is the context. A random half of the summaries is used for training. Each
summary of the other half is filtered with the threshold from all other summaries of that half. All
articles are different, so each article is a group. --speed measures the time for passages of 600
random words with three claims per passage, with new passages and with cached passages.
"""

import argparse
import warnings
from itertools import product
from time import process_time

import numpy as np
from sklearn.model_selection import ShuffleSplit

from benchmarks.methods import fit_levels
from skdcf import CoherentConformalFilter, GraphBatch, HardCF
from skdcf.datasets import fetch_qags
from skdcf.exceptions import CalibrationWarning
from skdcf.features import ContextFeatures, reasoning_features
from skdcf.metrics import leave_one_out

ALPHAS = (0.05, 0.1, 0.2, 0.3)
WEIGHED = (
    "qags-xsum",
    "qags-cnndm",
    "felm",
    "perl-natural",
    "mr-ben",
    "mr-ben-chemistry",
)


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


def draw(n_passages, n_words, rng):
    """Passages of sentences, and three claims to each: a quote, a change, something else."""
    letters = "abcdefghijklmnopqrst"
    vocabulary = np.array([a + b + c + d for a, b, c, d in product(letters, repeat=4)])
    share = 1 / np.arange(1, len(vocabulary) + 1)  # as often as in texts
    share /= share.sum()
    for _ in range(n_passages):
        words = vocabulary[rng.choice(len(share), size=n_words + 25, p=share)].tolist()
        words[3] = "1,250"
        parts = [
            " ".join(words[i : i + 20]).capitalize() for i in range(0, n_words, 20)
        ]
        changed = [*words[100:110], "Bradfield", *words[111:125]]
        yield (
            ". ".join(parts),
            [" ".join(w) for w in (words[40:65], changed, words[-25:])],
        )


def speed(n_passages, n_words=600):
    """Print claims a second on one core."""
    drawn = list(draw(n_passages, n_words, np.random.default_rng(0)))
    claims = [claim for _, three in drawn for claim in three]
    contexts = [[passage] for passage, _ in drawn]
    offsets = np.arange(n_passages + 1) * 3
    batch = GraphBatch.from_arrays(None, offsets, (), claims=claims, context=contexts)
    once = GraphBatch.from_arrays(
        None, [0, len(claims)], (), claims=claims, context=[contexts[0]]
    )
    for what, problems in (("read anew", batch), ("read before", once)):
        transformer = ContextFeatures().fit(problems)
        seconds = []
        for _ in range(5):
            start = process_time()
            transformer.transform(problems)
            seconds.append(process_time() - start)
        print(f"{n_words} words, {what}: {len(claims) / min(seconds):,.0f} claims/s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=40)
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--only", nargs="*", default=WEIGHED)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore", CalibrationWarning)
    if chosen.speed:
        speed(400)
    else:
        for name in ("cnndm", "xsum"):
            keep(name, chosen.splits)
