"""Measure the retention of untrained filters by the number of labels, at five levels.

    python -m benchmarks.retention.few_ranks [--draws 200]

The data are PERL's natural errors. The scorer is the public prior without training, fitted without
PERL (see few_labels.py), or a single column. The questions are put in random order, and the first n
questions are labelled, so all values of n use the same draw. Two rules are compared. As in the
filters, the first rule calibrates on the smallest number of questions with the same rank as n. The
second rule calibrates on all n questions. The kept claims are counted on all answers to other
questions. The program writes docs/guide/figures/few_labels.svg and
benchmarks/results/few-ranks.json.
"""

import argparse
import json
from pathlib import Path

import matplotlib

from benchmarks import GUIDE, RESULTS

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from benchmarks.retention.few_labels import prior_file, read
from skdcf.guarantees import NoFalseClaim
from skdcf.ops.conformal import conformal_threshold
from skdcf.ops.hard import nonconformity_scores, path_risk
from skdcf.scorers import FunctionScorer, PublicPrior

SIZES = range(9, 61)
ALPHAS = (0.01, 0.03, 0.05, 0.1, 0.2)
# More labels, which could keep less: 25 against 19, and 50 against 39.
PAIRS = ((0.1, 19, 25), (0.05, 39, 50))
COLUMN = "log_length"  # a short claim is trusted more


def counted(scorer, batch, labels, groups):
    """Scores of one answer to each question, and a function that counts what is kept."""
    risk = path_risk(-np.asarray(scorer.confidence(batch), float), batch)
    first = np.unique(groups, return_index=True)[1]
    scores = nonconformity_scores(risk, labels, batch.offsets)[first]
    chosen = np.isin(batch.problem_of, first) & (labels == 1)
    question = np.searchsorted(first, batch.problem_of[chosen])
    order = np.argsort(risk[chosen], kind="stable")
    return scores, risk[chosen][order], question[order]


def kept(threshold, used, risks, question, n):
    """True claims kept per answer of the questions that are not among ``used``."""
    below = question[: np.searchsorted(risks, threshold)]
    total = np.bincount(below, minlength=n)
    return (total.sum() - total[used].sum()) / (n - len(used))


def measure(scorer, data, draws):
    """Kept by rule, level and n in every draw, shape (2, levels, sizes, draws)."""
    scores, *risks = counted(scorer, *data)
    n, guarantee = len(scores), NoFalseClaim()
    out = np.zeros((2, len(ALPHAS), len(SIZES), draws))
    for draw in range(draws):
        order = np.random.RandomState(draw).permutation(n)
        used = order[
            : SIZES[-1]
        ]  # every size is tried on questions that none could see
        for i, alpha in enumerate(ALPHAS):
            by_size = np.zeros(SIZES[-1] + 1)
            for m in range(1, len(by_size)):
                threshold = conformal_threshold(np.sort(scores[order[:m]]), alpha)
                by_size[m] = kept(threshold, used, *risks, n)
            fewest = [guarantee.fewest(size, alpha) for size in SIZES]
            out[:, i, :, draw] = by_size[fewest], by_size[list(SIZES)]
    return out


def rows_of(found):
    """Means and errors, and the differences of the pairs with theirs."""
    root = found.shape[-1] ** 0.5
    rows = [
        {
            "alpha": alpha,
            "n": list(SIZES),
            "fewest": np.round(found[0, i].mean(axis=-1), 4).tolist(),
            "all": np.round(found[1, i].mean(axis=-1), 4).tolist(),
            "error of the difference": np.round(
                (found[0, i] - found[1, i]).std(axis=-1, ddof=1) / root, 4
            ).tolist(),
        }
        for i, alpha in enumerate(ALPHAS)
    ]
    pairs = []
    for alpha, few, many in PAIRS:
        i, (a, b) = ALPHAS.index(alpha), (SIZES.index(few), SIZES.index(many))
        for rule, name in enumerate(("fewest", "all")):
            gain = found[rule, i, b] - found[rule, i, a]
            pairs.append(
                {"alpha": alpha, "labels": [few, many], "rule": name}
                | {"change": round(float(gain.mean()), 4)}
                | {"error": round(float(gain.std(ddof=1) / root), 4)}
            )
    return {"levels": rows, "pairs": pairs}


def draw_figure(results):
    """Two panels: as the filters do it, against all n."""
    figure, axes = plt.subplots(1, len(results), figsize=(10, 4), sharey=False)
    shades = plt.get_cmap("viridis")(np.linspace(0.1, 0.75, len(ALPHAS)))
    for panel, (title, found) in zip(axes, results.items(), strict=True):
        for row, color in zip(found["levels"], shades, strict=True):
            more = {"color": color, "where": "mid"}
            panel.step(row["n"], row["fewest"], lw=2, **more)
            panel.step(row["n"], row["all"], lw=1, linestyle=":", **more)
            where = (row["n"][-1], row["fewest"][-1])
            style = {"textcoords": "offset points", "va": "center", "color": "0.2"}
            panel.annotate(f"{row['alpha']:g}", where, (6, 0), **style)
        panel.set_xticks([9, 19, 29, 39, 49, 59])
        panel.set_ylim(bottom=0)
        panel.set_xlim(right=row["n"][-1])  # the axis ends where the last label begins
        panel.set_xlabel("labels")
        panel.set_title(title, fontsize=10)
    axes[0].set_ylabel("true claims kept per answer")
    solid = plt.Line2D(
        [], [], color="k", lw=2, label="the fewest of the same rank calibrate"
    )
    dotted = plt.Line2D([], [], color="k", lw=1, ls=":", label="all of them calibrate")
    where = {"loc": "lower center", "ncol": 2, "frameon": False}
    figure.legend(handles=[solid, dotted], **where)
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    return figure


def main():
    """Measure, print, and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--work", type=Path, default=Path("/tmp"))
    chosen = parser.parse_args()
    X, labels, groups = read("PERL, natural errors")
    prior = PublicPrior(prior_file(chosen.work, "perl")).fit(X, labels)
    at = X.feature_names.index(COLUMN)
    short = FunctionScorer(lambda batch: -batch.features[:, at]).fit(X)
    scorers = {"the public prior, as it is": prior, f"minus {COLUMN}, a column": short}
    results = {}
    for name, scorer in scorers.items():
        found = measure(scorer, (X, labels, groups), chosen.draws)
        results[name] = rows_of(found)
        print(name, *results[name]["pairs"], sep="\n  ")
    path = RESULTS / "few-ranks.json"
    path.write_text(json.dumps(results) + "\n", encoding="ascii")
    style = {"svg.hashsalt": "skdcf", "axes.spines.top": False, "font.size": 10}
    with matplotlib.rc_context(style | {"axes.spines.right": False}):
        figure = draw_figure(results)
        path = GUIDE / "figures/few_labels.svg"
        figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
