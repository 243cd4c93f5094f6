"""Choosing one of several answers keeps the guarantee or is refused."""

import numpy as np
import pytest

from skdcf import GraphBatch, HardCF, ReasoningGraph
from skdcf.choosing import choose
from skdcf.exceptions import ParameterWarning

ALPHA = 0.1


def draw(rng, n_questions, k, n_claims=3):
    """K answers to each question, which share its difficulty; some answers overstate."""
    ease = np.repeat(rng.normal(size=n_questions), k * n_claims)
    merit = rng.normal(size=n_questions * k * n_claims)
    score = merit + np.repeat(1.5 * rng.normal(size=n_questions * k), n_claims)
    true = (merit + ease + rng.normal(size=len(merit)) > -1.5).astype(int)
    offsets = np.arange(0, len(score) + 1, n_claims)
    batch = GraphBatch.from_arrays(score[:, None], offsets, ())
    return batch, batch.split(true), np.repeat(np.arange(n_questions), k)


def pick(y, rows):
    return [y[i] for i in rows]


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X, y, _ = draw(rng, 60, 1)
    return HardCF(0, alpha=ALPHA).fit(X, y)


@pytest.fixture
def chosen_of_three(fitted):
    """A filter that is calibrated on the best of three answers."""
    rng = np.random.default_rng(1)
    X, y, question = draw(rng, 60, 3)
    chosen, rows = choose(fitted, X, question)
    cf = HardCF(0, alpha=ALPHA).fit(*draw(np.random.default_rng(0), 60, 1)[:2])
    return cf.calibrate(chosen, pick(y, rows))


def test_the_answer_with_the_smallest_risk_is_chosen(fitted):
    X, _, question = draw(np.random.default_rng(2), 20, 4)
    shuffled = np.random.default_rng(3).permutation(len(X))
    X, question = X[shuffled], question[shuffled]
    risks = [min(row) for row in fitted.path_risk(X)]
    by_hand = [
        min(np.flatnonzero(question == q), key=lambda i: risks[i])
        for q in dict.fromkeys(question.tolist())
    ]
    assert choose(fitted, X, question)[1].tolist() == by_hand


def test_an_answer_without_claims_is_chosen_only_if_there_is_no_other(fitted):
    empty = ReasoningGraph(np.zeros((0, 1)), ())
    X = [empty, ReasoningGraph([[-9.0]], ()), empty]
    assert choose(fitted, X, [0, 0, 1])[1].tolist() == [1, 2]
    with pytest.warns(ParameterWarning, match=r"3 questions.*one answer"):
        choose(fitted, X, [0, 1, 2])


def test_the_row_decides_no_tie():
    """The right answer comes first, and differs in the last bits of its safest claim."""
    rng = np.random.default_rng(4)
    X, y = [], []
    for _ in range(200):
        for is_right in (1, 0):
            X.append(ReasoningGraph([[2 + 1e-12 * is_right], [rng.normal()]], ()))
            y.append([is_right, is_right])
    question = np.repeat(np.arange(200), 2)
    cf = HardCF(0, alpha=0.5).fit(X[::2], y[::2])
    rows = choose(cf, X, question)[1]
    first = rows % 2
    assert 0.4 < first.mean() < 0.6
    back = choose(cf, X[::-1], question[::-1])[1][::-1]
    assert [id(X[::-1][i]) for i in back] == [id(X[i]) for i in rows]


def test_another_number_of_answers_is_refused(chosen_of_three):
    cf = chosen_of_three
    X, _, question = draw(np.random.default_rng(8), 10, 7)
    chosen, _ = choose(cf, X, question)
    with pytest.raises(ValueError, match=r"chosen_from.*3.*7"):
        cf.predict(chosen)
    cf.predict(choose(cf, *draw(np.random.default_rng(8), 10, 3)[::2])[0])


def test_what_was_chosen_is_not_chosen_among_again(chosen_of_three):
    X, _, question = draw(np.random.default_rng(12), 10, 3)
    chosen, _ = choose(chosen_of_three, X, question)
    with pytest.raises(ValueError, match="chosen_by"):
        choose(chosen_of_three, chosen)


def test_answers_that_were_chosen_otherwise_are_refused(chosen_of_three, fitted):
    X, _, question = draw(np.random.default_rng(9), 10, 3)
    chosen, _ = choose(chosen_of_three, X, question)
    for cf, new in ((chosen_of_three, X[:1]), (fitted, chosen)):
        with pytest.raises(ValueError, match="chosen_by"):
            cf.predict(new)


def test_a_filter_that_was_fitted_again_needs_its_own_choices(chosen_of_three):
    X, y, _ = draw(np.random.default_rng(10), 60, 1)
    other = HardCF(alpha=ALPHA, random_state=0).fit(X, y)
    new, _, question = draw(np.random.default_rng(11), 60, 3)
    with pytest.raises(ValueError, match="chosen_scorer"):
        chosen_of_three.predict(choose(other, new, question)[0])
