"""Measure the error rates of passing answers and of shown answers on published data.

    python -m benchmarks.guarantees.passing_answers run FILE.npz [--halves 16]
    python -m benchmarks.guarantees.passing_answers run FILE.npz --scorer priced
    python -m benchmarks.guarantees.passing_answers table FILE.npz
    python -m benchmarks.guarantees.passing_answers scorers DEFAULT.npz PRICED.npz REGRESSION.npz

The default filter is trained on a quarter of the questions, calibrated on another quarter, and
applied to the other half. All variants use the same scorer for each level, which was trained with
``show="auto"``, and the same calibration part. The variants are the chosen share, fixed shares, and
`release` with all new answers as one batch. Each answer has the weight 1 / (number of
answers to its question), and the results are ratios of sums over the new answers of all halves.
Errors are corrected as by Nadeau and Bengio, because the halves share answers.

The scorers are the default, a logistic regression with the same price, and the same regression
without it. "table" writes benchmarks/results/passing_answers.txt. "scorers" writes
benchmarks/results/passing_scorers.json, which contains the table of the README: what each scorer
keeps at the same share of answers that pass.
"""

import argparse
import json
import warnings

import numpy as np
from joblib import Parallel, delayed
from sklearn.model_selection import GroupShuffleSplit

from benchmarks import RESULTS
from benchmarks.retention.default_scorer import problems_of
from skdcf import CoherentConformalFilter
from skdcf.choosing import passing_answers, release
from skdcf.guarantees import NoFalseClaim
from skdcf.scorers import ClassifierScorer, ConfTrScorer

ALPHAS = (0.05, 0.1, 0.2)
SETS = (
    "felm",
    "process-bench",
    "process-bench-math",
    "mr-ben-biology",
    "mr-ben-chemistry",
    "mr-ben",
    "refchecker",
    "perl",
    "qags-cnndm",
)
VARIANTS = ("auto", "0.25", "0.5", "1", "release")
SCORERS = {
    "default": ConfTrScorer(),
    "priced": ClassifierScorer(),
    "regression": ClassifierScorer(gain=None),
}
COMPARED = "0.5"  # the variant in which the scorers are compared
SUMS = ("answers", "passing", "wrong", "shown", "true")


def count(masks, passes, labels, weights):
    """Weighted numbers of answers, of those that pass, are wrong and shown; true claims."""
    pairs = list(zip(masks, labels, strict=True))
    wrong = np.array([(row[mask] != 1).any() for mask, row in pairs])
    shown = np.array([mask.any() for mask, _ in pairs])
    true = np.array([(row[mask] == 1).sum() for mask, row in pairs])
    return [weights @ x for x in (np.ones(len(labels)), passes, wrong, shown, true)]


def one_half(problems, scorer, alpha, seed):
    """Sums of each variant on the new answers, and the share of all that are wrong."""
    graphs, labels, groups = problems
    rng = np.random.RandomState(seed)
    known, new = next(
        GroupShuffleSplit(1, test_size=0.5, random_state=rng).split(
            groups, None, groups
        )
    )
    inner = GroupShuffleSplit(1, test_size=0.5, random_state=rng)
    train, calibrate = (
        known[rows] for rows in next(inner.split(known, None, groups[known]))
    )

    def of(rows):
        return graphs[rows], [labels[i] for i in rows]

    truth = of(new)[1]
    _, inverse, n_answers = np.unique(
        groups[new], return_inverse=True, return_counts=True
    )
    weights = 1 / n_answers[inverse]
    sums, chosen = [], None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cf = CoherentConformalFilter(
            scorer,
            alpha=alpha,
            guarantee=NoFalseClaim(show="auto"),
            calibration_size=1,
            random_state=seed,
        )
        cf.fit(*of(train), groups=groups[train])
        for variant in VARIANTS:
            share = {"auto": "auto", "release": 1}.get(variant) or float(variant)
            cf.set_params(guarantee=NoFalseClaim(show=share))
            cf.calibrate(*of(calibrate), groups=groups[calibrate])
            chosen = cf.share_ or chosen
            if variant == "release":
                order = rng.permutation(len(new))
                _, first = np.unique(groups[new[order]], return_index=True)
                one_each = new[order[first]]
                batch, answers = of(one_each)
                masks = release(cf, batch, alpha, groups=False)
                passes = weight = np.ones(len(one_each))
                sums.append(count(masks, passes, answers, weight))
                continue
            masks = cf.predict(graphs[new])
            passes = np.ones(len(new), bool)
            if share != 1:
                passes = passing_answers(cf, graphs[new])
            sums.append(count(masks, passes, truth, weights))
    unfiltered = weights @ [(row != 1).any() for row in truth]
    return np.array(sums), unfiltered, len(np.unique(groups[calibrate])), chosen


def run(options):
    """Write the sums of all sets, levels and halves."""
    saved = {}
    scorer = SCORERS[options.scorer]
    for name in options.data:
        problems = problems_of(name)
        for alpha in ALPHAS:
            calls = (
                delayed(one_half)(problems, scorer, alpha, seed)
                for seed in range(options.first, options.first + options.halves)
            )
            sums, wrong, sizes, shares = zip(
                *Parallel(n_jobs=options.jobs)(calls), strict=True
            )
            saved[f"{name}/{alpha}"] = np.array(sums)
            saved[f"{name}/{alpha}/unfiltered"] = np.array(wrong)
            saved[f"{name}/{alpha}/calibration"] = np.array(sizes)
            saved[f"{name}/{alpha}/share"] = np.array(shares)
            np.savez(options.path, **saved)
            print(name, alpha, np.round(np.mean(shares), 2), flush=True)


def ratio(over, under):
    """The ratio of two sums over halves, and its corrected error."""
    total = under.sum()
    if not total:
        return np.nan, np.nan
    rate = over.sum() / total
    residual = (over - rate * under) / under.mean()
    n = len(over)
    return rate, residual.std(ddof=1) * np.sqrt(
        1 / n + 1
    )  # as many new answers as known


def rows_of(saved):
    """One row of numbers for each set, level and variant."""
    for key in saved.files:
        if key.count("/") != 1:
            continue
        name, alpha = key.split("/")
        for j, variant in enumerate(VARIANTS):
            sums = dict(zip(SUMS, saved[key][:, j].T, strict=True))
            answers = sums["answers"]
            yield {
                "set": name,
                "alpha": float(alpha),
                "variant": variant,
                "calibration": saved[f"{key}/calibration"].mean(),
                "unfiltered": saved[f"{key}/unfiltered"].sum() / answers.sum(),
                "passing": ratio(sums["passing"], answers),
                "wrong among passing": ratio(sums["wrong"], sums["passing"]),
                "wrong among shown": ratio(sums["wrong"], sums["shown"]),
                "shown": ratio(sums["shown"], answers),
                "true claims": ratio(sums["true"], answers),
            }


RATIOS = ("passing", "wrong among passing", "wrong among shown", "shown", "true claims")


def table(options):
    """Print the rows, and what they say together."""
    rows = list(rows_of(np.load(options.path)))
    lines = [
        "± one corrected error; per answer; calibration: questions",
        f"{'set':19} {'alpha':5} {'unfiltered':>10} {'calibration':>11}  {'variant':14} "
        + "  ".join(f"{name:>19}" for name in RATIOS),
    ]
    for row in rows:
        numbers = "  ".join(
            f"{'':>7}{row[name][0]:5.3f} ± {row[name][1]:4.3f}" for name in RATIOS
        )
        lines.append(
            f"{row['set']:19} {row['alpha']:5.2f} {row['unfiltered']:10.3f} "
            f"{row['calibration']:11.0f}  {row['variant']:14} {numbers}"
        )
    lines.append("")
    for variant in VARIANTS[:-1]:
        cells = [row for row in rows if row["variant"] == variant]
        cells = [row for row in cells if np.isfinite(row["wrong among passing"][0])]
        excess = np.array([r["wrong among passing"][0] - r["alpha"] for r in cells])
        error = np.array([r["wrong among passing"][1] for r in cells])
        lines.append(
            f"{variant}: wrong among passing minus alpha, {len(cells)} cells: mean "
            f"{excess.mean():+.4f} ± {np.sqrt((error**2).sum()) / len(cells):.4f}, largest "
            f"{np.max(excess[error > 0] / error[error > 0]):+.1f} errors"
        )
    text = "\n".join(lines) + "\n"
    (RESULTS / "passing_answers.txt").write_text(text, encoding="utf-8")
    print(text)


def scorers(options):
    """Save what each scorer shows and keeps at the same share of passing answers."""
    saved = {name: np.load(getattr(options, name)) for name in SCORERS}
    rows = []
    place = VARIANTS.index(COMPARED)
    for key in (key for key in saved["default"].files if key.count("/") == 1):
        n = min(len(file[key]) for file in saved.values())
        name, alpha = key.split("/")
        row = {"set": name, "alpha": float(alpha), "halves": n}
        for scorer, file in saved.items():
            sums = dict(zip(SUMS, file[key][:n, place].T, strict=True))
            over = {
                "shown": ("shown", "answers"),
                "true claims": ("true", "answers"),
                "wrong among passing": ("wrong", "passing"),
                "wrong among shown": ("wrong", "shown"),
            }
            row[scorer] = {
                what: [round(x, 4) for x in ratio(sums[a], sums[b])]
                for what, (a, b) in over.items()
                if sums[b].sum()
            }
            unfiltered = file[f"{key}/unfiltered"][:n].sum()
            row["unfiltered"] = round(unfiltered / sums["answers"].sum(), 4)
        rows.append(row)
    path = RESULTS / "passing_scorers.json"
    path.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def main():
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run")
    running.add_argument("path")
    running.add_argument("--halves", type=int, default=16)
    running.add_argument(
        "--first", type=int, default=0, help="number of the first half"
    )
    running.add_argument("--scorer", choices=SCORERS, default="default")
    running.add_argument("--jobs", type=int, default=1)
    running.add_argument("--data", nargs="+", default=SETS)
    running.set_defaults(call=run)
    writing = commands.add_parser("table")
    writing.add_argument("path")
    writing.set_defaults(call=table)
    each = commands.add_parser("scorers")
    for name in SCORERS:
        each.add_argument(name)
    each.set_defaults(call=scorers)
    options = parser.parse_args()
    options.call(options)


if __name__ == "__main__":
    main()
