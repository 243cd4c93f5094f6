"""What is reported about judges is right, and the intervals cover."""

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.metrics import cohen_kappa_score

from skdcf.evaluation import judge_report


def report(accepted, labels, groups=None, **options):
    table = judge_report({"judge": accepted}, labels, groups, **options)
    return {row["measure"]: row for row in table.rows}


def limits(row):
    return pytest.approx((row["low"], row["high"]))


def sample(rng, n, n_labels, share=0.2, missed=0.4, refused=0.02):
    """Verdicts and labels of independent claims, the first ``n_labels`` with labels."""
    true = rng.random(n) >= share
    accepted = np.where(true, rng.random(n) >= refused, rng.random(n) < missed)
    return accepted, np.where(np.arange(n) < n_labels, true, -1)


def test_agreement():
    accepted, labels = sample(np.random.default_rng(0), 300, 100)
    known = labels >= 0
    rows = report(accepted, labels)
    kappa = cohen_kappa_score(labels[known], accepted[known])
    assert rows["kappa"]["estimate"] == pytest.approx(kappa)
    for name, label in (("false claims found", 0), ("true claims accepted", 1)):
        right = int((accepted[labels == label] == label).sum())
        exact = binomtest(right, int((labels == label).sum())).proportion_ci()
        assert tuple(exact) == limits(rows[name])


def test_corrected_rate_by_the_formula():
    accepted, labels = sample(np.random.default_rng(3), 2000, 200, missed=0.6)
    known = labels >= 0
    rows = report(accepted, labels)
    error = accepted[known] - (labels[known] == 1).astype(float)
    rate = np.mean(~accepted) + error.mean()
    assert rows["false claims, corrected"]["estimate"] == pytest.approx(rate)
    of_all = np.var(~accepted, ddof=1) / 2000
    half = 1.971957 * np.sqrt(of_all + np.var(error, ddof=1) / 200)
    assert (rate - half, rate + half) == limits(rows["false claims, corrected"])
    needed = rows["labels to halve the interval"]["estimate"]
    spread = of_all + np.var(error, ddof=1) / needed
    assert 1.971957 * np.sqrt(spread) == pytest.approx(half / 2, rel=0.01)


@pytest.mark.parametrize(
    ("n", "missed", "word"), [(50, 0.4, "disagree"), (2000, 0.4, "without labels")]
)
def test_labels_alone(n, missed, word):
    accepted, labels = sample(
        np.random.default_rng(0), n * 2, n, share=0.05, missed=missed
    )
    if "without" in word:
        accepted, labels = accepted[:n], labels[:n]
    row = report(accepted, labels)["false claims, corrected"]
    n_false = int((labels == 0).sum())
    assert tuple(binomtest(n_false, n).proportion_ci()) == limits(row)
    assert word in row["note"]


def test_a_question_counts_once():
    """Claims that repeat the first one of their question change nothing in rates."""
    accepted, labels = sample(np.random.default_rng(0), 2000, 200)
    once = report(accepted, labels)["false claims, corrected"]
    thrice = report(accepted.repeat(3), labels.repeat(3), np.arange(2000).repeat(3))
    assert thrice["false claims, corrected"] == pytest.approx(once)


def test_labels_cannot_shorten_what_few_answers_leave_open():
    accepted, labels = sample(
        np.random.default_rng(0), 1200, 1000, share=0.5, missed=0.2
    )
    row = report(accepted, labels)["labels to halve the interval"]
    assert np.isnan(row["estimate"]) and "cannot be reached" in row["note"]


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.2])
@pytest.mark.parametrize("n", [19, 50])
def test_missed_by_filters_that_leave_one_question_out(n, alpha):
    """The scores of each question are compared with a threshold from all the others."""
    accepted, labels = sample(np.random.default_rng(0), 3 * n, 3 * n)
    groups = np.arange(3 * n) // 3
    risk = np.random.default_rng(0).integers(0, 9, 3 * n) / 9
    k = int(round(alpha * (n + 1), 9))
    n_missed = 0
    for i in range(n):
        scores = sorted(
            min(risk[(groups == q) & ~accepted], default=np.inf)
            for q in range(n)
            if q != i
        )
        is_kept = risk < (scores[k - 1] if k else -np.inf)
        n_missed += (is_kept & (labels == 0) & (groups == i)).any()
    row = report(accepted, labels, groups, path_risk=risk)[f"missed at {alpha:g}"]
    assert row["estimate"] == pytest.approx(n_missed / n)
    assert tuple(binomtest(int(n_missed), n).proportion_ci()) == limits(row)


def test_nothing_is_kept_with_too_few_labels():
    accepted, labels = sample(np.random.default_rng(0), 30, 8)
    table = judge_report({"a": accepted, "b": labels}, labels, path_risk=np.zeros(30))
    assert "nothing is kept" in table.rows[-2 - 1]["note"]
    assert table.n_labelled == 8 and "fewer than 10" in table.heading
    assert "selected" in table.heading


def test_one_class_and_a_silent_judge():
    silent = report(np.ones(30), np.ones(30))
    assert "no false claim" in silent["false claims found"]["note"]
    assert "only one label" in silent["kappa"]["note"]
    silent = report(np.ones(30), np.arange(30) % 2)
    assert "never says false" in silent["kappa"]["note"]
    assert silent["false claims found"]["estimate"] == 0
    strict = report(np.zeros(30), np.zeros(30))
    assert "no true claim" in strict["true claims accepted"]["note"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"judged": {"ann": [1, np.nan, 0]}}, ["ann", "claim 1"]),
        ({"labels": [[1, 0], [0, 1]]}, ["labels", "(2, 2)", "people"]),
        ({"labels": [1, 2, 0]}, ["labels"]),
        ({"labels": [-1, -1, -1]}, ["labels", "-1"]),
        ({"groups": [0, 1, 1]}, ["labels", "claim 2"]),
        ({"groups": [0]}, ["groups", "(1,)"]),
    ],
)
def test_bad_input(change, words):
    good = {"judged": {"ann": [1, 0, 1]}, "labels": [1, 0, -1]}
    with pytest.raises(ValueError, match=r"(?s).*") as caught:
        judge_report(**good | change)
    assert [word for word in words if word not in str(caught.value)] == []
