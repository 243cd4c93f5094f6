"""Measure the default scorer against the least that any scorer has to do.

    python -m benchmarks.speed.scorer_speed [--problems 200000]

"predict" filters generated problems with 31 columns, and is compared with one pass of numpy over
the same arrays: a matrix product and a maximum over the edges. One answer is compared with
``predict_proba`` of scikit-learn's LogisticRegression. Bounds for the default: 60 and 4. All ratios
come from one run.
"""

import argparse
import warnings
from time import process_time

import numpy as np
from sklearn.linear_model import LogisticRegression

from skdcf import CoherentConformalFilter, GraphBatch, HardCF
from skdcf.datasets import make_reasoning_graphs
from skdcf.scorers import ClassifierScorer


def seconds(function, repeats):
    """The least processor time of some repetitions."""
    times = []
    for _ in range(repeats):
        start = process_time()
        function()
        times.append(process_time() - start)
    return min(times)


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
    bare = seconds(one_pass, 3)
    alone = seconds(lambda: regression.predict_proba(graphs[0].features), 200)
    print(
        f"{big.n_claims} claims: one pass {bare:.3f} s; one answer {1e3 * alone:.3f} ms"
    )
    print(f"{'times as long':28}{'fit, s':>8}{'all':>8}{'one answer':>12}")
    for name, scorer in {
        "frequency": "frequency-score",
        "regression, no price": ClassifierScorer(gain=None),
        "regression": ClassifierScorer(),
        "default": "linear",
    }.items():
        make = HardCF if name == "frequency" else CoherentConformalFilter
        fit = seconds(lambda make=make, scorer=scorer: make(scorer).fit(*train), 3)
        cf = make(scorer).fit(*train)
        whole = seconds(lambda cf=cf: cf.predict(fresh()), 2)
        one = seconds(lambda cf=cf: cf.predict([graphs[0]]), 200)
        print(f"{name:28}{fit:8.2f}{whole / bare:8.1f}{one / alone:12.2f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=200_000)
    main(parser.parse_args().problems)
