"""Options of multiple-choice questions, and flags for metadata."""

import pytest

from skdcf import ReasoningGraph
from skdcf.features import OptionFeatures, reasoning_features

QUESTION = "Which is it?\nA: red fox \nB: grey wolf\n(C) brown bear\nD. none of these"


def rows(*claims, problem=QUESTION):
    graph = ReasoningGraph(None, claims=claims, problem=problem)
    batch = OptionFeatures().fit_transform([graph])
    return dict(zip(batch.feature_names, batch.features.T.tolist(), strict=True))


def test_options_by_hand():
    found = rows(
        "A fox is red, and this is not.",
        "A bear would be brown, which is incorrect.",
        "It is grey, a wolf.",
        "Choice_B",
    )
    assert found["option_is_chosen"] == [0, 0, 0, 1]
    assert found["option_words"] == [0, 0, 1, 0]
    assert found["option_rival"] == [1, 1, 0, 0]
    assert found["options_ruled_out"] == [0.25, 0.5, 0.5, 0.5]
    assert found["option_agrees"] == [1] * 4


def test_letter_that_the_text_does_not_support():
    found = rows("So it is a grey wolf.", "The answer is (A).")
    assert found["option_agrees"] == [-1, -1]
    assert found["option_is_chosen"] == [0, 1]


@pytest.mark.parametrize("problem", [None, "", "Why?\nA: one", "I saw a: b"])
def test_questions_without_options(problem):
    found = rows("The answer is A.", problem=problem)
    assert set(map(tuple, found.values())) == {(0.0,)}


def test_they_join_where_a_question_has_options():
    plain = ReasoningGraph(None, claims=["a"], problem="Why?")
    choice = plain.replace(problem=QUESTION)
    assert reasoning_features().fit([plain]).transform([choice]).n_features == 29
    names = reasoning_features().fit([plain, choice]).get_feature_names_out()
    assert tuple(names[29:]) == OptionFeatures.columns
