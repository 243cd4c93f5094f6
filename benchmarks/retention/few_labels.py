"""Measure the retention with few labels, with and without the public prior.

    python -m benchmarks.retention.few_labels [--draws N] [--output DIR] [--only SET] [--sizes N]

The n labelled answers are divided into training and calibration answers as by the filter. To
reduce the variation between calibration sets, each trained scorer is calibrated 25 times. The
calibration answers are drawn from all answers that were not used for training, and the scorer is
evaluated on the rest. The prior is fitted without the family of the data set and without its
questions. The prior without training uses as many calibration answers as the filter would use.
Each draw is cached in a file in the folder --work, so an interrupted run can be resumed.
"""

import argparse
import csv
import json
from pathlib import Path

import numpy as np
from scipy.stats import beta

from benchmarks import GUIDE, RESULTS
from benchmarks.real_data import NATURAL, with_alternatives
from benchmarks.retention.make_prior import SETS, make
from skdcf import GraphBatch
from skdcf.datasets import fetch_mr_ben, fetch_perl
from skdcf.features import reasoning_features
from skdcf.graphs import pack_labels
from skdcf.guarantees import NoFalseClaim
from skdcf.ops.conformal import conformal_rank
from skdcf.ops.hard import nonconformity_scores, path_risk, segment_sum
from skdcf.scorers import FitTask, PublicPrior, StackingScorer

ALPHAS = (0.05, 0.1, 0.2)
CALIBRATIONS = 25
# Sets near the sources of the prior, which is drawn there.
DRAWN = "PERL, natural errors", "Mr-Ben math", "ProcessBench gsm8k", "FELM"
FIGURE = GUIDE / "figures" / "few_labels_prior.svg"
# Data, and the family that the prior is made without.
TRIED = {
    "PERL, natural errors": ("perl", lambda: fetch_perl(kind=NATURAL, label="any")),
    "Mr-Ben math": ("mr-ben", SETS["mr-ben"]),
    "ProcessBench gsm8k": ("process-bench", SETS["process-bench"]),
    "Mr-Ben biology": ("mr-ben", lambda: fetch_mr_ben("biology")),
    "Mr-Ben chemistry": ("mr-ben", lambda: fetch_mr_ben("chemistry")),
    "FELM": ("felm", SETS["felm"]),
    "GSM8K solutions": ("gsm8k-solutions", SETS["gsm8k-solutions"]),
    "PRMBench, planted errors": ("prmbench", SETS["prmbench"]),
}
WITH, WITHOUT, AS_IS = "with prior", "without", "prior as it is"
ERROR = "kept error"
OWN = "without, linear member left out"


def read(name):
    """Problems with columns, flat labels, questions."""
    data = TRIED[name][1]()
    graphs = with_alternatives(data.graphs, 0)
    bare = GraphBatch.from_graphs([g.replace(features=None) for g in graphs])
    X = reasoning_features().fit_transform(bare)
    groups = np.unique(np.asarray(data.groups), return_inverse=True)[1]
    return X, pack_labels(data.labels, X), groups


def prior_file(folder, family):
    """The prior without a family, made where it is not there yet."""
    path = Path(folder) / f"prior-without-{family}.json"
    if not path.exists():
        assert family in SETS
        path.write_text(json.dumps(make(family)), encoding="ascii")
    return path


def fitted(path, batch, labels, groups, alphas, seed):
    """Scorers by name for each level, trained on the same problems."""

    def tasks():
        return [FitTask(a, groups, np.random.RandomState(seed)) for a in alphas]

    without = StackingScorer().fit_levels(batch, labels, tasks())
    blend = StackingScorer(public_prior=PublicPrior(path))
    blended = blend.fit_levels(batch, labels, tasks())
    return [
        {
            WITHOUT: plain,
            WITH: mixed,
            OWN: plain.scorers_["neyman-pearson"],
        }
        for plain, mixed in zip(without, blended, strict=True)
    ]


def one_draw(X, labels, groups, path, n, seed):
    """For each level, [true claims kept, miss] by scorer: means over the calibrations."""
    order = np.random.RandomState(seed).permutation(len(groups))[:n]
    counts = [NoFalseClaim().calibration_count(n, alpha) for alpha in ALPHAS]
    out = {}
    for count in dict.fromkeys(counts):
        alphas = [a for a, c in zip(ALPHAS, counts, strict=True) if c == count]
        rows = np.sort(order[: n - count])
        known = labels[np.isin(X.problem_of, rows)]
        levels = fitted(path, X[rows], known, groups[rows], alphas, seed)
        rest = np.flatnonzero(~np.isin(groups, groups[rows]))
        new, truth = X[rest], labels[np.isin(X.problem_of, rest)]
        splits = list(split(groups[rest], count, seed))
        for alpha, scorers in zip(alphas, levels, strict=True):
            out[str(alpha)] = {
                name: tried(scorer.confidence(new), new, truth, splits, alpha)
                for name, scorer in scorers.items()
            }
    return out


def by_itself(confidence, X, labels, groups, n, seed):
    """The same of the prior as it is, which trains nothing, for each level."""
    out = {}
    for alpha in ALPHAS:
        splits = split(groups, NoFalseClaim().fewest(n, alpha), seed)
        out[str(alpha)] = {AS_IS: tried(confidence, X, labels, splits, alpha)}
    return out


def split(groups, count, seed):
    """One answer of each question, drawn anew; the first ones calibrate."""
    rng = np.random.RandomState(seed + 1000)
    for _ in range(CALIBRATIONS):
        order = rng.permutation(len(groups))
        first = order[np.unique(groups[order], return_index=True)[1]]
        first = rng.permutation(first)
        yield first[:count], first[count:]


def tried(confidence, new, truth, splits, alpha):
    """True claims kept per answer, and the share of answers with a false one."""
    risk = path_risk(-confidence, new)
    scores, results = nonconformity_scores(risk, truth, new.offsets), []
    for calibrating, tested in splits:
        k = conformal_rank(len(calibrating), alpha)
        threshold = np.sort(scores[calibrating])[k - 1] if k else -np.inf
        kept = segment_sum((risk < threshold) & (truth == 1), new.offsets)
        results.append([kept[tested].mean(), (scores[tested] < threshold).mean()])
    return np.mean(results, axis=0).tolist()


def summary(name, n, alpha, draws):
    """The row of a table from what the draws gave at one level."""
    row = {"data": name, "n": n, "alpha": alpha, "draws": len(draws)}
    base = np.array([one[WITHOUT][0] for one in draws])
    for key in (WITHOUT, WITH, AS_IS, OWN):
        kept, miss = np.array([one[key] for one in draws]).T
        error = (kept - base).std(ddof=1) / len(base) ** 0.5
        row[key] = {
            "kept": round(float(kept.mean()), 4),
            "kept error": round(float(kept.std(ddof=1) / len(base) ** 0.5), 4),
            "miss": round(float(miss.mean()), 4),
            "difference": round(float((kept - base).mean()), 4),
            "error": round(float(error), 4),
            "share": round(float(kept.mean() / base.mean() - 1), 4)
            if base.any()
            else None,
        }
    return row


def main():
    """Run all and write one file per data set."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--work", type=Path, default=Path("/tmp"))
    parser.add_argument("--only", nargs="*", default=list(TRIED))
    parser.add_argument("--sizes", type=int, nargs="*", default=[20, 50, 100, 200, 300])
    chosen = parser.parse_args()
    for name in chosen.only:
        X, labels, groups = read(name)
        path, rows = prior_file(chosen.work, TRIED[name][0]), []
        public = PublicPrior(path).fit(X, labels).confidence(X)
        short = slug(name)
        for n in (n for n in chosen.sizes if n <= 0.7 * len(np.unique(groups))):
            found = []
            for seed in range(chosen.draws):
                file = chosen.work / f"few-labels-{short}-{n}-{seed}.json"
                if not file.exists():
                    draw = one_draw(X, labels, groups, path, n, seed)
                    file.write_text(json.dumps(draw), encoding="ascii")
                draw = json.loads(file.read_text())
                alone = by_itself(public, X, labels, groups, n, seed)
                found.append({level: draw[level] | alone[level] for level in draw})
            rows += [
                summary(name, n, a, [one[str(a)] for one in found]) for a in ALPHAS
            ]
            for row in rows[-len(ALPHAS) :]:
                shown = {k: v["kept"] for k, v in row.items() if isinstance(v, dict)}
                print(name, n, row["alpha"], row[WITH]["share"], shown, flush=True)
        text = json.dumps(rows, indent=1) + "\n"
        (chosen.output / f"few-labels-{short}.json").write_text(text, encoding="ascii")
    write_table(chosen.output)
    write_guaranteed(chosen.output)
    if chosen.output == RESULTS:
        draw_figure(RESULTS)


def draw_figure(folder):
    """What labels give with the prior and without, with errors, where it is blended."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    style = {"svg.hashsalt": "skdcf", "axes.spines.top": False, "font.size": 10}
    with matplotlib.rc_context(style | {"axes.spines.right": False}):
        figure, axes = plt.subplots(2, 2, figsize=(9, 7))
        shades = plt.get_cmap("viridis")(np.linspace(0.1, 0.75, len(ALPHAS)))
        for panel, name in zip(axes.flat, DRAWN, strict=True):
            rows = json.loads((folder / f"few-labels-{slug(name)}.json").read_text())
            for alpha, color in zip(ALPHAS, shades, strict=True):
                own = [row for row in rows if row["alpha"] == alpha]
                for key, line in ((WITHOUT, "--"), (WITH, "-")):
                    n, kept = [row["n"] for row in own], [row[key] for row in own]
                    y, error = ([k[which] for k in kept] for which in ("kept", ERROR))
                    more = {"color": color, "linestyle": line, "marker": "."}
                    panel.errorbar(n, y, error, capsize=2, lw=1.2, **more)
                where = {"textcoords": "offset points", "va": "center"}
                panel.annotate(f"{alpha:g}", (n[-1], y[-1]), (8, 0), **where)
            panel.set(title=name, xscale="log", xticks=n, xticklabels=n)
            panel.set_ylim(bottom=0)
            panel.minorticks_off()
        for panel in axes[1]:
            panel.set_xlabel("labels of one's own")
        for panel in axes[:, 0]:
            panel.set_ylabel("true claims kept per answer")
        lines = [
            plt.Line2D([], [], color="k", ls=line, label=label)
            for line, label in (("-", "with the public prior"), ("--", "without"))
        ]
        where = {"loc": "lower center", "ncol": 2, "frameon": False}
        figure.legend(handles=lines, **where)
        figure.tight_layout(rect=(0, 0.04, 1, 1))
        figure.savefig(FIGURE, metadata={"Date": None})
    plt.close(figure)


def write_table(folder):
    """The table of the page Few labels, from all that was measured."""
    names = ["data", "labels", "alpha", "draws", "without", "with", "change, %"]
    lines = [[*names, "as it is", "miss"]]
    for name in TRIED:
        file = folder / f"few-labels-{slug(name)}.json"
        for row in json.loads(file.read_text()) if file.exists() else ():
            without, blended = row[WITHOUT], row[WITH]
            change = ""
            if without["kept"]:
                error = 100 * blended["error"] / without["kept"]
                change = f"{100 * blended['share']:+.0f} ± {error:.0f}"
            lines.append(
                [
                    name,
                    row["n"],
                    row["alpha"],
                    row["draws"],
                    f"{without['kept']:.2f} ± {without['kept error']:.2f}",
                    f"{blended['kept']:.2f} ± {blended['kept error']:.2f}",
                    change,
                    f"{row[AS_IS]['kept']:.2f} ± {row[AS_IS]['kept error']:.2f}",
                    f"{blended['miss']:.3f}",
                ]
            )
    write_csv(folder / "few-labels.csv", lines)


def write_guaranteed(folder):
    """What labels promise: how many calibrate, and how one calibration may fall out."""
    names = ["labels", "alpha", "something trains: calibrate", "miss", "miss, 9 of 10"]
    names += ["nothing trains: calibrate", "miss", "miss, 9 of 10"]
    lines, guarantee = [names], NoFalseClaim()
    for n in (20, 50, 100, 200, 300):
        for alpha in ALPHAS:
            line = [n, alpha]
            for m in (
                guarantee.calibration_count(n, alpha),
                guarantee.fewest(n, alpha),
            ):
                k = conformal_rank(m, alpha)
                law = beta(k, m + 1 - k) if k else None
                line += (
                    [m, f"{law.mean():.3f}", f"{law.ppf(0.9):.3f}"] if k else [m, 0, 0]
                )
            lines.append(line)
    write_csv(folder / "few-labels-guaranteed.csv", lines)


def write_csv(path, lines):
    """Rows of a table as a file."""
    with path.open("w", newline="", encoding="utf-8") as out:
        csv.writer(out, lineterminator="\n").writerows(lines)


def slug(name):
    """A name as it stands in file names."""
    return name.lower().replace(",", "").replace(" ", "-")


if __name__ == "__main__":
    main()
