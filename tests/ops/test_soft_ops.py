"""The rows of the paper's table: each gradient, and each hard twin in the limit."""

import math

import numpy as np
import pytest
from autograd.test_util import check_grads
from random_graphs import random_problems, spaced_risks

from skdcf.ops import hard, soft, soft_grid
from skdcf.relaxation import GridRelaxation, PathRelaxation

PROBLEMS = random_problems(5)
RNG = np.random.RandomState(6)
RISK = spaced_risks(RNG, PROBLEMS.offsets, 0.2)
GRID = GridRelaxation(margin=0.7).plan(PROBLEMS.batch, PROBLEMS.labels)
PATH = PathRelaxation().plan(PROBLEMS.batch, PROBLEMS.labels)
THRESHOLDS = soft_grid.threshold_grid(RISK, GRID, 0.7)
N_PROBLEMS = len(PROBLEMS.batch)
CELL_CLAIM = np.repeat(np.arange(len(RISK)), np.diff(GRID.cell_offsets))
LOG_Q = np.log(RNG.uniform(0.05, 0.95, len(CELL_CLAIM)))


def check(fun, *args):
    check_grads(fun, modes=["rev"], order=1)(*args)


@pytest.mark.parametrize("x", [-800.0, -30.0, -1.0, 0.0, 1.0, 30.0, 600.0])
def test_log_sigmoid(x):
    exact = -math.log1p(math.exp(-x)) if x > -30 else x - math.exp(x)
    assert soft.log_sigmoid(np.array([x]))[0] == pytest.approx(exact, rel=1e-14)


@pytest.mark.parametrize("x", [-1e-261, -1e-20, -0.5, -1.0, -40.0, -800.0])
def test_log1mexp(x):
    if x > -1e-10:
        exact = math.log(-x)  # 1 - exp(x) is -x to the last digit
    else:
        exact = math.log1p(-math.exp(x)) if x < -0.7 else math.log(-math.expm1(x))
    assert soft.log1mexp(np.array([x]))[0] == pytest.approx(exact, rel=1e-14)


def test_keep():
    check(lambda r, t: soft_grid.log_keep(r, t, GRID, 0.3), RISK, THRESHOLDS)
    sharp = np.exp(soft_grid.log_keep(RISK, THRESHOLDS, GRID, 1e-9, 1e-5))
    kept = THRESHOLDS[GRID.cell_threshold] >= RISK[CELL_CLAIM]
    np.testing.assert_allclose(sharp, kept, atol=1e-12)


def test_violation():
    check(lambda x: soft_grid.violation(x, GRID, 0.4), LOG_Q)
    V = soft_grid.violation(LOG_Q, GRID, 0.4)
    assert (V[GRID.false_share == 0] == 0).all() and (V[GRID.false_share > 0] > 0).all()
    kept = RNG.uniform(size=len(LOG_Q)) < 0.3
    V = soft_grid.violation(np.where(kept, -1e-200, -200.0), GRID, 1e-3)
    thresholds = GRID.cell_threshold[GRID.false_cells]
    bad = np.bincount(thresholds, kept[GRID.false_cells], len(V)) > 0
    np.testing.assert_allclose(V, bad, atol=1e-12)


def test_soft_supremum():
    V = soft_grid.violation(LOG_Q, GRID, 0.4)
    ends = GRID.grid_offsets
    V[ends[:-1]], V[ends[1:] - 1] = 0.01, 0.99  # it never falls in t
    check(lambda t, v: soft_grid.soft_supremum(t, v, GRID, 3.0, 1.3), THRESHOLDS, V)
    safe_below = RNG.uniform(0.2, 1.0, N_PROBLEMS)
    spread = np.repeat(safe_below, np.diff(GRID.grid_offsets))
    unsafe = (spread < THRESHOLDS).astype(float)
    limit = soft_grid.soft_supremum(THRESHOLDS, unsafe, GRID, 1e7, 1.5)
    for i in range(N_PROBLEMS):
        own = slice(*GRID.grid_offsets[i : i + 2])
        assert limit[i] == THRESHOLDS[own][unsafe[own] == 0].max()


def test_gated_weights():
    check(lambda t, b: soft_grid.gated_weights(t, b, GRID, 2.0, 0.3), THRESHOLDS, 0.45)
    weights = soft_grid.gated_weights(THRESHOLDS, 0.45, GRID, 1e4, 1e-9, 1e-5)
    for i in range(N_PROBLEMS):
        own = slice(*GRID.grid_offsets[i : i + 2])
        below = np.where(THRESHOLDS[own] < 0.45, THRESHOLDS[own], -np.inf)
        np.testing.assert_allclose(weights[own], below == below.max(), atol=1e-9)


def test_path_risk_and_scores_are_their_hard_twins():
    relaxation = PathRelaxation(keep_temperature=1e-9)
    R = hard.path_risk(RISK, PROBLEMS.batch)
    np.testing.assert_array_equal(soft.path_risk(RISK, PROBLEMS.batch), R)
    s = hard.nonconformity_scores(R, PROBLEMS.labels, PROBLEMS.batch.offsets)
    scores = relaxation.soft_scores(RISK, PATH)
    np.testing.assert_array_equal(scores, s)
    finite = np.isfinite(s)
    assert finite.any() and not finite.all()
    check(lambda r: soft.path_risk(r, PROBLEMS.batch), RISK)
    check(lambda r: relaxation.soft_scores(r, PATH)[finite], RISK)
    check(lambda r, t: soft.path_retention(r, t, 0.3), RISK, 0.4)
    kept = relaxation.kept(R, 0.45, PATH)
    np.testing.assert_allclose(kept, R < 0.45, atol=1e-12)
