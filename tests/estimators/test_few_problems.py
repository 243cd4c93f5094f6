"""What is said, and done, where calibration problems are too few or levels tiny."""

import numpy as np
import pytest

from skdcf import HardCF
from skdcf.exceptions import CalibrationWarning
from skdcf.guarantees import NoFalseClaim, problems_needed

X, Y = np.random.default_rng(0).random((40, 2)), np.arange(40) % 3 > 0


def small_group(batch):
    return batch.features[:, 1] > 0.9


@pytest.mark.parametrize(
    ("guarantee", "alpha", "said"),
    [
        (
            None,
            0.01,
            "nothing is kept: 40 calibration problems are too few for alpha = 0.01",
        ),
        (NoFalseClaim(delta=0.05), 0.05, "At least 59"),
        (
            NoFalseClaim(by=small_group),
            0.1,
            "group True",
        ),
        (NoFalseClaim(by=small_group), 0.01, "At least 99"),
    ],
)
def test_a_promise_that_keeps_nothing_says_so(guarantee, alpha, said):
    with pytest.warns(CalibrationWarning):
        cf = HardCF(0, alpha=alpha, guarantee=guarantee).fit(X, Y)
    assert said in cf.calibration_.describe(alpha)


@pytest.mark.parametrize("alpha", [5e-324, 1e-17])
def test_levels_next_to_zero_keep_nothing(alpha, delta=0.1):
    assert problems_needed(alpha, delta) == 2**53
    with pytest.warns(CalibrationWarning):
        cf = HardCF(0, alpha=alpha, guarantee=NoFalseClaim(delta=delta)).fit(X, Y)
    assert cf.threshold_ == -np.inf
    with pytest.warns(CalibrationWarning):
        assert not cf.predict(X).any()
