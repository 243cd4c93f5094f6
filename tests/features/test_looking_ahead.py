"""Columns that depend on later claims: those declared, compared prefix by prefix."""

import numpy as np
import pytest

from skdcf import ReasoningGraph
from skdcf.features import (
    AgreementFeatures,
    ContextFeatures,
    DomainIndicators,
    GraphFeatures,
    TextFeatures,
    reasoning_features,
)
from skdcf.ops.graph_metrics import METRICS

CLAIMS = [
    "There are 3 pens at $4.",
    "So 3 * 4 = 12.",
    "Therefore the total is 3 * 4 = 13.",
    "Let x be the price.",
    "With tax it is 12 + 5 = 17 dollars.",
    "The answer is (B) 17.",
    "Hence, the answer is 12.",
]

TRANSFORMERS = [
    GraphFeatures(list(METRICS)),
    TextFeatures(),
    AgreementFeatures(),
    ContextFeatures(),
    DomainIndicators(),
    reasoning_features(),
]


@pytest.fixture(scope="module")
def graphs():
    rng = np.random.default_rng(0)
    graphs = []
    for i in range(40):
        n = int(rng.integers(1, 8))
        edges = [(u, v) for v in range(n) for u in range(v) if rng.random() < 0.4]
        graphs.append(
            ReasoningGraph(
                rng.random((n, 2)),
                edges,
                feature_names=["frequency-score", "length"],
                claims=rng.choice(CLAIMS, n).tolist(),
                problem="What do 3 pens at $4 cost with $5 tax? (A) 12 (B) 17 (C) 20",
                alternatives=rng.choice(CLAIMS[4:], 3).tolist(),
                context=rng.choice(CLAIMS, 2).tolist(),
                metadata={"model": f"m{i % 2}"},
            )
        )
    return graphs


def prefix(graph, n):
    return graph.subgraph(np.arange(graph.n_claims) < n)


def columns_looking_ahead(transformer, graphs):
    """Columns in which a claim differs when the claims after it are not there yet."""
    whole = transformer.fit(graphs).transform(graphs)
    prefixes = [prefix(g, v + 1) for g in graphs for v in range(g.n_claims)]
    so_far = transformer.transform(prefixes)
    last = so_far.features[so_far.offsets[1:] - 1]
    names = whole.feature_names
    columns = zip(names, whole.features.T, last.T, strict=True)
    return {name for name, a, b in columns if a.tobytes() != b.tobytes()}


@pytest.mark.parametrize("transformer", TRANSFORMERS, ids=repr)
def test_columns_that_look_ahead_are_declared(transformer, graphs):
    ahead = columns_looking_ahead(transformer, graphs)
    assert ahead <= transformer.looks_ahead
