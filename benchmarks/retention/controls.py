"""Measure coverage, the influence of style, and computing costs as controls for the retention.

    python -m benchmarks.retention.controls [--jobs N] [--splits N] [--output DIR] [--only NAME]

* coverage at strict levels, of calibration problems that are not those of the test, with
  errors clustered by question;
* what is safe, and what is kept, on every set: by auto at each level, above a fixed
  threshold, and where nothing is removed;
* what fewer false claims cost, where they are priced in one way or another;
* style on PRMBench: whether scores see who wrote a step, rather than what is wrong in it;
* processor seconds and peak memory of fitting and filtering the answers of PRMBench on one core.
"""

import os
import resource
import subprocess
import sys
import time

import numpy as np
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupShuffleSplit

from benchmarks.cells import compute
from benchmarks.methods import AUTO, LOGISTIC, NEYMAN_PEARSON, compared
from benchmarks.real_data import SETS, agreement, base, load
from benchmarks.retention.few_labels import split
from benchmarks.saving import SEED, fewer, halves, options, wanted, write
from skdcf import CoherentConformalFilter, estimators
from skdcf.estimators import calibration_scores, check
from skdcf.evaluation import fit_levels
from skdcf.exceptions import CalibrationWarning
from skdcf.graphs import pack_labels
from skdcf.ops.ancestors import sum_ancestors
from skdcf.ops.conformal import conformal_threshold, leave_one_out_alpha
from skdcf.ops.hard import (
    below_true_claims,
    nonconformity_scores,
    path_risk,
    segment_sum,
)
from skdcf.ops.neyman_pearson import log_price, minorant_slopes
from skdcf.scorers import ClassifierScorer, FitTask, NeymanPearsonScorer

LEVELS = [0.005, 0.01, 0.02]
PROMISED = [0.02, 0.05, 0.1, 0.2]
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
    fitted = estimators.fit_levels(fresh, X[train], y, LEVELS, groups[train])
    draws = GroupShuffleSplit(N_DRAWS, test_size=0.5, random_state=seed)
    draws = list(draws.split(rest, groups=groups[rest]))
    seen = np.zeros((len(LEVELS), len(rest)), dtype=int)
    covered = np.zeros_like(seen)
    for level, (alpha, cf) in enumerate(zip(LEVELS, fitted, strict=True)):
        batch, held = check(cf, X[rest], [labels[i] for i in rest])
        scores = calibration_scores(cf, batch, held)
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


def observed_cell(X, labels, groups, parts, seed):
    """[safe, true claims kept] by level, above a chance of one half, and of all claims."""
    train, rest = parts
    known, new = X[train], X[rest]
    y, truth = [labels[i] for i in train], pack_labels([labels[i] for i in rest], new)
    more = {"ties": "exclude", "calibration_size": 1, "random_state": seed}
    auto, plain = (compared()[name].set_params(**more) for name in (AUTO, LOGISTIC))
    levels = fit_levels(auto, known, y, PROMISED, groups[train])
    said = plain.fit(known, y, groups[train]).scorer_.confidence(new)
    above = {"fixed": (said, 0.0), "all": (np.zeros(len(said)), np.inf)}
    draws = []
    for order, _ in split(groups[rest], len(rest), seed):  # one answer a question
        draws.append(np.array_split(order, 2))
    out = {}
    for alpha in PROMISED:
        confidence = levels[alpha].scorer_.confidence(new)
        out[str(alpha)] = safe_and_kept(confidence, new, truth, draws, alpha)
    for name, (confidence, limit) in above.items():
        out[name] = safe_and_kept(confidence, new, truth, draws, limit=limit)
    return out


def safe_and_kept(confidence, new, truth, draws, alpha=None, limit=None):
    """Shares of answers without a false claim, and true claims kept, over the draws."""
    risk, found = path_risk(-confidence, new), []
    scores = nonconformity_scores(risk, truth, new.offsets)
    for known, tested in draws:
        if alpha is not None:
            limit = conformal_threshold(np.sort(scores[known]), alpha)
        kept = segment_sum((risk < limit) & (truth == 1), new.offsets)
        found.append([(limit <= scores[tested]).mean(), kept[tested].mean()])
    return np.mean(found, axis=0).tolist()


def observed(chosen):
    """What is safe, and what is kept, on every set."""
    rows = []
    for name in SETS:
        data = load(name)
        X, groups = base(chosen.output, name, data), np.asarray(data.groups)
        splits = fewer(halves(2, groups), chosen)
        cells = {
            f"{name}/{k}": (observed_cell, (X, data.labels, groups, parts, SEED + k))
            for k, parts in enumerate(splits)
        }
        found = compute(chosen.output, "observed", cells, chosen.jobs)
        for way in found[f"{name}/0"]:
            values = [found[f"{name}/{k}"][way] for k in range(len(splits))]
            safe, kept = np.mean(values, axis=0).tolist()
            about = {"data": name, "way": way, "n_questions": len(set(groups.tolist()))}
            rows.append(about | {"safe": safe, "kept": kept})
            print(rows[-1], flush=True)
    write("observed", chosen, {"title": "Safe answers, and what is kept", "rows": rows})


def false_price_cell(X, labels, groups, parts, seed):
    """[true, false claims kept] at each level, by how false claims are priced."""
    train, rest = parts
    known, new = X[train], X[rest]
    y, truth = (pack_labels([labels[i] for i in rows], X[rows]) for rows in parts)
    task = FitTask(0.1, groups[train], np.random.RandomState(seed))
    prices = NeymanPearsonScorer().fit(known, y, task)
    plain = ClassifierScorer(target="hazard")
    q, hazard = 0.5 * prices.true_after_error_, prices.hazard(new)
    ways = {
        "as it is": prices.confidence(new),
        'gain="claims"': -log_price(hazard, new, q),
        'gain="answers"': -log_price(hazard, new, q, np.log1p),
        "gain: number to the power of 3/4": -log_price(
            hazard, new, q, lambda n: n**0.75
        ),
        "logistic regression": plain.fit(known, y, task).confidence(new),
    }
    for c in (0.5, 1.0, 2.0):
        ways[f"gain: true - {c:g} false"] = -price_of(hazard, new, q, gain=c)
    for c in (0.1, 0.3, 1.0):
        ways[f"risk: + {c:g} for each false"] = -price_of(hazard, new, q, risk=c)
    return {way: kept_at_levels(said, new, truth) for way, said in ways.items()}


def price_of(hazard, batch, q, gain=0.0, risk=0.0):
    """`log_price` where expected false claims lower the gain, or add to the risk."""
    own = np.logaddexp(0, hazard)
    path = path_risk(sum_ancestors(own, batch), batch)
    order = np.lexsort((batch.depth, path, batch.problem_of))
    sums = np.cumsum(own[order])
    before = sums - own[order]
    before -= before[batch.offsets[:-1]][batch.problem_of]
    true = np.exp(-path) - q * np.expm1(-np.maximum(path - own, 0))
    gains = np.maximum(true - gain * (1 - true), 1e-9)[order]
    rises = np.exp(hazard[order] - own[order] - before) + risk * (1 - true[order])
    price = np.empty(len(own))
    logs = np.log(np.maximum(rises, 1e-300)), np.log(gains)
    price[order] = minorant_slopes(*logs, batch.problem_of)
    return price


def kept_at_levels(confidence, new, truth):
    """[true, false claims kept per answer] at each level, leaving one answer out."""
    risk = path_risk(-confidence, new)
    scores = nonconformity_scores(risk, truth, new.offsets)
    lowest = leave_one_out_alpha(scores, risk, new.problem_of)
    kept = [lowest <= alpha + 1e-12 for alpha in PROMISED]
    return [[float((k & (truth == y)).sum() / len(new)) for k in kept] for y in (1, 0)]


def false_price(chosen):
    """What fewer false claims cost in true ones, at equal coverage."""
    rows = []
    for name, n_splits in (("felm", 12), ("prmbench", 4)):
        data = load(name)
        X, groups = base(chosen.output, name, data), np.asarray(data.groups)
        splits = fewer(halves(n_splits, groups), chosen)
        cells = {
            f"{name}/{k}": (false_price_cell, (X, data.labels, groups, parts, SEED + k))
            for k, parts in enumerate(splits)
        }
        found = compute(chosen.output, "false-price", cells, chosen.jobs)
        each = [found[f"{name}/{k}"] for k in range(len(splits))]
        asis = np.array([cell["as it is"] for cell in each])
        for way in each[0]:
            kept = np.array([cell[way] for cell in each])
            mean, change = kept.mean(axis=0), (kept - asis) / asis.mean(axis=0)
            error = change.std(axis=0, ddof=1) / np.sqrt(len(each))
            for j, alpha in enumerate(PROMISED):
                row = {"data": name, "way": way, "alpha": alpha}
                for i, what in enumerate(("true", "false")):
                    row |= {what: float(mean[i, j])}
                    row |= {f"{what}_change": float(change[:, i, j].mean())}
                    row |= {f"{what}_error": float(error[i, j])}
                rows.append(row)
                print(row, flush=True)
    write("false-price", chosen, {"title": "The price of false claims", "rows": rows})


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
    words = [sys.executable, "-m", "benchmarks.retention.controls", "--measure"]
    words.append(str(chosen.output))
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


PARTS = {
    "observed": observed,
    "false-price": false_price,
    "coverage": coverage,
    "style": style,
    "resources": resources,
}


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
