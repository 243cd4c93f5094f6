"""Levels and ranks of conformal thresholds."""

import numpy as np
import pytest
from scipy.stats import beta, binom

from skdcf.ops.conformal import claim_level


@pytest.mark.parametrize("n", [20, 99, 250, 1000])
def test_levels_with_certainty_have_twelve_digits_and_are_never_too_small(n):
    below = np.arange(n)
    levels = claim_level(below, n, 0.05)
    for b, level in zip(below.tolist(), levels.tolist(), strict=True):
        assert float(f"{level:.12g}") == pytest.approx(level, rel=1e-15, abs=0)
        assert level == 1.0 or binom.cdf(b, n, level) <= 0.05 * (1 + 1e-9)
        assert level == 1.0 or binom.cdf(b, n, level * (1 - 1e-9)) > 0.05
        assert level / beta.isf(0.05, b + 1, n - b) - 1 < 1.1e-11
