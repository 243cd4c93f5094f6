"""Coverage within the groups of published data, with one threshold and with ``by=``.

    python benchmarks/groups.py [--splits S]

Needs the data (SKDCF_DATA, or a network). Half of the questions train, a quarter calibrates
and a quarter tests; scored by logistic regression on the built-in features; alpha is 0.1.
The kinds of PRMBench reveal labels: they are no groups to use, and show what may differ.
"""

import argparse
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdcf import HardCF
from skdcf.datasets import fetch_felm, fetch_mr_ben, fetch_prmbench, fetch_refchecker
from skdcf.features import reasoning_features
from skdcf.guarantees import NoFalseClaim
from skdcf.metrics import evaluate_filter

ALPHA = 0.1
MOST = 1400
REFCHECKER = partial(fetch_refchecker, ["accurate_context", "noisy_context"])
DATA = {
    "FELM, domains": (fetch_felm, "domain"),
    "Mr-Ben (math), models": (partial(fetch_mr_ben, "math"), "model"),
    "RefChecker, contexts": (REFCHECKER, "context"),
    "RefChecker, models": (REFCHECKER, "model"),
    "PRMBench (train), kinds": (partial(fetch_prmbench, "train", "all"), "kind"),
}


def load(fetch):
    """(graphs with features, labels, groups): at most `MOST` problems."""
    data = fetch()
    rows = np.random.default_rng(0).permutation(len(data.graphs))[:MOST]
    graphs = reasoning_features().fit_transform(data.graphs[np.sort(rows)])
    return graphs, [data.labels[i] for i in np.sort(rows)], data.groups[np.sort(rows)]


def halves(groups, seed):
    """Positions of two halves that share no question."""
    names, codes = np.unique(groups, return_inverse=True)
    first = np.random.default_rng(seed).permutation(len(names)) < len(names) / 2
    return np.flatnonzero(first[codes]), np.flatnonzero(~first[codes])


def compare(graphs, labels, groups, by, n_splits):
    """Mean coverage per group over the splits, for both filters, and one interval."""
    found = {"one": {}, "by": {}}
    for seed in range(n_splits):
        train, rest = halves(groups, seed)
        cal, test = (rest[p] for p in halves(groups[rest], seed))
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
        base = HardCF(model, alpha=ALPHA, ties="jitter", random_state=0)
        base.fit(graphs[train], [labels[i] for i in train], groups[train])
        for name, guarantee in (
            ("one", None),
            ("by", NoFalseClaim(by=by, unseen="empty")),
        ):
            base.set_params(guarantee=guarantee)
            base.calibrate(graphs[cal], [labels[i] for i in cal])
            report = evaluate_filter(
                base,
                graphs[test],
                [labels[i] for i in test],
                [ALPHA],
                by=by,
                groups=groups[test],
            )
            for group, one in report.groups.items():
                interval = one.coverage_interval[0]
                row = (one.n_problems, one.coverage[0], *interval, one.retention[0])
                found[name].setdefault(group, []).append(row)
    return {k: {g: np.mean(v, axis=0) for g, v in d.items()} for k, d in found.items()}


def lines_of(name, found):
    """A table: coverage and retention per group."""
    out = [f"{name}", f"  {'group':30} problems   one threshold            by group"]
    for group, (n, coverage, low, high, kept) in sorted(found["one"].items(), key=str):
        _, own, a, b, own_kept = found["by"][group]
        out.append(
            f"  {group!s:30} {n:8.0f}   {coverage:.3f} ({low:.2f}-{high:.2f}) {kept:5.2f}"
            f"   {own:.3f} ({a:.2f}-{b:.2f}) {own_kept:5.2f}"
            + ("   missed by one threshold" if high < 1 - ALPHA else "")
            + ("   MISSED by group" if b < 1 - ALPHA else "")
        )
    return out


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=10)
    folder = Path(__file__).resolve().parent / "results"
    parser.add_argument("--output", type=Path, default=folder)
    chosen = parser.parse_args()
    text = [
        f"coverage at alpha = {ALPHA} (95 % interval by question, one split) and true claims",
        f"kept; means of {chosen.splits} splits, at most {MOST} answers per data set",
    ]
    loaded = {}
    for name, (fetch, by) in DATA.items():
        if fetch not in loaded:
            loaded = {fetch: load(fetch)}
        text += ["", *lines_of(name, compare(*loaded[fetch], by, chosen.splits))]
        print("\n".join(text[-12:]), flush=True)
        (chosen.output / "groups.txt").write_text(
            "\n".join(text) + "\n", encoding="utf-8"
        )
