"""The default scorer: what a change of it keeps and shows, on published answers.

    python -m benchmarks.retention.default_scorer keep NAME.npz [--variants V ...] [--halves 16]
    python -m benchmarks.retention.default_scorer compare OLD.npz NEW.npz [--old V] [--new V]
    python -m benchmarks.retention.default_scorer table NAME.npz

"keep" fits each variant on half of the questions and evaluates it leave-one-out on the
others, the same halves for all, as means over which answer to a question calibrates: where
there are several, that choice alone moves what is kept at .02 by half. Run it with each of
two versions of the package on the path, in any folder; "compare" prints true claims kept,
the share of answers shown, and the share of these with a false claim, before and after, with
the naive error of the paired difference over the halves. Errors that hold for other questions
are three to four times as large. "table" writes benchmarks/results/gain.csv, the powers of
the gain over all sets.
"""

import argparse
import csv
import warnings

import numpy as np
from joblib import Parallel, delayed
from sklearn.model_selection import GroupShuffleSplit

from benchmarks import RESULTS
from benchmarks.guarantees.reader import problems_of
from skdcf import CoherentConformalFilter
from skdcf.estimators import fit_levels
from skdcf.metrics import leave_one_out
from skdcf.ops.conformal import leave_one_out_alpha
from skdcf.ops.hard import nonconformity_scores
from skdcf.relaxation import PathRelaxation
from skdcf.scorers import ClassifierScorer, NeymanPearsonScorer, StackingScorer
from skdcf.training import SoftTraining

ALPHAS = (0.02, 0.05, 0.1, 0.2)
N_DRAWS = 20  # of the answers that calibrate, in an evaluation
TABLE = RESULTS / "gain.csv"
NUMBERS = ("retention", "shown", "false_among_shown", "coverage", "worth")
GAIN = 0.75  # of "worth"
SETS = (
    "perl",
    "felm",
    "refchecker",
    "mr-ben",
    "mr-ben-biology",
    "mr-ben-chemistry",
    "process-bench",
    "qags-cnndm",
)


POWERS = (1, 0.75, 0.5, 0)
HOTTER = PathRelaxation(keep_temperature=1.0, quantile_temperature=1.0)
VARIANTS = {
    **{f"stack {p}": {"scorer": StackingScorer(gain=p)} for p in POWERS},
    **{
        f"neyman-pearson {p}": {"scorer": NeymanPearsonScorer(gain=p)}
        for p in (1, 0.75)
    },
    "regression": {"scorer": ClassifierScorer()},
    "own-label": {"scorer": ClassifierScorer(target="own")},
    "linear": {"scorer": "linear"},
    "linear, temperatures of 1": {"scorer": "linear", "relaxation": HOTTER},
    "linear, coherent start": {
        "scorer": "linear",
        "training": SoftTraining(init="coherent", shrinkage=100.0),
    },
}


def in_order(groups):
    """Questions numbered as they come, so that another version makes the same halves."""
    _, first, code = np.unique(groups, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[code]


def worth(filter, graphs, labels, groups, alpha, seed):
    """Mean of (true claims kept)^GAIN over answers, one of each question at a time."""
    rng = np.random.RandomState(seed)
    values = []
    for _ in range(N_DRAWS):
        order = rng.permutation(len(graphs))
        _, first = np.unique(groups[order], return_index=True)
        rows = np.sort(order[first])
        batch, flat = graphs[rows], np.concatenate([labels[i] for i in rows])
        risk = np.concatenate(list(filter.path_risk(batch)))
        scores = nonconformity_scores(risk, flat, batch.offsets)
        kept = leave_one_out_alpha(scores, risk, batch.problem_of) <= alpha + 1e-12
        counts = np.bincount(batch.problem_of, kept & (flat == 1), len(batch))
        values.append(np.mean(counts**GAIN))
    return np.mean(values)


def one_half(problems, variant, seed, n_train=None):
    """Numbers of one variant in one split, shape (n_alphas, n_numbers)."""
    graphs, labels, groups = problems
    split = GroupShuffleSplit(1, test_size=0.5, random_state=seed)
    first, second = next(split.split(groups, groups=groups))
    if n_train is not None:
        first = np.sort(np.random.RandomState(seed).permutation(first)[:n_train])
    known = graphs[first], [labels[i] for i in first]
    new = graphs[second], [labels[i] for i in second]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Calibrated on one question only: the new ones calibrate each other.
        cf = CoherentConformalFilter(
            **VARIANTS[variant], calibration_size=1, random_state=seed, ties="jitter"
        )
        filters = fit_levels(cf, *known, ALPHAS, groups=groups[first])
        reports = [
            leave_one_out(
                filter,
                *new,
                [alpha],
                groups=groups[second],
                n_draws=N_DRAWS,
                random_state=seed,
            )
            for filter, alpha in zip(filters, ALPHAS, strict=True)
        ]
    values = [
        worth(filter, *new, groups[second], alpha, seed)
        for filter, alpha in zip(filters, ALPHAS, strict=True)
    ]
    return [
        [*(getattr(report, name)[0] for name in NUMBERS[:-1]), value]
        for report, value in zip(reports, values, strict=True)
    ]


def keep(options):
    """Write the numbers of all variants, sets and halves."""
    parallel = Parallel(n_jobs=options.jobs)
    saved = {}
    for name in options.data:
        graphs, labels, groups = problems_of(name)
        problems = graphs, labels, in_order(groups)
        for variant in options.variants:
            calls = (
                delayed(one_half)(problems, variant, seed, options.train)
                for seed in range(options.halves)
            )
            numbers = np.array(parallel(calls))
            saved[f"{name}/{variant}"] = numbers
            for column, number in enumerate(NUMBERS[:3]):
                mean = np.nanmean(numbers[:, :, column], axis=0)
                print(f"{name:17} {variant:18} {number:18}", mean.round(3), flush=True)
        np.savez(options.path, **saved)


def compare(options):
    """Print both versions side by side."""
    old = np.load(options.old_file)
    new = np.load(options.new_file)
    print(
        "set               alpha  true kept  change             shown  change     ",
        end="",
    )
    print("         false among shown  change")
    for key in old.files:
        name, variant = key.split("/")
        other = f"{name}/{options.new or variant}"
        if (options.old and variant != options.old) or other not in new.files:
            continue
        n = min(len(old[key]), len(new[other]))
        before, after = old[key][:n], new[other][:n]
        difference = after - before
        error = np.nanstd(difference, axis=0, ddof=1) / np.sqrt(n)
        for level, alpha in enumerate(ALPHAS):
            mean = np.nanmean(before[:, level], axis=0)
            change = np.nanmean(difference[:, level], axis=0)
            kept = mean[0] or np.nan
            print(
                f"{name:17} {alpha:5.2f}  {mean[0]:8.3f}  {100 * change[0] / kept:+6.1f} "
                f"+- {100 * error[level, 0] / kept:4.1f} %   {mean[1]:6.3f} "
                f"{change[1]:+.3f} +- {error[level, 1]:.3f}   {mean[2]:8.3f} "
                f"{change[2]:+.3f} +- {error[level, 2]:.3f}"
            )


def table(options):
    """Write the powers of the gain, as means over the sets."""
    saved = np.load(options.path)
    sets = list(dict.fromkeys(key.split("/")[0] for key in saved.files))
    header = ["gain"]
    header += [
        f"{what} {alpha:g}" for what in ("kept", "shown", "false") for alpha in ALPHAS
    ]
    rows = []
    for power in POWERS:
        if f"{sets[0]}/stack {power}" not in saved.files:
            continue
        numbers = [np.nanmean(saved[f"{name}/stack {power}"], axis=0) for name in sets]
        first = [np.nanmean(saved[f"{name}/stack 1"], axis=0) for name in sets]
        ratio = [
            one[:, 0] / other[:, 0] for one, other in zip(numbers, first, strict=True)
        ]
        change = 100 * np.mean(ratio, axis=0) - 100
        shown, false = np.mean(numbers, axis=0)[:, 1:3].T
        percent = [f"{value:+.0f} %" for value in change]
        rows.append([f"{power:g}", *percent, *(f"{x:.2f}" for x in (*shown, *false))])
    with TABLE.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])
    print(TABLE.read_text())


def main():
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    keeping = commands.add_parser("keep")
    keeping.add_argument("path")
    keeping.add_argument(
        "--variants", nargs="+", default=["stack 0.75", "stack 1"], choices=VARIANTS
    )
    keeping.add_argument("--halves", type=int, default=16)
    keeping.add_argument("--jobs", type=int, default=2)
    keeping.add_argument("--data", nargs="+", default=SETS)
    keeping.add_argument("--train", type=int, help="so many training answers only")
    comparing = commands.add_parser("compare")
    comparing.add_argument("old_file")
    comparing.add_argument("new_file")
    comparing.add_argument("--old", help="only this variant of the first file")
    comparing.add_argument("--new", help="this variant of the second file")
    writing = commands.add_parser("table")
    writing.add_argument("path")
    options = parser.parse_args()
    {"keep": keep, "compare": compare, "table": table}[options.command](options)


if __name__ == "__main__":
    main()
