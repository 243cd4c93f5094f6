"""Measure the error rate of shown texts, in which at least one claim is kept.

    python -m benchmarks.guarantees.reader [--splits N] [--jobs N] [--few]

The program prints benchmarks/results/reader.txt and writes docs/guide/figures/reader.svg.

The default filter uses the scorer "stack" and the columns of texts, edges and, if available,
passages. It is fitted on half of the questions of published answers and applied to the others.
"shown" is the proportion of answers with a kept claim, and "false among shown" is the proportion of
these answers with a kept false claim. "unfiltered" is the proportion of all answers with a false
claim. Errors are naive standard errors over the splits. The second table contains the results for n
labelled answers, and for `release_claims`, which guarantees that at most alpha of the shown texts
contain a false claim. The second table includes only data sets with at least 300 questions for
labelling. With --few, only this table is printed.
"""

import argparse
import warnings

import numpy as np
from joblib import Parallel, delayed
from sklearn.model_selection import GroupShuffleSplit

from benchmarks import GUIDE
from benchmarks.pages.figures import plt
from benchmarks.real_data import load
from skdcf import CoherentConformalFilter, GraphBatch
from skdcf.estimators import fit_levels
from skdcf.exceptions import CalibrationWarning, LabelWarning
from skdcf.features import ContextFeatures, reasoning_features
from skdcf.graphs import question_groups
from skdcf.monitoring import release_claims
from skdcf.scorers import ClassifierScorer

FIGURE = GUIDE / "figures" / "reader.svg"
DRAWN = {"felm": "FELM", "process-bench": "ProcessBench", "prmbench": "PRMBench"}
COLOURS = ("#0072b2", "#d55e00", "#009e73")
MARKERS = ("o", "s", "^")
SETS = (
    "felm",
    "refchecker",
    "process-bench",
    "mr-ben",
    "perl",
    "prmbench",
    "qags-cnndm",
)
FEW = ("felm", "process-bench-math", "prmbench")
ALPHAS = (0.05, 0.1, 0.2)
NUMBERS = (20, 50, 100, 200, 300)


def problems_of(name):
    """Problems with their columns, labels and questions."""
    data = load(name)
    graphs = GraphBatch.from_graphs([g.replace(alternatives=None) for g in data.graphs])
    columns = reasoning_features().fit_transform(graphs)
    if graphs.context is not None:
        columns = ContextFeatures().fit_transform(columns)
    groups = getattr(data, "groups", None)
    return columns, list(data.labels), question_groups(columns, groups)


def count(masks, labels):
    """Shown, shown with a false claim, and true claims kept, per answer."""
    pairs = list(zip(masks, labels, strict=True))
    shown = np.mean([mask.any() for mask, _ in pairs])
    wrong = np.mean([(row[mask] != 1).any() for mask, row in pairs])
    true = np.mean([(row[mask] == 1).sum() for mask, row in pairs])
    return shown, wrong, true


def halves(problems, seed):
    """One split: three numbers per level, and how many unfiltered texts are false."""
    graphs, labels, groups = problems
    cut = GroupShuffleSplit(1, train_size=0.5, random_state=seed)
    train, test = next(cut.split(groups, groups=groups))
    cf = CoherentConformalFilter(random_state=seed)
    filters = fit_levels(
        cf, graphs[train], [labels[i] for i in train], ALPHAS, groups=groups[train]
    )
    truth = [labels[i] for i in test]
    rows = [count(f.predict(graphs[test]), truth) for f in filters]
    return rows, np.mean([(row != 1).any() for row in truth])


def few(problems, n, seed):
    """So many answers calibrate a regression that others trained; release_claims on 50."""
    graphs, labels, groups = problems
    rng = np.random.default_rng(seed)
    questions = rng.permutation(np.unique(groups))
    first = {q: i for i, q in reversed(list(enumerate(groups)))}
    rows = np.array([first[q] for q in questions])
    if 50 + n + 50 > len(rows):
        return None
    train, calibrate, new = rows[:50], rows[50 : 50 + n], rows[-50:]
    cf = CoherentConformalFilter(ClassifierScorer(), alpha=0.01, random_state=seed)
    cf.fit(graphs[train], [labels[i] for i in train], groups=False)
    cf.calibrate(graphs[calibrate], [labels[i] for i in calibrate], groups=False)
    truth = [labels[i] for i in new]
    return [
        count(release_claims(cf, graphs[new], alpha, groups=False), truth)
        for alpha in ALPHAS
    ]


def draw(curves):
    """Shown against false among shown, a line for each set, a cross for the answers as they are."""
    figure, ax = plt.subplots(figsize=(5.5, 3.8), layout="constrained")
    for i, (name, title) in enumerate(DRAWN.items()):
        shown, rate, unfiltered = curves[name]
        style = {"color": COLOURS[i], "marker": MARKERS[i], "lw": 1.4, "ms": 5}
        ax.plot(shown, rate, label=title, **style)
        ax.plot([shown[-1], 1], [rate[-1], unfiltered], ":", color=COLOURS[i], lw=1)
        ax.plot(1, unfiltered, "x", color=COLOURS[i], ms=8, mew=2, clip_on=False)
        for alpha, x, y in zip(ALPHAS, shown, rate, strict=True):
            place = {"xytext": (5, -10), "textcoords": "offset points"}
            ax.annotate(f"{alpha:g}", (x, y), fontsize=8, color="0.35", **place)
    ax.plot([], [], "kx", ms=8, mew=2, label="the answers as they are")
    ax.set(xlim=(0, 1), xlabel="share of answers that are shown")
    ax.set(ylim=(0, None), ylabel="share of shown texts with a false claim")
    ax.legend(frameon=False, fontsize=9, loc="upper left")
    figure.savefig(FIGURE)
    plt.close(figure)


def quietly(function, *arguments):
    """Call it without the warnings that such small parts of the labels give."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        warnings.simplefilter("ignore", LabelWarning)
        warnings.simplefilter("ignore", UserWarning)
        return function(*arguments)


def print_default(options, parallel):
    """Print the first table, and draw it."""
    problems = {name: problems_of(name) for name in SETS}
    print(f"half of the questions fit, half are read; {options.splits} splits")
    print(
        "set             alpha  shown           false among shown  true kept       unfiltered"
    )
    curves = {}
    for name in SETS:
        calls = [
            delayed(quietly)(halves, problems[name], seed)
            for seed in range(options.splits)
        ]
        results = parallel(calls)
        values = np.array([rows for rows, _ in results])
        unfiltered = np.mean([share for _, share in results])
        mean = values.mean(axis=0)
        error = values.std(axis=0, ddof=1) / np.sqrt(options.splits)
        curves[name] = mean[:, 0], mean[:, 1] / mean[:, 0], unfiltered
        for j, alpha in enumerate(ALPHAS):
            shown, wrong, true = mean[j]
            rest = values[:, j, 1] - wrong / shown * values[:, j, 0]
            rate_error = rest.std(ddof=1) / np.sqrt(options.splits) / shown
            print(
                f"{name:15} {alpha:5.2f}  {shown:.3f} +- {error[j, 0]:.3f}  "
                f"{wrong / shown:.3f} +- {rate_error:.3f}     {true:.2f} +- "
                f"{error[j, 2]:.2f}    {unfiltered:.2f}",
                flush=True,
            )
    draw(curves)


def print_few(parallel):
    """Print the second table."""
    print("release_claims on batches of 50, n answers calibrate a regression; 40 draws")
    print(
        "set                n      "
        + "".join(f"alpha {a:.2f}: shown, false    " for a in ALPHAS)
    )
    for name in FEW:
        problems = problems_of(name)
        for n in NUMBERS:
            draws = parallel(
                delayed(quietly)(few, problems, n, seed) for seed in range(40)
            )
            if draws[0] is None:
                continue
            values = np.array(draws)
            cells = []
            for j in range(len(ALPHAS)):
                shares = values[:, j, 1] / np.maximum(values[:, j, 0], 1e-9)
                cells.append(
                    f"{values[:, j, 0].mean():.2f}, {shares.mean():.3f} +- "
                    f"{shares.std(ddof=1) / np.sqrt(40):.3f}      "
                )
            print(f"{name:18} {n:4}   " + "".join(cells), flush=True)


def main(options):
    """Print both tables, or the second one."""
    parallel = Parallel(n_jobs=options.jobs)
    if not options.few:
        print_default(options, parallel)
        print()
    print_few(parallel)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=6)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--few", action="store_true")
    main(parser.parse_args())
