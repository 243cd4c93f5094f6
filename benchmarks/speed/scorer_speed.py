"""Measure the default scorer against the least that any scorer has to do.

    python -m benchmarks.speed.scorer_speed

"predict" filters 200,000 generated problems with 31 columns, and is compared with one pass of numpy
over the same arrays: a matrix product and a maximum over the edges. One answer is compared with
``predict_proba`` of scikit-learn's LogisticRegression. Bounds for the default: 60 and 4. All ratios
come from one run.
"""

import warnings
from time import process_time

import numpy as np
from sklearn.linear_model import LogisticRegression

from skdcf import CoherentConformalFilter, GraphBatch, HardCF
from skdcf.datasets import make_reasoning_graphs
from skdcf.scorers import ClassifierScorer


def seconds(repeats, *functions):
    """The least processor time of each function, called in turn."""
    times = np.empty((repeats, len(functions)))
    for row in times:
        for i, function in enumerate(functions):
            start = process_time()
            function()
            row[i] = process_time() - start
    return times.min(axis=0)


def main(n_problems):
    """Print the ratios."""
    warnings.simplefilter("ignore")
    graphs, y = make_reasoning_graphs(20_000, random_state=0, return_X_y=True)
    big = graphs[np.resize(np.arange(len(graphs)), n_problems)]
    weights = np.random.default_rng(0).normal(size=big.n_features)

    def one_pass():
        risk = big.features @ weights
        path_risk = risk.copy()
        np.maximum.at(path_risk, big.edges[:, 1], risk[big.edges[:, 0]])

    def fresh():
        arrays = big.features, big.offsets, big.edges
        return GraphBatch.from_arrays(*arrays, feature_names=big.feature_names)

    train = graphs[:500], y[:500]
    flat = np.concatenate(y[:500])
    regression = LogisticRegression(max_iter=5000).fit(train[0].features, flat)
    print(f"{'times as long':28}{'fit, s':>8}{'all':>8}{'one answer':>12}")
    for name, scorer in {
        "frequency": "frequency-score",
        "regression, no price": ClassifierScorer(gain=None),
        "regression": ClassifierScorer(),
        "default": "linear",
    }.items():
        make = HardCF if name == "frequency" else CoherentConformalFilter
        cf = make(scorer)
        (fit,) = seconds(3, lambda cf=cf: cf.fit(*train))
        whole, bare = seconds(3, lambda cf=cf: cf.predict(fresh()), one_pass)
        one, alone = seconds(
            1000,
            lambda cf=cf: cf.predict([graphs[0]]),
            lambda: regression.predict_proba(graphs[0].features),
        )
        print(f"{name:28}{fit:8.2f}{whole / bare:8.1f}{one / alone:12.2f}", flush=True)


if __name__ == "__main__":
    main(200_000)
