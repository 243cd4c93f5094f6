"""The rows of the paper's table: each gradient, and each hard twin in the limit."""

import math

import numpy as np
import pytest
from autograd.test_util import check_grads
from random_graphs import random_problems, spaced_risks

from skdcf.ops import hard, segments, soft
from skdcf.relaxation import PathRelaxation

PROBLEMS = random_problems(5)
RNG = np.random.RandomState(6)
RISK = spaced_risks(RNG, PROBLEMS.offsets, 0.2)
PATH = PathRelaxation().plan(PROBLEMS.batch, PROBLEMS.labels)


def check(fun, *args):
    check_grads(fun, modes=["rev"], order=1)(*args)


@pytest.mark.parametrize("x", [-800.0, -30.0, 0.0, 1.0, 30.0, 600.0])
def test_log_sigmoid(x):
    exact = -math.log1p(math.exp(-x)) if x > -30 else x - math.exp(x)
    assert soft.log_sigmoid(np.array([x]))[0] == pytest.approx(exact, rel=1e-14)


@pytest.mark.parametrize("x", [-1e-261, -0.5, -40.0, -800.0])
def test_log1mexp(x):
    if x > -1e-10:
        exact = math.log(-x)  # 1 - exp(x) is -x to the last digit
    else:
        exact = math.log1p(-math.exp(x)) if x < -0.7 else math.log(-math.expm1(x))
    assert soft.log1mexp(np.array([x]))[0] == pytest.approx(exact, rel=1e-14)


def test_path_risk_and_scores_are_their_hard_twins():
    relaxation = PathRelaxation(keep_temperature=1e-9)
    R = hard.path_risk(RISK, PROBLEMS.batch)
    np.testing.assert_array_equal(soft.path_risk(RISK, PROBLEMS.batch), R)
    s = hard.nonconformity_scores(R, PROBLEMS.labels, PROBLEMS.batch.offsets)
    scores = relaxation.soft_scores(RISK, PATH)
    np.testing.assert_array_equal(scores, s)
    finite = np.isfinite(s)
    assert finite.any() and not finite.all()
    check(soft.standardised_risk, RISK)
    check(lambda r: soft.path_risk(r, PROBLEMS.batch), RISK)
    check(lambda r: relaxation.soft_scores(r, PATH)[finite], RISK)
    check(lambda r, t: PathRelaxation().kept(r, t, PATH), RISK, 0.4)
    kept = relaxation.kept(R, 0.45, PATH)
    np.testing.assert_allclose(kept, R < 0.45, atol=1e-12)


def test_tied_minima_share_the_gradient_and_empty_segments_have_none():
    values, offsets = np.array([2.0, 1.0, 1.0, 5.0]), np.array([0, 0, 3, 4])
    assert segments.segment_min(values, offsets).tolist() == [np.inf, 1, 5]
    gradient = segments._pull_min(
        np.array([7.0, 2.0, 3.0]), np.array([np.inf, 1.0, 5.0]), values, offsets
    )
    assert gradient.tolist() == [0, 1, 1, 3]
