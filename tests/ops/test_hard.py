"""The closed form against subgraph enumeration, and ranks against whole numbers."""

import math
import random

import numpy as np
import pytest
from reference_hard import (
    filtered_set,
    kth_smallest_by_counting,
    largest_safe_threshold,
    random_problem,
)

from skdcf import GraphBatch, HardCF, ReasoningGraph
from skdcf.inspection import explain
from skdcf.ops.conformal import (
    conformal_rank,
    problems_needed,
)
from skdcf.ops.hard import (
    coherent_labels,
    nonconformity_scores,
    path_risk,
)
from skdcf.scorers import FeatureScorer

EDGE_CASES = [
    ([1.0], [], [1]),
    ([1.0], [], [0]),
    ([1.0, 1.0, 1.0], [(0, 1), (1, 2)], [1, 1, 1]),
    ([1.0, 1.0, 1.0], [(2, 1), (1, 0)], [0, 0, 0]),
    ([3.0, 1.0, 2.0, 0.0], [(0, 2), (1, 2)], [1, 1, 0, 1]),
    ([0.0, 0.0], [(1, 0)], [1, 0]),
]


@pytest.fixture(scope="module")
def problems():
    rng = random.Random(0)
    drawn = [random_problem(rng, levels=rng.choice([None, 2, 4])) for _ in range(500)]
    return EDGE_CASES + drawn


@pytest.fixture(scope="module")
def packed(problems):
    graphs = [ReasoningGraph(np.c_[r], e) for r, e, _ in problems]
    batch = GraphBatch.from_graphs(graphs)
    labels = np.concatenate([y for *_, y in problems]).astype(bool)
    return batch, labels, path_risk(batch.features[:, 0], batch)


def test_scores_equal_enumeration(problems, packed):
    batch, labels, risk = packed
    scores = nonconformity_scores(risk, labels, batch.offsets)
    expected = [largest_safe_threshold(*p) for p in problems]
    np.testing.assert_array_equal(scores, expected)


@pytest.mark.parametrize("strict", [True, False])
def test_filtered_sets_equal_enumeration(problems, packed, strict):
    batch, _, risk = packed
    rng = random.Random(1)
    for (r, edges, _), found in zip(problems, batch.split(risk), strict=True):
        for t in {*r, rng.gauss(0, 1), math.inf, -math.inf}:
            kept = found < t if strict else found <= t
            assert set(np.flatnonzero(kept)) == filtered_set(r, edges, t, strict)


@pytest.mark.parametrize("ties", ["exclude", "include"])
def test_estimator_equals_enumeration(problems, ties):
    calibration, test = problems[:150], problems[150:400]
    cf = HardCF(lambda batch: -batch.features[:, 0], ties=ties)

    def graphs(some):
        return [ReasoningGraph(np.c_[r], e) for r, e, _ in some]

    cf.fit(graphs(calibration), [np.array(y) for *_, y in calibration])
    calibrating = np.delete(np.arange(len(calibration)), cf.unused_indices_)
    scores = [largest_safe_threshold(*calibration[i]) for i in calibrating]
    for percent in (5, 10, 37, 50):
        t = kth_smallest_by_counting(scores, percent, 100)
        kept = cf.predict(graphs(test), alpha=percent / 100)
        for (r, edges, _), mask in zip(test, kept, strict=True):
            expected = filtered_set(r, edges, t, strict=ties == "exclude")
            assert set(np.flatnonzero(mask)) == expected


def test_coherent_labels_equal_enumeration(problems, packed):
    batch, labels, _ = packed
    found = batch.split(coherent_labels(labels, batch))
    for (_, edges, y), row in zip(problems, found, strict=True):
        as_risk = [1.0 - value for value in y]
        assert set(np.flatnonzero(row)) == filtered_set(as_risk, edges, 0.5)


def test_rank_is_exact_in_thousandths():
    for n in range(1, 201):
        for thousandths in range(1, 1000):
            expected = thousandths * (n + 1) // 1000
            assert conformal_rank(n, thousandths / 1000) == expected


@pytest.mark.parametrize(
    ("alpha", "needed"), [(0.1, 9), (0.02, 49), (0.5, 1), (0.3, 3)]
)
def test_problems_needed(alpha, needed):
    assert problems_needed(alpha) == needed
    assert conformal_rank(needed - 1, alpha) == 0 < conformal_rank(needed, alpha)


@pytest.mark.parametrize("ties", ["exclude", "include"])
def test_a_path_risk_that_equals_the_threshold(ties):
    """Kept where ties are included, and nowhere else: at all entry points."""
    X = np.linspace(0, 1, 99)[:, None] ** 2
    cf = HardCF(FeatureScorer(0), ties=ties, alpha=0.2).fit(X, X[:, 0] > 0.3)
    # Risks are confidences with the other sign.
    risks = cf.threshold_ + np.array([-1e-12, 0.0, 1e-12])
    kept = [True, ties == "include", False]
    claims = -risks[:, None]
    assert cf.predict(claims).tolist() == kept
    assert (cf.decision_function(claims) > 0).tolist() == kept
    assert (cf.predict_alpha(claims) <= 0.2).tolist() == kept
    assert [len(graph.features) for graph in cf.filter(claims)] == kept
    assert cf.score(claims, [0, 1, 0]) == (ties == "include") / 3
    assert [why.kept.tolist() for why in explain(cf, claims)] == [[k] for k in kept]
