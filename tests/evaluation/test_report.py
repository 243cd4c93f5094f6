"""Errors, bands and tables of a comparison."""

import json
import math

import numpy as np
import pytest

from skdcf import HardCF, IndependentFactuality, SingleFeatureCF
from skdcf.datasets import make_reasoning_graphs
from skdcf.evaluation import ComparisonReport, compare_filters, evaluate_filter

ALPHAS = [0.1, 0.15, 0.3]


@pytest.fixture(scope="module")
def data():
    return make_reasoning_graphs(120, kind="felm", random_state=3, return_X_y=True)


@pytest.fixture
def filters():
    return {
        "frequency": HardCF("frequency-score"),
        "no graph": IndependentFactuality("frequency-score"),
        "index": SingleFeatureCF("claim_index", ties="jitter"),
    }


# --- errors and bands ----------------------------------------------------------------


def test_errors_by_hand():
    values = np.array([[[1.0], [2.0], [3.0], [4.0]]])  # variance 5/3 over 4 splits
    folds = report_of(np.ones((1, 4, 1)), values, sizes=(70, 15, 15))
    # (1/4 + 15/70) 5/3 = 65/84
    assert folds.retention_error[0, 0] == pytest.approx(math.sqrt(65 / 84))
    halves = report_of(np.ones((1, 4, 1)), values, sizes=(50, 50))
    assert halves.retention_error[0, 0] == pytest.approx(math.sqrt(25 / 12))
    single = report_of(np.ones((1, 1, 1)), values[:, :1])
    assert np.isnan(single.retention_error).all()


def report_of(coverage, retention, alpha=(0.1,), sizes=(70, 15, 15), **changes):
    coverage, retention = np.array(coverage), np.array(retention)
    n_splits = retention.shape[1]
    fields = {
        "names": tuple("abc"[: len(retention)]),
        "alpha": np.array(alpha),
        "coverage": coverage,
        "retention": retention,
        "abstention": np.zeros_like(retention),
        "passing": np.ones_like(retention),
        "true_claims": np.full(n_splits, 8.0),
        "sizes": np.array([sizes] * n_splits),
        "n_questions": np.array([sizes] * n_splits),
        "n_calibration": np.full(retention.shape, sizes[1]),
        "chosen": {name: [[{}]] * n_splits for name in "abc"},
        "seconds": np.zeros(retention.shape[:2]),
        "protocol": "folds" if len(sizes) == 3 else "leave-one-out",
    }
    fields["false_kept"] = fields["abstention"]
    fields["false_shown"] = 1 - coverage
    return ComparisonReport(**fields | changes)


# --- the report ----------------------------------------------------------------------


def test_rows_by_hand():
    coverage = [[[0.9], [0.92]], [[0.88], [0.9]], [[0.6], [0.6]]]
    retention = [[[1.0], [3.0]], [[2.0], [4.0]], [[0.0], [0.0]]]
    report = report_of(coverage, retention, sizes=(140, 30, 30))
    a, b, c = report.rows()
    assert [row["filter"] for row in (a, b, c)] == ["a", "b", "c"]
    assert (a["coverage"], b["retention"]) == pytest.approx((0.91, 3.0))
    assert [row["meets_target"] for row in (a, b, c)] == [True, False, False]
    assert [row["delta_pct"] for row in (a, b, c)] == pytest.approx([0, 50, -100])
    assert b["retention_share"] == pytest.approx(3 / 8)
    json.dumps(report.rows())  # plain numbers throughout
    delta = f"{b['delta_pct']:+.1f} +- {b['delta_error']:.1f}"
    assert delta in str(report)


def test_printed_tables(data, filters):
    graphs, labels = data
    report = compare_filters(filters, graphs, labels, ALPHAS, cv=2, random_state=0)
    lines = str(report).splitlines()
    assert lines[0].startswith("2 splits of 84/18/18 problems, folds")
    assert len(lines) == 2 + 3 * 3
    row = lines[2].split()
    assert row[:2] == ["0.100", "frequency"]
    assert float(row[2]) == pytest.approx(
        100 * report.coverage[0, :, 0].mean(), abs=0.06
    )
    assert row[4] in ("yes", "no")


def test_frames(data, filters):
    pytest.importorskip("pandas")
    graphs, labels = data
    report = compare_filters(filters, graphs, labels, ALPHAS, cv=2, random_state=0)
    frame = report.to_frame()
    assert len(frame) == 9 and frame["meets_target"].dtype == bool
    means = frame.pivot(index="filter", columns="alpha", values="retention")
    np.testing.assert_allclose(
        means.loc["no graph"], report.retention[1].mean(axis=0), rtol=1e-12
    )


def test_plot_shows_means_and_target(data, filters):
    plt = pytest.importorskip("matplotlib.pyplot")
    from skdcf.plots import ReportDisplay

    graphs, labels = data
    order = [0.3, 0.1, 0.15]
    report = compare_filters(filters, graphs, labels, order, cv=2, random_state=0)
    display = ReportDisplay.from_report(report)
    left = {c.get_label(): c.lines[0] for c in display.axes_[0].containers}
    lines = display.axes_[0].collections
    (guaranteed,) = [one for one in lines if "guaranteed" in one.get_label()]
    for (start, height), (end, same) in guaranteed.get_segments():
        assert height == same == pytest.approx(1 - (start + end) / 2)
    x, y = left["no graph"].get_data()
    np.testing.assert_allclose(x, ALPHAS, atol=0.05 / 3)
    np.testing.assert_allclose(y, report.coverage[1].mean(axis=0)[[1, 2, 0]])
    assert len(display.axes_[1].containers) == len(filters)
    plt.close(display.figure_)


def test_of_one_answer_no_error_is_said(data):
    graphs, y = data
    cf = HardCF("frequency-score", alpha=0.2).fit(graphs[:100], y[:100])
    printed = str(evaluate_filter(cf, graphs[100:101], y[100:101], [0.2]))
    assert "nan" not in printed and "-0.000" not in printed and "+-" not in printed
