"""Run experiments in cells, save their results as JSON, and parse their common arguments."""

import argparse
import json
import platform
import subprocess
from dataclasses import fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
from scipy.stats import t
from sklearn.model_selection import GroupShuffleSplit

import skdcf
from benchmarks import RESULTS
from benchmarks.cells import compute
from benchmarks.methods import AUTO, FREQUENCY, LOGISTIC, OURS, OWN_SCORE
from skdcf.evaluation import ComparisonReport, compare_filters
from skdcf.evaluation._report import corrected_error

BASELINES = (LOGISTIC, FREQUENCY, OWN_SCORE)
DIGITS = 5
SEED = 0
LEAVE_ONE_OUT = "leave-one-out"
SHARED = ("names", "alpha", "protocol")  # of all filters and splits
OF_SPLIT = ("true_claims", "sizes")  # whatever the filter


def options(description):
    """Return the parsed command-line options."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=2, help="number of parallel cells")
    parser.add_argument("--splits", type=int, help="number of splits, for a quick run")
    parser.add_argument(
        "--output", type=Path, default=RESULTS, help="folder for the results"
    )
    parser.add_argument("--only", nargs="+", help="names of the experiments to run")
    return parser.parse_args()


def wanted(name, chosen):
    """Whether an experiment is asked for."""
    return not chosen.only or any(name.startswith(start) for start in chosen.only)


def fewer(splits, chosen):
    """As many splits as the command line asks for."""
    return splits[: chosen.splits]


def halves(n_splits, groups):
    """Random halves that keep a group together, as (train, test)."""
    splitter = GroupShuffleSplit(n_splits, test_size=0.5, random_state=SEED)
    return list(splitter.split(np.zeros(len(groups)), groups=groups))


def run_cell(filter, X, labels, groups, alphas, parts, protocol, seed):
    """One filter on one split, as numbers that JSON holds."""
    report = compare_filters(
        {"filter": filter},
        X,
        labels,
        alphas,
        protocol=protocol,
        cv=[parts],
        groups=groups,
        random_state=seed,
    )
    out = {name: np.asarray(getattr(report, name)).tolist() for name in measures()}
    return out | {"chosen": report.chosen["filter"][0]}


def measures():
    """What a comparison tells of each split."""
    told = [f.name for f in fields(ComparisonReport) if f.name not in SHARED]
    return [name for name in told if name != "chosen"]


def run(name, entries, labels, alphas, splits, chosen, *, groups=None, **about):
    """Compare, print and save one experiment as ``name``.json.

    Parameters
    ----------
    name : str
    entries : dict of str to (problems, filter)
        The same problems, maybe with other columns.
    labels, alphas, splits, groups
        As in `compare_filters`; splits are tuples of positions.
    chosen
        The command line.
    **about
        Goes to the file: "title" and what else is to be known.
    """
    if not wanted(name, chosen):
        return
    splits = fewer(splits, chosen)
    protocol = LEAVE_ONE_OUT if len(splits[0]) == 2 else "folds"
    shared = labels, groups, alphas
    cells = {
        f"{entry}/{number}": (
            run_cell,
            (filter, X, *shared, parts, protocol, SEED + number),
        )
        for entry, (X, filter) in entries.items()
        for number, parts in enumerate(splits)
    }
    found = compute(chosen.output, name, cells, chosen.jobs)
    rows = [
        [found[f"{entry}/{number}"] for number in range(len(splits))]
        for entry in entries
    ]
    report = join(rows, list(entries), alphas, protocol)
    print(f"\n{about['title']}\n{report}", flush=True)
    write(name, chosen, described(report) | about | {"seeds": seeds(len(splits))})


def join(rows, names, alphas, protocol):
    """One report of the cells: filters down, splits across."""

    def stack(key):
        return np.array([[np.array(cell[key])[0] for cell in row] for row in rows])

    found = {key: stack(key) for key in measures()}
    return ComparisonReport(
        names=tuple(names),
        alpha=np.array(alphas),
        protocol=protocol,
        chosen={
            name: [cell["chosen"] for cell in row]
            for name, row in zip(names, rows, strict=True)
        },
        **{k: v[0] if k in OF_SPLIT else v[:, :, 0] for k, v in found.items()},
    )


def described(report):
    """Means, errors and differences of a comparison, one row a line."""
    seconds = report.seconds.mean(axis=1) / len(report.alpha)
    return {
        "protocol": report.protocol,
        "n_splits": len(report.sizes),
        "sizes": report.sizes.mean(axis=0).round(1).tolist(),
        "true_claims": round(float(report.true_claims.mean()), DIGITS),
        "names": list(report.names),
        "alphas": report.alpha.tolist(),
        "seconds_per_level": dict(
            zip(report.names, seconds.round(4).tolist(), strict=True)
        ),
        "rows": report.rows(),
        "differences": [
            row
            for row in differences(report)
            if row["reference"].startswith((AUTO, *BASELINES))
            and row["filter"].startswith((*OURS, *BASELINES))
        ],
    }


def differences(report):
    """Differences in true claims kept for each pair of filters, with corrected errors.

    ``log_ratio`` is the logarithm of how many times as many true claims are kept. Each split
    enters both means: the error is that of the difference of its two shares in them, which is the
    ratio's to first order.
    """
    kept, rows = report.retention, []
    n = len(report.sizes)
    mean = kept.mean(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        share, logs = kept / mean[:, None], np.log(mean)
        for i, reference in enumerate(report.names):
            for k, alpha in enumerate(report.alpha.tolist()):
                for j, name in enumerate(report.names):
                    if i == j:
                        continue
                    difference = mean[j, k] - mean[i, k]
                    error = corrected_error(kept[j] - kept[i], report.sizes)[k]
                    ratio_error = corrected_error(share[j] - share[i], report.sizes)[k]
                    ratio = abs(difference) / error if difference else 0.0
                    row = {
                        "difference": difference,
                        "percent": 100 * (mean[j, k] / mean[i, k] - 1),
                        "corrected_error": error,
                        "p_value": 2 * t.sf(ratio, n - 1),
                        "log_ratio": logs[j, k] - logs[i, k],
                        "log_ratio_error": ratio_error,
                    }
                    numbers = {key: float(value) for key, value in row.items()}
                    rows.append(
                        {"reference": reference, "alpha": alpha, "filter": name}
                        | numbers
                    )
    return rows


def seeds(n_splits):
    """What the numbers can be computed again with."""
    return {"splits": SEED, "filters": [SEED, SEED + n_splits - 1]}


def write(name, chosen, content):
    """Save what an experiment has found, with what it was computed with."""
    path = chosen.output / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    content = content | {"commit": commit(), "versions": versions()}
    path.write_text(as_text(content), encoding="utf-8")


def as_text(content):
    """JSON with one line per entry, and per row of the tables."""
    entries = []
    for key, value in content.items():
        text = json.dumps(value)
        if isinstance(value, list) and value and isinstance(value[0], dict):
            rows = ",\n  ".join(json.dumps(rounded(row)) for row in value)
            text = f"[\n  {rows}\n ]"
        entries.append(f" {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(entries) + "\n}\n"


def rounded(row):
    """Floats with as many digits as anybody reads; nan as null."""
    return {
        key: (round(value, DIGITS) if np.isfinite(value) else None)
        if isinstance(value, float)
        else value
        for key, value in row.items()
    }


def commit():
    """The commit that last changed the package, with a plus where files differ from it."""
    folder = Path(skdcf.__file__).parent
    try:
        name = git("log", "-1", "--format=%h", "--", ".", folder=folder)
        return name + "+" * bool(git("status", "--porcelain", ".", folder=folder))
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def git(*words, folder):
    """What git says."""
    words = ["git", "-C", str(folder), *words]
    return subprocess.run(
        words, capture_output=True, text=True, check=True
    ).stdout.strip()


def versions():
    """What the numbers were computed with."""
    names = ("numpy", "scipy", "scikit-learn", "xgboost-cpu", "xgboost")
    found = {"python": platform.python_version(), "skdcf": skdcf.__version__}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
