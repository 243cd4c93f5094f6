"""Noise that breaks ties: no copy of a problem may get other noise."""

import numpy as np
import pytest
from one_claim import one_claim_each

from skdcf import HardCF
from skdcf.graphs import as_batch
from skdcf.jitter import noise_of

STEP = 2.0**-10  # of the hash of jitter, in a problem whose largest feature is 1


ON_A_BORDER = {
    "half a step": [1.0, 300.5 * STEP],
    "near half a step": [1.0, (300.5 + 3e-7) * STEP],
    "half a power of two": [2**0.5, 0.25],
}


APART = {
    "a step": [1.0, 300 * STEP],
    "a third of a step": [1.0, (300 + 1 / 3) * STEP],
    "a power of two": [2.0, 0.25],
    "far enough from half a step": [1.0, (300.5 + 3e-6) * STEP],
}


@pytest.mark.parametrize("name", [*ON_A_BORDER, *APART])
def test_no_noise_where_a_copy_might_get_other_noise(name):
    rows = {**ON_A_BORDER, **APART}[name]
    others = 0.5 + 0.01 * np.arange(40)[:, None] + np.zeros((40, 2))
    table = np.vstack([[rows], others + 1 / 3e3])
    cf = HardCF(0, alpha=0.2, ties="jitter", calibration_size=None, random_state=0)
    cf.fit(one_claim_each(table), [[0]] * 41)
    assert cf.n_calibration_ + len(cf.unused_indices_) == 41
    if 0 in cf.unused_indices_:
        pytest.skip("the problem is left over")
    gap = np.abs(cf.max_path_risks_ + rows[0])
    assert (gap.min() == 0) == (name in ON_A_BORDER)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_noise_is_the_same_for_copies_of_any_size(scale):
    """Columns are rounded in steps of their own size, so that the last bits do not matter."""
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.random(60), rng.random(60)]) * scale
    copies = table * np.array([1.0, 1 + 1e-12])
    cf = HardCF(0, alpha=0.2, ties="jitter", random_state=0)
    cf.fit(one_claim_each(table), [[0]] * 60)
    risks = np.concatenate(cf.path_risk(one_claim_each(table)))
    assert np.unique(risks + table[:, 0]).size > 30
    np.testing.assert_array_equal(
        np.concatenate(cf.path_risk(one_claim_each(copies))), risks
    )


def test_noise_is_between_0_and_1():
    noise = noise_of(as_batch(np.random.default_rng(0).random((500, 2))), 0)
    assert 0 <= noise.min() < 0.05 and 0.95 < noise.max() < 1
