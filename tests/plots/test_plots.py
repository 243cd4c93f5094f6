"""What pictures show, and what they refuse to show."""

import numpy as np
import pytest

from skdcf import CoherentConformalFilter, HardCF, ReasoningGraph
from skdcf.datasets import make_reasoning_graphs
from skdcf.evaluation import compare_filters, evaluate_filter
from skdcf.inspection import explain, shap_values
from skdcf.plots import (
    ImportanceDisplay,
    ReasoningGraphDisplay,
    ReportDisplay,
    ScoreDistributionDisplay,
)

plt = pytest.importorskip("matplotlib.pyplot")
from matplotlib.container import BarContainer, ErrorbarContainer  # noqa: E402

GRAPH = ReasoningGraph(np.zeros((3, 1)), [(0, 1), (0, 2)])


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def nodes_of(ax):
    """The drawn claims, in order, which networkx draws one by one."""
    from matplotlib.collections import PathCollection

    return [one for one in ax.collections if isinstance(one, PathCollection)]


def numbers_of(ax):
    return [t.get_text() for t in ax.texts if len(t.get_text()) < 4][:-1]


def is_disc(node):
    return len(node.get_paths()[0].vertices) > 10


def test_colour_shape_and_outline_say_what_is_kept_and_what_is_false():
    display = ReasoningGraphDisplay.from_graph(
        GRAPH, kept=[True, True, False], labels=[1, 0, -1]
    )
    nodes = nodes_of(display.ax_)
    assert [is_disc(node) for node in nodes] == [True, True, False]
    outlines = [node.get_linewidths()[0] for node in nodes]
    assert outlines[1] > outlines[0] == outlines[2]
    assert numbers_of(display.ax_) == ["1", "2×", "3?"]  # noqa: RUF001
    heights = [node.get_offsets()[0][1] for node in nodes]
    assert heights[0] > heights[1] == heights[2]  # premises are on top
    assert display.ax_.get_title() == "2 of 3 claims kept"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"kept": ["False"] * 3}, "kept .*<U5"),
        ({"labels": ["maybe", "false", "true"]}, "label.*maybe"),
        ({"labels": [1, 0]}, "label.* 3 claims"),
    ],
)
def test_what_is_no_mask_is_refused(values, message):
    with pytest.raises(ValueError, match=message):
        ReasoningGraphDisplay.from_graph(GRAPH, **values)


def test_a_picture_of_what_a_filter_did():
    X, y = make_reasoning_graphs(160, random_state=0, return_X_y=True)
    cf = HardCF(alpha=0.1).fit(X[:150], y[:150])
    i = next(i for i in range(150, 160) if not cf.predict(X[i : i + 1])[0].all())
    found = explain(cf, X[i])
    _, ax = plt.subplots()
    display = ReasoningGraphDisplay.from_estimator(cf, X[i], y[i], ax=ax)
    assert display.ax_ is ax and display.figure_ is ax.figure
    written = " ".join(" ".join(t.get_text() for t in ax.texts).split())
    assert all(reason in written for reason in found.reasons.values())
    assert ax.get_title().startswith(f"{found.kept.sum()} of ")
    display = ReasoningGraphDisplay.from_estimator(cf, X[i], alpha=0.5)
    n = X[i].n_claims
    assert display.ax_.get_title() == f"{n} of {n} claims kept"


@pytest.fixture(scope="module")
def data():
    return make_reasoning_graphs(150, kind="felm", random_state=0, return_X_y=True)


@pytest.fixture(scope="module")
def reports(data):
    graphs, y = data
    return {
        name: evaluate_filter(
            HardCF(name).fit(graphs[:80], y[:80]), graphs[80:], y[80:], [0.3, 0.1, 0.2]
        )
        for name in ("frequency-score", "claim_index")
    }


def test_each_mark_stands_in_its_band_and_beside_its_guarantee(data, reports):
    """Marks are shifted sideways; what they are compared with is shifted along."""
    graphs, y = data
    few = HardCF("claim_index").fit(graphs[:40], y[:40])
    other = evaluate_filter(few, graphs[80:], y[80:], [0.3, 0.1, 0.2])
    ax = ReportDisplay.from_report(reports | {"few": other}).ax_
    (guaranteed,) = [c for c in ax.collections if "guaranteed" in c.get_label()]
    lines = guaranteed.get_segments()
    marks = [c for c in ax.containers if isinstance(c, ErrorbarContainer)]
    bands = [c for c in ax.containers if isinstance(c, BarContainer)]
    for report, band, mark in zip(
        [*reports.values(), other], bands, marks, strict=True
    ):
        rows = sorted(report.rows, key=lambda row: row["alpha"])
        for row, bar, at in zip(rows, band, mark.lines[0].get_xdata(), strict=True):
            assert bar.get_x() <= at <= bar.get_x() + bar.get_width()
            ends = bar.get_y(), bar.get_y() + bar.get_height()
            low, high = row["coverage_band_low"], row["coverage_band_high"]
            assert ends == pytest.approx((low, high))
            (line,) = [one for one in lines if one[0][0] <= at <= one[1][0]]
            assert line[0][1] == line[1][1] == pytest.approx(1 - row["alpha"])
        bars = mark.lines[2][0].get_segments()
        intervals = [
            (r["coverage_interval_low"], r["coverage_interval_high"]) for r in rows
        ]
        np.testing.assert_allclose([bar[:, 1] for bar in bars], intervals)


def test_comparisons(data):
    graphs, y = data
    filters = {name: HardCF(name) for name in ("frequency-score", "claim_index")}
    report = compare_filters(filters, graphs, y, [0.3, 0.1], cv=2, random_state=0)
    display = ReportDisplay.from_report(report)
    names = "coverage", "retention", "false_kept"
    for ax, name in zip(display.axes_, names, strict=True):
        marks = [c for c in ax.containers if isinstance(c, ErrorbarContainer)]
        assert [mark.get_label() for mark in marks] == [*filters]
        for i, mark in enumerate(marks):
            means = [row[name] for row in report.rows[i::2]]
            np.testing.assert_allclose(mark.lines[0].get_ydata(), means[::-1])
    with pytest.raises(ValueError, match=r"ax.*3 axes.*2"):
        ReportDisplay.from_report(report, ax=plt.subplots(1, 2)[1])


@pytest.fixture(scope="module")
def trained(data):
    graphs, y = data
    return CoherentConformalFilter("linear", random_state=0).fit(graphs, y)


def test_importances(data, trained):
    graphs, _ = data
    report = shap_values(trained, graphs[:60])
    bars = ImportanceDisplay.from_report(report)
    names = [t.get_text() for t in bars.ax_.get_yticklabels()]
    assert names == report.feature[:10].tolist()
    widths = [p.get_width() for p in bars.ax_.patches]
    np.testing.assert_allclose(widths, report.mean[:10])


def test_scores_of_true_and_false_claims(data, trained):
    graphs, y = data
    filters = {"linear": trained, "frequency": HardCF("frequency-score").fit(graphs, y)}
    display = ScoreDistributionDisplay.from_estimator(filters, graphs, y)
    labels = np.concatenate(y)
    for ax, name in zip(display.axes_, filters, strict=True):
        assert ax.get_title() == name
        for bars in ax.containers:
            area = sum(bar.get_height() * bar.get_width() for bar in bars)
            assert area == pytest.approx(1)
        legend = [t.get_text() for t in ax.get_legend().get_texts()]
        assert legend == [
            f"{(labels == k).sum()} {k == 1}".lower() + " claims" for k in (1, 0)
        ]
