"""Compare the error rates of all filters with their guarantees over many calibration sets.

    python -m benchmarks.guarantees.validity [--draws D] [--only PART ...] [--output FILE]

The output has one row per setting. ``miss`` is the mean loss on new problems: the proportion of
problems with too many kept false claims, or the mean share of false claims. ``allowed``
is the guaranteed bound. If the numbers of covered test problems should have a beta-binomial
distribution, ``law`` is the p-value of a chi-square test. A row fails if its miss exceeds the
bound by more than four standard errors, or if its p-value is below 1e-4. The rows of the part
"must fail" contain deliberate mistakes and must fail.

Finished rows are cached next to the output.
"""

import argparse
import warnings
from functools import cache
from pathlib import Path

import numpy as np
from scipy.stats import betabinom, chi2
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from benchmarks import RESULTS
from benchmarks.cells import compute
from skdcf import (
    BoostedIndependentFactuality,
    CoherentConformalFilter,
    GraphBatch,
    HardCF,
    IndependentFactuality,
    ReasoningGraph,
    SingleFeatureCF,
    XGBoostCF,
)
from skdcf._arrays import offsets_of, ranges
from skdcf.datasets import make_reasoning_graphs
from skdcf.exceptions import CalibrationWarning
from skdcf.guarantees import ExpectedFalse, NoFalseClaim, PathRisks
from skdcf.ops.conformal import conformal_rank
from skdcf.scorers import ConfTrScorer
from skdcf.uses import copy_at

N_TEST = 20
FILTERS = {
    "HardCF, frequency": HardCF("frequency-score"),
    "HardCF, logistic": HardCF(LogisticRegression(max_iter=3000), random_state=0),
    "HardCF, linear": HardCF(ConfTrScorer(), random_state=0),
    "IndependentFactuality": IndependentFactuality(),
    "SingleFeatureCF": SingleFeatureCF("nx_reachability", beta_mix=0.5),
    "XGBoostCF": XGBoostCF(random_state=0),
    "CoherentConformalFilter, linear": CoherentConformalFilter(
        "linear", random_state=0
    ),
    "CoherentConformalFilter, auto": CoherentConformalFilter(random_state=0),
    "BoostedIndependentFactuality": BoostedIndependentFactuality(random_state=0),
}
LEVELS = ((5, 0.5), (19, 0.05), (50, 0.1), (200, 0.005), (200, 0.25), (2000, 0.02))


def by_length(batch):
    """The group of each problem: a third of them is long."""
    return np.where(batch.sizes > 4, "long", "short")


GUARANTEES = {
    "no false claim": None,
    "at most 1": NoFalseClaim(max_false=1),
    "delta .1": NoFalseClaim(delta=0.1),
    "by group": NoFalseClaim(by=by_length),
    "by group, delta .1": NoFalseClaim(delta=0.1, by=by_length),
    "share": ExpectedFalse(),
    "share by group": ExpectedFalse(by=by_length),
}


# --- problems


@cache
def problems(kind):
    """(graphs, labels) with scores of a kind; the first 300 are for training."""
    n = 8000 if kind == "continuous" else 6000
    graphs, labels = make_reasoning_graphs(n, "felm", random_state=1, return_X_y=True)
    rng = np.random.default_rng(2)
    features = np.array(graphs.features)
    names = graphs.feature_names
    if kind == "continuous":
        wrong = [i for i, y in enumerate(labels) if not np.all(y)]
        graphs, labels = graphs[wrong], [labels[i] for i in wrong]
        features = np.array(graphs.features)
        features += rng.normal(size=features.shape)
    elif kind == "constant":
        features[:] = 1.0
    elif kind == "float32":
        features = (features + rng.normal(size=features.shape)).astype(np.float32)
    elif kind == "copied":
        rows = np.arange(len(graphs)) // 60 * 60
        return graphs[rows], [labels[i] for i in rows]
    elif kind == "unknown":
        labels = [np.where(rng.random(len(y)) < 0.1, -1, y) for y in labels]
    elif kind != "tied":
        return sized_problems(int(kind), n, rng)
    return graphs.replace_features(features.astype(float), names), labels


def sized_problems(n_claims, n, rng):
    """Chains of so many claims, with one feature."""
    n = min(n, 200_000 // n_claims)
    chain = [(v, v + 1) for v in range(n_claims - 1)]
    names = ["frequency-score"]
    graphs = [
        ReasoningGraph(rng.normal(size=(n_claims, 1)), chain, feature_names=names)
        for _ in range(n)
    ]
    labels = [(rng.random(n_claims) > 1 / n_claims).astype(int) for _ in range(n)]
    return GraphBatch.from_graphs(graphs), labels


# --- one setting


@cache
def fitted(name, kind, ties):
    """A fitted filter, and what it says of all problems that it has not seen."""
    graphs, labels = problems(kind)
    cf = clone(FILTERS[name]).set_params(ties=ties, random_state=0)
    cf.fit(graphs[:300], labels[:300])
    risk = np.concatenate(list(cf.path_risk(graphs[300:])))
    return cf, graphs[300:], labels[300:], risk


def measure(name, ties, guarantee, kind, n, alpha, draws, *, truth=None):
    """Loss of each test problem of each draw, shape (draws, N_TEST)."""
    cf, pool, known, risk = fitted(name, kind, ties)
    filter = copy_at(cf, alpha).set_params(guarantee=guarantee)
    filter.calibrate(pool, known)
    part, guarantee = (
        filter.calibration_part(pool, known),
        filter.calibration_.guarantee,
    )
    flat = np.concatenate(truth or known)
    claims = guarantee.path_risks(risk, pool)
    rng = np.random.default_rng(n)
    losses = np.empty((draws, N_TEST))
    for d in range(draws):
        rows = rng.permutation(len(pool))[: n + 6 * N_TEST]
        cal, new = rows[:n], rows[n:]
        if not len(new):
            raise ValueError(f"n must be below {len(pool)}, got {n}")
        new = np.resize(new, N_TEST)
        filter.calibrate_parts([part[cal]])
        some = part_of_claims(claims, new)
        t = filter.calibration_.thresholds(some, guarantee.level(None, alpha))
        kept = some.path_risk < np.repeat(t, np.diff(some.offsets))
        losses[d] = guarantee.loss(flat[rows_of(claims, new)], kept, some.offsets)
    return losses


def rows_of(claims, problems):
    """Rows of the claims of some problems."""
    starts, sizes = claims.offsets[problems], np.diff(claims.offsets)[problems]
    return ranges(starts, sizes)


def part_of_claims(claims, rows):
    """Claims of some problems with their groups."""
    groups = None if claims.groups is None else [claims.groups[i] for i in rows]
    offsets = offsets_of(np.diff(claims.offsets)[rows])
    return PathRisks(claims.path_risk[rows_of(claims, rows)], offsets, groups)


def law_of(losses, n, alpha, delta=None):
    """P-value of the beta-binomial law of the number of covered problems."""
    k = conformal_rank(n, alpha, delta)
    if k == 0:
        return 1.0 if not losses.any() else 0.0
    m = losses.shape[1]
    found = np.bincount((losses == 0).sum(axis=1), minlength=m + 1)
    expected = betabinom.pmf(np.arange(m + 1), m, n + 1 - k, k) * len(losses)
    cuts, total = [0], 0.0
    for i, e in enumerate(expected):
        total += e
        if total >= 5 and expected[i + 1 :].sum() >= 5:
            cuts.append(i + 1)
            total = 0.0
    if len(cuts) < 2:
        return 1.0
    f, e = np.add.reduceat(found, cuts), np.add.reduceat(expected, cuts)
    return float(chi2.sf(((f - e) ** 2 / e).sum(), len(cuts) - 1))


def row(losses, allowed, law=None):
    """What a row says."""
    per_draw = losses.mean(axis=1)
    error = per_draw.std(ddof=1) / np.sqrt(len(per_draw))
    miss = float(per_draw.mean())
    fails = miss > allowed + 4 * error + 1e-12 or (law is not None and law < 1e-4)
    return {
        "miss": miss,
        "error": float(error),
        "allowed": allowed,
        "law": law,
        "fails": bool(fails),
        "draws": len(losses),
    }


# --- parts: name of a row -> function of the number of draws


def law_rows():
    """Every filter, continuous scores: the exact law, not only the mean."""
    for name in FILTERS:
        for label in ("no false claim", "delta .1"):
            for ties in ("exclude", "jitter"):
                for n, alpha in LEVELS:
                    yield f"{name} | {label} | {ties} | {n} | {alpha}", law_row


def law_row(key, draws):
    """One filter, one law."""
    name, label, ties, n, alpha = key
    guarantee = GUARANTEES[label]
    n, alpha = int(n), float(alpha)
    losses = measure(name, ties, guarantee, "continuous", n, alpha, draws)
    delta = None if guarantee is None else guarantee.delta
    # The fewest problems that reach the rank calibrate.
    rank = conformal_rank(n, alpha, delta)
    n = next(m for m in range(n + 1) if conformal_rank(m, alpha, delta) == rank)
    return row(losses, alpha, law_of(losses, n if rank else 0, alpha, delta))


def mean_rows():
    """Every guarantee, every kind of scores: never more than promised."""
    kinds = ("continuous", "tied", "constant", "float32", "copied", "1", "200")
    for kind in kinds:
        for label in GUARANTEES:
            for ties in ("exclude", "jitter"):
                for n, alpha in ((9, 0.1), (50, 0.1), (200, 0.05)):
                    name = f"{kind} | {label} | {ties} | {n} | {alpha}"
                    if not (kind in ("1", "200") and "group" in label):
                        yield name, mean_row
    for label in GUARANTEES:
        yield f"unknown | {label} | exclude | 100 | 0.1", mean_row


def mean_row(key, draws):
    """One guarantee, one kind of scores."""
    kind, label, ties, n, alpha = key
    truth = problems("tied")[1][300:] if kind == "unknown" else None
    setting = "HardCF, frequency", ties, GUARANTEES[label], kind, int(n), float(alpha)
    losses = measure(*setting, draws, truth=truth)
    return row(losses, float(alpha))


def group_rows():
    """Within each group."""
    for n in (500, 2000):
        yield f"{n} | 0.1", group_row


def group_row(key, draws):
    """The worst of the groups."""
    n, alpha = key
    graphs, labels = problems("tied")
    cf = HardCF("frequency-score", alpha=float(alpha), ties="jitter", random_state=0)
    cf.set_params(guarantee=NoFalseClaim(by=by_length)).fit(graphs[:300], labels[:300])
    pool, flat = graphs[300:], np.concatenate(labels[300:])
    part, guarantee = cf.calibration_part(pool, labels[300:]), cf.calibration_.guarantee
    claims = guarantee.path_risks(np.concatenate(list(cf.path_risk(pool))), pool)
    member = {"all": np.ones(len(pool), bool)}
    for g in ("long", "short"):
        member[g] = np.array([g == group for group in claims.groups])
    rng, found = np.random.default_rng(0), []
    for _ in range(draws):
        order = rng.permutation(len(pool))
        cf.calibrate_parts([part[order[: int(n)]]])
        new = order[int(n) :]
        some = part_of_claims(claims, new)
        t = cf.calibration_.thresholds(some, float(alpha))
        kept = some.path_risk < np.repeat(t, np.diff(some.offsets))
        loss = guarantee.loss(flat[rows_of(claims, new)], kept, some.offsets)
        found.append([loss[rows[new]].mean() for rows in member.values()])
    rows = [row(np.array(found)[:, [j]], float(alpha)) for j in range(len(member))]
    return max(rows, key=lambda r: (r["miss"] - r["allowed"]) / max(r["error"], 1e-9))


def delta_rows():
    """The share of calibration sets that cover less than 1 - alpha."""
    for n, alpha, delta in ((50, 0.1, 0.1), (200, 0.05, 0.05), (1000, 0.1, 0.01)):
        yield f"{n} | {alpha} | {delta}", delta_row


def delta_row(key, draws):
    """Coverage given a calibration set, of scores whose distribution is known."""
    n, alpha, delta = int(key[0]), float(key[1]), float(key[2])
    rng = np.random.default_rng(0)
    X, y = rng.random((2 * n, 1)), np.zeros(2 * n)
    cf = HardCF(0, alpha=alpha, guarantee=NoFalseClaim(delta=delta))
    cf.fit(X, np.append(y[:-1], 1))
    bad = []
    for _ in range(8 * draws):
        # Each claim is false and its confidence uniform, so coverage is known exactly.
        cf.calibrate(rng.random((n, 1)), y[:n].astype(bool))
        bad.append(1 + cf.threshold_ > alpha)  # share of confidences above -threshold
    return row(np.array(bad, float)[:, None], delta)


def failing_rows():
    """What must be seen to fail."""
    yield "calibrated on training problems | 300 | 0.1", training_row
    yield "rank clamped to 1 | 19 | 0.01", rank_row
    yield "rank clamped to 1 | 5 | 0.1", rank_row
    yield "quantile by 'higher' of numpy | 137 | 0.5", rank_row
    yield "quantile by 'higher' of numpy | 9 | 0.1", rank_row
    yield "ties kept | 19 | 0.1", ties_row
    yield "only new problems of high frequency | 200 | 0.1", shift_row


def training_row(key, draws):
    """A forest that is calibrated on what it was trained on."""
    from sklearn.ensemble import RandomForestClassifier

    graphs, labels = problems("tied")
    forest = RandomForestClassifier(n_estimators=30, random_state=0)
    losses = []
    for seed in range(10):
        rows = np.random.default_rng(seed).permutation(len(graphs))
        cal, new = rows[:300], rows[300:1300]
        cf = HardCF(forest, alpha=0.1, random_state=0)
        cf.fit(graphs[cal], [labels[i] for i in cal])
        cf.calibrate(graphs[cal], [labels[i] for i in cal])
        mask, flat = np.concatenate(cf.predict(graphs[new])), [labels[i] for i in new]
        offsets = graphs[new].offsets
        losses.append(NoFalseClaim().loss(np.concatenate(flat), mask, offsets))
    return row(np.array(losses, float), 0.1)


def rank_row(key, draws):
    """Uniform scores, and a rank that is not ours."""
    what, n, alpha = key[0], int(key[1]), float(key[2])
    scores = np.random.default_rng(0).random((200 * draws // (1 + n // 50), n + N_TEST))
    cal, new = np.sort(scores[:, :n], axis=1), scores[:, n:]
    t = cal[:, 0]
    if what.startswith("quantile"):
        q = (n - np.ceil((1 - alpha) * (n + 1)) + 1) / n
        t = np.quantile(cal, q, axis=1, method="higher")
    losses = (new < t[:, None]).astype(float)
    return row(losses, alpha, law_of(losses, n, alpha))


def ties_row(key, draws):
    """The tie rule of published code."""
    filter = HardCF("frequency-score", ties="include")
    graphs, labels = problems("tied")
    cf = filter.fit(graphs[:300], labels[:300])
    rng, losses = np.random.default_rng(0), []
    flat = np.concatenate(labels)
    risk = np.concatenate(list(cf.path_risk(graphs)))
    worst = np.full(len(graphs), np.inf)
    np.minimum.at(worst, graphs.problem_of[flat == 0], risk[flat == 0])
    for _ in range(draws):
        rows = rng.permutation(len(graphs))[: 19 + N_TEST]
        t = np.sort(worst[rows[:19]])[1]
        losses.append(worst[rows[19:]] <= t)
    return row(np.array(losses, float), 0.1)


def shift_row(key, draws):
    """New problems have more confident claims, and by does not say so."""
    graphs, labels = problems("tied")
    cf = HardCF("frequency-score", ties="jitter", alpha=0.1, random_state=0)
    cf.fit(graphs[:300], labels[:300])
    frequency = graphs.features[:, graphs.feature_names.index("frequency-score")]
    mean = np.bincount(graphs.problem_of, frequency) / graphs.sizes
    new = 300 + np.flatnonzero(mean[300:] > np.median(mean))
    part = cf.calibration_part(graphs[300:], labels[300:])
    flat = np.concatenate([labels[i] for i in new])
    rng, losses = np.random.default_rng(0), []
    for _ in range(min(draws, 100)):
        cf.calibrate_parts([part[rng.permutation(len(part))[:200]]])
        mask = np.concatenate(cf.predict(graphs[new]))
        losses.append(NoFalseClaim().loss(flat, mask, graphs[new].offsets))
    return row(np.array(losses, float), 0.1)


PARTS = {
    "law": law_rows,
    "mean": mean_rows,
    "groups": group_rows,
    "delta": delta_rows,
    "must fail": failing_rows,
}


# --- the command


def computed(name, function, draws):
    """The record of a row."""
    warnings.simplefilter("ignore", CalibrationWarning)
    return {"name": name, **function(name.split(" | "), draws)}


def run(parts, draws, folder):
    """All rows, those of an earlier run included."""
    records = []
    for part in parts:
        cells = {
            name: (computed, (name, function, draws))
            for name, function in PARTS[part]()
        }
        found = compute(folder, f"validity-{part}", cells, n_jobs=1)
        records += [{"part": part, **record} for record in found.values()]
    return records


def table(records):
    """Parts with their numbers of rows and failures, and the rows that matter."""
    lines = [
        "part        rows    draws  failures  largest excess (std. errors)  least law p"
    ]
    for part in PARTS:
        rows = [r for r in records if r["part"] == part]
        if not rows:
            continue
        excess = max((r["miss"] - r["allowed"]) / max(r["error"], 1e-9) for r in rows)
        laws = [r["law"] for r in rows if r["law"] is not None]
        least = f"{min(laws):.2g}" if laws else "-"
        lines.append(
            f"{part:10}  {len(rows):4d}  {sum(r['draws'] for r in rows):7d}  "
            f"{sum(r['fails'] for r in rows):8d}  {excess:28.2f}  {least:>11}"
        )
    for part in ("must fail", "groups", "delta"):
        rows = [r for r in records if r["part"] == part]
        lines += ["", f"{part}:"] if rows else []
        for r in rows:
            lines.append(
                f"  {r['name']:48}  miss {r['miss']:.4f} +- {r['error']:.4f}, allowed "
                f"{r['allowed']:.4f}: {'fails' if r['fails'] else 'holds'}"
            )
    wrong = [r for r in records if r["fails"] and r["part"] != "must fail"]
    lines += [
        "",
        f"failures where the promise is absolute: {len(wrong) or 'none'}",
    ]
    lines += [f"  {r['part']}: {r['name']}: {r}" for r in wrong]
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=1000, help="draws per row")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument(
        "--output", type=Path, default=RESULTS, help="folder for results"
    )
    chosen = parser.parse_args()
    text = table(run(chosen.only, chosen.draws, chosen.output))
    (chosen.output / "validity.txt").write_text(text + "\n", encoding="utf-8")
    print(text)
