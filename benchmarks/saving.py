"""Comparisons run and saved as JSON, and the command line that experiments share."""

import argparse
import json
import platform
import time
from pathlib import Path

import numpy as np
import scipy
import sklearn
from methods import OURS

import skdcf
from skdcf.evaluation import compare_filters

RESULTS = Path(__file__).resolve().parent / "results"
DIGITS = 5


def options(description):
    """What the command line says."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=2, help="splits at a time")
    parser.add_argument("--splits", type=int, help="fewer splits, for a quick look")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder")
    parser.add_argument(
        "--resume", action="store_true", help="go on where the same code stopped"
    )
    return parser.parse_args()


def run(name, filters, X, y, alphas, chosen, *, title, cv=None, **more):
    """Compare, print and save one experiment as ``name``.json."""
    chosen.output.mkdir(parents=True, exist_ok=True)
    unfinished = chosen.output / f"{name}.partial"
    if unfinished.exists() and not chosen.resume:
        unfinished.unlink()
    if chosen.splits is not None:
        cv = chosen.splits if cv is None else cv[: chosen.splits]
    print(f"\n{title}", flush=True)
    start = time.perf_counter()
    report = compare_filters(
        filters,
        X,
        y,
        alphas,
        cv=cv,
        n_jobs=chosen.jobs,
        random_state=0,
        verbose=1,
        resume=unfinished,
        **more,
    )
    seconds = time.perf_counter() - start
    print(report, flush=True)
    save(chosen.output / f"{name}.json", report, title, seconds)
    unfinished.unlink()
    return report


def save(path, report, title, seconds):
    """Means, errors and differences of a comparison, one row a line."""
    pairs = [
        {"reference": reference} | row
        for reference in report.names
        for row in report.differences(reference).rows()
        if row["filter"] in OURS
    ]
    content = {
        "title": title,
        "protocol": report.protocol,
        "n_splits": len(report.sizes),
        "sizes": report.sizes.mean(axis=0).round(1).tolist(),
        "true_claims": round(float(report.true_claims.mean()), DIGITS),
        "names": list(report.names),
        "alphas": report.alpha.tolist(),
        "seconds": round(seconds),
        "seconds_per_level": {
            name: round(float(value), 4)
            for name, value in zip(
                report.names,
                report.seconds.mean(axis=1) / len(report.alpha),
                strict=True,
            )
        },
        "versions": versions(),
        "rows": report.rows(),
        "differences": pairs,
    }
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
        key: (None if np.isnan(value) else round(value, DIGITS))
        if isinstance(value, float)
        else value
        for key, value in row.items()
    }


def versions():
    """What the numbers were computed with."""
    return {
        "python": platform.python_version(),
        "skdcf": skdcf.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }
