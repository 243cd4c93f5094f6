"""Several answers to one question count as one, in every number that is reported."""

from itertools import product

import numpy as np
import pytest

from skdcf import HardCF, ReasoningGraph
from skdcf.evaluation import (
    FilterReport,
    compare_filters,
    evaluate_filter,
    leave_one_out,
)
from skdcf.guarantees import NoFalseClaim


def near_copies(rng, n_questions, n_answers, noise=1e-3):
    """One false claim per answer; answers to one question are almost equally risky."""
    score = np.repeat(rng.random(n_questions), n_answers)
    score += noise * rng.random(len(score))
    return score[:, None], np.zeros(len(score)), np.arange(len(score)) // n_answers


def test_each_question_weighs_the_same():
    y = [[1, 0], [1, 1], [1, 1], [0, 1]]
    kept = [[True, True], [True, False], [True, True], [False, True]]
    report = FilterReport.from_predictions(y, {0.1: kept}, groups=["a", "b", "b", "b"])
    assert report.n_problems == 4 and report.n_questions == 2
    assert report.coverage[0] == pytest.approx((0 + 1) / 2)
    assert report.retention[0] == pytest.approx((1 + (1 + 2 + 1) / 3) / 2)
    assert report.false_kept[0] == pytest.approx((1 + 0) / 2)
    alone = FilterReport.from_predictions(y, {0.1: kept})
    assert alone.coverage[0] == 3 / 4 and alone.n_questions == 4
    assert "4 problems (2 questions)" in str(report) and "questions" not in str(alone)


@pytest.mark.long
def test_intervals_over_questions_hold_what_they_say():
    """With 30 questions of 5 answers each, those over answers cover .68 for .95."""
    rng, n, m, repeats = np.random.default_rng(0), 30, 5, 600
    inside = {"questions": [], "answers": []}
    for _ in range(repeats):
        own = rng.random(n) < 0.15
        lost = np.where(
            rng.random((n, m)) < 0.92, own[:, None], rng.random((n, m)) < 0.15
        )
        groups = {"questions": np.repeat(np.arange(n), m), "answers": None}
        kept = {0.1: np.ones(n * m, bool)}
        for name, one in groups.items():
            y = 1 - lost.ravel().astype(int)
            low, high = FilterReport.from_predictions(
                y, kept, groups=one
            ).coverage_interval[0]
            inside[name].append(low <= 0.85 <= high)
    assert np.mean(inside["questions"]) > 0.95 - 3 * np.sqrt(0.95 * 0.05 / repeats)
    assert np.mean(inside["answers"]) < 0.75


@pytest.mark.long
@pytest.mark.parametrize("n", [20, 25])
def test_leave_one_out_leaves_a_question_out(n):
    """What it reports is what happens to a new question."""
    new = np.linspace(0, 1, 401)[:, None]
    rng, m, repeats, alpha = np.random.default_rng(1), 5, 100, 0.05
    gap = []
    for _ in range(repeats):
        X, y, groups = near_copies(rng, n, m)
        filter = HardCF(0, alpha=alpha).fit(X, y, groups)
        reported = 1 - leave_one_out(filter, X, y, [alpha], groups=groups).coverage[0]
        filter.calibrate(X[m:], y[m:], groups[m:])  # by one question fewer
        gap.append(filter.predict(new).mean() - reported)
    assert abs(np.mean(gap)) < 3 * np.std(gap, ddof=1) / np.sqrt(repeats)


@pytest.mark.long
def test_dropping_the_answer_alone_reports_too_little():
    rng, n, m, repeats, alpha = np.random.default_rng(2), 25, 5, 100, 0.05
    gap = []
    for _ in range(repeats):
        X, y, _ = near_copies(rng, n, m)
        filter = HardCF(0, alpha=alpha).fit(X, y, False)
        report = leave_one_out(filter, X, y, [alpha], groups=False)
        largest = np.sort(X[m:, 0])[::-1]  # risks are minus these
        threshold = largest[int(alpha * (len(largest) + 1)) - 1]
        gap.append((1 - threshold) - (1 - report.coverage[0]))
    assert np.mean(gap) > 4 * np.std(gap, ddof=1) / np.sqrt(repeats)


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
    assert abs(covered(1000) - np.mean(every)) < 4 * np.std(every) / np.sqrt(1000)
    assert covered(10, 0) == covered(10, 0) != covered(10, 1)
    assert np.isclose(covered(None), every).any()
    for options in ({"groups": groups}, {"groups": False}):
        with pytest.raises(ValueError, match="n_draws"):
            leave_one_out(filter, X, y, [alpha], n_draws=0, **options)


def test_a_comparison_is_the_mean_of_ten_draws():
    X, y, groups = near_copies(np.random.default_rng(0), 40, 2, noise=1.0)
    train, test = np.arange(20), np.arange(20, 80)
    alphas, cf = [0.1, 0.2], HardCF(0)
    report = compare_filters(
        {"one": cf},
        X,
        y,
        alphas,
        protocol="leave-one-out",
        cv=[(train, test)],
        groups=groups,
        random_state=0,
    )
    cf.fit(X[train], y[train], groups[train])
    new = {"groups": groups[test], "n_draws": 1}
    drawn = np.array(
        [
            leave_one_out(cf, X[test], y[test], alphas, random_state=s, **new).coverage
            for s in range(120)
        ]
    )
    found, mean, spread = report.coverage[0, 0], drawn.mean(axis=0), drawn.std(axis=0)
    assert (abs(found - mean) < 4 * spread / np.sqrt(10)).all()
    assert not np.isclose(found, drawn).all(axis=1).any()  # not of one draw
    assert report.n_calibration[0, 0].tolist() == [29, 29]


def answers(n, m, seed=0):
    """Problems that say their question, m answers to each."""
    rng = np.random.default_rng(seed)
    graphs, y = [], []
    for question in range(n):
        hard = rng.normal()
        for _ in range(m):
            x = hard + rng.normal(size=(3, 1))
            graphs.append(ReasoningGraph(x, (), problem=f"Question number {question}?"))
            y.append((x[:, 0] + rng.normal(size=3) > -0.5).astype(int))
    return graphs, y


def test_evaluation_and_comparison_read_the_question_off_the_problems():
    graphs, y = answers(60, 3)
    filter = HardCF(0, alpha=0.2).fit(graphs[:90], y[:90])
    report = evaluate_filter(filter, graphs[90:], y[90:], [0.2])
    assert (report.n_problems, report.n_questions) == (90, 30)
    alone = evaluate_filter(filter, graphs[90:], y[90:], [0.2], groups=False)
    assert alone.n_questions == 90
    assert np.diff(alone.coverage_interval[0]) < np.diff(report.coverage_interval[0])
    compared = compare_filters(
        {"it": HardCF(0)}, graphs, y, [0.2], cv=3, random_state=0
    )
    np.testing.assert_array_equal(compared.n_questions * 3, compared.sizes)
    with pytest.raises(ValueError, match=r"answers.*question.*two parts"):
        rows = np.arange(180)
        split = rows[:100], rows[100:140], rows[140:]
        compare_filters({"it": HardCF(0)}, graphs, y, [0.2], cv=[split])


def test_problems_that_the_filter_has_seen_are_said():
    graphs, y = answers(60, 1)
    filter = HardCF(0, alpha=0.2).fit(graphs[:40], y[:40])
    fresh = evaluate_filter(filter, graphs[40:], y[40:], [0.2])
    assert fresh.seen == (0, 0) and fresh.warning == ""
    again = evaluate_filter(filter, graphs, y, [0.2])
    assert again.seen == (0, filter.n_calibration_)
    assert (
        f"{filter.n_calibration_} of these problems were used for calibration"
        in str(again)
    )
