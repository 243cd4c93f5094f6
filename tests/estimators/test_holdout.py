"""How many problems are held out, and which."""

from fractions import Fraction

import pytest

from skdcf.guarantees import NoFalseClaim
from skdcf.ops.conformal import conformal_rank


@pytest.mark.parametrize("alpha", ["0.01", "0.02", "0.05", "0.1", "0.15", "0.2", "0.3"])
def test_no_calibration_problem_is_wasted(alpha):
    """One problem fewer would have a smaller rank, and the rank is as it was meant."""
    exact = Fraction(alpha)
    for n in range(2, 1500, 7):
        count = NoFalseClaim().calibration_count(n, float(alpha))
        k = max(2, round(0.4 * float(alpha) * n))
        wanted = next(m for m in range(n * 200) if exact * (m + 1) >= k)
        if wanted > 0.6 * n:
            needed = NoFalseClaim().problems_needed(float(alpha))
            least = needed if needed <= 0.6 * n else 1
            assert count == max(least, round(0.3 * n))
            continue
        assert count == wanted
        assert conformal_rank(count, float(alpha)) == k
        assert conformal_rank(count - 1, float(alpha)) == k - 1


@pytest.mark.parametrize(
    ("n", "alpha", "count"),
    [(1, 0.1, 1), (2, 0.5, 1), (5, 0.1, 2), (9, 0.1, 3), (10, 0.01, 3), (30, 0.05, 9)],
)
def test_a_third_calibrates_where_so_few_cannot_reach_the_level(n, alpha, count):
    assert NoFalseClaim().calibration_count(n, alpha) == count
