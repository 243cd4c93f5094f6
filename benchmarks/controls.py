"""What stands behind the retention: coverage, style, and what it costs to compute.

    python benchmarks/controls.py [--jobs N] [--splits N] [--output DIR] [--only NAME]

* coverage at strict levels, of calibration problems that are not those of the test, with
  errors clustered by question;
* style on PRMBench: whether scores see who wrote a step, rather than what is wrong in it;
* processor seconds and peak memory of fitting and filtering the answers of PRMBench on one core.
"""

import os
import resource
import subprocess
import sys
import time

import numpy as np
from cells import compute
from methods import AUTO, LOGISTIC, NEYMAN_PEARSON, compared
from real_data import agreement, base, load
from saving import SEED, fewer, halves, options, wanted, write
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupShuffleSplit

from skdcf import CoherentConformalFilter
from skdcf.exceptions import CalibrationWarning
from skdcf.graphs import pack_labels
from skdcf.ops.conformal import conformal_threshold
from skdcf.ops.hard import below_true_claims

LEVELS = [0.005, 0.01, 0.02]
N_DRAWS = 50  # divisions of each held half into calibration and test
MEASURED = ("problems", "claims", "fit", "filter", "memory")
ALL_ANSWERS = 7651  # of PRMBench, of which half is published as training files


def fit(filter, X, labels, groups, alpha, seed):
    """A filter trained on all of its problems but one."""
    fresh = clone(filter).set_params(alpha=alpha, calibration_size=1, random_state=seed)
    return fresh.fit(X, labels, groups)


def coverage_cell(filter, X, labels, groups, parts, seed):
    """Per level and problem: how often it was tested, and how often it was covered."""
    train, rest = parts
    fresh = clone(filter).set_params(calibration_size=1, random_state=seed)
    y = [labels[i] for i in train]
    fitted = fresh.fit_levels(X[train], y, LEVELS, groups[train])
    draws = GroupShuffleSplit(N_DRAWS, test_size=0.5, random_state=seed)
    draws = list(draws.split(rest, groups=groups[rest]))
    seen = np.zeros((len(LEVELS), len(rest)), dtype=int)
    covered = np.zeros_like(seen)
    for level, (alpha, cf) in enumerate(zip(LEVELS, fitted, strict=True)):
        batch, held = cf.check(X[rest], [labels[i] for i in rest])
        scores = cf.calibration_scores(batch, held)
        for known, new in draws:
            limit = conformal_threshold(np.sort(scores[known]), alpha)
            seen[level, new] += 1
            covered[level, new] += limit <= scores[new]
    n = float(np.mean([len(known) for known, _ in draws]))
    return {
        "seen": seen.tolist(),
        "covered": covered.tolist(),
        "n_calibration": n,
    }


def clustered(seen, covered, groups):
    """Mean coverage, and its standard error where answers to a question belong together."""
    mean = covered.sum() / seen.sum()
    code = np.unique(groups, return_inverse=True)[1]
    per_question = np.bincount(code, covered - mean * seen)
    return mean, np.sqrt((per_question**2).sum()) / seen.sum()


def coverage(chosen):
    """Coverage at strict levels."""
    rows = []
    for name, n_splits in (("prmbench", 4), ("gsm8k-solutions", 4)):
        data = load(name)
        X = base(chosen.output, name, data)
        if name == "gsm8k-solutions":
            X = agreement(chosen.output, name, data)
        splits = fewer(halves(n_splits, data.groups), chosen)
        filters = {
            k: compared()[k].set_params(ties="exclude") for k in (LOGISTIC, AUTO)
        }
        shared = X, data.labels, data.groups
        cells = {
            f"{name}/{key}/{k}": (coverage_cell, (filter, *shared, parts, SEED + k))
            for key, filter in filters.items()
            for k, parts in enumerate(splits)
        }
        found = compute(chosen.output, "coverage", cells, chosen.jobs)
        for key in filters:
            parts = [found[f"{name}/{key}/{k}"] for k in range(len(splits))]
            rows += coverage_rows(name, key, parts, splits, data.groups)
    write("coverage", chosen, {"title": "Coverage at strict levels", "rows": rows})
    for row in rows:
        print(row, flush=True)


def coverage_rows(name, key, parts, splits, groups):
    """One row per level, all splits together: a question is in half of them."""
    n = int(np.mean([part["n_calibration"] for part in parts]))
    rows = []
    for level, alpha in enumerate(LEVELS):
        seen, covered = np.zeros((2, len(groups)))
        for part, (_, rest) in zip(parts, splits, strict=True):
            seen[rest] += part["seen"][level]
            covered[rest] += part["covered"][level]
        mean, error = clustered(seen, covered, groups)
        low, high = 1 - alpha - 2 * error, 1 - np.floor(alpha * (n + 1)) / (n + 1)
        rows.append(
            {
                "data": name,
                "filter": key,
                "alpha": alpha,
                "coverage": float(mean),
                "clustered_error": float(error),
                "expected_most": float(high),
                "n_calibration": n,
                "in_band": bool(low <= mean <= high + 2 * error),
            }
        )
    return rows


def style_cell(filter, X, labels, groups, changed, parts, alpha, seed):
    """AUC of false, and of changed but true steps, against true steps left as they were."""
    train, rest = parts
    cf = fit(filter, X[train], [labels[i] for i in train], groups[train], alpha, seed)
    held = X[rest]
    y = pack_labels([labels[i] for i in rest], held)
    confidence = cf.scorer_.confidence(held)
    rewritten = np.concatenate([changed[i] for i in rest])
    at_risk = below_true_claims(y, held)
    left = at_risk & (y == 1) & ~rewritten
    out = {}
    for name, chosen in (("false", y == 0), ("style", (y == 1) & rewritten)):
        both = left | (at_risk & chosen)
        out[name] = float(roc_auc_score(chosen[both], -confidence[both]))
        out[f"n_{name}"] = int((at_risk & chosen).sum())
    return out


def style(chosen):
    """Whether scores on PRMBench see a rewritten step that is true."""
    data = load("prmbench")
    X = base(chosen.output, "prmbench", data)
    changed = [np.zeros(len(y), dtype=bool) for y in data.labels]
    for flags, about in zip(changed, data.metadata, strict=True):
        if about["kind"] != "original":
            flags[about["changed"]] = True
    splits = fewer(halves(4, data.groups), chosen)
    wanted_ones = (LOGISTIC, NEYMAN_PEARSON, AUTO)
    filters = {k: f for k, f in compared().items() if k in wanted_ones}
    shared = X, data.labels, data.groups, changed
    cells = {
        f"{key}/{k}": (style_cell, (filter, *shared, parts, 0.05, SEED + k))
        for key, filter in filters.items()
        for k, parts in enumerate(splits)
    }
    found = compute(chosen.output, "style", cells, chosen.jobs)
    rows = []
    for key in filters:
        each = [found[f"{key}/{k}"] for k in range(len(splits))]
        values = {n: np.array([cell[n] for cell in each], dtype=float) for n in each[0]}
        rows.append({"filter": key} | {n: float(v.mean()) for n, v in values.items()})
        rows[-1] |= {f"{n}_spread": float(values[n].std()) for n in ("false", "style")}
        print(rows[-1], flush=True)
    write("style", chosen, {"title": "Style control on PRMBench", "rows": rows})


def resources(chosen):
    """Seconds and memory in a process of its own, on one core."""
    words = [sys.executable, __file__, "--measure", str(chosen.output)]
    alone = os.environ | {"OMP_NUM_THREADS": "1"}
    printed = subprocess.run(
        words, capture_output=True, text=True, env=alone, check=True
    )
    rows = [
        dict(zip(MEASURED, map(float, line.split()), strict=True))
        for line in printed.stdout.splitlines()
    ]
    print(*rows, sep="\n", flush=True)
    title = (
        "Processor seconds of fitting and filtering with auto, and peak memory in MB"
    )
    write("resources", chosen, {"title": title, "rows": rows})


def measure(folder):
    """Print problems, claims, seconds of fit, of filter, and peak memory so far."""
    data = load("prmbench")
    X = base(folder, "prmbench", data)
    for n in (len(X), ALL_ANSWERS):
        rows = np.arange(n) % len(X)  # answers that are not here: some of these again
        batch, y = X[rows], [data.labels[i] for i in rows]
        start = time.process_time()
        cf = CoherentConformalFilter(alpha=0.05, random_state=0)
        cf.fit(batch, y, data.groups[rows])
        fitted = time.process_time()
        cf.predict(batch)
        end = time.process_time()
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(n, batch.n_claims, fitted - start, end - fitted, memory, flush=True)


PARTS = {"coverage": coverage, "style": style, "resources": resources}


def main(chosen):
    """Run and save every control."""
    for name, part in PARTS.items():
        if wanted(name, chosen):
            part(chosen)


if __name__ == "__main__":
    import warnings
    from pathlib import Path

    warnings.simplefilter("ignore", CalibrationWarning)
    if sys.argv[1:2] == ["--measure"]:
        measure(Path(sys.argv[2]))
    else:
        main(options(__doc__))
