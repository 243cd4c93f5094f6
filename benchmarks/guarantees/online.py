"""Compare decisions on incomplete answers with `predict`, and measure their coverage and cost.

``python -m benchmarks.guarantees.online`` passes each claim of 10,000 random graphs through
`stream`. It compares the decisions with those of `predict`, and the coverage with the theoretical
band for this number of calibration problems. The score of a claim depends on later claims, so
decisions on incomplete answers are valid only with ``online=True``. The program also measures the
cost of this setting, as the true claims kept per problem for whole and incomplete answers over new
splits.
"""

import numpy as np
from scipy.stats import betabinom

from skdcf import CoherentConformalFilter, HardCF
from skdcf.datasets import fetch_process_bench, make_reasoning_graphs
from skdcf.evaluation import coverage_score, retention_score
from skdcf.features import reasoning_features
from skdcf.ops.conformal import conformal_rank
from skdcf.scorers import ClassifierScorer

ALPHAS = (0.02, 0.05, 0.1, 0.2)
N_SPLITS = 10


def main():
    compare_stream(10_000)
    generated = make_reasoning_graphs(600, random_state=1, return_X_y=True)
    measure_price("generated", *generated)
    published = fetch_process_bench("gsm8k")
    measure_price(
        "ProcessBench (gsm8k)",
        published.graphs,
        published.labels,
        reasoning_features(),
    )


def looks_ahead(batch):
    """The first column, less the number of claims that build on the claim.

    Both are whole numbers, and with ties more is covered than the band says. A column of
    fractions tells claims apart.
    """
    built_on = np.bincount(batch.edges[:, 0], minlength=batch.n_claims)
    return batch.features[:, 0] - 0.3 * built_on + 0.1 * np.tanh(batch.features[:, 23])


def compare_stream(n):
    """Stream ``n`` problems, and print what differs and what is covered."""
    n_calibration, alpha = 999, 0.1
    X, y = make_reasoning_graphs(n_calibration + n, random_state=0, return_X_y=True)
    # Fractions with few digits are not taken for half precision.
    X = X.replace_features(X.features.round(4), X.feature_names)
    cf = HardCF(looks_ahead, alpha=alpha, online=True)
    cf.fit(X[:n_calibration], y[:n_calibration])
    new, labels = X[n_calibration:], y[n_calibration:]
    masks = cf.predict(new)
    streamed = [np.array(list(stream(cf, graph)), dtype=bool) for graph in new]
    differ = sum(not np.array_equal(a, b) for a, b in zip(masks, streamed, strict=True))
    k = conformal_rank(cf.n_calibration_, alpha)
    law = betabinom(n, cf.n_calibration_ + 1 - k, k)
    low, high = law.ppf([0.005, 0.995]) / n
    covered = coverage_score(labels, streamed)
    print(
        f"of {n:,} random graphs with {new.n_claims:,} claims, {differ} are "
        f"decided otherwise than by predict, and {100 * covered:.1f} % have no false claim, "
        f"where {100 - 100 * alpha:.0f} % was promised (with {cf.n_calibration_} that "
        f"calibrate, 99 % of such shares lie between {100 * low:.1f} and {100 * high:.1f} %)"
    )


def stream(cf, graph):
    """The decisions of a filter that is given one claim after the other."""
    parent, child = graph.edges.T
    claims = (
        {"parents": parent[child == v].tolist(), "features": row}
        for v, row in enumerate(graph.features)
    )
    return cf.stream(claims, feature_names=graph.feature_names)


def measure_price(name, X, y, features=None):
    """Print true claims kept and coverage, of whole answers and while written."""
    kept = np.zeros((N_SPLITS, 2, len(ALPHAS), 2))
    for split in range(N_SPLITS):
        order = np.random.default_rng(split).permutation(len(X))
        train, test = order[: len(X) // 2], order[len(X) // 2 :]
        for i, online in enumerate((False, True)):
            cf = CoherentConformalFilter(
                ClassifierScorer(),
                features=features,
                online=online,
                random_state=split,
            )
            cf.fit(X[train], [y[j] for j in train])
            truth, risks = [y[j] for j in test], cf.path_risk(X[test])
            for j, alpha in enumerate(ALPHAS):
                mask = [risk < cf.threshold(alpha) for risk in risks]
                kept[split, i, j] = (
                    retention_score(truth, mask),
                    coverage_score(truth, mask),
                )
    print(f"{name}: true claims kept (coverage) at {ALPHAS}, {N_SPLITS} splits")
    for title, rows in zip(("whole", "online"), kept.mean(axis=0), strict=True):
        print(f"  {title:7s}", *(f"{r:6.3f} ({c:.3f})" for r, c in rows))


if __name__ == "__main__":
    main()
