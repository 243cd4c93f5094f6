"""A question that trained does not calibrate, whatever it is called at each entry point."""

import warnings

import numpy as np
import pytest

from skdcf import HardCF, ReasoningGraph
from skdcf.scorers import ClassifierScorer
from skdcf.uses import seen


def answers(n, start=0, text="question {}", key=None, context=None, seed=0):
    """One answer to each of n questions, with a text, a key, or both."""
    rng = np.random.default_rng(seed)
    graphs = []
    for i in range(start, start + n):
        graphs.append(
            ReasoningGraph(
                rng.normal(size=(2, 3)),
                (),
                problem=text and text.format(i),
                context=context and [context.format(i)],
                metadata=None if key is None else {"group": key(i)},
            )
        )
    return graphs, [[1, int(rng.uniform() < 0.6)] for _ in range(n)]


def trained_on(X, y, groups=None):
    filter = HardCF(ClassifierScorer(), alpha=0.2, random_state=0)
    return filter.fit(X, y, groups=groups)


NAMES = np.arange(60)
# What a question is called where it trained, and where it is to calibrate.
TWO_DOORS = {
    "by key, then by text": ({"key": str}, None, {}, None),
    "by text, then by key": ({}, None, {"key": str}, None),
    "by text, then by groups=": ({}, None, {}, NAMES),
    "by groups=, then by text": ({}, NAMES, {}, None),
    "7, then '7'": ({"key": int, "text": None}, None, {"key": str, "text": None}, None),
    "'7', then 7.0": ({"key": str, "text": None}, None, {"text": None}, NAMES * 1.0),
    "by text, then each by itself": ({}, None, {}, False),
    "each by itself, then by text": ({}, False, {}, None),
}


@pytest.mark.parametrize("case", TWO_DOORS)
def test_a_question_that_trained_is_refused_whatever_it_is_called(case):
    before, groups_before, now, groups_now = TWO_DOORS[case]
    cf = trained_on(*answers(60, **before), groups_before)
    X, y = answers(60, seed=1, **now)
    with pytest.raises(ValueError, match=r"train.*filter"):
        cf.calibrate(X, y, groups=groups_now)
    trained, calibrated = seen(cf, X, groups_now)
    assert (trained | calibrated).all() and trained.any() and calibrated.any()
    new, labels = answers(60, start=100, seed=2, **now)
    groups_new = (
        groups_now if groups_now is None or groups_now is False else NAMES + 100
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert cf.calibrate(new, labels, groups=groups_new).n_calibration_ == 59


def test_one_name_with_two_texts_is_one_question():
    cf = trained_on(*answers(60, text="first wording {}", key=str))
    with pytest.raises(ValueError, match=r"train.*filter"):
        cf.calibrate(*answers(60, text="second wording {}", key=str, seed=1))


def test_parts_with_names_and_parts_with_texts_are_refused():
    cf = HardCF(0, alpha=0.2).fit(*answers(40, start=500, seed=3))
    parts = [
        cf.calibration_part(*answers(30, key=str)),
        cf.calibration_part(*answers(30, seed=1)),
    ]
    with pytest.raises(ValueError, match=r"group.*text"):
        cf.calibrate_parts(parts)


def test_rows_and_parts_in_any_order_give_the_same_filter():
    X, y = answers(90, key=lambda i: i // 3)
    cf = HardCF(0, alpha=0.1).fit(X, y)
    scores = cf.nonconformity_scores_
    for seed in range(3):
        rows = np.random.default_rng(seed).permutation(90)
        shuffled = [X[i] for i in rows], [y[i] for i in rows]
        again = HardCF(0, alpha=0.1).fit(*shuffled)
        np.testing.assert_array_equal(again.nonconformity_scores_, scores)
        parts = [
            cf.calibration_part(shuffled[0][a:b], shuffled[1][a:b])
            for a, b in ((0, 20), (20, 70), (70, 90))
        ]
        cf.calibrate_parts(parts)
        np.testing.assert_array_equal(cf.nonconformity_scores_, scores)


def test_which_answers_calibrate_is_another_draw_for_each_set():
    """Split again and again, no question of a pool is always in, and none always out."""
    rng = np.random.default_rng(0)
    times = np.zeros(60)
    for _ in range(300):
        rows = rng.permutation(60)[:28]
        table = np.arange(60.0)[rows, None]
        labels = [[int(value >= 9)] for value in table[:, 0]]
        cf = HardCF(0, alpha=0.1).fit(table, labels)
        calibrating = np.delete(rows, cf.unused_indices_)
        times[calibrating] += 1
        assert len(calibrating) == 19
    share = times / 300
    chance = 19 / 60
    assert np.abs(share - chance).max() < 5 * np.sqrt(chance * (1 - chance) / 300)


def test_labels_have_no_say_in_which_answers_calibrate():
    X, y = answers(58)
    left = [
        HardCF(0, alpha=0.1).fit(X, labels).unused_indices_.tolist()
        for labels in (y, [[1, 1]] * 58, [[0, 0]] * 58)
    ]
    assert left[0] == left[1] == left[2] and len(left[0]) == 9
