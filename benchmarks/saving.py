"""Split questions, save results as JSON, and parse common arguments of programs."""

import argparse
import json
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
from sklearn.model_selection import GroupShuffleSplit

import skdcf
from benchmarks import RESULTS

DIGITS = 5
SEED = 0


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
    return not chosen.only or name in [
        only.removeprefix("paper-") for only in chosen.only
    ]


def halves(n_splits, groups):
    """Random halves that keep a group together, as (train, test)."""
    splitter = GroupShuffleSplit(n_splits, test_size=0.5, random_state=SEED)
    return list(splitter.split(np.zeros(len(groups)), groups=groups))


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
