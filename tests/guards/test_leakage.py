"""A column that holds the labels is noticed."""

import warnings

import numpy as np
import pytest

from skdcf import GraphBatch, HardCF
from skdcf.exceptions import LabelWarning

RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 2, 60)
NOISE = RNG.random(60)


def batch_with(column, names=("noise", "human")):
    table = np.column_stack([NOISE, column])
    return GraphBatch.from_arrays(table, range(0, 61, 2), edges=(), feature_names=names)


@pytest.mark.filterwarnings("ignore:.*no claims judged")
@pytest.mark.parametrize("unknown", [0, 10])
def test_a_column_of_the_labels_is_named(unknown):
    labels = LABELS.copy()
    labels[:unknown] = -1
    with pytest.warns(LabelWarning, match=rf"column human .*{60 - unknown} judged"):
        HardCF("noise", alpha=0.3).fit(batch_with(LABELS), labels)
    with pytest.warns(LabelWarning, match="column 1 "):
        HardCF(0, alpha=0.3).fit(np.column_stack([NOISE, LABELS]), LABELS)


@pytest.mark.parametrize("column", [1 - LABELS, LABELS * 0.9, 7 - 2 * LABELS])
def test_so_is_a_column_of_the_labels_in_other_numbers(column):
    with pytest.warns(LabelWarning, match="column human "):
        HardCF("noise", alpha=0.3).fit(batch_with(column), LABELS)


def test_other_columns_are_not():
    almost = LABELS.copy()
    almost[7] = 1 - almost[7]
    few = np.full(60, -1)
    few[:19] = LABELS[:19]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", "the column", LabelWarning)
        HardCF("noise", alpha=0.3).fit(batch_with(almost), LABELS)
        HardCF("noise", alpha=0.3).fit(batch_with(LABELS), few)
        HardCF("noise", alpha=0.3).fit(batch_with(LABELS + 0.01 * NOISE), LABELS)
