"""Soft against hard, as the benchmark of the paper compares them."""

import numpy as np
import pytest

from benchmarks.paper.agreement import last_safe_thresholds, surrogate_agreement
from skdcf import CoherentConformalFilter
from skdcf.datasets import make_reasoning_graphs
from skdcf.ops.hard import nonconformity_scores, path_risk
from skdcf.relaxation import GridRelaxation, PathRelaxation

SHARP_GRID = GridRelaxation(
    keep_temperature=1e-7,
    keep_shift=1e-5,
    violation_temperature=1e-2,
    violation_weight=1.05,
    sharpness=1e5,
    gate_temperature=1e-8,
    gate_shift=1e-6,
    quantile_strength=1e7,
    margin=1.0,
)
SHARP_PATH = PathRelaxation(keep_temperature=1e-5, quantile_temperature=1e-5)


@pytest.fixture(scope="module")
def fitted():
    graphs, y = make_reasoning_graphs(500, random_state=0, return_X_y=True)
    filter = CoherentConformalFilter(
        "linear", calibration_size=0.3, random_state=0
    ).fit(graphs[:300], y[:300])
    return filter, graphs[300:], y[300:]


@pytest.mark.parametrize("relaxation", [SHARP_GRID, SHARP_PATH])
def test_sharp_relaxations_are_the_hard_procedure(fitted, relaxation):
    alphas = np.arange(1, 16) / 100
    report = surrogate_agreement(*fitted, alphas, relaxation=relaxation)
    r_of_scores, _, r_of_thresholds, _ = report.numbers()
    assert min(r_of_scores, r_of_thresholds) >= 0.999
    assert (report.agreement >= 0.99).all()


def test_last_safe_threshold_by_trying_all():
    graphs, y = make_reasoning_graphs(200, kind="felm", random_state=1, return_X_y=True)
    risk = np.random.default_rng(0).integers(0, 5, graphs.n_claims).astype(float)
    labels = np.concatenate(y).astype(bool)
    r = path_risk(risk, graphs)
    scores = nonconformity_scores(r, labels, graphs.offsets)
    found = last_safe_thresholds(risk, scores, graphs.offsets, 2.0)
    for i, (a, b) in enumerate(
        zip(graphs.offsets[:-1], graphs.offsets[1:], strict=True)
    ):
        grid = [min(risk[a:b]) - 2.0, *risk[a:b], max(risk[a:b]) + 2.0]
        safe = [t for t in grid if labels[a:b][r[a:b] <= t].all()]
        assert found[i] == max(safe)
