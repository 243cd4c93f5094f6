"""Decisions while an answer is written equal those about the whole answer."""

import tracemalloc

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from skdcf import GraphBatch, HardCF, ReasoningGraph
from skdcf.datasets import make_reasoning_graphs, make_word_problems
from skdcf.features import reasoning_features
from skdcf.guarantees import ExpectedFalse, NoFalseClaim
from skdcf.online import on_prefixes
from skdcf.scorers import ClassifierScorer, FrequencyScorer, Scorer


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
    ],
)
def test_stream_decides_as_predict(cf):
    X, y = make_reasoning_graphs(165, random_state=3, return_X_y=True)
    X = GraphBatch.from_arrays(
        X.features,
        X.offsets,
        X.edges,
        feature_names=X.feature_names,
        metadata=[{"kind": "ab"[i % 2]} for i in range(165)],
    )
    cf.fit(X[:150], y[:150])
    assert_streamed(cf, X[150:])


def test_prefixes_may_come_in_several_blocks():
    X, _ = make_reasoning_graphs(60, random_state=3, return_X_y=True)
    whole = on_prefixes(descendants, X)
    np.testing.assert_array_equal(on_prefixes(descendants, X, block_size=7), whole)


def test_columns_are_those_of_the_claims_so_far():
    X, y = make_word_problems(190, random_state=0, return_X_y=True)
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
    with pytest.raises(ValueError, match=r"\(1, 0\).*1 claim"):
        next(cf.stream(late, feature_names=X.feature_names))
    unknown = [{"features": row} for row in X[0].features[:2]]
    stream = cf.stream(unknown, feature_names=X.feature_names)
    next(stream)  # The first claim has no parents.
    with pytest.raises(ValueError, match="edges"):
        next(stream)
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


def test_a_stream_that_stops_is_predict_up_to_the_first_dropped_claim():
    X, y = make_reasoning_graphs(160, random_state=0, return_X_y=True)
    chains = [
        graph.replace(edges=[(v - 1, v) for v in range(1, graph.n_claims)])
        for graph in X
    ]
    cf = HardCF("claim_index", online=True, alpha=0.3).fit(chains[:100], y[:100])
    lengths = set()
    for graph in chains[100:]:
        [mask] = cf.predict([graph])
        claims = as_claims(graph)
        names = graph.feature_names
        decisions = list(cf.stream(claims, stop=True, feature_names=names))
        assert decisions == mask[: mask.sum() + 1].tolist()
        # Nothing after the dropped step was asked for.
        assert len(list(claims)) == graph.n_claims - len(decisions)
        lengths.add(len(decisions))
    assert lengths >= {2, 3, 4}
