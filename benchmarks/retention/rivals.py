"""Compare other packages that filter claims on a data set that all of them can read.

    python -m benchmarks.retention.rivals [--splits 10] [--environment DIR] [--output FILE]

MACI (maci-conformal 0.2.2) and the Claim query of cci-sdk 0.1.1 are installed with pip into a
separate environment. The data set is Conformal-RAG, with 1,603 answers with passages that were
judged by a model. Half of the answers are labelled and used for training and calibration, and the
other half is filtered. All packages use the same answers and the same scores, but each package
splits the labelled answers in its own way.

There are three kinds of scores. The first is the published similarity. The second also includes the
proportions of a claim's words and word trigrams that occur in the passages. The third is the
probability from a logistic regression on all columns, which is trained on half of the labelled
answers, so the other half can be used for calibration. Where the other packages use the
regression, skdcf uses the columns.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import venv
import warnings
from pathlib import Path

import numpy as np
from scipy.special import expit
from sklearn.base import clone

from benchmarks.data import fetch_conformal_rag
from benchmarks.methods import TIES, fit_levels
from skdcf import CoherentConformalFilter, HardCF
from skdcf.features import reasoning_features
from skdcf.labels import pack_labels
from skdcf.scorers import ClassifierScorer, FitTask

HERE = Path(__file__).resolve().parent
PINNED = ["maci-conformal==0.2.2", "cci-sdk==0.1.1"]
PUBLISHED, UNTRAINED = "similarity-score", ("context_trigrams", "context_words")
ALPHAS = (0.05, 0.1, 0.2)


def environment(folder):
    """The Python of an environment with the other packages, made where it is not there."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    run = [python, "-I", "-m", "pip", "install", "--quiet", *PINNED]
    subprocess.run(run, check=True)
    return python


def in_unit(column):
    """A column between 0 and 1, as the others take it."""
    low, high = column.min(), column.max()
    return (column - low) / (high - low)


def split_of(graphs, labels, columns, seed):
    """Positions of known and new answers, and the scores of all claims."""
    order = np.random.default_rng(seed).permutation(len(graphs))
    known, new = np.array_split(order, 2)
    first, half = np.array_split(known, 2)
    task = FitTask(0.1, first, np.random.RandomState(seed))
    scorer = ClassifierScorer(gain=None)
    y = pack_labels([labels[i] for i in first], graphs[first])
    scorer.fit(graphs[first], y, task)
    scores = {"published": columns[PUBLISHED]}
    scores |= {name: columns[name] for name in UNTRAINED}
    # A logit of a chance, whose order is all that matters to a threshold.
    scores["regression"] = expit(scorer.confidence(graphs))
    return {
        "known": known.tolist(),
        "half": half.tolist(),
        "new": new.tolist(),
        "scores": {
            name: [part.tolist() for part in graphs.split(column)]
            for name, column in scores.items()
        },
    }


def ours(graphs, labels, split, seed):
    """Masks of skdcf by method and level."""
    known, new = split["known"], split["new"]
    y = [labels[i] for i in known]
    three = [PUBLISHED, *UNTRAINED]
    positions = [graphs.feature_names.index(name) for name in three]
    few = graphs.replace_features(graphs.features[:, positions], three)
    filters = {
        "skdcf, published score": (graphs, HardCF(PUBLISHED, **TIES)),
        "skdcf, three scores": (few, CoherentConformalFilter(**TIES)),
        "priced regression, three scores": (few, HardCF(ClassifierScorer(), **TIES)),
        "regression, three scores": (few, HardCF(ClassifierScorer(gain=None), **TIES)),
        "skdcf, all columns": (graphs, CoherentConformalFilter(**TIES)),
    }
    for method, (X, filter) in filters.items():
        fresh = clone(filter).set_params(random_state=seed)
        for fitted in fit_levels(fresh, X[known], y, ALPHAS).values():
            masks = fitted.predict(X[new])
            yield {"alpha": fitted.alpha, "method": method, "masks": list(masks)}


def measured(masks, truth):
    """True claims kept, share without a false claim, share shown, false among shown."""
    kept = [np.asarray(mask, bool) for mask in masks]
    pairs = list(zip(kept, truth, strict=True))
    true = np.mean([(mask & (y == 1)).sum() for mask, y in pairs])
    wrong = np.mean([(mask & (y != 1)).any() for mask, y in pairs])
    shown = np.mean([mask.any() for mask in kept])
    return true, 1 - wrong, shown, wrong / shown if shown else np.nan


def means(rows):
    """Means over the splits with their naive errors, by method and level."""
    found = {}
    for row in rows:
        found.setdefault((row["method"], row["alpha"]), []).append(row["values"])
    for (method, alpha), values in found.items():
        errors = np.nanstd(values, axis=0, ddof=1) / np.sqrt(len(values))
        yield method, alpha, np.nanmean(values, axis=0).tolist(), errors.tolist()


def table(found):
    """Lines of text with the means, and the error of the true claims kept."""
    lines = [
        "each level: true claims kept, share without a false claim, shown, false among shown",
        f"{'':38}" + "".join(f"{f'alpha {alpha:g}':38}" for alpha in ALPHAS),
    ]
    for method in dict.fromkeys(method for method, *_ in found):
        line = f"{method:38}"
        for name, _, (true, safe, shown, false), errors in found:
            if name == method:
                cell = f"{true:.2f} +- {errors[0]:.2f}  {safe:.3f}  {shown:.2f}  {false:.3f}"
                line += f"{cell:38}"
        lines.append(line.rstrip())
    return "\n".join(lines)


def main(chosen):
    """Ask all packages and print the table."""
    data = fetch_conformal_rag()
    graphs = reasoning_features().fit_transform(data.graphs)
    labels, names = data.labels, graphs.feature_names
    columns = {
        name: in_unit(graphs.features[:, names.index(name)])
        for name in (PUBLISHED, *UNTRAINED)
    }
    splits = [split_of(graphs, labels, columns, seed) for seed in range(chosen.splits)]
    answers = [
        {"question": g.problem, "claims": list(g.claims), "labels": y.tolist()}
        for g, y in zip(graphs, labels, strict=True)
    ]
    asked = {"answers": answers, "alphas": ALPHAS, "splits": splits}
    found = []
    for number, split in enumerate(splits):
        rows = ours(graphs, labels, split, number)
        found += [row | {"split": number} for row in rows]
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "answers.json"), Path(folder, "masks.json")
        source.write_text(json.dumps(asked), encoding="utf-8")
        python = environment(chosen.environment or Path(folder, "environment"))
        inside = [python, "-I", HERE / "rivals_inside.py", source, target]
        subprocess.run(inside, check=True)
        found += json.loads(target.read_text(encoding="utf-8"))
    for row in found:
        truth = [labels[i] for i in splits[row["split"]]["new"]]
        row["values"] = measured(row.pop("masks"), truth)
    numbers = list(means(found))
    text = (
        f"{len(graphs):,} answers of Conformal-RAG, {chosen.splits} halves; "
        f"{', '.join(PINNED)}\n{table(numbers)}\n"
    )
    print(text, end="")
    if chosen.output:
        chosen.output.write_text(text, encoding="utf-8")
        rows = ",\n".join(map(json.dumps, numbers))
        chosen.output.with_suffix(".json").write_text(f"[\n{rows}\n]\n", "utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument(
        "--environment", type=Path, help="folder of the environment, for later runs"
    )
    parser.add_argument("--output", type=Path, help="file for the table")
    warnings.simplefilter("ignore", UserWarning)
    sys.exit(main(parser.parse_args()))
