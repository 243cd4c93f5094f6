"""A chance for each text: by enumeration, by drawing answers, and at every entry point."""

from itertools import product

import numpy as np
import pytest

from skdcf import CoherentConformalFilter, GraphBatch, HardCF, ReasoningGraph
from skdcf.datasets import make_reasoning_graphs
from skdcf.estimators import check
from skdcf.ops.chance import chance_of_error, fit_frailty
from skdcf.scorers import (
    ClassifierScorer,
    FeatureScorer,
    NeymanPearsonScorer,
    StackingScorer,
)

EDGES = [(0, 1), (0, 2), (1, 3), (2, 3)]


@pytest.fixture(scope="module")
def data():
    graphs, labels = make_reasoning_graphs(500, "felm", random_state=3, return_X_y=True)
    return GraphBatch.from_graphs(graphs), labels


@pytest.fixture(scope="module")
def fitted(data):
    graphs, labels = data
    return CoherentConformalFilter(random_state=0).fit(graphs[:250], labels[:250])


def safest_claims(cf, graphs, share):
    """Masks of a share of the claims, at least one, with the smallest path risks."""
    batch = check(cf, graphs)
    masks = batch.split(np.zeros(batch.n_claims, dtype=bool))
    depths = batch.split(batch.depth)
    for mask, depth, risk in zip(masks, depths, cf.path_risk(batch), strict=True):
        n_first = max(1, int(np.ceil(share * len(risk) - 1e-9)))
        mask[np.lexsort((depth, risk))[:n_first]] = True
    return masks


def chance_by_enumeration(hazard, kept):
    """Sum over all ways in which the claims can be true or false.

    A claim whose ancestors are not all true is false here, which does not matter: a set
    that is closed under ancestors holds something false as soon as an ancestor is.
    """
    parents = [[p for p, child in EDGES if child == v] for v in range(4)]
    wrong = 0.0
    for true in product([0, 1], repeat=4):
        weight = 1.0
        for v in range(4):
            can_be = all(true[p] for p in parents[v])
            h = hazard[v] if can_be else 1.0
            weight *= 1 - h if true[v] else h
        if any(not true[v] for v in kept):
            wrong += weight
    return wrong


@pytest.mark.parametrize("kept", [[], [0], [0, 2], [0, 1, 2], [0, 1, 2, 3]])
def test_hazards_as_they_stand_are_those_of_an_enumeration(kept):
    hazard = np.array([0.1, 0.35, 0.02, 0.6])
    batch = GraphBatch.from_arrays(np.zeros((4, 1)), [0, 4], EDGES)
    mask = np.isin(np.arange(4), kept)
    log_odds = np.log(hazard) - np.log1p(-hazard)
    (chance,) = chance_of_error(log_odds, mask, batch)
    assert chance == pytest.approx(chance_by_enumeration(hazard, kept), abs=1e-12)


def draw_answers(rng, n, theta, intercept, slope):
    """Answers of five claims in a chain, whose hazards share a gamma factor."""
    log_odds = rng.normal(-2.0, 1.0, size=(n, 5))
    factor = rng.gamma(1 / theta, theta, size=(n, 1))
    cumulative = np.log1p(np.exp(intercept + slope * log_odds))
    true = rng.random((n, 5)) < np.exp(-factor * cumulative)
    return log_odds, np.minimum.accumulate(true, axis=1)


def chains(n):
    edges = [(5 * i + j, 5 * i + j + 1) for i in range(n) for j in range(4)]
    return GraphBatch.from_arrays(np.zeros((5 * n, 1)), np.arange(n + 1) * 5, edges)


def test_a_frailty_states_the_share_that_is_drawn():
    rng = np.random.default_rng(0)
    n = 200_000
    log_odds = np.tile(rng.normal(-2.0, 1.0, size=5), (n, 1))
    factor = rng.gamma(1 / 2.5, 2.5, size=(n, 1))
    cumulative = np.log1p(np.exp(0.3 + 0.8 * log_odds))
    true = rng.random((n, 5)) < np.exp(-factor * cumulative)
    for size in range(1, 6):
        kept = np.arange(5) < size
        one = GraphBatch.from_arrays(np.zeros((5, 1)), [0, 5], ())
        stated = chance_of_error(log_odds[0], kept, one, np.array([2.5, 0.3, 0.8]))
        seen = (~true[:, kept]).any(axis=1).mean()
        assert abs(stated[0] - seen) < 4 * np.sqrt(seen * (1 - seen) / n)


@pytest.mark.parametrize("numbers", [(3.0, 0.4, 0.8), (0.2, -0.3, 1.3)])
def test_a_fit_finds_the_numbers_that_the_answers_were_drawn_with(numbers):
    rng = np.random.default_rng(1)
    log_odds, true = draw_answers(rng, 20_000, *numbers)
    labels = true.astype(int).ravel()
    confidence = -np.tile(np.arange(5.0), 20_000)
    found = fit_frailty(log_odds.ravel(), labels, chains(20_000), confidence)
    np.testing.assert_allclose(found, numbers, atol=0.15)


def test_what_follows_the_first_claim_that_is_not_known_to_be_true_does_not_enter():
    rng = np.random.default_rng(2)
    log_odds, true = draw_answers(rng, 300, 1.0, 0.0, 1.0)
    labels = true.astype(int)
    labels[:100, 2] = -1
    confidence = -np.tile(np.arange(5.0), 300)
    first = fit_frailty(log_odds.ravel(), labels.ravel(), chains(300), confidence)
    later = labels.copy()
    ended = np.cumsum(labels != 1, axis=1) - (labels != 1) > 0
    later[ended] = rng.integers(-1, 2, size=labels.shape)[ended]
    again = fit_frailty(log_odds.ravel(), later.ravel(), chains(300), confidence)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(
        first,
        fit_frailty(
            log_odds.ravel(), true.astype(int).ravel(), chains(300), confidence
        ),
    )


@pytest.mark.parametrize("share_false", [0.0, 0.5, 1.0])
def test_answers_that_are_all_true_or_all_false(share_false):
    """Nothing differs as much as these: the numbers stay finite, and chances are chances."""
    n_false = int(400 * share_false)
    labels = np.r_[np.zeros(5 * n_false, int), np.ones(5 * (400 - n_false), int)]
    confidence = -np.tile(np.arange(5.0), 400)
    log_odds = np.zeros(2000)
    numbers = fit_frailty(log_odds, labels, chains(400), confidence)
    assert np.isfinite(numbers).all() and numbers[0] > 0
    stated = chance_of_error(log_odds, np.full(2000, True), chains(400), numbers)
    assert ((stated >= 0) & (stated <= 1)).all()
    assert stated[0] == pytest.approx(share_false, abs=0.1)


def test_without_any_judged_claim_the_numbers_stay_where_they_are_pulled_to():
    labels = np.full(10, -1)
    found = fit_frailty(np.zeros(10), labels, chains(2), np.zeros(10))
    np.testing.assert_allclose(found, [0.3, 0, 1])


def test_stated_is_seen_on_answers_that_the_filter_does_not_know(data):
    graphs, labels = make_reasoning_graphs(
        3000, "felm", random_state=8, return_X_y=True
    )
    cf = CoherentConformalFilter(random_state=0).fit(graphs[:1000], labels[:1000])
    for masks in (cf.predict(graphs[1000:]), safest_claims(cf, graphs[1000:], 0.7)):
        stated = cf.error_probability(graphs[1000:], masks)
        rows = zip(labels[1000:], masks, strict=True)
        wrong = np.array([(row[mask] == 0).any() for row, mask in rows])
        shown = ~np.isnan(stated)
        error = np.sqrt(stated[shown].mean() / shown.sum())
        assert abs(stated[shown].mean() - wrong[shown].mean()) < 5 * error + 0.01
        constant = np.var(wrong[shown])
        assert np.mean((stated - wrong)[shown] ** 2) < constant


def test_the_default_is_what_predict_keeps(fitted, data):
    new = data[0][250:]
    masks = fitted.predict(new, 0.2)
    np.testing.assert_array_equal(
        fitted.error_probability(new, alpha=0.2), fitted.error_probability(new, masks)
    )
    empty = np.array([not mask.any() for mask in masks])
    assert empty.any()
    np.testing.assert_array_equal(np.isnan(fitted.error_probability(new, masks)), empty)


def test_a_text_is_the_likelier_wrong_the_more_is_kept(fitted, data):
    new = data[0][250:]
    chances = [
        fitted.error_probability(new, safest_claims(fitted, new, share))
        for share in (0, 0.5, 1)
    ]
    assert (np.diff(chances, axis=0) >= 0).all()
    assert (np.diff(chances, axis=0) > 0).any()


def test_the_chance_of_a_text_does_not_hang_on_the_others(fitted, data):
    new = data[0][250:300]
    alone = [
        fitted.error_probability(
            new[i : i + 1], safest_claims(fitted, new[i : i + 1], 1)
        )
        for i in range(50)
    ]
    together = fitted.error_probability(new, safest_claims(fitted, new, 1))
    np.testing.assert_allclose(np.concatenate(alone), together, rtol=1e-9)


@pytest.mark.parametrize(
    "scorer",
    ["frequency-score", ClassifierScorer(), StackingScorer({"a": ClassifierScorer()})],
)
def test_a_scorer_without_hazards_says_why(scorer):
    graphs, labels = make_reasoning_graphs(300, random_state=0, return_X_y=True)
    cf = HardCF(scorer, alpha=0.2).fit(graphs[:200], labels[:200])
    with pytest.raises(ValueError, match=r"scorer.*Scorer"):
        cf.error_probability(graphs[200:])
    assert not hasattr(cf.scorer_, "error_probability")


def test_base_scorers_of_ones_own_are_asked():
    graphs, labels = make_reasoning_graphs(300, random_state=0, return_X_y=True)
    members = {"regression": ClassifierScorer(), "prices": NeymanPearsonScorer()}
    cf = HardCF(StackingScorer(members), alpha=0.2, random_state=0)
    assert hasattr(cf.scorer, "error_probability")
    cf.fit(graphs[:200], labels[:200])
    batch = cf.transform_features(graphs[200:])
    kept = np.ones(batch.n_claims, dtype=bool)
    prices = cf.scorer_.scorers_["prices"]
    masks = batch.split(kept)
    np.testing.assert_array_equal(
        cf.error_probability(graphs[200:], masks),
        chance_of_error(prices.hazard(batch), kept, batch, prices.frailty_),
    )
    alone = HardCF(NeymanPearsonScorer(), random_state=0).fit(
        graphs[:200], labels[:200]
    )
    assert alone.scorer_.frailty_ is None
    assert (alone.error_probability(graphs[200:], masks) > 0).all()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda masks: masks[:-1], r"kept.*250.*249"),
        (lambda masks: masks[::-1], r"kept"),
        (lambda masks: [m + 0.5 for m in masks], r"kept.*\(0, 1\)"),
    ],
)
def test_masks_of_other_problems_are_refused(fitted, data, spoil, message):
    new = data[0][250:]
    with pytest.raises(ValueError, match=message):
        fitted.error_probability(new, spoil(list(fitted.predict(new))))


def test_a_claim_without_one_that_it_builds_on_is_refused(fitted, data):
    new = data[0][250:]
    i = next(i for i, graph in enumerate(new) if len(graph.edges))
    masks = [np.zeros(graph.n_claims, dtype=bool) for graph in new]
    masks[i][new[i].edges[0][1]] = True
    with pytest.raises(ValueError, match=r"kept.*claim"):
        fitted.error_probability(new, masks)


def test_a_level_beside_masks_is_refused(fitted, data):
    new = data[0][250:]
    with pytest.raises(ValueError, match=r"alpha.*0\.2.*masks"):
        fitted.error_probability(new, fitted.predict(new), alpha=0.2)


def test_of_a_table_masks_are_the_booleans_themselves():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = X[:, 0] + rng.normal(size=400) > 0
    cf = HardCF(NeymanPearsonScorer(), alpha=0.2, random_state=0).fit(X[:300], y[:300])
    kept = cf.predict(X[300:])
    chance = cf.error_probability(X[300:])
    np.testing.assert_array_equal(np.isnan(chance), ~kept)
    np.testing.assert_array_equal(chance, cf.error_probability(X[300:], kept))


def test_an_answer_without_claims_has_no_chance():
    graphs, labels = make_reasoning_graphs(300, random_state=0, return_X_y=True)
    cf = HardCF(NeymanPearsonScorer(), alpha=0.2).fit(graphs[:200], labels[:200])
    empty = ReasoningGraph(
        np.zeros((0, graphs[0].features.shape[1])),
        feature_names=graphs[0].feature_names,
    )
    new = [empty, graphs[250]]
    chance = cf.error_probability(new, safest_claims(cf, new, 0))
    assert np.isnan(chance[0])
    assert 0 < chance[1] < 1


def test_a_feature_has_no_chance_and_a_stack_has():
    assert not hasattr(FeatureScorer("x"), "error_probability")
    assert hasattr(StackingScorer(), "error_probability")
