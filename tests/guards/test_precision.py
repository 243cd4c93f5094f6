"""Columns in half precision are used if and only if they calibrated."""

import numpy as np
import pytest

from skdcf import HardCF, ReasoningGraph


def bfloat16(table):
    bits = np.float32(table).view(np.uint32) & np.uint32(0xFFFF0000)
    return bits.view(np.float32).astype(float)


def float16(table):
    return np.float16(table).astype(float)


TABLE = 1 - np.random.default_rng(0).exponential(0.1, size=(200, 2))
LABELS = np.arange(200) % 3 > 0


@pytest.mark.parametrize("rounded", [float16, bfloat16])
def test_another_precision_than_in_calibration_is_refused(rounded):
    half = rounded(TABLE)
    cf = HardCF(0).fit(TABLE, LABELS)
    with pytest.raises(ValueError, match=r"column x0.*got True"):
        cf.predict(half)
    with pytest.raises(ValueError, match=r"column x1.*got True"):
        cf.predict(np.column_stack([TABLE[:, 0], half[:, 1]])[:3])
    cf.calibrate(half + 0, LABELS, groups=False)
    cf.predict(half)
    with pytest.raises(ValueError, match=r"column x0.*got False"):
        cf.filter([ReasoningGraph(TABLE[:1], ())])
    with pytest.raises(ValueError, match=r"column x0.*got False"):
        cf.predict(np.concatenate([half[:9], TABLE[:1]]))


def test_columns_with_numbers_of_both_kinds_are_not_compared():
    """Fractions of 32 are in half precision, and fractions of 30 are not."""
    rng = np.random.default_rng(0)
    thirds, halves = (rng.integers(0, n, size=(200, 1)) / n for n in (30, 32))
    cf = HardCF(0).fit(np.where(LABELS[:, None], thirds, halves), LABELS)
    cf.predict(halves)
    cf.predict(thirds)


def test_a_single_number_has_a_precision_and_round_numbers_have_none():
    cf = HardCF(0).fit(TABLE[:, :1], LABELS)
    cf.predict([[0.5], [0.25], [3]])
    for row in float16(TABLE[:9, :1]):
        with pytest.raises(ValueError, match=r"column x0.*got True"):
            cf.predict([row])
    HardCF(0).fit((TABLE[:, :1] > 0.9) / 2, LABELS).predict(TABLE[:, :1])


def graphs(table, names):
    return [ReasoningGraph([row], (), feature_names=names) for row in table]


@pytest.mark.filterwarnings("ignore:the order of the features")
def test_columns_are_compared_by_name():
    coarse = np.column_stack([float16(TABLE[:, 0]), TABLE[:, 1]])
    cf = HardCF("a").fit(graphs(coarse, ["a", "b"]), LABELS[:, None])
    cf.predict(graphs(coarse[:9, ::-1], ["b", "a"]))
    with pytest.raises(ValueError, match=r"column a.*got False"):
        cf.predict(graphs(TABLE[:9, ::-1], ["b", "a"]))
    cf = HardCF(0).fit(graphs(coarse, None), LABELS[:, None])
    with pytest.raises(ValueError, match=r"column x0.*got False"):
        cf.predict(graphs(TABLE[:9], ["a", "b"]))
