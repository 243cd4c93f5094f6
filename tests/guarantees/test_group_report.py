"""Reports within groups, and what tells whether a filter is useful."""

import numpy as np
import pytest

from skdcf import HardCF
from skdcf.datasets import make_reasoning_graphs
from skdcf.evaluation import (
    coverage_interval,
    evaluate_filter,
)


@pytest.fixture(scope="module")
def data():
    graphs, y = make_reasoning_graphs(500, "felm", random_state=3, return_X_y=True)
    chains = [
        graph.replace(edges=[(v, v + 1) for v in range(graph.n_claims - 1)])
        for graph in graphs
    ]
    return chains, y


@pytest.fixture(scope="module")
def fitted(data):
    graphs, y = data
    cf = HardCF("frequency-score", alpha=0.1, ties="jitter", random_state=0)
    return cf.fit(graphs[:200], y[:200])


def test_groups_are_reports_of_their_own(data, fitted):
    graphs, y = data
    test, labels = graphs[200:], y[200:]
    size = np.array([g.n_claims for g in test])
    report = evaluate_filter(fitted, test, labels, [0.1], by=lambda b: b.sizes > 4)
    assert set(report.groups.group) == {True, False}
    for one in report.groups.rows:
        rows = np.flatnonzero((size > 4) == one["group"])
        alone = evaluate_filter(
            fitted, [test[i] for i in rows], [labels[i] for i in rows], [0.1]
        )
        assert one["n_problems"] == len(rows)
        for name in ("coverage", "retention", "coverage_interval_low"):
            assert one[name] == getattr(alone, name)[0]
    assert "group" in str(report.groups)


def test_intervals_count_questions(data, fitted):
    """Copies of each problem under one question say no more than the problems do."""
    graphs, y = data
    test, labels = graphs[200:300], y[200:300]
    single = evaluate_filter(fitted, test, labels, [0.1])
    many = evaluate_filter(
        fitted, test * 5, labels * 5, [0.1], groups=np.tile(np.arange(100), 5)
    )
    naive = evaluate_filter(fitted, test * 5, labels * 5, [0.1])

    def interval(report):
        return report.coverage_interval_low[0], report.coverage_interval_high[0]

    assert interval(many) == pytest.approx(interval(single), abs=0.002)
    assert np.ptp(interval(naive)) < np.ptp(interval(many))
    assert many.retention_error[0] == pytest.approx(single.retention_error[0], rel=1e-6)
    whole = evaluate_filter(fitted, test, labels, [0.1], groups=np.arange(100))
    assert interval(whole) == pytest.approx(
        coverage_interval(round(100 * single.coverage[0]), 100), abs=0.002
    )
