"""Advice in a message is worded by the entry point at which somebody reads it."""

import ast
import pickle
import string
from pathlib import Path

import pytest
from skdcf.apps.web.refusal import fault_of

import skdcf
from skdcf._messages import Advice, Message
from skdcf.apps._messages import advice_words, renumbered, reworded
from skdcf.datasets.records import read_problem

PACKAGE = Path(skdcf.__file__).parent


def advice_of_the_package():
    """{name: the fields of each place that gives this advice}."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Advice":
                fields = {keyword.arg for keyword in node.keywords}
                found.setdefault(ast.literal_eval(node.args[0]), []).append(fields)
    return found


def test_each_advice_has_words_and_all_words_are_used():
    assert advice_of_the_package().keys() == advice_words().keys()


@pytest.mark.parametrize("name", advice_words())
def test_words_name_fields_that_every_place_gives(name):
    for words in advice_words()[name].values():
        named = {field for _, field, _, _ in string.Formatter().parse(words) if field}
        assert all(named <= fields for fields in advice_of_the_package()[name])


LEVEL = Advice("fit_for_level", "fit(alpha=0.2)", alpha=0.2)


def test_each_entry_point_has_its_own_words():
    error = ValueError(Message("the level is low: ", LEVEL, "."))
    assert str(error) == "the level is low: fit(alpha=0.2)."
    words = "the level is low: fit again with --alpha 0.2."
    assert reworded(error, "program") == reworded(error, "client") == words
    assert reworded(error.args[0], "client") == words
    assert reworded("without advice", "client") == "without advice"


def test_advice_stays_in_messages_of_messages_and_in_pickles():
    error = ValueError(Message("line 3: ", Message("too low. ", LEVEL)))
    sent = pickle.loads(pickle.dumps(error))
    assert str(sent) == str(error)
    assert reworded(sent, "program") == "line 3: too low. fit again with --alpha 0.2"


def test_problems_count_from_1_where_lines_do():
    text = 'problem 5 ("q7") has no claims, and problem 10 neither'
    words = 'problem 6 ("q7") has no claims, and problem 11 neither'
    assert reworded(text, "program") == words
    assert reworded(text, "client") == text
    assert renumbered(ValueError(text), 100).startswith("problem 105 ")


def test_the_service_answers_in_words_of_a_request():
    broken = {"labls": [1], "question": "?", "claims": ["a"]}
    with pytest.raises(ValueError, match="labels") as caught:
        read_problem(broken)
    status, said = fault_of("/v1/filter", caught.value)
    assert status == 400 and 'did you mean "labels"? Rename it' in said
