"""What few labels give, with and without the public prior.

    python benchmarks/few_labels.py [--draws N] [--output DIR] [--only SET] [--sizes N ...]

Of n labelled answers some train, so many as the filter would take; the others would
calibrate. To see past the luck of one calibration, each trained scorer is calibrated 25
times, on answers drawn from all those that did not train, and tried on the rest. The
prior is made without the family of the data set and without its questions.
"""

import argparse
import json
from functools import partial
from pathlib import Path

import numpy as np
from make_prior import SETS, make
from real_data import NATURAL, with_alternatives

from skdcf import GraphBatch
from skdcf.datasets import fetch_felm, fetch_mr_ben, fetch_perl, fetch_process_bench
from skdcf.features import reasoning_features
from skdcf.graphs import pack_labels
from skdcf.guarantees import NoFalseClaim
from skdcf.ops.conformal import conformal_rank
from skdcf.ops.hard import nonconformity_scores, path_risk
from skdcf.scorers import (
    MixtureScorer,
    NeymanPearsonScorer,
    PublicPrior,
    Task,
    _mixture,
)

ALPHAS = (0.05, 0.1, 0.2)
CALIBRATIONS = 25
# Data, and the family that the prior is made without.
TRIED = {
    "PERL, natural errors": ("perl", lambda: fetch_perl(kind=NATURAL, label="any")),
    "Mr-Ben math": ("mr-ben", lambda: fetch_mr_ben("math")),
    "ProcessBench gsm8k": ("process-bench", lambda: fetch_process_bench("gsm8k")),
    "Mr-Ben biology": ("mr-ben", lambda: fetch_mr_ben("biology")),
    "Mr-Ben chemistry": ("mr-ben", lambda: fetch_mr_ben("chemistry")),
    "FELM": ("felm", fetch_felm),
}
WITH, WITHOUT, AS_IS, OWN = "with prior", "without", "prior as it is", "Neyman-Pearson"
PRIOR_ALONE = "with prior, linear member left out"
HEAVY, NEVER = "linear member at gap 6", "linear member left out"


def read(name):
    """Problems with columns, flat labels, questions."""
    data = TRIED[name][1]()
    graphs = with_alternatives(data.graphs, 0)
    bare = GraphBatch.pack([g.replace(features=None) for g in graphs])
    X = reasoning_features().fit_transform(bare)
    groups = np.unique(np.asarray(data.groups), return_inverse=True)[1]
    return X, pack_labels(data.labels, X), groups


def prior_file(folder, family):
    """The prior without a family, made where it is not there yet."""
    path = Path(folder) / f"prior-without-{family}.json"
    if not path.exists():
        assert family in SETS
        path.write_text(json.dumps(make(family)), encoding="ascii")
    return path


def fitted(path, batch, labels, task):
    """Scorers by name, trained on the same problems."""
    without = MixtureScorer(public_prior=False).fit(batch, labels, task(0))
    blended = MixtureScorer()
    _mixture.PublicPrior = partial(PublicPrior, path)  # in the place of the shipped one
    blended.fit(batch, labels, task(0))
    out = {
        WITHOUT: without.confidence,
        WITH: blended.confidence,
        AS_IS: PublicPrior(path).fit(batch, labels).confidence,
        OWN: NeymanPearsonScorer().fit(batch, labels, task(0)).confidence,
        PRIOR_ALONE: blended.members_["neyman-pearson"].confidence,
        NEVER: without.members_["neyman-pearson"].confidence,
    }

    def heavy(batch):
        lean = np.log(without.selection_.weights) + np.array([0, 4])
        each = np.array([m.confidence(batch) for m in without.members_.values()])
        scaled = (each - without._centre[:, None]) / without._scale[:, None]
        return np.exp(lean - np.logaddexp(*lean)) @ scaled

    return out | {HEAVY: heavy}, blended.selection_.prior


def draw(groups, n, rng):
    """Which n answers are the user's."""
    return rng.permutation(len(groups))[:n]


def one_draw(X, labels, groups, path, n, alpha, seed):
    """[true claims kept, miss] by scorer: means over the calibrations of one training."""
    rng = np.random.RandomState(seed)
    count = NoFalseClaim().calibration_count(n, alpha)
    rows = np.sort(draw(groups, n, rng)[: n - count])
    chosen = np.zeros(len(X), dtype=bool)
    chosen[rows] = True
    known = labels[chosen[X.problem_of]]

    def task(_):
        return Task(alpha, groups[rows], np.random.RandomState(seed))

    scorers, said = fitted(path, X[rows], known, task)
    rest = np.flatnonzero(~np.isin(groups, groups[rows]))
    new = X[rest]
    there = np.zeros(len(X), dtype=bool)
    there[rest] = True
    truth = labels[there[X.problem_of]]
    orders = [rng.permutation(len(rest)) for _ in range(CALIBRATIONS)]
    first = [
        order[np.unique(groups[rest][order], return_index=True)[1]] for order in orders
    ]
    out = {}
    for name, confidence in scorers.items():
        risk = path_risk(-confidence(new), new)
        scores = nonconformity_scores(risk, truth, new.offsets)
        results = []
        for seeded, one_each in enumerate(first):
            shuffled = np.random.RandomState(seeded).permutation(one_each)
            calibrating, tested = shuffled[:count], shuffled[count:]
            k = conformal_rank(count, alpha)
            threshold = np.sort(scores[calibrating])[k - 1] if k else -np.inf
            kept = np.add.reduceat((risk < threshold) & (truth == 1), new.offsets[:-1])
            false = scores[tested] < threshold
            results.append([kept[tested].mean(), false.mean()])
        out[name] = np.mean(results, axis=0)
    return out, said


def main():
    """Run all and write one file per data set."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument(
        "--output", type=Path, default=Path(__file__).parent / "results"
    )
    parser.add_argument("--priors", type=Path, default=Path("/tmp"))
    parser.add_argument("--only", nargs="*", default=list(TRIED))
    parser.add_argument("--sizes", type=int, nargs="*", default=[50, 100, 200, 300])
    chosen = parser.parse_args()
    for name in chosen.only:
        X, labels, groups = read(name)
        path, rows = prior_file(chosen.priors, TRIED[name][0]), []
        for n in (n for n in chosen.sizes if n <= 0.7 * len(np.unique(groups))):
            for alpha in ALPHAS:
                found = [
                    one_draw(X, labels, groups, path, n, alpha, seed)
                    for seed in range(chosen.draws)
                ]
                row = {"data": name, "n": n, "alpha": alpha, "draws": chosen.draws}
                row["left out"] = sum("left out" in said for _, said in found)
                base = np.array([one[WITHOUT][0] for one, _ in found])
                for key in found[0][0]:
                    values = np.array([one[key] for one, _ in found])
                    row[key] = {
                        "kept": round(float(values[:, 0].mean()), 4),
                        "miss": round(float(values[:, 1].mean()), 4),
                        "difference": round(float((values[:, 0] - base).mean()), 4),
                        "error": round(
                            float((values[:, 0] - base).std(ddof=1) / len(base) ** 0.5),
                            4,
                        ),
                    }
                rows.append(row)
                kept = {k: v["kept"] for k, v in row.items() if isinstance(v, dict)}
                share = kept[WITH] / max(kept[WITHOUT], 1e-9) - 1
                print(
                    name, n, alpha, f"{share:+.1%}", kept, row["left out"], flush=True
                )
        file = (
            chosen.output
            / f"few-labels-{name.lower().replace(',', '').replace(' ', '-')}.json"
        )
        file.write_text(json.dumps(rows, indent=1) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
