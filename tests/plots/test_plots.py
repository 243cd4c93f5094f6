"""What pictures show, and what they refuse to show."""

import runpy

import numpy as np
import pytest
from scipy.integrate import trapezoid

from skdcf import CoherentConformalFilter, HardCF, ReasoningGraph
from skdcf.choosing import passing_answers
from skdcf.datasets import make_reasoning_graphs
from skdcf.evaluation import FilterReport, compare_filters, evaluate_filter
from skdcf.guarantees import NoFalseClaim
from skdcf.inspection import explain, shap_values
from skdcf.plots import (
    ImportanceDisplay,
    ReasoningGraphDisplay,
    ReportDisplay,
    ScoreDistributionDisplay,
)

plt = pytest.importorskip("matplotlib.pyplot")
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
    from matplotlib.colors import to_hex

    display = ReasoningGraphDisplay.from_graph(
        GRAPH, kept=[True, True, False], labels=[1, 0, 1]
    )
    nodes = nodes_of(display.ax_)
    assert [is_disc(node) for node in nodes] == [True, True, False]
    fills = [to_hex(node.get_facecolor()[0]) for node in nodes]
    assert fills[0] == fills[1] != fills[2]
    outlines = [node.get_linewidths()[0] for node in nodes]
    assert outlines[1] > outlines[0] == outlines[2]
    assert numbers_of(display.ax_) == ["1", "2×", "3"]  # noqa: RUF001
    heights = [node.get_offsets()[0][1] for node in nodes]
    assert heights[0] > heights[1] == heights[2]  # premises are on top
    assert display.ax_.get_title() == "2 of 3 claims kept"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"kept": ["False"] * 3}, "kept .*<U5"),
        ({"kept": [1, 0, 1]}, "kept .*int64"),
        ({"kept": [True]}, r"kept.*shape"),
        ({"labels": [True, None, False]}, r"claim 1.*label.*None"),
        ({"labels": ["maybe", "false", "true"]}, "label.*maybe"),
        ({"labels": [1, 0]}, r"labels.*shape"),
    ],
)
def test_what_is_no_mask_is_refused(values, message):
    with pytest.raises(ValueError, match=message):
        ReasoningGraphDisplay.from_graph(GRAPH, **values)


def test_a_claim_that_nobody_judged_is_not_called_false():
    display = ReasoningGraphDisplay.from_graph(GRAPH, labels=[-1, 0, 1])
    assert numbers_of(display.ax_) == ["1?", "2×", "3"]  # noqa: RUF001


def test_texts_stand_beside_the_drawing():
    texts = [" ".join(["word", "$x^{$"] * k) for k in (1, 20, 3)]
    graph = ReasoningGraph(None, [(0, 1), (0, 2)], claims=texts)
    display = ReasoningGraphDisplay.from_graph(graph, kept=[True, False, True])
    display.figure_.canvas.draw()
    (said,) = [t for t in display.ax_.texts if "word" in t.get_text()]
    assert said.get_window_extent().x0 > display.ax_.get_window_extent().x1
    written = said.get_text().replace("\n", " ")
    for number, text in enumerate(texts, start=1):
        assert f"{number}. {text}" in written
    assert written.count("[kept]") == 2 and written.count("[dropped]") == 1


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


def test_reports_of_filters(reports):
    display = ReportDisplay.from_report(reports)
    left, right, false = display.axes_
    order = [1, 2, 0]
    for number, report in enumerate(reports.values()):
        names = ("coverage", "retention", "false_kept")
        for axes, name in zip(display.axes_, names, strict=True):
            x, shown = axes.containers[number].lines[0].get_data()
            np.testing.assert_allclose(x, [0.1, 0.2, 0.3], atol=0.1 / 3)
            np.testing.assert_allclose(shown, getattr(report, name)[order])
    both = [right.containers[i].lines[0].get_xdata() for i in range(2)]
    assert (both[1] - both[0] > 0.01).all()  # no error bar hides another
    for axes in (left, right, false):
        np.testing.assert_allclose(axes.get_xticks(), [0.1, 0.2, 0.3])
    legend = [text.get_text() for text in left.get_legend().get_texts()]
    assert set(legend) == {"95 % theory band", "guaranteed: 1 - alpha", *reports}
    assert display.figure_ is left.figure
    _, axes = plt.subplots(1, 3)
    alone = ReportDisplay.from_report(reports["claim_index"], ax=axes)
    assert list(alone.axes_) == list(axes)


def test_panels_of_reports(data, reports):
    graphs, y = data
    fitted = HardCF("claim_index").fit(graphs[:80], y[:80])
    display = ReportDisplay.from_estimator(
        {"early": fitted}, graphs[80:], y[80:], [0.1, 0.2], panels=["shown"]
    )
    (ax,) = display.axes_
    _, shown = ax.containers[0].lines[0].get_data()
    expected = evaluate_filter(fitted, graphs[80:], y[80:], [0.1, 0.2]).abstention
    np.testing.assert_allclose(shown, 1 - expected)
    with pytest.raises(ValueError, match=r"panel .*'price'"):
        ReportDisplay.from_report(reports, panels=["price"])
    with pytest.raises(ValueError, match=r"ax.*3 axes.*2"):
        ReportDisplay.from_report(reports, ax=plt.subplots(1, 2)[1])


def test_coverage_is_drawn_among_the_answers_that_pass(data):
    graphs, y = data
    guarantee = NoFalseClaim(show=0.5)
    half = HardCF("frequency-score", guarantee=guarantee, ties="jitter")
    filters = {
        "half pass": half.fit(graphs[:80], y[:80]),
        "all pass": HardCF("frequency-score").fit(graphs[:80], y[:80]),
    }
    levels = [0.1, 0.2, 0.3]
    panels = ["coverage", "passing", "false among shown"]
    display = ReportDisplay.from_estimator(
        filters, graphs[80:], y[80:], levels, panels=panels
    )
    assert "pass" in display.ax_.get_ylabel()
    passing = passing_answers(filters["half pass"], graphs[80:])
    assert 0 < passing.mean() < 1
    for number, (name, cf) in enumerate(filters.items()):
        counted = passing if name == "half pass" else np.ones_like(passing)
        coverage, share, _ = (
            ax.containers[number].lines[0].get_ydata() for ax in display.axes_
        )
        np.testing.assert_allclose(share, counted.mean())
        for alpha, found in zip(levels, coverage, strict=True):
            wrong = [
                (mask & (row != 1)).any()
                for mask, row in zip(
                    cf.predict(graphs[80:], alpha), y[80:], strict=True
                )
            ]
            assert found == pytest.approx(1 - np.sum(wrong) / counted.sum())
    without = ReportDisplay.from_estimator(filters["all pass"], graphs[80:], y[80:])
    assert "pass" not in without.ax_.get_ylabel()


def test_each_mark_stands_in_the_band_and_beside_the_promise_that_are_its_own(
    data, reports
):
    """Marks are shifted sideways; what they are compared with is shifted along."""
    from matplotlib.collections import PolyCollection

    graphs, y = data
    few = HardCF("claim_index").fit(graphs[:40], y[:40])
    other = evaluate_filter(few, graphs[80:], y[80:], [0.3, 0.1, 0.2])
    reports = reports | {"few": other}
    ax = ReportDisplay.from_report(reports).ax_
    (guaranteed,) = [c for c in ax.collections if "guaranteed" in c.get_label()]
    bands = [c for c in ax.collections if isinstance(c, PolyCollection)]
    lines = guaranteed.get_segments()
    points = [container.lines[0].get_data() for container in ax.containers]
    assert len(points) == 3 and len(bands) == 3
    for report, band, (x, shown) in zip(reports.values(), bands, points, strict=True):
        order = np.argsort(report.alpha)
        np.testing.assert_allclose(shown, report.coverage[order])
        boxes = [path.get_extents() for path in band.get_paths()]
        for at, (low, high), alpha in zip(
            x, report.coverage_band[order], report.alpha[order], strict=True
        ):
            (box,) = [b for b in boxes if b.x0 <= at <= b.x1]
            assert (box.y0, box.y1) == pytest.approx((low, high))
            (line,) = [one for one in lines if one[0][0] <= at <= one[1][0]]
            assert line[0][1] == line[1][1] == pytest.approx(1 - alpha)


def test_masks_and_labels_suffice():
    rng = np.random.default_rng(0)
    y = [rng.integers(0, 2, n) for n in rng.integers(1, 6, 60)]
    kept = {a: [rng.random(len(row)) < 3 * a for row in y] for a in (0.1, 0.2)}
    expected = FilterReport.from_predictions(y, kept)
    display = ReportDisplay.from_predictions(
        y, kept, panels=["coverage", "retention", "false kept"]
    )
    names = ("coverage", "retention", "false_kept")
    for ax, name in zip(display.axes_, names, strict=True):
        shown = ax.containers[0].lines[0].get_ydata()
        np.testing.assert_allclose(shown, getattr(expected, name))
    found = [c.get_label() for c in display.axes_[0].collections]
    assert "95 % theory band" not in found  # no law is known


def test_comparisons_of_filters(data):
    graphs, y = data
    filters = {name: HardCF(name) for name in ("frequency-score", "claim_index")}
    report = compare_filters(filters, graphs, y, [0.3, 0.1], cv=2, random_state=0)
    display = ReportDisplay.from_report(report)
    names = ("coverage", "retention", "false_kept")
    for ax, key in zip(display.axes_, names, strict=True):
        for number, container in enumerate(ax.containers):
            x, shown = container.lines[0].get_data()
            np.testing.assert_allclose(x, [0.1, 0.3], atol=0.2 / 3)
            mean = getattr(report, key)[number].mean(axis=0)
            np.testing.assert_allclose(shown, mean[::-1])
    ax = ReportDisplay.from_report(report, panels=["shown"]).ax_
    shown = ax.containers[0].lines[0].get_ydata()
    np.testing.assert_allclose(shown, 1 - report.abstention[0].mean(axis=0)[::-1])
    left = display.ax_
    np.testing.assert_allclose(left.get_xticks(), [0.1, 0.3])


@pytest.fixture(scope="module")
def trained(data):
    graphs, y = data
    return CoherentConformalFilter("linear", random_state=0).fit(graphs, y)


def test_shapley_values(data, trained):
    graphs, _ = data
    report = shap_values(trained, graphs[:60])
    bars = ImportanceDisplay.from_report(report, max_features=4)
    names = [t.get_text() for t in bars.ax_.get_yticklabels()]
    assert names == [report.feature_names[j] for j in report.ranking[:4]]
    widths = [p.get_width() for p in bars.ax_.patches]
    np.testing.assert_allclose(widths, report.mean[report.ranking[:4]])


def test_permutation_importance(data):
    graphs, y = data
    trained = CoherentConformalFilter("linear", random_state=0).fit(graphs[:75], y[:75])
    display = ImportanceDisplay.from_estimator(
        trained, graphs[75:], y[75:], n_repeats=1, max_features=2, random_state=0
    )
    widths = [p.get_width() for p in display.ax_.patches]
    assert widths == sorted(widths, reverse=True) and len(widths) == 2
    assert "true claims per problem lost" in display.ax_.get_xlabel()


def test_scores_of_true_and_false_claims(data, trained):
    graphs, y = data
    filters = {"linear": trained, "frequency": HardCF("frequency-score").fit(graphs, y)}
    display = ScoreDistributionDisplay.from_estimator(filters, graphs, y)
    labels = np.concatenate(y)
    for ax, name in zip(display.axes_, filters, strict=True):
        assert ax.get_title() == name
        for line in ax.lines:
            x, density = line.get_data()
            assert trapezoid(density, x) == pytest.approx(1, abs=0.02)
    legend = [t.get_text() for t in display.axes_[0].get_legend().get_texts()]
    assert legend == [
        f"{(labels == 1).sum()} true claims",
        f"{(labels == 0).sum()} false claims",
    ]


@pytest.mark.long
def test_the_case_studies_show_the_claims_that_they_speak_of(checkout):
    page = runpy.run_path(
        str(checkout / "examples" / "scores" / "plot_case_studies.py")
    )
    new, trained, frequency = page["new"], page["trained"], page["frequency"]
    figures = [plt.figure(i).axes[0] for i in plt.get_fignums()]
    for claim, true, axes in zip(
        (page["rare"], page["often"]), (1, 0), figures, strict=True
    ):
        assert page["labels"][claim] == true == trained[claim]
        assert frequency[claim] == (0 if true else 5)
        assert page["by_frequency"][claim] == 1 - true
        total = new.features[claim] @ page["weights"]
        assert page["table"](claim).total == pytest.approx(total)
        number = new.problem_of[claim]
        own = trained[new.offsets[number] : new.offsets[number + 1]]
        assert [is_disc(node) for node in nodes_of(axes)] == own.tolist()
