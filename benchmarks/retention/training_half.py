"""Compare "linear" with its initial regression on training problems and on other problems.

    python -m benchmarks.retention.training_half [--halves 12]

Both scorers are fitted at each level on half of the problems. The true claims kept are counted on
both halves. Each answer is filtered with the threshold of all other answers in its half. The
program saves results/training_half.json and draws the figure of the page on training. It takes
about two minutes.
"""

import argparse
import json
import warnings

import numpy as np
from sklearn.model_selection import GroupShuffleSplit

from benchmarks import GUIDE, RESULTS
from benchmarks.guarantees.reader import problems_of
from benchmarks.pages.figures import plt
from benchmarks.saving import commit
from skdcf import CoherentConformalFilter
from skdcf.datasets import make_reasoning_graphs
from skdcf.evaluation import fit_levels
from skdcf.evaluation._report import corrected_error
from skdcf.ops.conformal import leave_one_out_alpha
from skdcf.ops.hard import nonconformity_scores
from skdcf.scorers import ClassifierScorer
from skdcf.training import SoftTraining

ALPHAS = (0.02, 0.05, 0.1, 0.2)
SCORERS = {
    "regression": {"scorer": ClassifierScorer()},
    "linear": {"scorer": "linear"},
    "linear, no shrinkage": {"scorer": "linear", "training": SoftTraining(shrinkage=0)},
}
SEEN, OTHER = "the half that it was trained on", "the other half"
FIGURE = GUIDE / "figures" / "training_half.svg"


def generated():
    """As many generated problems as there are published ones; each is its own question."""
    graphs, labels = make_reasoning_graphs(1000, random_state=0, return_X_y=True)
    return graphs, labels, np.arange(len(graphs))


SETS = {
    "ProcessBench math": lambda: problems_of("process-bench-math"),
    "generated problems": generated,
}


def kept(filter, graphs, labels, alpha):
    """True claims kept per answer, each with the threshold of all others."""
    flat = np.concatenate(labels)
    risk = np.concatenate(list(filter.path_risk(graphs)))
    scores = nonconformity_scores(risk, flat, graphs.offsets)
    own_alpha = leave_one_out_alpha(scores, risk, graphs.problem_of)
    return np.sum((own_alpha <= alpha + 1e-12) & (flat == 1)) / len(graphs)


def one_half(problems, seed):
    """Claims kept, [seen or other][scorer][level], and the sizes of the halves."""
    graphs, labels, groups = problems
    split = GroupShuffleSplit(1, test_size=0.5, random_state=seed)
    halves = next(split.split(groups, groups=groups))
    parts = [(graphs[rows], [labels[i] for i in rows]) for rows in halves]
    numbers = np.zeros((2, len(SCORERS), len(ALPHAS)))
    for j, settings in enumerate(SCORERS.values()):
        filter = CoherentConformalFilter(
            **settings, calibration_size=1, random_state=seed
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            filters = fit_levels(filter, *parts[0], ALPHAS, groups=groups[halves[0]])
        for k, (alpha, fitted) in enumerate(filters.items()):
            numbers[:, j, k] = [kept(fitted, *part, alpha) for part in parts]
    return numbers, [len(rows) for rows in halves]


def named(numbers):
    """Name the rows of an array by half and scorer."""
    names = list(SCORERS)[-numbers.shape[1] :]
    rows = (dict(zip(names, row, strict=True)) for row in numbers.tolist())
    return dict(zip((SEEN, OTHER), rows, strict=True))


def gains(problems, n_halves):
    """Gain in percent with its error, by half and level."""
    found = [one_half(problems, seed) for seed in range(n_halves)]
    numbers = np.array([numbers for numbers, _ in found])
    sizes = np.array([sizes for _, sizes in found])
    mean = numbers.mean(axis=0)
    share = np.moveaxis(numbers / mean, 0, 2)  # by half, scorer, split and level
    error = 100 * corrected_error(share[:, 1:] - share[:, :1], sizes)
    gain = 100 * (mean[:, 1:] / mean[:, :1] - 1)
    return {
        "training_problems": int(sizes[:, 0].mean()),
        "halves": n_halves,
        "kept": named(mean.round(4)),
        "gain": named(gain.round(1)),
        "error": named(error.round(1)),
    }


def draw(results):
    """One panel per set: the gain against the level, on both halves."""
    figure, axes = plt.subplots(1, len(SETS), figsize=(8.4, 3.8), sharey=True)
    for ax, name in zip(axes, SETS, strict=True):
        found, at = results[name], np.arange(len(ALPHAS))
        for what, color in ((SEEN, "#e08214"), (OTHER, "#1b7f5c")):
            for scorer, style in (("linear", "o-"), ("linear, no shrinkage", "s:")):
                gain, error = found["gain"][what][scorer], found["error"][what][scorer]
                text = f"{scorer}: {what}"
                ax.plot(at, gain, style, ms=4, color=color, label=text)
                if scorer == "linear":
                    low, high = np.subtract(gain, error), np.add(gain, error)
                    ax.fill_between(at, low, high, color=color, alpha=0.15, lw=0)
        ax.axhline(0, color="black", lw=0.8)
        ax.set_xticks(at, [f"{alpha:g}" for alpha in ALPHAS])
        ax.set_xlabel("alpha")
        ax.set_title(f"{name}, {found['training_problems']} trained on", fontsize=10)
    axes[0].set_ylabel("true claims kept, % more\nthan by the regression")
    figure.legend(
        *axes[0].get_legend_handles_labels(),
        loc="lower center",
        ncol=2,
        frameon=False,
        fontsize=9,
    )
    figure.tight_layout(rect=(0, 0.16, 1, 1))
    figure.savefig(FIGURE, metadata={"Date": None})


def main(n_halves):
    """Compute, save and draw."""
    results = {name: gains(load(), n_halves) for name, load in SETS.items()}
    content = {
        "alphas": ALPHAS,
        "scorers": list(SCORERS),
        **results,
        "computed_at": commit(),
    }
    path = RESULTS / "training_half.json"
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    for name, found in results.items():
        print(name, found["gain"], found["error"], sep="\n")
    draw(results)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--halves", type=int, default=12, help="splits of each set")
    main(parser.parse_args().halves)
