"""Measure retention with few labels and other answers, with and without the agreement prior.

    python -m benchmarks.retention.few_agreement [--draws 20] [--only SET] [--sizes 50 100]

The method is that of few_labels.py. The prior for Mr-Ben is fitted on GSM8K solutions, and the
prior for GSM8K solutions is fitted on Mr-Ben. For each question, Mr-Ben contains two answers by
other models, and GSM8K contains three. Each draw is cached in a file in the folder --work.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from benchmarks import RESULTS
from benchmarks.real_data import with_alternatives
from benchmarks.retention.few_labels import ALPHAS, split, tried, write_csv
from benchmarks.retention.make_prior import MOST, OF_AGREEMENT, make
from skdcf import GraphBatch
from skdcf.datasets import fetch_gsm8k_solutions, fetch_mr_ben
from skdcf.features import reasoning_features
from skdcf.graphs import pack_labels
from skdcf.guarantees import NoFalseClaim
from skdcf.scorers import FitTask, PublicPrior, StackingScorer

TRIED = {
    "biology": ("mr-ben", lambda: fetch_mr_ben("biology")),
    "chemistry": ("mr-ben", lambda: fetch_mr_ben("chemistry")),
    "math": ("mr-ben", lambda: fetch_mr_ben("math")),
    "gsm8k": ("gsm8k-solutions", fetch_gsm8k_solutions),
}
KEYS = "without", "with", "as is"


def read(name):
    """Problems with all columns, flat labels, questions."""
    data = TRIED[name][1]()
    graphs = with_alternatives(data.graphs, MOST)
    bare = GraphBatch.from_graphs([g.replace(features=None) for g in graphs])
    X = reasoning_features().fit_transform(bare)
    groups = np.unique(np.asarray(data.groups), return_inverse=True)[1]
    return X, pack_labels(data.labels, X), groups


def prior_file(folder, family):
    """The agreement prior without a family, made where it is not there yet."""
    path = folder / f"agreement-without-{family}.json"
    if not path.exists():
        path.write_text(json.dumps(make(family, OF_AGREEMENT, True)), encoding="ascii")
    return path


def one_draw(X, labels, groups, path, n, seed):
    """By level, [true claims kept, miss] of each; one answer to each of n questions."""
    order = np.random.RandomState(seed).permutation(len(groups))
    order = order[np.sort(np.unique(groups[order], return_index=True)[1])][:n]
    out, prior = {}, PublicPrior(path)
    for alpha in ALPHAS:
        count = NoFalseClaim().calibration_count(n, alpha)
        rows = np.sort(order[: n - count])
        known = labels[np.isin(X.problem_of, rows)]
        rest = np.flatnonzero(~np.isin(groups, groups[rows]))
        new, truth = X[rest], labels[np.isin(X.problem_of, rest)]
        splits = list(split(groups[rest], count, seed))
        scorers = StackingScorer(), StackingScorer(public_prior=prior)
        out[str(alpha)] = {}
        for key, scorer in zip(KEYS, (*scorers, prior), strict=True):
            task = FitTask(alpha, groups[rows], np.random.RandomState(seed))
            confidence = scorer.fit(X[rows], known, task).confidence(new)
            out[str(alpha)][key] = tried(confidence, new, truth, splits, alpha)
    return out


def main():
    """Run what is not there yet, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--work", type=Path, default=Path("/tmp"))
    parser.add_argument("--only", nargs="*", default=list(TRIED))
    parser.add_argument("--sizes", type=int, nargs="*", default=[50, 100])
    chosen = parser.parse_args()
    for name in chosen.only:
        for n in chosen.sizes:
            files = [
                chosen.work / f"agree-draw-{name}-{n}-{s}.json"
                for s in range(chosen.draws)
            ]
            missing = [s for s, file in enumerate(files) if not file.exists()]
            if missing:
                data, path = read(name), prior_file(chosen.work, TRIED[name][0])
            for seed in missing:
                text = json.dumps(one_draw(*data, path, n, seed))
                files[seed].write_text(text, encoding="ascii")
    write_table(chosen.work, chosen.output)


def write_table(work, folder):
    """The table of the page Few labels, from all draws that are there."""
    names = [
        "data",
        "labels",
        "alpha",
        "draws",
        "without",
        "with",
        "change, %",
        "as is",
    ]
    lines = [[*names, "miss"]]
    for name in TRIED:
        for n in (50, 100):
            files = sorted(work.glob(f"agree-draw-{name}-{n}-*.json"))
            found = [json.loads(file.read_text()) for file in files]
            lines += [row(name, n, alpha, found) for alpha in ALPHAS if len(found) > 1]
    write_csv(folder / "few-agreement.csv", lines)


def row(name, n, alpha, found):
    """What the draws gave at one level, with errors of their mean."""
    kept, miss = np.moveaxis(
        [[one[str(alpha)][key] for key in KEYS] for one in found], 2, 0
    )
    error = kept.std(axis=0, ddof=1) / len(kept) ** 0.5
    gain = kept[:, 1] - kept[:, 0]
    scale = 100 / kept[:, 0].mean()
    spread = gain.std(ddof=1) / len(kept) ** 0.5
    shown = [
        f"{a:.2f} ± {b:.2f}" for a, b in zip(kept.mean(axis=0), error, strict=True)
    ]
    change = f"{scale * gain.mean():+.0f} ± {scale * spread:.0f}"
    about = {"gsm8k": "GSM8K solutions"}.get(name, f"Mr-Ben {name}")
    return [
        about,
        n,
        alpha,
        len(kept),
        *shown[:2],
        change,
        shown[2],
        f"{miss[:, 1].mean():.3f}",
    ]


if __name__ == "__main__":
    main()
