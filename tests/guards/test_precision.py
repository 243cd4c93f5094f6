"""Columns in half precision are used if and only if they calibrated."""

from copy import copy

import numpy as np
import pytest

from skdcf import HardCF, ReasoningGraph
from skdcf.graphs import as_batch


def bfloat16(table):
    bits = np.float32(table).view(np.uint32) & np.uint32(0xFFFF0000)
    return bits.view(np.float32).astype(float)


def float16(table):
    return np.float16(table).astype(float)


TABLE = 1 - np.random.default_rng(0).exponential(0.1, size=(200, 2))
LABELS = np.arange(200) % 3 > 0


@pytest.mark.parametrize("scale", [1, 30_000])
@pytest.mark.parametrize("rounded", [float16, bfloat16])
def test_another_precision_than_in_calibration_is_refused(rounded, scale):
    fine = scale * TABLE
    half = rounded(fine)
    cf = HardCF(0).fit(fine, LABELS)
    with pytest.raises(ValueError, match=r"precision of column 0 .* got .float16"):
        cf.predict(half)
    with pytest.raises(ValueError, match=r"precision of column 1 .* got .float16"):
        cf.predict(np.column_stack([fine[:, 0], half[:, 1]])[:3])
    cf.calibrate(half + 0, LABELS, groups=False)
    cf.predict(half)
    with pytest.raises(ValueError, match=r"precision of column 0 .* got .float32"):
        cf.filter([ReasoningGraph(fine[:1], ())])
    with pytest.raises(ValueError, match=r"precision of column 0 .* got .float32"):
        cf.predict(np.concatenate([half[:9], fine[:1]]))


def test_a_column_with_numbers_of_both_kinds_has_the_finer_precision():
    """Fractions of 32 are in half precision, and fractions of 30 are not."""
    rng = np.random.default_rng(0)
    thirds, halves = (rng.integers(0, n, size=(200, 1)) / n for n in (30, 32))
    cf = HardCF(0).fit(np.where(LABELS[:, None], thirds, halves), LABELS)
    cf.predict(thirds)
    cf.predict(np.concatenate([*[halves] * 9, thirds[:1]]))
    with pytest.raises(ValueError, match=r"precision of column 0 .* got .float16"):
        cf.predict(np.append(np.zeros(2000), halves)[:, None])


@pytest.mark.parametrize("online", [False, True])
def test_a_single_number_has_a_precision_and_round_numbers_have_none(online):
    cf = HardCF(0, online=online).fit(TABLE[:, :1], LABELS)
    cf.predict([[0.5], [0.25], [3]])
    for row in float16(TABLE[:9, :1]):
        with pytest.raises(ValueError, match=r"precision of column 0 .* got .float16"):
            cf.predict([row])
    HardCF(0).fit((TABLE[:, :1] > 0.9) / 2, LABELS).predict(TABLE[:, :1])
    counts = np.arange(70_001.0, 70_201)[:, None]
    HardCF(0).fit(counts, LABELS).predict([[70_016]])  # in neither of the formats


def graphs(table, names):
    return [ReasoningGraph([row], (), feature_names=names) for row in table]


@pytest.mark.filterwarnings("ignore:the order of the features")
def test_columns_are_compared_by_name():
    coarse = np.column_stack([float16(TABLE[:, 0]), TABLE[:, 1]])
    cf = HardCF("a").fit(graphs(coarse, ["a", "b"]), LABELS[:, None])
    cf.predict(graphs(coarse[:9, ::-1], ["b", "a"]))
    with pytest.raises(ValueError, match=r"precision of column .a. .* got .float32"):
        cf.predict(graphs(TABLE[:9, ::-1], ["b", "a"]))
    cf = HardCF(0).fit(graphs(coarse, None), LABELS[:, None])
    with pytest.raises(ValueError, match=r"precision of column 0 .* got .float32"):
        cf.predict(graphs(TABLE[:9], ["a", "b"]))


def test_a_filter_that_was_calibrated_on_fewer_columns_can_be_copied():
    cf = HardCF("b").fit(graphs(TABLE, ["a", "b"]), LABELS[:, None])
    cf.calibrate(graphs(TABLE[:, 1:], ["b"]), LABELS[:, None])
    assert copy(cf).threshold_ == cf.threshold_


def test_parts_are_read_together():
    cf = HardCF(0).fit(TABLE, LABELS)
    half = TABLE.copy()
    half[:4] = float16(half[:4])
    rows = np.split(np.arange(200), 50)
    cf.calibrate_parts([cf.calibration_part(half[r], LABELS[r], False) for r in rows])
    batch = as_batch(np.ones((2, 2)))
    cf.predict(batch)
    with pytest.raises(ValueError, match=r"precision of column 0 .* got .float16"):
        cf.predict(batch.replace_features(float16(TABLE[:2])))


@pytest.mark.parametrize("online", [False, True])
def test_one_number_next_to_a_finer_column_may_be_short_by_chance(online):
    cf = HardCF(0, online=online).fit(TABLE, LABELS)
    new = np.column_stack([float16(TABLE[:2, 0]), TABLE[:2, 1]])
    cf.predict(new[:1])
    with pytest.raises(ValueError, match=r"precision of column 0 .* got .float16"):
        cf.predict(new)
    parts = [
        cf.calibration_part(float16(TABLE[i : i + 1]), LABELS[i : i + 1], False)
        for i in range(200)
    ]
    cf.calibrate_parts(parts)
    with pytest.raises(ValueError, match=r"precision of column 0 .* got .float32"):
        cf.predict(TABLE)
