"""Compare `auto` with the best baseline on data where training has no advantage.

The problems are generated in five settings. At each level, the best baseline is selected from the
results. The error is the standard error of the mean difference over independent draws.
"""

import argparse

import numpy as np

from benchmarks.methods import AUTO, FREQUENCY, LOGISTIC, TIES, logistic
from skdcf import CoherentConformalFilter, HardCF, XGBoostCF
from skdcf.datasets import make_reasoning_graphs
from skdcf.evaluation import compare_filters
from skdcf.scorers import ClassifierScorer

ALPHAS = [0.05, 0.1, 0.2]
N_TEST = 400


def filters():
    """`auto` and the baselines that it must not fall behind."""
    return {
        FREQUENCY: HardCF("frequency-score", **TIES),
        LOGISTIC: logistic(),
        "CF, logistic regression, coherent": HardCF(
            ClassifierScorer(target="coherent"), **TIES
        ),
        "CF, XGBoost": XGBoostCF(**TIES),
        AUTO: CoherentConformalFilter("stack", **TIES),
    }


def independent_features(graphs, labels, rng):
    """Features of another claim, drawn at random."""
    shuffled = graphs.features[rng.permutation(graphs.n_claims)]
    return graphs.replace_features(shuffled, graphs.feature_names), labels


def frequency_only(graphs, labels, rng):
    """Noise in place of all features but the frequency."""
    features = rng.normal(size=graphs.features.shape)
    column = graphs.feature_names.index("frequency-score")
    features[:, column] = graphs.features[:, column]
    return graphs.replace_features(features, graphs.feature_names), labels


def unchanged(graphs, labels, rng):
    """As generated."""
    return graphs, labels


def draws(kind, n_train, n_draws, change, rng):
    """Problems, labels and independent splits."""
    n = n_draws * (n_train + N_TEST)
    seed = int(rng.integers(2**31))
    graphs, labels = make_reasoning_graphs(n, kind, random_state=seed, return_X_y=True)
    graphs, labels = change(graphs, labels, rng)
    rows = np.arange(n).reshape(n_draws, -1)
    return graphs, labels, [(row[:n_train], row[n_train:]) for row in rows]


def all_but_three_clean(kind, n_draws, rng):
    """Training parts with three problems that have an error."""
    graphs, labels, _ = draws(kind, 1200, n_draws, unchanged, rng)
    wrong = np.array([not np.all(y) for y in labels])
    cv = []
    for rows in np.arange(len(labels)).reshape(n_draws, -1):
        clean, flawed = rows[~wrong[rows]], rows[wrong[rows]]
        cv.append((np.r_[clean[:197], flawed[:3]], np.r_[rows[-N_TEST:]]))
    return graphs, labels, [(np.setdiff1d(a, b), b) for a, b in cv]


def main(n_draws):
    """Print a line per setting and level."""
    rng = np.random.default_rng(0)
    settings = {
        "labels independent of the features": draws(
            "math", 200, n_draws, independent_features, rng
        ),
        "only the frequency informative": draws(
            "felm", 200, n_draws, frequency_only, rng
        ),
        "60 training problems, MATH-like": draws("math", 60, n_draws, unchanged, rng),
        "60 training problems, FELM-like": draws("felm", 60, n_draws, unchanged, rng),
        "all training problems clean but three": all_but_three_clean(
            "math", n_draws, rng
        ),
    }
    for name, (graphs, labels, cv) in settings.items():
        report = compare_filters(
            filters(),
            graphs,
            labels,
            ALPHAS,
            cv=cv,
            protocol="leave-one-out",
            n_jobs=2,
            random_state=0,
        )
        kept = report.retention  # filters, splits, alphas
        print(f"\n{name}")
        for j, alpha in enumerate(ALPHAS):
            means = kept[:-1, :, j].mean(axis=1)
            best = int(np.argmax(means))
            gap = kept[-1, :, j] - kept[best, :, j]
            error = gap.std(ddof=1) / np.sqrt(len(gap))
            share = kept[-1, :, j].mean() / max(means[best], 1e-12) - 1
            good = "ok" if share >= -0.03 or gap.mean() >= -error else "LOSS"
            print(
                f"  alpha {alpha:.2f}: auto {kept[-1, :, j].mean():.2f}, best baseline "
                f"{means[best]:.2f} ({list(filters())[best]}): {share:+.1%}, "
                f"difference {gap.mean():+.3f} +- {error:.3f}  {good}"
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=12)
    main(parser.parse_args().draws)
