"""The price of claims in large problems, against the code for small ones and the hull."""

from itertools import combinations

import numpy as np
import pytest
from random_graphs import chain, random_problems

from skdcf import GraphBatch
from skdcf.graphs import _derived
from skdcf.ops import neyman_pearson
from skdcf.ops.neyman_pearson import log_price, minorant_slopes


def hull_slopes(rise, run):
    """Slopes of the lower convex hull of the curve, from all pairs of its corners."""
    x, y = np.append(0, np.cumsum(run)), np.append(0, np.cumsum(rise))
    out, at = [], 0
    while at < len(run):
        slopes = (y[at + 1 :] - y[at]) / (x[at + 1 :] - x[at])
        end = at + 1 + int(np.flatnonzero(slopes <= slopes.min() * (1 + 1e-12))[-1])
        out += [slopes.min()] * (end - at)
        at = end
    return out


@pytest.mark.parametrize("together", [0, 1, 3, 64])
def test_slopes_are_those_of_the_convex_hull(monkeypatch, together):
    monkeypatch.setattr(neyman_pearson, "_TOGETHER", together)
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 60, 40)
    rise, run = rng.exponential(size=(2, sizes.sum()))
    # One that needs a round for each of its pieces.
    steep = np.append(np.arange(1.0, 100.0), 1e-6)
    rise, run = np.append(rise, steep), np.append(run, np.ones(100))
    sizes = np.append(sizes, 100)
    segment = np.repeat(np.arange(len(sizes)), sizes)
    found = minorant_slopes(np.log(rise), np.log(run), segment)
    bounds = np.cumsum(sizes)[:-1]
    parts = zip(np.split(rise, bounds), np.split(run, bounds), strict=True)
    expected = np.concatenate([hull_slopes(*part) for part in parts])
    np.testing.assert_allclose(np.exp(found), expected, rtol=1e-9)


@pytest.mark.parametrize("q", [0.0, 0.4])
def test_prices_of_problems_taken_for_large_ones_are_the_same(monkeypatch, q):
    rng = np.random.RandomState(0)
    problems = random_problems(1, n_problems=60, largest=40, density=0.1)
    hazard = rng.normal(-2, 2, problems.batch.n_claims)
    expected = log_price(hazard, problems.batch, q)
    monkeypatch.setattr(_derived, "SMALL", 4)
    monkeypatch.setattr(neyman_pearson, "_TOGETHER", 4)
    found = log_price(hazard, problems.batch[np.arange(60)], q)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("edges", [chain(3000), list(combinations(range(200), 2)), []])
def test_prices_of_large_problems_do_not_fall_along_edges(edges):
    n = 3000
    hazard = np.random.RandomState(0).normal(-3, 2, n)
    batch = GraphBatch.from_arrays(np.zeros((n, 1)), [0, n], edges)
    found = log_price(hazard, batch, 0.3)
    assert np.isfinite(found).all()
    parent, child = batch.edges.T
    assert (found[parent] <= found[child]).all()
