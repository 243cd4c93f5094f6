"""What pictures show, and what they refuse to show."""

import numpy as np
import pytest

from skdcf import HardCF, ReasoningGraph
from skdcf.datasets import make_reasoning_graphs
from skdcf.evaluation import compare_filters
from skdcf.metrics import evaluate_filter
from skdcf.plots import (
    DROPPED,
    FALSE,
    KEPT,
    ComparisonDisplay,
    FilterReportDisplay,
    ReasoningGraphDisplay,
)

plt = pytest.importorskip("matplotlib.pyplot")
GRAPH = ReasoningGraph(np.zeros((3, 1)), [(0, 1), (0, 2)])


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_colours_say_what_is_kept_and_what_is_false():
    from matplotlib.colors import to_rgba

    display = ReasoningGraphDisplay.from_graph(
        GRAPH, kept=[True, True, False], labels=[1, 0, 1]
    )
    (dots,) = display.ax_.collections
    assert [tuple(c) for c in dots.get_facecolors()] == [
        to_rgba(c) for c in (KEPT, KEPT, DROPPED)
    ]
    assert [tuple(c) for c in dots.get_edgecolors()] == [
        to_rgba(c) for c in ("white", FALSE, "white")
    ]
    heights = dots.get_offsets()[:, 1]
    assert heights[0] > heights[1] == heights[2]  # premises are on top


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"kept": ["False"] * 3}, "kept holds <U5: booleans expected"),
        ({"kept": [1, 0, 1]}, "kept holds int64: booleans expected"),
        ({"kept": [True]}, "kept has shape"),
        ({"labels": [True, None, False]}, "claim 1: the label is None"),
        ({"labels": ["true", "false", "true"]}, "claim 0: the label is 'true'"),
        ({"labels": [1, 0]}, "labels has shape"),
    ],
)
def test_what_is_no_mask_is_refused(values, message):
    with pytest.raises(ValueError, match=message):
        ReasoningGraphDisplay.from_graph(GRAPH, **values)


def test_a_claim_that_nobody_judged_is_not_called_false():
    from matplotlib.colors import to_rgba

    display = ReasoningGraphDisplay.from_graph(GRAPH, labels=[-1, 0, 1])
    (dots,) = display.ax_.collections
    assert [tuple(c) for c in dots.get_edgecolors()] == [
        to_rgba(c) for c in ("white", FALSE, "white")
    ]


@pytest.fixture(scope="module")
def data():
    return make_reasoning_graphs(150, kind="felm", random_state=0, return_X_y=True)


def lines_of(axes):
    return {line.get_label(): line.get_data() for line in axes.lines}


def test_reports_of_filters(data):
    graphs, y = data
    reports = {
        name: evaluate_filter(
            HardCF(name).fit(graphs[:80], y[:80]), graphs[80:], y[80:], [0.1, 0.2, 0.3]
        )
        for name in ("frequency-score", "claim_index")
    }
    display = FilterReportDisplay.from_reports(reports)
    left, right = display.axes_
    for number, report in enumerate(reports.values()):
        for axes, name in ((left, "coverage"), (right, "retention")):
            x, shown = axes.containers[number].lines[0].get_data()
            np.testing.assert_allclose(x, report.alpha)
            np.testing.assert_allclose(shown, getattr(report, name))
    x, promised = lines_of(left)["promised: 1 - alpha"]
    np.testing.assert_allclose(promised, 1 - np.array(x))
    legend = [text.get_text() for text in left.get_legend().get_texts()]
    assert legend == ["promised: 1 - alpha", *reports]
    assert display.figure_ is left.figure
    _, axes = plt.subplots(1, 2)
    alone = FilterReportDisplay.from_reports(reports["claim_index"], axes=axes)
    assert list(alone.axes_) == list(axes)


def test_comparisons_of_filters(data):
    graphs, y = data
    filters = {name: HardCF(name) for name in ("frequency-score", "claim_index")}
    report = compare_filters(filters, graphs, y, [0.3, 0.1], cv=2, random_state=0)
    display = ComparisonDisplay.from_comparison(report)
    left, right = display.axes_
    for number, name in enumerate(filters):
        x, shown = lines_of(left)[name]
        np.testing.assert_allclose(x, [0.1, 0.3])
        np.testing.assert_allclose(shown, report.coverage[number].mean(axis=0)[::-1])
        _, kept = right.containers[number].lines[0].get_data()
        np.testing.assert_allclose(kept, report.retention[number].mean(axis=0)[::-1])
    np.testing.assert_allclose(lines_of(left)["promised: 1 - alpha"][1], [0.9, 0.7])
    same = report.plot(axes=plt.subplots(1, 2)[1])
    assert isinstance(same, ComparisonDisplay)
