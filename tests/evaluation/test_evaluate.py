"""Evaluations of one filter, against plain loops, refitting and simulations."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdcf import HardCF
from skdcf.datasets import make_reasoning_graphs
from skdcf.evaluation import (
    coverage_score,
    evaluate_filter,
    leave_one_out,
    retention_score,
)
from skdcf.guarantees import NoFalseClaim

CLAIM = st.tuples(st.sampled_from([1, 0, -1]), st.booleans())


@pytest.fixture(scope="module")
def data():
    return make_reasoning_graphs(300, kind="felm", random_state=1, return_X_y=True)


@given(st.lists(st.lists(CLAIM), min_size=1))
def test_scores_against_plain_loops(problems):
    """An unknown claim counts neither as true nor as covered."""
    y = [[label for label, _ in problem] for problem in problems]
    kept = [[k for _, k in problem] for problem in problems]
    n_true = [sum(k for label, k in problem if label == 1) for problem in problems]
    covered = [all(label == 1 for label, k in problem if k) for problem in problems]
    assert coverage_score(y, kept) == pytest.approx(np.mean(covered))
    assert retention_score(y, kept) == pytest.approx(np.mean(n_true))


def test_report_equals_the_plain_scores(data):
    graphs, y = data
    filter = HardCF().fit(graphs[:100], y[:100])
    test, labels = graphs[100:], y[100:]
    report = evaluate_filter(filter, test, labels, alphas=[0.05, 0.1, 0.3])
    for row in report.rows:
        kept = filter.predict(test, alpha=row["alpha"])
        pairs = list(zip(kept, labels, strict=True))
        shown = np.array([mask.any() for mask in kept])
        false = np.array([(mask & (own != 1)).any() for mask, own in pairs])
        n_true = [(mask & (own == 1)).sum() for mask, own in pairs]
        n_kept = sum(mask.sum() for mask in kept)
        left_out = [
            np.delete(false, j).sum() / np.delete(shown, j).sum() for j in range(200)
        ]
        jackknife = np.sqrt(199 / 200 * np.sum((left_out - np.mean(left_out)) ** 2))
        expected = {
            "coverage": coverage_score(labels, kept),
            "retention": retention_score(labels, kept),
            "retention_error": np.std(n_true, ddof=1) / np.sqrt(200),
            "shown": shown.mean(),
            "shown_error": np.std(shown, ddof=1) / np.sqrt(200),
            "false_among_shown": false[shown].mean(),
            "accuracy": sum(n_true) / n_kept,
            "false_kept": (n_kept - sum(n_true)) / 200,
            "threshold": filter.threshold(row["alpha"]),
            "target": 1 - row["alpha"],
        }
        assert {name: row[name] for name in expected} == pytest.approx(expected)
        assert row["false_among_shown_error"] == pytest.approx(jackknife, rel=0.02)
    assert report.n_problems == 200
    assert report.unfiltered == np.mean([0 in own for own in labels])
    assert report.n_calibration == filter.n_calibration_ == 99  # the rank of 100


@pytest.mark.filterwarnings("ignore::skdcf.exceptions.CalibrationWarning")
@pytest.mark.parametrize("ties", ["exclude", "jitter"])
def test_leave_one_out_equals_refitting(data, ties):
    graphs, y = data
    graphs, y = graphs[:60], y[:60]
    alphas = [0.01, 0.05, 0.1, 0.3, 0.5]
    filter = HardCF(ties=ties, random_state=0).fit(graphs, y)
    report = leave_one_out(filter, graphs, y, alphas)
    kept = []
    for i in range(60):
        rest = np.delete(np.arange(60), i)
        filter.calibrate(graphs[rest], [y[j] for j in rest])
        kept.append([filter.predict(graphs[[i]], alpha=a)[0] for a in alphas])
    for j in range(len(alphas)):
        masks = [row[j] for row in kept]
        # Of two claims that the jitter puts nearer to each other than what thresholds are
        # lowered by, the filter keeps none, and leave-one-out the lower one.
        most = coverage_score(y, masks) + 1e-12
        assert most - (ties == "jitter") * 3 / 60 <= report.coverage[j] + 1e-9
        assert report.coverage[j] <= most
        least = retention_score(y, masks) - 1e-12
        assert (
            least <= report.retention[j] <= least + 1e-9 + (ties == "jitter") * 3 / 60
        )


def test_reports_print_and_become_frames(data):
    graphs, y = data
    cf = HardCF().fit(graphs, y)
    report = evaluate_filter(cf, graphs, y, alphas=[0.1, 0.2])
    assert report.seen == (0, cf.n_calibration_)
    heading, names, *lines = str(report).splitlines()
    assert report.warning in heading and f"{cf.n_calibration_} for" in report.warning
    assert len(lines) == 2 and f"{report.retention[0]:.3f} +- " in lines[0]
    assert report.to_frame().to_dict("records") == report.rows
    for found in (names, report._repr_html_()):
        assert "theory band" in found and "filter" not in found
    fresh = evaluate_filter(cf, graphs[:1], y[:1], [0.2])
    assert "nan" not in str(fresh) and "-0.000" not in str(fresh)
    with pytest.raises(AttributeError, match="'colour'"):
        report.colour  # noqa: B018


# --- several answers to a question


def near_copies(rng, n_questions, n_answers, noise=1e-3):
    """One false claim per answer; answers to one question are almost equally risky."""
    score = np.repeat(rng.random(n_questions), n_answers)
    score += noise * rng.random(len(score))
    return score[:, None], np.zeros(len(score)), np.arange(len(score)) // n_answers


def test_each_question_weighs_the_same():
    everything = HardCF(0, alpha=0.5).fit(np.ones((9, 1)), np.ones(9, int))
    X, y = np.ones((4, 1)), np.array([0, 1, 1, 0])
    report = evaluate_filter(everything, X, y, [0.5], groups=["a", "b", "b", "b"])
    assert (report.n_problems, report.n_questions) == (4, 2)
    [row] = report.rows
    assert row["coverage"] == pytest.approx((0 + 2 / 3) / 2)
    assert row["retention"] == pytest.approx((0 + 2 / 3) / 2)
    assert row["false_kept"] == pytest.approx((1 + 1 / 3) / 2)
    assert "4 problems (2 questions)" in str(report)


def test_leave_one_out_by_question_equals_refitting():
    rng, n, m = np.random.default_rng(2), 15, 3
    X, y, groups = near_copies(rng, n, m, noise=0.4)
    filter = HardCF(0, alpha=0.2).fit(X, y, groups)
    report = leave_one_out(filter, X, y, [0.2], groups=groups)
    assert report.n_calibration == n - 1 and report.n_questions == n
    # Which answers calibrate is chosen once, among all; 14 of the 15 questions reach the rank.
    whole = filter.calibration_part(X, y, groups)
    chosen, _ = whole.choose(NoFalseClaim(), 0.2, fewest=False)
    kept = []
    for question in range(n):
        rows = chosen[groups[chosen] != question]
        filter.calibrate(X[rows], y[rows], False)
        kept.append(filter.predict(X[groups == question]).mean())
    assert report.coverage[0] == pytest.approx(1 - np.mean(kept))


@pytest.mark.long
def test_draws_of_leave_one_out_are_of_the_answer_that_calibrates():
    """Their mean is that over all choices of one answer to each question."""
    rng, n, m, alpha = np.random.default_rng(3), 5, 2, 0.2
    X, y, groups = near_copies(rng, n, m, noise=1.0)
    filter, every = HardCF(0, alpha=alpha).fit(X, y, groups), []
    for choice in product(range(m), repeat=n):
        kept = []
        for question in range(n):
            chosen = [q * m + one for q, one in enumerate(choice) if q != question]
            filter.calibrate(X[chosen], y[chosen], False)
            kept.append(filter.predict(X[groups == question]).mean())
        every.append(1 - np.mean(kept))
    assert np.std(every) > 0.05

    def covered(n_draws, seed=0):
        options = {"n_draws": n_draws, "random_state": seed}
        return leave_one_out(filter, X, y, [alpha], groups=groups, **options).coverage

    for seed in range(10):
        assert np.isclose(covered(1, seed), every).any()
    assert abs(covered(400) - np.mean(every)) < 4 * np.std(every) / np.sqrt(400)
    assert covered(10, 0) == covered(10, 0) != covered(10, 1)
    assert np.isclose(covered(None), every).any()
    for options in ({"groups": groups}, {"groups": False}):
        with pytest.raises(ValueError, match="n_draws"):
            leave_one_out(filter, X, y, [alpha], n_draws=0, **options)


def test_questions_are_read_off_the_problems(data):
    graphs, y = data
    filter = HardCF(alpha=0.2).fit(graphs[90:], y[90:])
    answers = [
        graph.replace(problem=f"Question number {i // 3}?")
        for i, graph in enumerate(graphs[:90])
    ]
    report = evaluate_filter(filter, answers, y[:90], [0.2])
    alone = evaluate_filter(filter, answers, y[:90], [0.2], groups=False)
    assert (report.n_problems, report.n_questions) == (90, 30)
    assert alone.n_questions == 90
