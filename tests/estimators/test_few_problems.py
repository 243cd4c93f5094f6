"""What is said, and done, where calibration problems are too few or levels tiny."""

from fractions import Fraction

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator

from skdcf import CoherentConformalFilter, HardCF
from skdcf.exceptions import CalibrationWarning
from skdcf.guarantees import ExpectedFalse, NoFalseClaim, problems_needed
from skdcf.scorers import FrequencyScorer

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
        (ExpectedFalse(), 0.01, "At least 99"),
        (NoFalseClaim(by=small_group), 0.1, "at least 0.9, no false claim is kept"),
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


def test_a_promise_that_keeps_something_is_a_promise():
    cf = HardCF(0, alpha=0.1).fit(X, Y)
    assert cf.calibration_.describe(0.1).startswith(
        "with a probability of at least 0.9"
    )


@pytest.mark.parametrize("alpha", [5e-324, 1e-300, 1e-17])
@pytest.mark.parametrize("delta", [None, 0.1, 5e-324])
def test_levels_next_to_zero_keep_nothing(alpha, delta):
    assert problems_needed(alpha, delta) == 2**53
    with pytest.warns(CalibrationWarning):
        cf = HardCF(0, alpha=alpha, guarantee=NoFalseClaim(delta=delta)).fit(X, Y)
    assert cf.threshold_ == -np.inf
    with pytest.warns(CalibrationWarning):
        assert not cf.predict(X).any()


@pytest.mark.parametrize("alpha", ["0.01", "0.03", "0.05", "0.1", "0.2"])
@pytest.mark.parametrize(
    "scorer",
    [
        0,
        FrequencyScorer(feature=0),
        lambda batch: batch.features[:, 0],
        FrozenEstimator(DummyClassifier().fit(X, Y)),
    ],
)
@pytest.mark.filterwarnings("ignore::skdcf.exceptions.CalibrationWarning")
def test_more_labels_never_do_less(scorer, alpha):
    """What cannot reach another rank does not calibrate, whatever trains nothing."""
    rng, last, fewest = np.random.default_rng(1), 0, {}
    for n in range(9, 61):
        rank = int(Fraction(alpha) * (n + 1))
        same = [m for m in range(1, n + 1) if int(Fraction(alpha) * (m + 1)) == rank]
        fewest[n] = same[0] if rank else n
        assert NoFalseClaim().fewest(n, float(alpha)) == fewest[n]
        # The level that is used up never falls where more labels reach another rank.
        level = Fraction(rank, fewest[n] + 1)
        assert level >= last or level > Fraction(alpha) - Fraction(1, 1000)
        last = level
    table, truth = rng.random((60, 2)), rng.random(60) < 0.6
    for n in (9, 19, 25, 33, 50, 60):
        cf = CoherentConformalFilter(scorer, alpha=float(alpha))
        cf.fit(table[:n], truth[:n])
        assert cf.n_calibration_ == fewest[n]
        assert cf.n_calibration_ + len(cf.unused_indices_) == n
        used = np.setdiff1d(np.arange(n), cf.unused_indices_)
        alone = HardCF(scorer, alpha=float(alpha)).fit(table[used], truth[used])
        assert alone.threshold_ == cf.threshold_
