"""Compare variants of the default scorer on published answers.

    python -m benchmarks.retention.default_scorer keep NAME.npz [--variants V ...] [--halves 16]
    python -m benchmarks.retention.default_scorer compare OLD.npz NEW.npz OLD_VARIANT NEW_VARIANT

"keep" fits each variant on half of the questions and evaluates it leave-one-out on the others.
All variants use the same halves, and numbers are means over which answer to a question is used
for calibration: if there are several, that choice alone changes what is kept at .02 by half. With
``--show auto``, the share of answers that pass is chosen for the number of questions used for
calibration. To compare two versions of the package, run "keep" with each of them on the path.

"compare" prints true claims kept, their worth (the mean of their number to the power .5), the share
of answers shown, and the share of these with a false claim, with corrected errors (Nadeau and
Bengio: the halves share answers), and then the means over the sets, which are geometric for ratios.
A set is left out of a geometric mean if nothing is kept.
"""

import argparse
import warnings

import numpy as np
from joblib import Parallel, delayed
from sklearn.model_selection import GroupShuffleSplit

from benchmarks.methods import fit_levels
from benchmarks.real_data import load, with_alternatives
from skdcf import CoherentConformalFilter
from skdcf.features import ContextFeatures, reasoning_features
from skdcf.guarantees import NoFalseClaim, leave_one_out
from skdcf.identity import question_groups
from skdcf.scorers import ClassifierScorer
from skdcf.training import LBFGS, SoftTraining

ALPHAS = (0.02, 0.05, 0.1, 0.2)
N_DRAWS = 20  # of the answers that calibrate, in an evaluation
NUMBERS = ("retention", "shown", "false_among_shown", "worth")
GAIN = 0.5  # of "worth"
SETS = (
    "perl",
    "felm",
    "refchecker",
    "mr-ben",
    "mr-ben-biology",
    "mr-ben-chemistry",
    "process-bench",
    "qags-cnndm",
    "gsm8k-solutions",
    "process-bench-math",
)


VARIANTS = {
    "default": {"scorer": "linear"},
    "start of the default": {
        "scorer": "linear",
        "training": SoftTraining(LBFGS(1), shrinkage=1e12),
    },
    "priced regression": {"scorer": ClassifierScorer()},
    "regression": {"scorer": ClassifierScorer(gain=None)},
}


def in_order(groups):
    """Questions numbered as they come, so that another version makes the same halves."""
    _, first, code = np.unique(groups, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[code]


def draws(groups, seed):
    """Rows of one answer to each question, drawn several times if a question has several."""
    rng = np.random.RandomState(seed)
    questions = np.unique(groups)
    for _ in range(N_DRAWS if len(questions) < len(groups) else 1):
        order = rng.permutation(len(groups))
        _, first = np.unique(groups[order], return_index=True)
        yield np.sort(order[first])


def left_out(filter, graphs, labels, groups, alpha, seed):
    """Mean NUMBERS if each answer is left out in turn, for one answer to each question."""
    numbers = []
    for rows in draws(groups, seed):
        batch, truth = graphs[rows], [labels[i] for i in rows]
        guarantee = filter.calibrate(batch, truth, groups=False).calibration_.guarantee
        flat, of, n = np.concatenate(truth), batch.problem_of, len(batch)
        risk = np.concatenate(list(filter.path_risk(batch)))
        jumps = guarantee.jumps(risk, flat, batch.offsets)
        risks = guarantee.path_risks(risk, batch)
        kept = leave_one_out(guarantee, jumps, risks) <= alpha
        true = np.bincount(of, kept & (flat == 1), n)
        wrong = np.bincount(of, kept & (flat != 1), n) > 0
        shown = np.bincount(of, kept, n) > 0
        rate = wrong.sum() / (shown.sum() or np.nan)
        numbers.append([true.mean(), shown.mean(), rate, np.mean(true**GAIN)])
    return np.nanmean(numbers, axis=0)


def columns_of(graphs):
    """Problems with the columns of their texts."""
    columns = reasoning_features().fit_transform(graphs)
    if graphs.context is not None:
        columns = ContextFeatures().fit_transform(columns)
    return columns


def problems_of(name):
    """Problems with their columns, labels and questions."""
    data = load(name)
    columns = columns_of(with_alternatives(data.graphs, 0))
    groups = getattr(data, "groups", None)
    return columns, list(data.labels), in_order(question_groups(columns, groups))


def one_half(problems, variant, seed, n_train=None, show=1):
    """Numbers of one variant in one split."""
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
            **VARIANTS[variant],
            guarantee=NoFalseClaim(show=show),
            calibration_size=1,
            random_state=seed,
            ties="jitter",
        )
        filters = fit_levels(cf, *known, ALPHAS, groups[first])
        return [
            left_out(filter, *new, groups[second], alpha, seed)
            for alpha, filter in filters.items()
        ]


def keep(options):
    """Write the numbers of all variants, sets and halves."""
    parallel = Parallel(n_jobs=options.jobs)
    saved = {}
    for name in options.data:
        problems = problems_of(name)
        for variant in options.variants:
            calls = (
                delayed(one_half)(problems, variant, seed, options.train, options.show)
                for seed in range(options.halves)
            )
            numbers = saved[f"{name}/{variant}"] = np.array(parallel(calls))
            for column, number in enumerate(NUMBERS[:3]):
                mean = np.nanmean(numbers[:, :, column], axis=0)
                print(f"{name:17} {variant:18} {number:18}", mean.round(3), flush=True)
        np.savez(options.path, **saved)


def changes(old_file, new_file, old_variant, new_variant):
    """For each set: number of halves, means before, changes, and their corrected errors.

    The numbers have the shape (n_alphas, n_numbers). Halves that only one file has are left out.
    """
    old, new = np.load(old_file), np.load(new_file)
    keys = f"/{old_variant}", f"/{new_variant}"
    sets = [key.split("/")[0] for key in old.files if key.endswith(keys[0])]
    found = {}
    for name in sets:
        if name + keys[1] not in new.files:
            continue
        before, after = old[name + keys[0]], new[name + keys[1]]
        n = min(len(before), len(after))
        difference = after[:n] - before[:n]
        error = np.nanstd(difference, axis=0, ddof=1) * np.sqrt(1 / n + 1)
        mean = np.nanmean(before[:n], axis=0)
        found[name] = n, mean, np.nanmean(difference, axis=0), error
    return found


def geometric(found, column):
    """Geometric mean of after / before over the sets and its error, in percent, per level.

    A set is left out at the levels at which nothing is kept before or after.
    """
    rows = []
    for level in range(len(ALPHAS)):
        logs, errors = [], []
        for _, mean, change, error in found.values():
            before, after = mean[level, column], (mean + change)[level, column]
            if before > 0 and after > 0:
                logs.append(np.log(after / before))
                errors.append(error[level, column] / before)
        if logs:
            error = np.linalg.norm(errors) / len(errors)
            rows.append((100 * np.expm1(np.mean(logs)), 100 * error))
        else:
            rows.append((np.nan, np.nan))
    return rows


def points(found, column):
    """Mean change over the sets and its error, in percentage points, per level."""
    change = np.mean([row[2][:, column] for row in found.values()], axis=0)
    squares = np.sum([row[3][:, column] ** 2 for row in found.values()], axis=0)
    return list(100 * np.stack([change, np.sqrt(squares) / len(found)], axis=1))


def compare(options):
    """Print both variants side by side."""
    found = changes(options.old_file, options.new_file, options.old, options.new)
    title = f"{options.new} against {options.old}{options.title}"
    if not options.summary:
        print(f"{title}: ± one corrected error; kept, worth in percent")
        print(f"{'set':19} alpha  kept before  {'kept':>15} {'worth':>7} shown  false")
        print_sets(found)
    else:
        print(title)
    print(f"{'alpha':20}" + "".join(f"{alpha:>15g}" for alpha in ALPHAS))
    lines = {
        "shown, points": points(found, 1),
        "kept, %": geometric(found, 0),
        "worth, %": geometric(found, 3),
    }
    for what, row in lines.items():
        cells = "".join(
            f"{mean:+9.1f} ± {error:3.1f}" if np.isfinite(mean) else f"{'-':>15}"
            for mean, error in row
        )
        print(f"{what:20}{cells}")
    halves = sorted({row[0] for row in found.values()})
    counted = " to ".join(str(n) for n in {halves[0]: None, halves[-1]: None})
    print(f"{len(found)} sets, {counted} halves\n")


def print_sets(found):
    """Print one line for each set and level."""
    for name, (_, mean, change, error) in found.items():
        for level, alpha in enumerate(ALPHAS):
            kept = mean[level, 0]
            with np.errstate(divide="ignore", invalid="ignore"):
                percent = 100 * change[level] / mean[level]
                wide = 100 * error[level, 0] / kept
            print(
                f"{name:19} {alpha:5.2f}  {kept:11.3f}  {percent[0]:+6.1f} ± "
                f"{wide:4.1f} % {percent[3]:+5.1f} % "
                f"{change[level, 1]:+.3f} {change[level, 2]:+.3f}"
            )


def main():
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    keeping = commands.add_parser("keep")
    keeping.add_argument("path")
    keeping.add_argument(
        "--variants",
        nargs="+",
        default=["default", "priced regression"],
        choices=VARIANTS,
    )
    keeping.add_argument("--halves", type=int, default=16)
    keeping.add_argument("--jobs", type=int, default=2)
    keeping.add_argument("--data", nargs="+", default=SETS)
    keeping.add_argument("--show", default=1, help='"auto": the share is chosen')
    keeping.add_argument("--train", type=int, help="number of training answers")
    comparing = commands.add_parser("compare")
    comparing.add_argument("old_file")
    comparing.add_argument("new_file")
    comparing.add_argument("old", help="a variant of the first file")
    comparing.add_argument("new", help="a variant of the second file")
    comparing.add_argument("--title", default="", help="conditions, for the first line")
    comparing.add_argument("--summary", action="store_true", help="leave out the sets")
    options = parser.parse_args()
    {"keep": keep, "compare": compare}[options.command](options)


if __name__ == "__main__":
    main()
