"""Decisions while an answer is written equal those about the whole answer."""

import tracemalloc

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from skdcf import CoherentConformalFilter, GraphBatch, HardCF, ReasoningGraph
from skdcf.datasets import make_reasoning_graphs, make_word_problems
from skdcf.edges import chain_edges
from skdcf.features import reasoning_features
from skdcf.guarantees import ExpectedFalse, NoFalseClaim
from skdcf.scorers import ClassifierScorer, FrequencyScorer, MLPModel, Scorer


def as_claims(graph):
    for v in range(graph.n_claims):
        claim = {"parents": graph.edges[graph.edges[:, 1] == v, 0].tolist()}
        if graph.claims:
            claim["text"] = graph.claims[v]
        if graph.features is not None:
            claim["features"] = graph.features[v]
        yield claim


def descendants(batch):
    """A score that looks ahead."""
    children = np.bincount(batch.edges[:, 0], minlength=batch.n_claims)
    return batch.features[:, 0] - children


def assert_streamed(cf, graphs):
    """Each decision comes before the next claim is read, and is that of `predict`."""
    masks = cf.predict(graphs)
    for graph, mask in zip(graphs, masks, strict=True):
        read = []
        claims = (read.append(v) or claim for v, claim in enumerate(as_claims(graph)))
        names = ("problem", "alternatives", "metadata", "feature_names")
        about = {name: getattr(graph, name) for name in names}
        for v, keep in enumerate(cf.stream(claims, **about)):
            assert keep == mask[v] and len(read) == v + 1
        assert len(read) == graph.n_claims
    assert 0 < np.concatenate(list(masks)).mean() < 1


@pytest.mark.parametrize(
    "cf",
    [
        HardCF(0, online=True, alpha=0.1, edges="none"),
        HardCF(FrequencyScorer(beta_mix=0.5), online=True, alpha=0.03),
        HardCF(ClassifierScorer(), online=True, alpha=0.03, random_state=0),
        HardCF(0, online=True, alpha=0.03, guarantee=ExpectedFalse(by="kind")),
        HardCF(descendants, online=True, ties="jitter", alpha=0.03, random_state=0),
        CoherentConformalFilter(
            MLPModel((3,)), online=True, alpha=0.03, random_state=0
        ),
    ],
)
def test_stream_decides_as_predict(cf, monkeypatch):
    """Prefixes come in several blocks in `predict`."""
    X, y = make_reasoning_graphs(215, random_state=3, return_X_y=True)
    X = GraphBatch.from_arrays(
        X.features,
        X.offsets,
        X.edges,
        feature_names=X.feature_names,
        metadata=[{"kind": "ab"[i % 2]} for i in range(215)],
    )
    cf.fit(X[:150], y[:150])
    assert_streamed(cf, X[150:])
    before = cf.path_risk(X[150:])
    monkeypatch.setattr("skdcf.online.BLOCK", 7)
    for risks, whole in zip(cf.path_risk(X[150:]), before, strict=True):
        np.testing.assert_allclose(risks, whole, rtol=1e-12)


def test_columns_are_those_of_the_claims_so_far():
    X, y = make_word_problems(200, random_state=0, return_X_y=True)
    cf = HardCF(features=reasoning_features(), online=True, random_state=0)
    assert_streamed(cf.fit(X[:180], y[:180]), X[180:])


def test_noise_that_breaks_ties_ignores_later_claims():
    X, y = make_reasoning_graphs(120, random_state=0, return_X_y=True)
    X = X.replace_features(np.zeros_like(X.features), X.feature_names)
    cf = HardCF(0, online=True, ties="jitter", alpha=0.15, random_state=0)
    assert_streamed(cf.fit(X[:100], y[:100]), X[100:])


def test_refused():
    with pytest.raises(NotFittedError, match="HardCF"):
        HardCF(0, online=True).stream([])
    X, y = make_reasoning_graphs(60, random_state=0, return_X_y=True)
    with pytest.raises(ValueError, match="online=True"):
        HardCF(0, features=None).fit(X, y).stream(as_claims(X[0]))
    cf = HardCF(0, online=True).fit(X, y)
    late = [{"features": X[0].features[0], "parents": [1]}]
    with pytest.raises(ValueError, match=r"claim 0.*1"):
        next(cf.stream(late, feature_names=X.feature_names))
    backward = GraphBatch.from_arrays(
        X[0].features[:2], [0, 2], [(1, 0)], feature_names=X.feature_names
    )
    with pytest.raises(ValueError, match=r"claim 0.*before.*parents"):
        cf.predict(backward)
    by = NoFalseClaim(by=lambda batch: batch.sizes > 3)
    with pytest.raises(ValueError, match=r"function.*answers"):
        HardCF(0, online=True, guarantee=by).fit(X, y)


def chain(n):
    rng = np.random.default_rng(n)
    edges = [(v, v + 1) for v in range(n - 1)]
    return ReasoningGraph(np.sort(rng.random((n, 2)), axis=0), edges)


class Rising(Scorer):
    def confidence(self, batch):
        return -batch.features[:, 0]


@pytest.mark.long
@pytest.mark.parametrize(("scorer", "n"), [(0, 10_000), (Rising(), 3_000)])
@pytest.mark.filterwarnings("ignore:the score may have the wrong sign")
def test_long_answers_need_little_memory(scorer, n):
    X = [chain(4) for _ in range(40)]
    cf = HardCF(scorer, online=True, alpha=0.2).fit(X, [[1, 1, 1, 0]] * 40)
    long = chain(n)
    tracemalloc.start()
    cf.predict([long])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10**9


def chains(n, seed):
    """Runs of three to six steps; a step is wrong with chance .8 risk squared."""
    rng = np.random.default_rng(seed)
    graphs, labels = [], []
    for i, size in enumerate(rng.integers(3, 7, n)):
        risk = rng.random(size)
        edges = [(v - 1, v) for v in range(1, size)]
        texts = [f"{i} {v}" for v in range(size)]
        graphs.append(ReasoningGraph(-risk[:, None], edges, claims=texts))
        labels.append((rng.random(size) >= 0.8 * risk**2).astype(int))
    return graphs, labels


@pytest.mark.parametrize("rule", ["given", chain_edges])
def test_a_stream_that_stops_is_predict_up_to_the_first_dropped_step(rule):
    X, y = chains(300, 0)
    cf = HardCF(0, online=True, alpha=0.2, edges=rule).fit(X[:200], y[:200])
    lengths = set()
    for graph, mask in zip(X[200:], cf.predict(X[200:]), strict=True):
        claims = as_claims(graph)
        decisions = list(cf.stream(claims, stop=True))
        assert decisions == mask[: mask.sum() + 1].tolist()
        # Nothing after the dropped step was asked for.
        assert len(list(claims)) == graph.n_claims - len(decisions)
        lengths.add(len(decisions))
    assert lengths >= {1, 2, 3}


def test_stopping_needs_a_chain():
    X, y = chains(100, 0)
    cf = HardCF(0, online=True, alpha=0.2).fit(X, y)
    fork = [{"features": [100.0], "parents": [], "text": text} for text in "ab"]
    assert list(cf.stream(fork)) == [True, True]
    decisions = cf.stream(fork, stop=True)
    assert next(decisions)
    with pytest.raises(ValueError, match=r"claim.*1.*claim.*0"):
        next(decisions)
    with pytest.raises(ValueError, match=r"stop=True .*chain"):
        HardCF(0, online=True, edges="none").fit(X, y).stream(fork, stop=True)
