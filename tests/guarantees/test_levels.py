"""Levels against integer arithmetic: no claim is lost, or won, by bits of a float."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from scipy.stats import binom

from skdcf import HardCF
from skdcf.graphs import GraphBatch
from skdcf.guarantees import ExpectedFalse, NoFalseClaim
from skdcf.ops.conformal import (
    claim_level,
    conformal_rank,
    mean_level,
    share_jumps,
)

# Levels as people compute them: 0.1 + 0.7 is not the float 0.8.
ALPHAS = [
    (i, way) for i in range(1, 1000) for way in (i / 1000, 0.1 + (i - 100) / 1000)
]


def shares_of(risks, labels):
    """Pairs (path risk, largest share of false claims among those kept up to it)."""
    false = 0
    largest = Fraction(0)
    for kept, v in enumerate(sorted(range(len(risks)), key=lambda v: risks[v]), 1):
        false += int(labels[v] != 1)
        if Fraction(false, kept) > largest:
            largest = Fraction(false, kept)
            yield risks[v], largest


def levels_by_fractions(answers):
    """The exact level of a claim after each jump."""
    jumps = []
    for risks, labels in answers:
        before = Fraction(0)
        for risk, share in shares_of(risks, labels):
            jumps.append((risk, share - before))
            before = share
    total = Fraction(1)
    levels = [total / (len(answers) + 1)]
    for _, height in sorted(jumps):
        total += height
        levels.append(total / (len(answers) + 1))
    return levels


def packed(answers):
    """Path risks, labels and offsets of all answers."""
    offsets = np.concatenate([[0], np.cumsum([len(risks) for risks, _ in answers])])
    risks, labels = (np.concatenate(arrays) for arrays in zip(*answers, strict=True))
    return risks, labels, offsets


def test_ranks_are_those_of_integers():
    thousandths = np.arange(1, 1000)
    for n in range(1, 201):
        ranks = thousandths * (n + 1) // 1000
        levels = claim_level(np.arange(n + 1), n)
        assert np.array_equal(
            np.searchsorted(levels, thousandths / 1000, "right"), ranks
        )
        assert [conformal_rank(n, i / 1000) for i in thousandths] == ranks.tolist()


@pytest.mark.parametrize("sizes", [[3], [1, 2, 5, 9, 11]])
def test_levels_of_mean_losses_are_those_of_fractions(sizes):
    """For every n up to 120. Levels that equal alpha exactly are among them."""
    rng = np.random.default_rng(sizes)
    reached = 0
    for n in range(1, 121):
        order = iter(rng.permutation(n * max(sizes)).tolist())
        counts = rng.choice(sizes, n).tolist()
        answers = [
            ([next(order) for _ in range(m)], rng.integers(-1, 2, m)) for m in counts
        ]
        exact = levels_by_fractions(answers)
        _, totals = share_jumps(*packed(answers)).totals()
        found = mean_level(totals, n)
        for level, value in zip(exact, found.tolist(), strict=True):
            if 1000 % level.denominator == 0 and level < 1:
                reached += 1
                assert value == float(level)
            assert value == pytest.approx(float(level), rel=1e-15)
            below = int(level * 1000)
            assert value > below / 1000 or level == Fraction(below, 1000)
    assert reached > 50


@pytest.mark.filterwarnings("ignore:.*nothing can be kept", "ignore:.*Did you mean")
@pytest.mark.parametrize("guarantee", [NoFalseClaim(), ExpectedFalse()])
def test_predict_is_predict_alpha_at_every_level(guarantee):
    rng = np.random.default_rng(0)
    offsets = 6 * np.arange(100)
    confidence = rng.permutation(offsets[-1])[:, None]
    X = GraphBatch.from_arrays(confidence, offsets, np.empty((0, 2), int))
    cf = HardCF(0, guarantee=guarantee).fit(X, rng.integers(2, size=offsets[-1]))
    levels = np.concatenate(list(cf.predict_alpha(X)))
    for i, alpha in ALPHAS:
        kept = np.concatenate(list(cf.predict(X, alpha)))
        assert np.array_equal(kept, levels <= i / 1000)
    for alpha in np.unique(levels[levels < 1]):
        kept = np.concatenate(list(cf.predict(X, alpha)))
        assert np.array_equal(kept, levels <= alpha)


def binomial_tail(n, k, alpha):
    """P(Binomial(n, alpha) < k), in whole numbers."""
    terms = (comb(n, j) * alpha**j * (1 - alpha) ** (n - j) for j in range(k))
    return sum(terms, Fraction(0))


@pytest.mark.parametrize("delta", ["0.5", "0.1", "0.001"])
def test_rank_with_delta_is_that_of_whole_numbers(delta):
    for n in (*range(1, 31), 59, 100):
        for alpha in ("0.005", "0.05", "0.1", "0.5", "0.9"):
            k = 0
            while k < n and binomial_tail(n, k + 1, Fraction(alpha)) <= Fraction(delta):
                k += 1
            assert conformal_rank(n, float(alpha), float(delta)) == k, (n, alpha)


@pytest.mark.parametrize("n", [20, 1000])
def test_levels_with_delta_have_twelve_digits_and_are_never_too_small(n):
    levels = claim_level(np.arange(n), n, 0.05)
    for b, level in enumerate(levels.tolist()):
        assert float(f"{level:.12g}") == pytest.approx(level, rel=1e-15, abs=0)
        assert level == 1.0 or binom.cdf(b, n, level) <= 0.05 * (1 + 1e-9)
        assert level == 1.0 or binom.cdf(b, n, level * (1 - 1e-9)) > 0.05
