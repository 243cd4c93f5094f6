"""An online filter that stops an agent at its first doubtful step."""

import numpy as np
import pytest

from skdcf import HardCF, ReasoningGraph
from skdcf.edges import chain_edges


def chains(n, seed):
    """Runs of three to six steps; a step is wrong with chance .8 risk squared."""
    rng = np.random.default_rng(seed)
    graphs, labels = [], []
    for size in rng.integers(3, 7, n):
        risk = rng.random(size)
        chain = [(v - 1, v) for v in range(1, size)]
        graphs.append(ReasoningGraph(-risk[:, None], chain, feature_names=["score"]))
        labels.append((rng.random(size) >= 0.8 * risk**2).astype(int))
    return graphs, labels


def steps(graph):
    for v, row in enumerate(graph.features):
        yield {"features": row, "parents": [v - 1] if v else []}


def test_a_stream_that_stops_is_predict_up_to_the_first_doubtful_step():
    X, y = chains(300, 0)
    lengths = set()
    for rule in ("given", chain_edges):
        cf = HardCF(0, online=True, alpha=0.2, edges=rule)
        if rule is chain_edges:
            texts = [[f"{v}" for v in range(g.n_claims)] for g in X]
            X = [
                ReasoningGraph(g.features, claims=t, feature_names=g.feature_names)
                for g, t in zip(X, texts, strict=True)
            ]
        cf.fit(X[:200], y[:200], groups=False)
        for graph, mask in zip(X[200:], cf.predict(X[200:]), strict=True):
            claims = list(steps(graph))
            for v, claim in enumerate(claims):
                if graph.claims:
                    del claim["parents"]
                    claim["text"] = graph.claims[v]
            feed = iter(claims)
            names = graph.feature_names
            decisions = list(cf.stream(feed, stop=True, feature_names=names))
            kept = int(mask.sum())
            assert decisions == mask[: kept + 1].tolist()
            # Nothing after the doubtful step was asked for.
            assert len(list(feed)) == graph.n_claims - len(decisions)
            if len(decisions) < graph.n_claims:
                lengths.add(len(decisions))
    assert lengths >= {1, 2, 3}


def test_stopping_needs_a_chain():
    X, y = chains(100, 0)
    cf = HardCF(0, online=True, alpha=0.2).fit(X, y)
    row = np.full_like(X[0].features[0], 100.0)
    fork = [{"features": row, "parents": []}] * 2
    names = X[0].feature_names
    assert list(cf.stream(fork, feature_names=names)) == [True, True]
    decisions = cf.stream(fork, stop=True, feature_names=names)
    assert next(decisions)
    with pytest.raises(ValueError, match=r"claim.*1.*claim.*0"):
        next(decisions)
    apart = HardCF(0, online=True, edges="none").fit(X, y)
    with pytest.raises(ValueError, match=r"stop=True .*chain"):
        next(apart.stream(fork, stop=True, feature_names=names))
