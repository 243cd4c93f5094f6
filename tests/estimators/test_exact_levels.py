"""Mean losses against whole numbers: no claim is lost, or won, by bits of a float."""

from bisect import bisect_right
from fractions import Fraction

import numpy as np
import pytest

from skdcf import HardCF
from skdcf.graphs import GraphBatch
from skdcf.guarantees import ExpectedFalse


def shares_so_far(risks, labels):
    """Pairs (path risk, largest share of false claims among those kept up to it)."""
    order = sorted(range(len(risks)), key=lambda v: risks[v])
    false = 0
    largest = Fraction(0)
    pairs = []
    for kept, v in enumerate(order, start=1):
        false += int(labels[v] != 1)
        largest = max(largest, Fraction(false, kept))
        pairs.append((risks[v], largest))
    return pairs


def level_by_fractions(calibration, risks):
    """The level of each claim of a new answer, with its own loss bounded by the worst."""
    walks = [shares_so_far(*p) for p in calibration]
    out = []
    for risk in risks:
        own = Fraction(1)
        for walk in walks:
            place = bisect_right([r for r, _ in walk], risk)
            own += walk[place - 1][1] if place else 0
        out.append(own / (len(calibration) + 1))
    return out


def problems(rng, n):
    return [
        (rng.permutation(30)[:6].tolist(), rng.integers(2, size=6).tolist())
        for _ in range(n)
    ]


def batch_of(parts):
    table = np.concatenate([-np.array(risks, float) for risks, _ in parts])[:, None]
    offsets = np.arange(len(parts) + 1) * 6
    return GraphBatch.from_arrays(table, offsets, np.empty((0, 2), int))


@pytest.mark.parametrize("seed", range(3))
def test_levels_are_those_of_whole_numbers(seed):
    """At every level that is reached exactly, a claim is kept as fractions say."""
    rng = np.random.default_rng(seed)
    calibration = problems(rng, 19 + 10 * seed)
    new = problems(rng, 20)
    cf = HardCF(0, guarantee=ExpectedFalse(bound=0.2))
    cf.fit(batch_of(calibration), [labels for _, labels in calibration])
    exact = [level_by_fractions(calibration, risks) for risks, _ in new]
    batch = batch_of(new)
    reached = 0
    for twentieth in range(1, 20):
        alpha = Fraction(twentieth, 20)
        kept = np.concatenate(list(cf.predict(batch, alpha=float(alpha))))
        levels = np.concatenate(exact)
        reached += int((levels == alpha).sum())
        assert kept.tolist() == [level <= alpha for level in levels]
        told = np.concatenate(list(cf.predict_alpha(batch)))
        assert np.array_equal(told <= float(alpha), kept)
    assert reached


def test_many_thirds_add_up():
    """Each of 30,000 answers loses a third, so the mean reaches a third and no more."""
    n = 29_999
    table = np.tile([[-1.0], [-1.0], [-1.0]], (n, 1))
    X = GraphBatch.from_arrays(table, np.arange(n + 1) * 3, np.empty((0, 2), int))
    y = [[0, 1, 1]] * n
    cf = HardCF(0, guarantee=ExpectedFalse(bound=0.5)).fit(X, y)
    level = cf.predict_alpha(X[:1])[0][0]
    assert level == pytest.approx((1 + n / 3) / (n + 1), rel=2e-12)
    assert level < float(Fraction(3 + n, 3 * (n + 1)))
