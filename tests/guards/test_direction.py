"""A score that ranks backwards is noticed, and one that knows nothing is not."""

import warnings

import numpy as np
import pytest

from skdcf import HardCF
from skdcf.exceptions import ParameterWarning


def test_a_score_that_ranks_backwards_warns():
    rng = np.random.default_rng(0)
    y = rng.random(200) < 0.7
    trust = (y + rng.normal(size=200))[:, None]
    with pytest.warns(ParameterWarning, match="ranks backwards: .* Is it a risk?"):
        HardCF(0).fit(-trust, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        HardCF(0).fit(trust, y)


def test_a_score_that_knows_nothing_does_not_warn():
    """In 200 draws of a column that is noise: 4 errors and .35 are far from chance."""
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ParameterWarning)
        for _ in range(200):
            X = rng.normal(size=(60, 1))
            y = rng.random(60) < 0.5
            HardCF(0, alpha=0.2).fit(X, y)
