"""The Neyman-Pearson score against brute force and an isotonic regression."""

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.isotonic import isotonic_regression

from skdcf import GraphBatch, HardCF
from skdcf.datasets import make_reasoning_graphs
from skdcf.graphs import pack_labels
from skdcf.scorers import NeymanPearsonScorer
from skdcf.scorers._neyman_pearson import below_true_claims, log_price, minorant_slopes


def problems(n, seed=0, kind="math"):
    batch, y = make_reasoning_graphs(n, kind, random_state=seed, return_X_y=True)
    return batch, pack_labels(y, batch)


def ancestors_of(batch, i):
    """Claim -> set of itself and its ancestors, by walking up; positions in i."""
    graph = batch[i]
    above = {v: {v} for v in range(graph.n_claims)}
    for _ in range(graph.n_claims):
        for u, v in graph.edges.tolist():
            above[v] |= above[u]
    return above


# --- slopes of the convex minorant


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("digits", [1, 8])  # few digits: many ties
def test_slopes_are_the_isotonic_regression_of_each_curve(seed, digits):
    rng = np.random.RandomState(seed)
    sizes = rng.randint(0, 12, size=15)
    segment = np.repeat(np.arange(15), sizes)
    rise = np.round(rng.uniform(0.1, 2, len(segment)), digits)
    run = np.round(rng.uniform(0.1, 2, len(segment)), digits)
    slopes = minorant_slopes(np.log(rise), np.log(run), segment)
    for i in np.unique(segment):
        mine = segment == i
        expected = isotonic_regression(
            rise[mine] / run[mine], sample_weight=run[mine], increasing=True
        )
        np.testing.assert_allclose(np.exp(slopes[mine]), expected, rtol=1e-9)
        assert (np.diff(slopes[mine]) >= 0).all()


def lower_hull(points):
    """Andrew's monotone chain: corners of the lower hull of points sorted by x."""
    hull = []
    for p in points:
        while len(hull) > 1:
            (ax, ay), (bx, by) = hull[-2:]
            if (bx - ax) * (p[1] - ay) > (by - ay) * (p[0] - ax):
                break
            hull.pop()
        hull.append(p)
    return hull


def test_slopes_are_those_of_the_lower_hull():
    rng = np.random.RandomState(1)
    rise, run = rng.exponential(size=(2, 40))
    slopes = np.exp(minorant_slopes(np.log(rise), np.log(run), np.zeros(40, int)))
    x, y = np.append(0, np.cumsum(run)), np.append(0, np.cumsum(rise))
    hull = lower_hull(list(zip(x.tolist(), y.tolist(), strict=True)))
    middle = (x[1:] + x[:-1]) / 2
    for (ax, ay), (bx, by) in itertools.pairwise(hull):
        between = (middle > ax) & (middle < bx)
        np.testing.assert_allclose(slopes[between], (by - ay) / (bx - ax))


def test_slopes_out_of_the_range_of_floats():
    rise, run = np.array([-2000.0, -3000.0, -900.0]), np.array([-1900.0, -1000.0, -900])
    slopes = minorant_slopes(rise, run, np.zeros(3, int))
    np.testing.assert_allclose(slopes, [-1000, -1000, 0])


def test_many_merges_in_one_curve():
    """Each merge gives rise to the next one."""
    rise = np.append(np.linspace(1, 1.001, 400), 0.0001)
    slopes = np.exp(minorant_slopes(np.log(rise), np.zeros(401), np.zeros(401, int)))
    np.testing.assert_allclose(slopes, isotonic_regression(rise), rtol=1e-9)


# --- prices


def expected_price_set(own, above, price):
    """The best of all closed sets at this price per kept claim, by enumeration.

    `own` is l per claim. Gain and risk are written as they stand in the text.
    """
    n = len(own)
    best = (0.0, frozenset())
    for size in range(1, n + 1):
        for kept in itertools.combinations(range(n), size):
            if any(not above[v] <= set(kept) for v in kept):
                continue
            gain = sum(np.exp(-sum(own[u] for u in above[v])) for v in kept)
            risk = 1 - np.exp(-sum(own[v] for v in kept))
            best = max(best, (price * gain - risk, frozenset(kept)), key=lambda p: p[0])
    return best


def prefix_sets(own, above):
    order = sorted(above, key=lambda v: (sum(own[u] for u in above[v]), len(above[v])))
    return [order[:k] for k in range(len(order) + 1)]


def lagrangian(kept, own, above, price):
    gain = sum(np.exp(-sum(own[u] for u in above[v])) for v in kept)
    return price * gain - (1 - np.exp(-sum(own[v] for v in kept)))


@pytest.mark.parametrize("seed", range(6))
def test_sets_below_a_price_are_the_best_prefixes(seed):
    """No prefix has more expected kept claims, less what the risk is worth."""
    batch, _ = problems(8, seed)
    rng = np.random.RandomState(seed)
    hazard = rng.normal(-1, 1.5, batch.n_claims)
    prices = batch.split(log_price(hazard, batch))
    own = batch.split(np.log1p(np.exp(hazard)))
    for i, price in itertools.product(range(8), [0.01, 0.1, 0.3, 1.0, 3.0]):
        above = ancestors_of(batch, i)
        kept = np.flatnonzero(prices[i] < np.log(price))
        values = [
            lagrangian(k, own[i], above, price) for k in prefix_sets(own[i], above)
        ]
        assert lagrangian(kept, own[i], above, price) >= max(values) - 1e-12


def test_independent_claims_are_worth_keeping_in_order_of_their_hazard():
    """Without edges the best prefix is the best of all sets: nothing is lost."""
    rng = np.random.RandomState(0)
    batch = GraphBatch.from_arrays(np.zeros((24, 1)), [0, 6, 12, 18, 24])
    hazard = rng.normal(-1, 1.5, 24)
    prices, own = log_price(hazard, batch), np.log1p(np.exp(hazard))
    for i, price in itertools.product(range(4), [0.05, 0.2, 0.5, 1.0]):
        rows = slice(6 * i, 6 * i + 6)
        above = {v: {v} for v in range(6)}
        kept = np.flatnonzero(prices[rows] < np.log(price))
        best, _ = expected_price_set(own[rows], above, price)
        np.testing.assert_allclose(lagrangian(kept, own[rows], above, price), best)


def test_most_expected_claims_at_a_total_risk():
    """Across problems: no choice of prefixes keeps more at no more total risk."""
    rng = np.random.RandomState(3)
    batch, _ = problems(400, 3)
    batch = batch[np.flatnonzero((batch.sizes > 1) & (batch.sizes < 5))[:4]]
    hazard = rng.normal(-1, 1, batch.n_claims)
    prices = batch.split(log_price(hazard, batch))
    own = batch.split(np.log1p(np.exp(hazard)))
    above = [ancestors_of(batch, i) for i in range(4)]

    def totals(sets):
        gain = sum(
            np.exp(-sum(own[i][u] for u in above[i][v]))
            for i, kept in enumerate(sets)
            for v in kept
        )
        risk = sum(
            1 - np.exp(-sum(own[i][v] for v in kept)) for i, kept in enumerate(sets)
        )
        return gain, risk

    choices = [prefix_sets(own[i], above[i]) for i in range(4)]
    everything = np.array([totals(sets) for sets in itertools.product(*choices)])
    for price in np.unique(np.concatenate(list(prices))) + 1e-9:
        gain, risk = totals([np.flatnonzero(p < price) for p in prices])
        affordable = everything[:, 1] <= risk + 1e-12
        assert gain >= everything[affordable, 0].max() - 1e-9


@given(st.integers(0, 10**6), st.sampled_from([0.1, 2.0, 40.0, 800.0]))
def test_price_is_finite_and_never_falls_along_an_edge(seed, spread):
    batch, _ = problems(6, seed)
    hazard = np.random.RandomState(seed).normal(0, spread, batch.n_claims)
    price = log_price(hazard, batch)
    assert np.isfinite(price).all()
    parent, child = batch.edges.T
    assert (price[parent] <= price[child]).all()


def test_a_single_claim_costs_its_odds():
    """Risk h for a gain of 1 - h."""
    batch = GraphBatch.from_arrays(np.zeros((5, 1)), np.arange(6))
    hazard = np.linspace(-4, 4, 5)
    np.testing.assert_allclose(log_price(hazard, batch), hazard)


def test_price_by_hand():
    """A chain: h = 1/4, then 1/3. Risks 1/4, 1/2; gains 3/4, 3/4 + 1/2."""
    batch = GraphBatch.from_arrays(np.zeros((2, 1)), [0, 2], [(0, 1)])
    price = log_price(np.log([1 / 3, 1 / 2]), batch)
    np.testing.assert_allclose(np.exp(price), [1 / 3, 1 / 2])


# --- the scorer


def test_trained_where_all_ancestors_are_true():
    batch, labels = problems(60, 4)
    found = batch.split(below_true_claims(labels, batch))
    true = batch.split(labels)
    for i in range(len(batch)):
        above = ancestors_of(batch, i)
        expected = [true[i][sorted(above[v] - {v})].all() for v in sorted(above)]
        assert found[i].tolist() == expected


def test_path_risk_is_the_risk():
    batch, labels = problems(300)
    cf = HardCF(NeymanPearsonScorer(), random_state=0).fit(batch, labels)
    risk = np.concatenate(list(cf.path_risk(batch)))
    assert np.array_equal(risk, -cf.scorer_.confidence(batch))


def test_keeps_more_than_a_classifier_on_fresh_problems():
    (train, labels), (test, truth) = problems(600, 0), problems(1000, 1)
    kept = [
        HardCF(scorer, alpha=0.05, random_state=0).fit(train, labels).score(test, truth)
        for scorer in (NeymanPearsonScorer(), None)
    ]
    from sklearn.linear_model import LogisticRegression

    plain = HardCF(LogisticRegression(max_iter=5000), alpha=0.05, random_state=0)
    assert kept[0] > 1.1 * plain.fit(train, labels).score(test, truth)
    assert kept[0] > kept[1]


def test_hazards_are_calibrated():
    """Mean predicted and observed share of first errors agree on fresh problems."""
    scorer = NeymanPearsonScorer().fit(*problems(1500, 0))
    batch, labels = problems(1500, 1)
    at_risk = below_true_claims(labels, batch)
    chance = 1 / (1 + np.exp(-scorer.hazard(batch)[at_risk]))
    false = ~labels[at_risk]
    for part in np.array_split(np.argsort(chance), 3):
        assert abs(chance[part].mean() - false[part].mean()) < 0.04


def test_same_fit_twice_and_after_clone_and_pickle():
    batch, labels = problems(80)
    scorer = NeymanPearsonScorer(random_state=0)
    first = scorer.fit(batch, labels).confidence(batch)
    again = clone(scorer).fit(batch, labels)
    assert np.array_equal(again.confidence(batch), first)
    loaded = pickle.loads(pickle.dumps(again))
    assert np.array_equal(loaded.confidence(batch), first)


def test_confidence_of_a_problem_is_its_own():
    """Neither the other problems of a batch nor their order enter."""
    batch, labels = problems(60)
    scorer = NeymanPearsonScorer().fit(batch, labels)
    whole = batch.split(scorer.confidence(batch))
    for i in (0, 17, 59):
        alone = scorer.confidence(batch[[i]])
        np.testing.assert_allclose(alone, whole[i], rtol=1e-12, atol=1e-12)


def test_without_coherence_edges_do_not_enter():
    batch, labels = problems(60)
    apart = GraphBatch.from_arrays(batch.features, batch.offsets)
    free = NeymanPearsonScorer(coherent=False).fit(batch, labels)
    bare = NeymanPearsonScorer().fit(apart, labels)
    assert np.array_equal(free.confidence(batch), bare.confidence(apart))


DEGENERATE = {
    "no errors": lambda b, y: (b, np.ones_like(y)),
    "all false": lambda b, y: (b, np.zeros_like(y)),
    "constant features": lambda b, y: (b.replace_features(np.ones_like(b.features)), y),
    "no features": lambda b, y: (b.replace_features(b.features[:, :0]), y),
    "one problem": lambda b, y: (b[:1], y[: b.offsets[1]]),
    "two problems": lambda b, y: (b[-2:], y[b.offsets[-3] :]),
    "one claim each": lambda b, y: (
        GraphBatch.from_arrays(b.features, np.arange(b.n_claims + 1)),
        y,
    ),
    "one false claim": lambda b, y: (b, np.arange(len(y)) != np.argmin(y)),
    "an empty problem": lambda b, y: (
        GraphBatch.from_arrays(b.features, np.insert(b.offsets, [0, 3], b.offsets[[0, 3]])),
        y,
    ),
}


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_data(name):
    batch, labels = DEGENERATE[name](*problems(20, 5))
    scorer = NeymanPearsonScorer().fit(batch, labels)
    confidence = scorer.confidence(batch)
    assert confidence.shape == (batch.n_claims,)
    assert np.isfinite(confidence).all()
    assert scorer.confidence(batch[:0]).shape == (0,)


def test_no_features_at_all():
    batch, labels = problems(5)
    with pytest.raises(ValueError, match="the problems have none yet"):
        NeymanPearsonScorer().fit(batch.replace_features(None), labels)
