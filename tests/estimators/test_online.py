"""Decisions while an answer is written equal those about the whole answer."""

import tracemalloc

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from skdcf import CoherentConformalFilter, GraphBatch, HardCF, ReasoningGraph
from skdcf.datasets import make_reasoning_graphs, make_word_problems
from skdcf.features import reasoning_features
from skdcf.guarantees import ExpectedFalse, NoFalseClaim
from skdcf.scorers import (
    ClassifierScorer,
    FrequencyScorer,
    LinearModel,
    MLPModel,
    Scorer,
)


def as_claims(graph):
    for v in range(graph.n_claims):
        parents = graph.edges[graph.edges[:, 1] == v, 0].tolist()
        claim = {"parents": parents}
        if graph.claims:
            claim["text"] = graph.claims[v]
        if graph.features is not None:
            claim["features"] = graph.features[v]
        yield claim


def descendants(batch):
    """A score that looks ahead."""
    return batch.features[:, 0] - np.bincount(
        batch.edges[:, 0], minlength=batch.n_claims
    )


def streamed(cf, graph, **more):
    about = {"problem": graph.problem, "alternatives": graph.alternatives}
    names = graph.feature_names
    return list(cf.stream(as_claims(graph), feature_names=names, **about, **more))


def test_columns_are_those_of_the_claims_so_far():
    X, y = make_word_problems(200, random_state=0, return_X_y=True)
    cf = HardCF(features=reasoning_features(), online=True, random_state=0)
    cf.fit(X[:180], y[:180])
    for graph, mask in zip(X[180:], cf.predict(X[180:]), strict=True):
        assert streamed(cf, graph) == mask.tolist()


def test_noise_that_breaks_ties_knows_no_later_claim():
    """It was a hash of the whole answer: 60 of these 156 decisions came out otherwise."""
    X, y = make_reasoning_graphs(120, random_state=0, return_X_y=True)
    X = X.replace_features(np.zeros_like(X.features), X.feature_names)
    cf = HardCF(0, online=True, ties="jitter", alpha=0.15, random_state=0)
    masks = cf.fit(X[:100], y[:100]).predict(X[100:])
    for graph, mask in zip(X[100:], masks, strict=True):
        assert streamed(cf, graph) == mask.tolist()
    assert 0 < np.concatenate(list(masks)).mean() < 1


def test_the_next_claim_is_read_after_the_decision():
    X, y = make_reasoning_graphs(60, random_state=0, return_X_y=True)
    cf = HardCF(0, online=True).fit(X, y)
    read = []
    claims = (read.append(v) or c for v, c in enumerate(as_claims(X[0])))
    for v, _ in enumerate(cf.stream(claims, feature_names=X.feature_names)):
        assert read == list(range(v + 1))


@pytest.mark.parametrize("online", [False, True])
def test_an_unfitted_filter_is_refused_before_a_claim_is_read(online):
    claims = iter([{"text": "A"}])
    with pytest.raises(NotFittedError, match="HardCF"):
        HardCF(0, online=online).stream(claims)
    assert [*claims]


def test_refused():
    X, y = make_reasoning_graphs(60, random_state=0, return_X_y=True)
    plain = HardCF(0, features=None).fit(X, y)
    with pytest.raises(ValueError, match="online=True"):
        next(plain.stream([{"features": X[0].features[0], "parents": []}]))
    cf = HardCF(0, online=True).fit(X, y)
    late = [
        {"features": row, "parents": [1] if v == 0 else []}
        for v, row in enumerate(X[0].features)
    ]
    with pytest.raises(ValueError, match=r"claim 0.*1"):
        list(cf.stream(late, feature_names=X.feature_names))
    backward = GraphBatch.from_arrays(
        X[0].features[:2], [0, 2], [(1, 0)], feature_names=X.feature_names
    )
    with pytest.raises(ValueError, match=r"comes.*claim"):
        cf.predict(backward)
    by = NoFalseClaim(by=lambda batch: batch.sizes > 3)
    with pytest.raises(ValueError, match=r"function.*answers"):
        HardCF(0, online=True, guarantee=by).fit(X, y)


@pytest.mark.parametrize(
    "cf",
    [
        HardCF(0, online=True, alpha=0.03),
        HardCF(0, online=True, alpha=0.1, edges="none"),
        HardCF(FrequencyScorer(beta_mix=0.5), online=True, alpha=0.03),
        HardCF(ClassifierScorer(), online=True, alpha=0.03, random_state=0),
        HardCF(0, online=True, alpha=0.03, guarantee=ExpectedFalse()),
        HardCF(
            0, online=True, alpha=0.03, guarantee=NoFalseClaim(max_false=1, by="kind")
        ),
        HardCF(descendants, online=True, ties="jitter", alpha=0.03, random_state=0),
        CoherentConformalFilter(LinearModel(), online=True, alpha=0.03, random_state=0),
        CoherentConformalFilter(
            MLPModel((3,)), online=True, alpha=0.03, random_state=0
        ),
    ],
)
def test_stream_decides_as_one_prediction_of_the_whole(cf, monkeypatch):
    """Each claim is scored once in `stream`; prefixes come in several blocks in `predict`."""
    X, y = make_reasoning_graphs(215, random_state=3, return_X_y=True)
    X = GraphBatch.from_arrays(
        X.features,
        X.offsets,
        X.edges,
        feature_names=X.feature_names,
        metadata=[{"kind": "ab"[i % 2]} for i in range(215)],
    )
    cf.fit(X[:150], y[:150])
    masks = cf.predict(X[150:])
    for graph, mask in zip(X[150:], masks, strict=True):
        assert streamed(cf, graph, metadata=graph.metadata) == mask.tolist()
    assert 0 < np.concatenate(list(masks)).mean() < 1
    before = cf.path_risk(X[150:])
    monkeypatch.setattr("skdcf.online.BLOCK", 7)
    for risks, whole in zip(cf.path_risk(X[150:]), before, strict=True):
        np.testing.assert_allclose(risks, whole, rtol=1e-12)


class Counting(Scorer):
    """Notes how many claims it is asked about."""

    asked = 0

    def confidence(self, batch):
        Counting.asked += batch.n_claims
        return -batch.features[:, 0]


def chain(n):
    rng = np.random.default_rng(n)
    edges = [(v, v + 1) for v in range(n - 1)]
    return ReasoningGraph(np.sort(rng.random((n, 2)), axis=0), edges)


@pytest.mark.long
@pytest.mark.parametrize("scorer", [0, Counting()])
@pytest.mark.filterwarnings("ignore:the score may have the wrong sign")
def test_long_answers_need_little_memory(scorer):
    """An answer of 10,000 claims asked for 11.5 GiB when all prefixes were laid out."""
    X = [chain(4) for _ in range(40)]
    cf = HardCF(scorer, online=True, alpha=0.2).fit(X, [[1, 1, 1, 0]] * 40)
    long = chain(10_000 if scorer == 0 else 3_000)
    tracemalloc.start()
    cf.predict([long])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10**9


def test_a_rule_reads_its_edges_in_the_whole_answer_while_it_is_written():
    """Every claim builds on the first one, which the last two claims do not show."""

    def on_the_first(texts, question):
        return [(0, i) for i in range(1, len(texts))]

    rng = np.random.default_rng(0)
    answers = [
        ReasoningGraph(rng.random((4, 1)), (), claims=[f"{i} {j}" for j in range(4)])
        for i in range(80)
    ]
    y = (rng.random((80, 4)) < 0.8).astype(int)
    cf = HardCF(0, alpha=0.3, edges=on_the_first, online=True).fit(
        answers[:60], [*y[:60]]
    )
    masks = cf.predict(answers[60:])
    for answer, mask in zip(answers[60:], masks, strict=True):
        rows = zip(answer.claims, answer.features.tolist(), strict=True)
        claims = [{"text": text, "features": row} for text, row in rows]
        assert list(cf.stream(claims)) == mask.tolist()
    alone = HardCF(0, alpha=0.3, edges="none", online=True).fit(answers[:60], [*y[:60]])
    assert any(
        (a != b).any() for a, b in zip(masks, alone.predict(answers[60:]), strict=True)
    )
