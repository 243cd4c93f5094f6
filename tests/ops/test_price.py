"""The price of claims, against brute force, an isotonic regression and numerical gradients."""

import itertools

import autograd.numpy as anp
import numpy as np
import pytest
from assertions import reorder_claims
from autograd import grad
from hypothesis import given, settings
from hypothesis import strategies as st
from random_graphs import chain, random_problems
from sklearn.isotonic import isotonic_regression

from skdcf import GraphBatch, ReasoningGraph
from skdcf.datasets import make_reasoning_graphs
from skdcf.full import online_price
from skdcf.ops.price import _sort, exact_log_price, pool
from skdcf.ops.soft_price import log_price

Q = (0.0, 0.3, 1.0)
WORTH = {1.0: lambda k: k, 0.5: np.sqrt, 0.0: np.log1p}


def ancestors_of(graph):
    """Claim -> set of itself and its ancestors, by walking up."""
    above = {v: {v} for v in range(graph.n_claims)}
    for _ in range(graph.n_claims):
        for u, v in graph.edges.tolist():
            above[v] |= above[u]
    return above


# --- slopes of the convex minorant


@pytest.mark.parametrize("digits", [1, 8])  # few digits: many ties
def test_slopes_are_the_isotonic_regression_of_each_curve(digits):
    rng = np.random.RandomState(0)
    sizes = np.append(rng.randint(0, 12, size=200), 101)
    segment = np.repeat(np.arange(len(sizes)), sizes)
    rise, run = np.round(rng.uniform(0.1, 2, (2, len(segment))), digits)
    # One curve that needs a round for each of its pieces.
    rise[-101:] = np.append(np.linspace(1, 1.001, 100), 1e-4)
    slopes, block = pool(np.log(rise), np.log(run), segment)
    for i in np.unique(segment):
        mine = segment == i
        expected = isotonic_regression(rise[mine] / run[mine], sample_weight=run[mine])
        np.testing.assert_allclose(np.exp(slopes[mine]), expected, rtol=1e-9)
    ends = (np.diff(slopes) != 0) | (np.diff(segment) != 0)
    assert (np.diff(block)[ends] == 1).all()


# --- prices


def value_of(kept, own, above, q, gain):
    """Expected worth of the first claims: a true claim, or a true one below an error."""
    worth, total = WORTH[gain], 0.0
    for k, v in enumerate(kept):
        all_true = np.exp(-sum(own[u] for u in above[v]))
        above_true = np.exp(-sum(own[u] for u in above[v] if u != v))
        added = worth(k + 1.0) - worth(k + 0.0)
        total += added * (all_true + q * (1 - above_true))
    return total


@pytest.mark.parametrize("pricing", [log_price, exact_log_price])
@pytest.mark.parametrize("gain", WORTH)
@pytest.mark.parametrize("q", Q)
def test_sets_below_a_price_are_the_best_prefixes(q, gain, pricing):
    """No prefix is worth more, less what its risk costs."""
    batch, _ = make_reasoning_graphs(30, random_state=1, return_X_y=True)
    hazard = np.random.RandomState(1).normal(-1, 1.5, batch.n_claims)
    own = batch.split(np.log1p(np.exp(hazard)))
    prices = batch.split(pricing(hazard, batch, q, gain))
    for i, at in itertools.product(range(30), [0.01, 0.1, 0.3, 1.0, 3.0]):
        above = ancestors_of(batch[i])
        m = {v: sum(own[i][u] for u in above[v]) for v in above}
        order = sorted(above, key=lambda v: (m[v], len(above[v])))

        def gained(kept, i=i, above=above, at=at):
            risk = 1 - np.exp(-sum(own[i][v] for v in kept))
            return at * value_of(kept, own[i], above, q, gain) - risk

        kept = [v for v in order if prices[i][v] < np.log(at)]
        best = max(gained(order[:k]) for k in range(len(order) + 1))
        assert gained(kept) >= best - 1e-8


@given(
    st.integers(0, 10**6),
    st.sampled_from([0.1, 2.0, 40.0, 800.0]),
    st.sampled_from(Q),
    st.sampled_from([1.0, 0.5, 0.01, 0.0]),
    st.sampled_from([1, 10]),
)
@settings(max_examples=25)
def test_price_is_finite_never_falls_along_an_edge_and_ignores_the_storage_order(
    seed, spread, q, gain, digits
):
    rng = np.random.RandomState(seed)
    problems = random_problems(seed, n_problems=12, largest=12, density=0.3)
    batch = problems.batch
    hazard = np.round(rng.normal(0, spread, batch.n_claims), digits)
    found = exact_log_price(hazard, batch, q, gain)
    assert np.isfinite(found).all()
    parent, child = batch.edges.T
    assert (found[parent] <= found[child]).all()
    for i in range(len(batch)):
        mine = slice(*batch.offsets[i : i + 2])
        order = rng.permutation(batch.sizes[i])
        alone = GraphBatch.from_graphs([reorder_claims(batch[i], order)])
        again = exact_log_price(hazard[mine][order], alone, q, gain)
        assert np.array_equal(again, found[mine][order])


@pytest.mark.parametrize(
    "size", [12, 90]
)  # more than 64 claims are passed along the edges
@pytest.mark.parametrize("gain", [0, 0.5, 1])
def test_prices_under_several_fits_are_those_of_each_fit(size, gain):
    rng = np.random.default_rng(size)
    long = ReasoningGraph(np.ones((size, 4)), chain(size))
    others = [] if size > 64 else random_problems(0, n_problems=8, largest=9).batch
    # The first layer of 20 stars is wide.
    star = ReasoningGraph(np.ones((4, 4)), [(0, 1), (0, 2), (0, 3)])
    batch = GraphBatch.from_graphs([long, *[star] * 20, long, *others])
    hazard = np.round(rng.normal(size=(batch.n_claims, 5)), 1)
    for price in (exact_log_price, online_price):
        together = price(hazard, batch, gain=gain)
        for own, found in zip(hazard.T, together.T, strict=True):
            alone = price(own[:, None], batch, gain=gain)[:, 0]
            assert np.array_equal(found, alone)
        if price is exact_log_price:
            assert np.array_equal(found, price(own, batch, gain=gain))


@pytest.mark.parametrize("largest", [9, 2**60])
def test_many_claims_are_sorted_as_few(largest):
    """Also if one whole number for each claim would be too large."""
    rng = np.random.default_rng(0)
    problem, hazard = np.repeat(np.arange(40), 50), rng.random(2000)
    m = rng.integers(0, largest, 2000)
    expected = np.lexsort((hazard, m, problem))
    np.testing.assert_array_equal(_sort(problem, m, hazard), expected)


@pytest.mark.parametrize(("q", "gain"), [(0.0, 1.0), (0.4, 0.5), (0.4, 0.0)])
def test_gradient_against_differences(q, gain):
    """With pooled blocks, empty answers, clipped hazards and large problems."""
    graphs = [
        ReasoningGraph(
            np.ones((n, 1)), [(u, v) for v in range(n) for u in range(v)][::3]
        )
        for n in (0, 1, 2, 5, 9, 70, 0)
    ]
    batch = GraphBatch.from_graphs(graphs)
    rng = np.random.RandomState(0)
    hazard = rng.normal(-2, 2, batch.n_claims)
    hazard[:2] = 40.0, -40.0
    weights = rng.normal(size=batch.n_claims)

    def loss(h):
        return anp.sum(weights * log_price(h, batch, q, gain))

    gradient = grad(loss)(hazard)
    for v in range(batch.n_claims):
        step = np.zeros(batch.n_claims)
        step[v] = 1e-5
        expected = (loss(hazard + step) - loss(hazard - step)) / 2e-5
        assert gradient[v] == pytest.approx(expected, abs=2e-6)
