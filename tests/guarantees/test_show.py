"""Of the answers that pass, at most alpha contain a false claim: by definition and by laws."""

from fractions import Fraction
from math import ceil, floor, inf

import numpy as np
import pytest

from skdcf.guarantees import (
    NoFalseClaim,
    PathRisks,
    choose_share,
    problems_needed,
    share_table,
)
from skdcf.ops.conformal import (
    conformal_rank,
    passing_count,
)

ALPHAS = ("0.05", "0.1", "0.2", "0.29", "0.5")
SHARES = ("0.07", "0.1", "0.25", "0.3", "0.6", "0.9", "1")


def draw_answers(rng, n, n_values=30, n_claims=4, height=0.8, power=2.0):
    """Risks and falsehood of the claims of n answers without edges, each (n, n_claims)."""
    risk = rng.integers(0, n_values, size=(n, n_claims)) / n_values
    return risk, rng.random(risk.shape) < height * risk**power


def as_risks(risk, **more):
    offsets = np.arange(len(risk) + 1) * risk.shape[1]
    return PathRisks(risk.ravel(), offsets, **more)


def test_a_share_is_the_decimal_number_that_was_written():
    assert passing_count(99, 0.07) == 6  # ceil(0.07 * 100) is 8 in floating point
    for n in range(200):
        for hundredths in range(1, 101):
            exact = ceil(Fraction(hundredths, 100) * (n + 1)) - 1
            assert passing_count(n, hundredths / 100) == exact


@pytest.mark.parametrize("delta", [None, 0.1])
def test_so_many_answers_are_needed_for_the_first_rank(delta):
    for share in map(float, SHARES):
        for alpha in (0.05, 0.1, 0.3):
            needed = problems_needed(alpha, delta, show=share)
            assert conformal_rank(passing_count(needed, share), alpha, delta) == 1
            assert conformal_rank(passing_count(needed - 1, share), alpha, delta) == 0
            if delta is None:
                exact = floor(
                    (ceil(1 / Fraction(str(alpha))) - 1) / Fraction(str(share))
                )
                assert needed == exact


def test_fewest_answers_keep_the_rank_among_those_that_pass():
    for share in (0.25, 0.6):
        guarantee = NoFalseClaim(show=share)
        for n in range(20, 150):
            fewest = guarantee.fewest(n, 0.1)
            ranks = [
                floor(Fraction(1, 10) * ceil(Fraction(str(share)) * (m + 1)))
                for m in (fewest - 1, fewest, n)
            ]
            assert ranks[1] == ranks[2]
            assert ranks[0] < ranks[2] or ranks[2] == 0


def test_the_largest_good_share_is_chosen():
    """By the definition, over hundredths: the best of those that are possible, if none is."""
    rng = np.random.default_rng(7)
    found = []
    for _ in range(40):
        n = int(rng.integers(20, 150))
        risk, false = draw_answers(rng, n, int(rng.integers(5, 200)), height=0.6)
        risks = as_risks(risk)
        labels = 1 - false.ravel().astype(int)
        n_calibration, level = int(rng.integers(10, 90)), 0.2
        rates = {}
        for hundredths in range(10, 101):
            share = Fraction(hundredths, 100)
            k0 = ceil(share * (n + 1))
            cut = inf if k0 == n + 1 else sorted(risk.min(axis=1))[k0 - 1]
            passing = [i for i in range(n) if cut == inf or risk[i].min() < cut]
            wrong = sum((false[i] & (risk[i] < cut)).any() for i in passing)
            reached = floor(Fraction(1, 5) * ceil(share * (n_calibration + 1)))
            if reached:
                rates[hundredths / 100] = Fraction(1 + wrong, 1 + len(passing))
        bound = max(Fraction(1, 5), min(rates.values()))
        table = share_table(
            NoFalseClaim(show="auto"),
            risk.ravel(),
            labels,
            risks.offsets,
            np.zeros(n, int),
        )
        found.append(choose_share(table, level, None, [n_calibration]))
        assert found[-1] == max(c for c, rate in rates.items() if rate <= bound)
    assert len(set(found)) > 5
