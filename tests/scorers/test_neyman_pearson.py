"""The Neyman-Pearson score against brute force and an isotonic regression."""

import itertools
import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.isotonic import isotonic_regression
from sklearn.linear_model import LogisticRegression

from skdcf import GraphBatch, HardCF
from skdcf.datasets import make_reasoning_graphs
from skdcf.graphs import pack_labels
from skdcf.ops.hard import below_true_claims
from skdcf.ops.neyman_pearson import log_price, minorant_slopes
from skdcf.scorers import FitTask, NeymanPearsonScorer


def problems(n, seed=0, kind="math"):
    batch, y = make_reasoning_graphs(n, kind, random_state=seed, return_X_y=True)
    return batch, pack_labels(y, batch) == 1


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


Q = (0.0, 0.3, 1.0)


def gain_of(kept, own, above, q):
    """Expected true claims: v and all above it true, or v true beside an error."""
    total = 0.0
    for v in kept:
        all_true = np.exp(-sum(own[u] for u in above[v]))
        above_true = np.exp(-sum(own[u] for u in above[v] if u != v))
        total += all_true + q * (1 - above_true)
    return total


def risk_of(kept, own):
    return 1 - np.prod([np.exp(-own[v]) for v in kept])


def prefixes(own, above):
    order = sorted(above, key=lambda v: (sum(own[u] for u in above[v]), len(above[v])))
    return [order[:k] for k in range(len(order) + 1)]


def drawn(seed, batch, q):
    """(l, price) per problem for hazards at random."""
    hazard = np.random.RandomState(seed).normal(-1, 1.5, batch.n_claims)
    price = batch.split(log_price(hazard, batch, q))
    return batch.split(np.log1p(np.exp(hazard))), price


@pytest.mark.parametrize("q", Q)
@pytest.mark.parametrize("seed", range(6))
def test_sets_below_a_price_are_the_best_prefixes(seed, q):
    """No prefix has more expected true claims, less what its risk is worth."""
    batch, _ = problems(8, seed)
    own, prices = drawn(seed, batch, q)
    for i, price in itertools.product(range(8), [0.01, 0.1, 0.3, 1.0, 3.0]):
        above = ancestors_of(batch, i)

        def worth(kept, i=i, above=above, price=price):
            return price * gain_of(kept, own[i], above, q) - risk_of(kept, own[i])

        kept = np.flatnonzero(prices[i] < np.log(price))
        assert worth(kept) >= max(map(worth, prefixes(own[i], above))) - 1e-12


def test_without_edges_the_best_prefix_is_the_best_set():
    batch = GraphBatch.from_arrays(np.zeros((24, 1)), [0, 6, 12, 18, 24])
    own, prices = drawn(0, batch, 0.0)
    above = {v: {v} for v in range(6)}
    sets = [c for k in range(7) for c in itertools.combinations(range(6), k)]
    for i, price in itertools.product(range(4), [0.05, 0.2, 0.5, 1.0]):

        def worth(kept, i=i, price=price):
            return price * gain_of(kept, own[i], above, 0) - risk_of(kept, own[i])

        kept = np.flatnonzero(prices[i] < np.log(price))
        np.testing.assert_allclose(worth(kept), max(map(worth, sets)))


@pytest.mark.parametrize("q", Q)
def test_most_expected_claims_at_a_total_risk(q):
    """Across problems: no choice of prefixes keeps more at no more total risk."""
    batch, _ = problems(400, 3)
    batch = batch[np.flatnonzero((batch.sizes > 1) & (batch.sizes < 5))[:4]]
    own, prices = drawn(3, batch, q)
    above = [ancestors_of(batch, i) for i in range(4)]

    def totals(sets):
        pairs = list(enumerate(sets))
        gain = sum(gain_of(kept, own[i], above[i], q) for i, kept in pairs)
        return gain, sum(risk_of(kept, own[i]) for i, kept in pairs)

    choices = [prefixes(own[i], above[i]) for i in range(4)]
    everything = np.array([totals(sets) for sets in itertools.product(*choices)])
    for price in np.unique(np.concatenate(list(prices))) + 1e-9:
        gain, risk = totals([np.flatnonzero(p < price) for p in prices])
        affordable = everything[:, 1] <= risk + 1e-12
        assert gain >= everything[affordable, 0].max() - 1e-9


@given(
    st.integers(0, 10**6),
    st.sampled_from([0.1, 2.0, 40.0, 800.0]),
    st.sampled_from(Q),
)
def test_price_is_finite_and_never_falls_along_an_edge(seed, spread, q):
    batch, _ = problems(6, seed)
    hazard = np.random.RandomState(seed).normal(0, spread, batch.n_claims)
    price = log_price(hazard, batch, q)
    assert np.isfinite(price).all()
    parent, child = batch.edges.T
    assert (price[parent] <= price[child]).all()


def test_other_problems_do_not_change_a_price_by_a_bit():
    batch, _ = problems(300, 7)
    hazard = np.random.RandomState(0).normal(0, 10, batch.n_claims)
    whole = batch.split(log_price(hazard, batch, 0.3))
    for i, own in enumerate(batch.split(hazard)):
        assert np.array_equal(log_price(own, batch[[i]], 0.3), whole[i])


def test_a_single_claim_costs_its_odds():
    """Risk h for a gain of 1 - h."""
    batch = GraphBatch.from_arrays(np.zeros((5, 1)), np.arange(6))
    hazard = np.linspace(-4, 4, 5)
    np.testing.assert_allclose(log_price(hazard, batch), hazard)


def test_price_by_hand():
    """A chain: h = 1/4, then 1/3. Risks 1/4, 1/2; gains 3/4, then 1/2 + q / 4."""
    batch = GraphBatch.from_arrays(np.zeros((2, 1)), [0, 2], [(0, 1)])
    hazard = np.log([1 / 3, 1 / 2])
    np.testing.assert_allclose(np.exp(log_price(hazard, batch)), [1 / 3, 1 / 2])
    price = log_price(hazard, batch, q=0.4)
    np.testing.assert_allclose(np.exp(price), [1 / 3, 1 / 2.4])
    # At q = 1 the second claim is worth 3/4 too, for a risk of 1/4 as well.
    np.testing.assert_allclose(np.exp(log_price(hazard, batch, q=1)), 1 / 3)


# --- the scorer


def test_trained_where_all_ancestors_are_true():
    batch, labels = problems(60, 4)
    found = batch.split(below_true_claims(labels, batch))
    true = batch.split(labels)
    for i in range(len(batch)):
        above = ancestors_of(batch, i)
        expected = [true[i][sorted(above[v] - {v})].all() for v in sorted(above)]
        assert found[i].tolist() == expected


def test_share_of_true_claims_below_a_false_one():
    batch, labels = problems(60, 4)
    true = batch.split(labels)
    below = [
        true[i][v]
        for i in range(len(batch))
        for v, up in ancestors_of(batch, i).items()
        if not true[i][sorted(up - {v})].all()
    ]
    scorer = NeymanPearsonScorer().fit(batch, labels)
    expected = sum(below) / (len(below) + 5)
    assert scorer.true_after_error_ == pytest.approx(expected)


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
    plain = HardCF(LogisticRegression(max_iter=5000), alpha=0.05, random_state=0)
    assert kept[0] > 1.1 * plain.fit(train, labels).score(test, truth)
    assert kept[0] > kept[1]


@pytest.mark.long
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


def test_edges_that_were_cut_do_not_enter():
    batch, labels = problems(60)
    apart = GraphBatch.from_arrays(batch.features, batch.offsets)
    cut = batch.without_edges()
    free = NeymanPearsonScorer().fit(cut, labels)
    bare = NeymanPearsonScorer().fit(apart, labels)
    assert np.array_equal(free.confidence(cut), bare.confidence(apart))
    assert (free.confidence(cut) != free.confidence(batch)).any()


DEGENERATE = {
    "no errors": lambda b, y: (b, np.ones_like(y)),
    "all false": lambda b, y: (b, np.zeros_like(y)),
    "features may be constant": lambda b, y: (
        b.replace_features(np.ones_like(b.features)),
        y,
    ),
    "no features": lambda b, y: (b.replace_features(b.features[:, :0]), y),
    "one problem": lambda b, y: (b[:1], y[: b.offsets[1]]),
    "two problems": lambda b, y: (b[-2:], y[b.offsets[-3] :]),
    "one claim each": lambda b, y: (
        GraphBatch.from_arrays(b.features, np.arange(b.n_claims + 1)),
        y,
    ),
    "one false claim": lambda b, y: (b, np.arange(len(y)) != np.argmin(y)),
    "an empty problem": lambda b, y: (
        GraphBatch.from_arrays(
            b.features, np.insert(b.offsets, [0, 3], b.offsets[[0, 3]])
        ),
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
    with pytest.raises(ValueError, match=r"problems.*features"):
        NeymanPearsonScorer().fit(batch.replace_features(None), labels)


# --- its settings


@pytest.mark.parametrize("weight_after_error", [0.0, 0.5, 1.0])
def test_weight_of_what_is_true_after_an_error(weight_after_error):
    batch, labels = problems(40)
    own = np.random.RandomState(0).uniform(size=len(labels)) > 0.2
    scorer = NeymanPearsonScorer(weight_after_error=weight_after_error, gain=1).fit(
        batch, own
    )
    q = weight_after_error * scorer.true_after_error_
    expected = -log_price(scorer.hazard(batch), batch, q)
    np.testing.assert_array_equal(scorer.confidence(batch), expected)
    assert 0.7 < scorer.true_after_error_ < 0.9


def spelt_out(batch, labels, seed):
    """Log odds of the four hazards, and share of true claims after an error, by hand."""
    wide = np.empty((batch.n_claims, 2 * batch.n_features + 1))
    at_risk, after = np.zeros(batch.n_claims, dtype=bool), []
    for i, (a, b) in enumerate(pairwise(batch.offsets.tolist())):
        own = batch.features[a:b]
        wide[a:b] = np.hstack(
            [own, np.tile([*own.mean(axis=0), np.log(b - a)], (b - a, 1))]
        )
        for v, up in ancestors_of(batch, i).items():
            above = labels[[a + u for u in up - {v}]]
            at_risk[a + v] = labels[a + v] >= 0 and (above == 1).all()
            if labels[a + v] >= 0 and (above == 0).any():
                after.append(labels[a + v] == 1)
    deviation = wide.std(axis=0)
    deviation[deviation < 1e-9] = np.inf
    wide = np.clip((wide - wide.mean(axis=0)) / deviation, -3, 3)
    narrow, false = wide[:, : batch.n_features], labels[at_risk] == 0
    overall = (false.sum() + 0.5) / (len(false) + 1)
    boosted = HistGradientBoostingClassifier(
        max_iter=50,
        learning_rate=0.15,
        max_depth=2,
        l2_regularization=5.0,
        max_features=0.5,
        max_bins=63,
        early_stopping=False,
        random_state=seed,
    )
    forest = RandomForestClassifier(
        40,
        min_samples_leaf=8,
        max_features=0.3,
        max_samples=int(len(false) / 2) + 1,
        random_state=seed,
    )
    logistic = [
        LogisticRegression(C=C, solver="newton-cholesky").fit(X[at_risk], false)
        for C, X in ((0.1, narrow), (0.03, wide))
    ]
    boosted.fit(narrow[at_risk], false)
    chance = forest.fit(wide[at_risk], false).predict_proba(wide)[:, 1]
    chance = 0.95 * chance + 0.05 * overall
    total = logistic[0].decision_function(narrow) + logistic[1].decision_function(wide)
    total += boosted.decision_function(narrow) + np.log(chance / (1 - chance))
    return total / 4, sum(after) / (len(after) + 5)


@pytest.mark.parametrize("unknown", [0.0, 0.3])
def test_four_hazards_spelt_out(unknown):
    """Their mean, learnt where all above is known to be true; unknown labels teach none."""
    batch, labels = problems(80, 4)
    labels = labels.astype(int)
    labels[np.random.RandomState(0).uniform(size=len(labels)) < unknown] = -1
    scorer = NeymanPearsonScorer(random_state=3, gain=1).fit(batch, labels)
    log_odds, share = spelt_out(batch, labels, 3)
    np.testing.assert_allclose(scorer.hazard(batch), log_odds, rtol=1e-9, atol=1e-9)
    assert scorer.true_after_error_ == pytest.approx(share)
    np.testing.assert_allclose(
        scorer.confidence(batch), -log_price(log_odds, batch, 0.5 * share), rtol=1e-6
    )


def test_whose_randomness_it_takes():
    """Its own, unless random_state is None: then that of the filter."""
    batch, labels = problems(60)

    def fitted(seed, **parameters):
        task = FitTask(rng=np.random.RandomState(seed))
        scorer = NeymanPearsonScorer(**parameters).fit(batch, labels, task)
        return scorer.confidence(batch)

    assert np.array_equal(fitted(0), fitted(1))
    free = {"random_state": None}
    assert np.array_equal(fitted(0, **free), fitted(0, **free))
    assert (fitted(0, **free) != fitted(1, **free)).any()


@pytest.mark.parametrize(
    ("scorer", "message"),
    [
        (
            NeymanPearsonScorer(weight_after_error=1.5),
            r"'weight_after_error' .* Got 1.5",
        ),
        (
            NeymanPearsonScorer(weight_after_error=True),
            r"'weight_after_error' .* Got True",
        ),
        (NeymanPearsonScorer(random_state="0"), "'random_state' parameter"),
    ],
)
def test_settings_that_make_no_sense(scorer, message):
    batch, labels = problems(5)
    with pytest.raises(ValueError, match=message):
        HardCF(scorer).fit(batch, batch.split(labels))
    with pytest.raises(ValueError, match=message):
        scorer.fit(batch, labels)


# --- unknown labels


def test_unknown_labels_teach_no_hazard():
    """Copies with unknown labels change nothing, and neither do claims below unknown."""
    batch, labels = problems(60, 4)
    labels = labels.astype(int)
    rows = np.append(np.arange(60), np.arange(60))
    twice = np.append(labels, np.full_like(labels, -1))
    alone = NeymanPearsonScorer().fit(batch, labels)
    beside = NeymanPearsonScorer().fit(batch[rows], twice)
    assert beside.true_after_error_ == alone.true_after_error_
    np.testing.assert_allclose(
        beside.confidence(batch), alone.confidence(batch), atol=1e-3
    )


def test_nothing_is_known():
    batch, labels = problems(10)
    scorer = NeymanPearsonScorer().fit(batch, np.full(len(labels), -1))
    assert scorer.table_ is None and np.isfinite(scorer.confidence(batch)).all()
