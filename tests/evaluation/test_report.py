"""Errors, bands and tables of a comparison."""

import json
import math

import numpy as np
import pytest

from skdcf import HardCF, IndependentFactuality, SingleFeatureCF
from skdcf.datasets import make_reasoning_graphs
from skdcf.evaluation import ComparisonReport, compare_filters
from skdcf.metrics import evaluate_filter

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


def test_differences_are_paired():
    retention = [[[1.0], [4.0], [2.0], [5.0]], [[2.0], [6.0], [5.0], [9.0]]]
    false = np.stack([np.zeros((4, 1)), np.full((4, 1), 0.5)])
    report = report_of(np.ones((2, 4, 1)), retention, false_kept=false)
    table = report.differences("a")
    assert (table.reference, table.names) == ("a", ("b",))
    assert table.difference[0, 0] == 2.5  # of 1, 2, 3, 4
    assert table.percent[0, 0] == pytest.approx(100 * (5.5 / 3 - 1))
    assert table.false_difference[0, 0] == 0.5
    assert table.naive_error[0, 0] == pytest.approx(math.sqrt(5 / 12))
    assert table.corrected_error[0, 0] == pytest.approx(math.sqrt(65 / 84))
    t = 2.5 / math.sqrt(65 / 84) / math.sqrt(3)  # Student's t with 3 degrees of freedom
    above = 0.5 - (t / (1 + t * t) + math.atan(t)) / math.pi
    assert table.p_value[0, 0] == pytest.approx(2 * above)
    back = report.differences("b")
    assert back.difference[0, 0] == -2.5 and back.p_value == table.p_value
    with pytest.raises(ValueError, match=r"reference .*'x'"):
        report.differences("x")


def test_differences_of_equal_filters_and_of_one_split():
    equal = report_of(np.ones((2, 3, 1)), np.zeros((2, 3, 1))).differences()
    assert equal.difference[0, 0] == 0 and equal.p_value[0, 0] == 1
    assert np.isnan(equal.percent[0, 0])
    single = report_of(np.ones((2, 1, 1)), [[[1.0]], [[2.0]]]).differences()
    assert single.percent[0, 0] == 100 and np.isnan(single.p_value[0, 0])


def test_band_of_the_mean_by_simulation():
    rng = np.random.default_rng(0)
    n, m, J, repeats = 31, 30, 20, 4000
    cut = np.sort(rng.random((repeats * J, n)))[:, 2]  # k = floor(0.1 * 32) = 3
    covered = (rng.random((repeats * J, m)) >= cut[:, None]).mean(axis=1)
    mean = covered.reshape(repeats, J).mean(axis=1)
    report = report_of(np.ones((1, J, 1)), np.ones((1, J, 1)), sizes=(70, n, m))
    low, high = report.coverage_band[0]
    assert np.mean(mean < low) == pytest.approx(0.025, abs=0.01)
    assert np.mean(mean > high) == pytest.approx(0.025, abs=0.01)
    few = report_of(np.ones((1, J, 1)), np.ones((1, J, 1)), sizes=(70, 8, m))
    assert few.coverage_band.tolist() == [[1.0, 1.0]]


def test_coverage_is_in_its_band():
    """All problems have an error and no two scores are tied: theory is exact."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 1)), np.zeros(400)
    run = {"alphas": [0.05, 0.1, 0.3], "random_state": 0}
    folds = compare_filters({"it": HardCF(0)}, X, y, cv=30, **run)
    low, high = folds.coverage_band.T
    mean = folds.coverage.mean(axis=(0, 1))
    assert ((low <= mean) & (mean <= high)).all() and (low < 1 - folds.alpha).all()
    halves = compare_filters(
        {"it": HardCF(0)}, X, y, protocol="leave-one-out", cv=3, **run
    )
    np.testing.assert_allclose(halves.coverage.mean(axis=(0, 1)), [0.95, 0.9, 0.7])
    np.testing.assert_allclose(halves.coverage_band, halves.coverage_band[:, [0, 0]])
    np.testing.assert_allclose(halves.coverage_band[:, 0], [0.95, 0.9, 0.7])


# --- the report ----------------------------------------------------------------------


def test_rows_by_hand():
    coverage = [[[0.9], [0.92]], [[0.88], [0.9]], [[0.6], [0.6]]]
    retention = [[[1.0], [3.0]], [[2.0], [4.0]], [[0.0], [0.0]]]
    report = report_of(coverage, retention, sizes=(140, 30, 30))
    a, b, c = report.rows()
    assert [row["filter"] for row in (a, b, c)] == ["a", "b", "c"]
    assert (a["coverage"], b["retention"]) == pytest.approx((0.91, 3.0))
    assert [row["meets_target"] for row in (a, b, c)] == [True, False, False]
    assert [row["in_band"] for row in (a, b, c)] == [True, True, False]
    assert [row["delta_pct"] for row in (a, b, c)] == pytest.approx([0, 50, -100])
    assert b["retention_share"] == pytest.approx(3 / 8)
    assert report.differences("b").percent[0, 0] == pytest.approx(-100 / 3)
    json.dumps(report.rows() + report.differences().rows())  # plain numbers throughout
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
    assert row[4] in ("yes", "no", "in")
    table = str(report.differences()).splitlines()
    assert len(table) == 2 + 2 * 3 and "'frequency'" in table[0]


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
    assert set(report.differences().to_frame()["filter"]) == {"no graph", "index"}


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
