"""A score that ranks backwards is noticed, and one that knows nothing is not."""

import warnings

import numpy as np
import pytest

from skdcf import GraphBatch, HardCF
from skdcf.exceptions import GuaranteeWarning, ParameterWarning


def test_a_score_that_ranks_backwards_warns():
    rng = np.random.default_rng(0)
    y = rng.random(200) < 0.7
    trust = (y + rng.normal(size=200))[:, None]
    with pytest.warns(ParameterWarning, match=r"sign.*risk"):
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


@pytest.mark.parametrize("n_forward", [0, 1])
def test_edges_that_all_lead_back_are_doubted_and_others_are_not(n_forward):
    rng = np.random.default_rng(0)
    edges = [(2 * i + 1, 2 * i) for i in range(30)]
    edges[:n_forward] = [(0, 1)][:n_forward]
    X = GraphBatch.from_arrays(rng.random((60, 1)), np.arange(31) * 2, edges)
    y = [[1, 0]] * 30
    if n_forward:
        HardCF(0, alpha=0.2).fit(X, y)  # a warning would be an error here
    else:
        with pytest.warns(GuaranteeWarning, match="reversed"):
            HardCF(0, alpha=0.2).fit(X, y)


def test_claims_of_one_answer_that_resemble_each_other_count_less():
    """In 100 draws of 40 answers, whose 20 claims each have one score and mostly one label."""
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ParameterWarning)
        for _ in range(100):
            of_answer = rng.normal(size=40)
            y = [(rng.random(20) < p).astype(int) for p in rng.choice([0.1, 0.9], 40)]
            X = GraphBatch.from_arrays(
                np.repeat(of_answer, 20)[:, None], np.arange(41) * 20, []
            )
            HardCF(0, alpha=0.2).fit(X, y)
