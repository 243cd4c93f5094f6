"""Random combinations of settings, each held to what it promises.

    python tests/attacks/combinations.py --number 100 --fits 60 --out combinations.jsonl

In this world a filter can go wrong: 60 questions have five answers each that resemble
each other, and scorers remember what they were trained on (one neighbour, a tree, a line
through more columns than rows). The mean loss over fits is compared with alpha; it is computed
from 2,000 new questions, the same for all fits of a combination. A combination stands out
where the mean lies more than 3.5 standard errors above alpha.

Two controls show that a fault would be seen: in one every answer is counted as a question of
its own, in the other the scorer is trained on what calibrates.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.tree import ExtraTreeClassifier

from skdcf import GraphBatch, HardCF
from skdcf.guarantees import ExpectedFalse, NoFalseClaim
from skdcf.labels import pack_labels
from skdcf.scorers import ClassifierScorer

N_QUESTIONS = 60
N_NEW = 2000
N_CLAIMS = 4
N_COLUMNS = 30  # beside the one that says something
LIMIT = 3.5  # standard errors

SCORERS = {
    "one neighbour": lambda: KNeighborsClassifier(1),
    "a tree": lambda: ExtraTreeClassifier(random_state=0),
    "a line": lambda: LogisticRegression(C=1e4, max_iter=200),
}
GUARANTEES = {
    "none": lambda: None,
    "one false": lambda: NoFalseClaim(max_false=1),
    "sure": lambda: NoFalseClaim(delta=0.4),
    "by": lambda: NoFalseClaim(by="kind"),
    "share": lambda: ExpectedFalse(),
}
FEATURES = {"none": lambda: None, "scaled": StandardScaler, "turned": lambda: PCA(8)}


def draw_settings(rng):
    """One combination, by name, such as a control can touch."""
    several = {
        "scorer": list(SCORERS),
        "guarantee": list(GUARANTEES),
        "features": list(FEATURES),
        "alpha": [0.1, 0.15, 0.2],
        "ties": ["exclude", "jitter"],
        "edges": ["given", "none"],
        "online": [False, True],
        "calibration_size": [None, 0.5],
        "n_answers": [5],
        "named_by": ["key", "text", "groups"],
        "door": ["fit", "calibrate", "parts"],
    }
    return {name: values[rng.integers(len(values))] for name, values in several.items()}


def world(rng, n_questions, n_answers, settings, start):
    """Problems and labels; answers to one question share most of what they hold."""
    question = np.repeat(np.arange(n_questions), n_answers)
    shape = (len(question), N_CLAIMS)
    hard = rng.normal(size=n_questions)[question, None]
    fresh = rng.random(shape) < 0.05
    luck = rng.random((n_questions, N_CLAIMS))[question]
    luck = np.where(fresh, rng.random(shape), luck)
    true = luck < 1 / (1 + np.exp(hard - 1.0))
    base = rng.normal(size=(n_questions, N_CLAIMS, N_COLUMNS))[question]
    own = rng.normal(size=(*shape, N_COLUMNS))
    noise = np.where(fresh[..., None], own, base + 0.05 * own)
    says = true + noise[..., 0]
    table = np.concatenate([says[..., None], noise], axis=2).reshape(-1, N_COLUMNS + 1)
    labels = true.astype(int)
    n = len(question)
    parents = np.arange(n * N_CLAIMS).reshape(n, N_CLAIMS)[:, :-1].ravel()
    name = start + question
    metadata = [{"kind": "ab"[i % 2]} for i in name]
    if settings["named_by"] == "key":
        metadata = [m | {"group": f"q{i}"} for m, i in zip(metadata, name, strict=True)]
    texts = [f"question {i}" for i in name]
    batch = GraphBatch.from_arrays(
        table,
        np.arange(n + 1) * N_CLAIMS,
        np.column_stack([parents, parents + 1]),
        metadata=metadata,
        problems=texts if settings["named_by"] == "text" else None,
    )
    return batch, list(labels), true.astype(int), name


def make_filter(settings, estimator, seed):
    return HardCF(
        ClassifierScorer(estimator),
        features=FEATURES[settings["features"]](),
        guarantee=GUARANTEES[settings["guarantee"]](),
        alpha=settings["alpha"],
        ties=settings["ties"],
        edges=settings["edges"],
        online=settings["online"],
        calibration_size=settings["calibration_size"],
        random_state=seed,
    )


def fitted(settings, control, rng, seed):
    """A filter of a combination, with the fault of a control where there is one."""
    batch, labels, _, name = world(
        rng, N_QUESTIONS, settings["n_answers"], settings, start=0
    )
    groups = name if settings["named_by"] == "groups" else None
    estimator = SCORERS[settings["scorer"]]()
    if control == "every answer":
        groups = False
        batch = batch.replace(metadata=[{"kind": m["kind"]} for m in batch.metadata])
    if control == "trained on what calibrates":
        estimator.fit(batch.features, pack_labels(labels, batch))
        settings = settings | {"features": "none", "calibration_size": None}
        cf = make_filter(settings, FrozenEstimator(estimator), seed)
        return cf.fit(batch, labels, groups=groups)
    cf = make_filter(settings, estimator, seed)
    cf.fit(batch, labels, groups=groups)
    if settings["door"] == "fit" or control:
        return cf
    more, labels, _, name = world(
        rng, N_QUESTIONS // 2, settings["n_answers"], settings, start=10**6
    )
    groups = name if settings["named_by"] == "groups" else None
    if settings["door"] == "calibrate":
        return cf.calibrate(more, labels, groups=groups)
    middle = len(more) // 2  # a question may stand in both parts
    parts = []
    for rows in (slice(0, middle), slice(middle, None)):
        of_part = None if groups is None else groups[rows]
        parts.append(cf.calibration_part(more[rows], labels[rows], groups=of_part))
    return cf.calibrate_parts(parts)


def mean_loss(cf, batch, labels):
    guarantee = cf.calibration_.guarantee
    kept = np.concatenate(list(cf.predict(batch)))
    return float(np.mean(guarantee.loss(labels.ravel(), kept, batch.offsets)))


def measure(settings, control, seed, n_fits):
    """Mean loss over fits, its standard error, and the share of claims kept."""
    rng = np.random.default_rng([seed, 1])
    new, _, truth, _ = world(rng, N_NEW, 1, settings, start=2 * 10**6)
    losses = []
    for i in range(n_fits):
        cf = fitted(settings, control, np.random.default_rng([seed, 2, i]), i)
        losses.append(mean_loss(cf, new, truth))
    error = np.std(losses, ddof=1) / n_fits**0.5
    return float(np.mean(losses)), float(error)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, default=100)
    parser.add_argument("--controls", type=int, default=10)
    parser.add_argument("--fits", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=600)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    end = time.monotonic() + 60 * options.minutes

    rng = np.random.default_rng(options.seed)
    combinations = [draw_settings(rng) for _ in range(options.number)]
    jobs = [(i, "every answer") for i in range(options.controls)]
    jobs += [(i, "trained on what calibrates") for i in range(options.controls)]
    jobs += [(i, None) for i in range(options.number)]

    counts = {}
    for i, control in jobs:
        if time.monotonic() > end:
            break
        settings = combinations[i]
        mean, error = measure(settings, control, i, options.fits)
        above = mean > settings["alpha"] + LIMIT * max(error, 1e-9)
        n_above, n = counts.get(control, (0, 0))
        counts[control] = (n_above + above, n + 1)
        entry = {"combination": i, "control": control, "above": bool(above)}
        entry |= {"mean": round(mean, 4), "error": round(error, 4)} | settings
        if options.out:
            with options.out.open("a") as file:
                file.write(json.dumps(entry) + "\n")
        if above or control:
            print(json.dumps(entry), flush=True)
    for control, (n_above, n) in counts.items():
        print(f"{control or 'no fault':<28} {n_above} of {n} above alpha")


if __name__ == "__main__":
    main()
