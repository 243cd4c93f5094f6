"""Coverage, retention and their intervals."""

import numpy as np
import pytest
from scipy.stats import beta, binom, binomtest

from skdcf import HardCF
from skdcf.datasets import make_reasoning_graphs
from skdcf.evaluation import (
    coverage_band,
    coverage_interval,
    coverage_score,
    error_rate_upper_bound,
    evaluate_filter,
    leave_one_out,
    retention_score,
)


@pytest.fixture(scope="module")
def data():
    return make_reasoning_graphs(300, kind="felm", random_state=1, return_X_y=True)


def test_scores_by_hand():
    y = [[1, 0, 1], [1, 1], [0]]
    kept = [[True, True, False], [True, True], [False]]
    kept = [np.array(row) for row in kept]
    assert coverage_score(y, kept) == pytest.approx(2 / 3)
    assert retention_score(y, kept) == 1.0
    assert coverage_score([1, 0], np.array([True, True])) == 0.5


def test_unknown_claims_are_not_counted_as_true():
    """They count as false where that is careful: a problem that keeps one is not covered."""
    y = [[1, -1], [1, 1, -1], [-1]]
    kept = [[True, True], [True, False, False], [False]]
    assert coverage_score(y, kept) == pytest.approx(2 / 3)
    assert retention_score(y, kept) == pytest.approx(2 / 3)
    as_false = [[max(label, 0) for label in row] for row in y]
    assert coverage_score(as_false, kept) == coverage_score(y, kept)


@pytest.mark.parametrize("bad", [2, -2, 0.5, np.nan, "1"])
def test_what_is_no_label(bad):
    with pytest.raises(ValueError, match=r"y.*0, 1, -1"):
        coverage_score([[1, bad]], [[True, True]])
    with pytest.raises(ValueError, match=r"kept.*\(0.*1\)"):
        coverage_score([[1, 0]], [[True, 2]])


def test_clopper_pearson_by_its_definition():
    for covered, n in ((0, 10), (7, 10), (10, 10), (90, 100)):
        low, high = coverage_interval(covered, n)
        if covered:
            assert binom.sf(covered - 1, n, low) == pytest.approx(0.025)
        if covered < n:
            assert binom.cdf(covered, n, high) == pytest.approx(0.025)
    with pytest.raises(ValueError, match=r"n_covered.*10.*11"):
        coverage_interval(11, 10)


def test_band_by_simulation():
    rng = np.random.default_rng(0)
    scores = np.sort(rng.random((20000, 50)), axis=1)
    coverage = 1 - scores[:, 4]  # k = floor(0.1 * 51) = 5
    low, high = coverage_band(50, 0.1)
    assert np.mean(coverage < low) == pytest.approx(0.025, abs=0.005)
    assert np.mean(coverage > high) == pytest.approx(0.025, abs=0.005)
    assert (low, high) == pytest.approx(beta.ppf([0.025, 0.975], 46, 5))
    observed = rng.binomial(40, coverage) / 40
    low, high = coverage_band(50, 0.1, n_test=40)
    assert np.mean((observed < low) | (observed > high)) <= 0.05
    assert coverage_band(8, 0.1) == (1.0, 1.0)


def test_report_equals_the_plain_scores(data):
    graphs, y = data
    filter = HardCF().fit(graphs[:100], y[:100])
    test, labels = graphs[100:], y[100:]
    report = evaluate_filter(filter, test, labels, alphas=[0.05, 0.1, 0.3])
    for i, alpha in enumerate(report.alpha):
        kept = filter.predict(test, alpha=alpha)
        assert report.coverage[i] == pytest.approx(coverage_score(labels, kept))
        assert report.retention[i] == pytest.approx(retention_score(labels, kept))
        shown = np.array([mask.any() for mask in kept])
        false = np.array(
            [(m & (row != 1)).any() for m, row in zip(kept, labels, strict=True)]
        )
        assert report.shown[i] == pytest.approx(shown.mean())
        assert report.abstention[i] == pytest.approx(1 - shown.mean())
        assert report.false_among_shown[i] == pytest.approx(false[shown].mean())
        left_out = [
            np.delete(false, j).sum() / np.delete(shown, j).sum() for j in range(200)
        ]
        jackknife = np.sqrt(199 / 200 * np.sum((left_out - np.mean(left_out)) ** 2))
        assert report.false_among_shown_error[i] == pytest.approx(jackknife, rel=0.02)
        assert report.shown_error[i] == pytest.approx(
            np.std(shown, ddof=1) / np.sqrt(200)
        )
        n_true = sum(
            (m & (row == 1)).sum() for m, row in zip(kept, labels, strict=True)
        )
        assert report.accuracy[i] == pytest.approx(n_true / sum(m.sum() for m in kept))
        assert report.threshold[i] == filter.threshold(alpha)
        counts = [(m & (row == 1)).sum() for m, row in zip(kept, labels, strict=True)]
        error = np.std(counts, ddof=1) / np.sqrt(200)
        assert report.retention_error[i] == pytest.approx(error)
    assert report.n_problems == 200
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


def test_report_prints_and_becomes_a_frame(data):
    graphs, y = data
    report = evaluate_filter(HardCF().fit(graphs, y), graphs, y, alphas=[0.1, 0.2])
    text = str(report)
    assert "300 problems, 299 for calibration; 299 of these problems" in text
    assert len(text.splitlines()) == 4
    frame = report.to_frame()
    assert frame.shape == (2, 18)
    np.testing.assert_array_equal(frame["retention"], report.retention)


@pytest.mark.parametrize("confidence_level", [0.5, 0.95, 0.999])
def test_interval_is_that_of_the_binomial_test(confidence_level):
    for n in (1, 2, 30, 1000):
        for k in {0, 1, n // 3, n - 1, n}:
            test = binomtest(k, n).proportion_ci(confidence_level, method="exact")
            found = coverage_interval(k, n, confidence_level=confidence_level)
            assert found == pytest.approx((test.low, test.high), abs=1e-9)


@pytest.mark.parametrize("confidence_level", [0, 1, 95, -0.1, np.nan])
def test_confidence_is_a_share(confidence_level):
    with pytest.raises(ValueError, match=r"confidence_level.*between 0.*1"):
        coverage_interval(1, 2, confidence_level=confidence_level)
    with pytest.raises(ValueError, match=r"confidence_level.*between 0.*1"):
        coverage_band(30, 0.1, confidence_level=confidence_level)


def test_report_for_a_table():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 1)), rng.integers(0, 2, 80)
    report = evaluate_filter(HardCF(0).fit(X, y), X, y, alphas=0.2)
    assert report.coverage[0] == coverage_score(
        y, HardCF(0, alpha=0.2).fit(X, y).predict(X)
    )


@pytest.mark.filterwarnings("ignore:.*no claims judged")
def test_reports_of_unknown_labels_are_those_of_false_ones():
    """Except for the true claims, of which there are no fewer."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 1)), rng.choice([-1, 0, 1], 200, p=[0.1, 0.2, 0.7])
    as_false = np.maximum(y, 0)
    filter = HardCF(0, alpha=0.2).fit(X[:100], as_false[:100])
    for evaluate in (evaluate_filter, leave_one_out):
        careful, plain = (
            evaluate(filter, X[100:], labels[100:], [0.1, 0.2])
            for labels in (y, as_false)
        )
        for name in ("coverage", "retention", "abstention", "threshold"):
            np.testing.assert_array_equal(getattr(careful, name), getattr(plain, name))
    weights = rng.random(100)
    assert filter.score(X[100:], y[100:], weights) == pytest.approx(
        np.average(filter.predict(X[100:]) & (y[100:] == 1), weights=weights)
    )


def test_weights_of_problems():
    y, kept = [[1, 0], [1, 1], [0]], [[1, 1], [1, 0], [0]]
    assert coverage_score(y, kept, sample_weight=[1, 2, 5]) == pytest.approx(7 / 8)
    assert retention_score(y, kept, sample_weight=[1, 2, 0]) == pytest.approx(1)
    twice = [0, 1, 1, 2]
    assert coverage_score(y, kept, sample_weight=[1, 2, 1]) == pytest.approx(
        coverage_score([y[i] for i in twice], [kept[i] for i in twice])
    )


@pytest.mark.parametrize("score", [coverage_score, retention_score])
@pytest.mark.parametrize(
    "bad", [[-1, 1, 1], [np.nan, 1, 1], [np.inf, 1, 1], [0, 0, 0], [1, 1], [[1, 1, 1]]]
)
def test_weights_that_are_none(score, bad):
    with pytest.raises(ValueError, match=r"[Ss]ample.weight|NaN|infinity|sample"):
        score([[1], [0], [1]], [[1], [0], [1]], sample_weight=bad)


@pytest.mark.parametrize("score", [coverage_score, retention_score])
def test_masked_labels_are_refused(score):
    """A masked label was read as what stands below the mask."""
    y = [np.ma.array([1, 0], mask=[0, 1]), np.array([1])]
    with pytest.raises(ValueError, match="mask"):
        score(y, [[True, True], [True]])


@pytest.mark.parametrize("confidence_level", [0.8, 0.95, 0.999])
def test_the_bound_of_an_audit_is_the_share_at_which_so_few_are_that_rare(
    confidence_level,
):
    for drawn in (1, 7, 50):
        for wrong in range(drawn):
            bound = error_rate_upper_bound(
                wrong, drawn, confidence_level=confidence_level
            )
            assert binom.cdf(wrong, drawn, bound) == pytest.approx(1 - confidence_level)
        assert (
            error_rate_upper_bound(drawn, drawn, confidence_level=confidence_level) == 1
        )


@pytest.mark.parametrize("numbers", [(-1, 5), (6, 5), (0, 0), (0.5, 5)])
def test_an_impossible_audit_is_refused(numbers):
    with pytest.raises(ValueError, match=r"n_errors|n_audited"):
        error_rate_upper_bound(*numbers)
    with pytest.raises(ValueError, match=r"confidence_level .*95"):
        error_rate_upper_bound(0, 5, confidence_level=95)
