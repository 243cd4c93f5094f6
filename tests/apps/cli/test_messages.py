"""Messages in the words of the door: no Python for who types commands or sends requests."""

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

import skdcf
import skdcf.datasets.records
from skdcf.apps._messages import reworded

PACKAGE = Path(skdcf.__file__).parent
TABLE = tomllib.loads((PACKAGE / "apps/messages.toml").read_text("utf-8"))["messages"]
#: What a reader of the program should not meet, once options such as --map a=b are cut out.
PYTHON = re.compile(
    r"\w+=[\w\[({\"'.]|\bTrue\b|\bFalse\b|\bNone\b|\w\(\)|\w\((?:X|\.\.\.)|predict\("
    r"|GraphBatch|ReasoningGraph|skdcf\.\w+|sklearn|ndarray|\bX\b"
)
OPTION = re.compile(r"--[\w-]+( \S+=\S+)?")
#: Rooms whose messages no command can cause: their settings are those of Python.
NO_COMMAND = [
    "_drawing.py",
    "_html.py",
    "apps/llm/_session.py",
    "apps/labelling/exchange.py",
    "guarantees/_calibration.py",
    "adapters/",
    "datasets/_agents.py",
    "datasets/runs.py",
    "relaxation/",
    "training/_settings.py",
    "graphs/_",
    "graphs/hashes.py",
    "evaluation/_search.py",
    "estimators/_parts.py",
    "inspection/_paper.py",
    "monitoring/",
    "scorers/_models.py",
    "plots/",
    "features/_models.py",
    "features/_answers.py",
    "features/_sets.py",
    "guarantees/_guarantees.py",
    "scorers/_stack.py",
    "persistence/_threshold.py",
    "ops/",
    "edges.py",
]
#: Other messages that no command can cause, by a part of their text.
NOT_REACHED = (
    "PRAGMA journal_mode",  # the tables of the journal, no message
    'calibration_size="cross" is gone',  # it is a number on the command line
    "thresholds of their own: thresholds",
    "makes guarantee=",
    "is set, but ",
    "would ignore it",
    "of this clone was set",
    "promise different things cannot be compared",
    "This table is read lazily",
    "skdcf.adapters",
    "is the name of a feature and a key",
    "function of whole answers",
    "counts the claims that are kept, also of those that come later",
    "stop=True needs",
    "edges={rule",
    "where a problem is expected",
    "X is ",
    "X has ",
    "requires y",
    "learns from the problems that calibrate",
    "learns from the problems that it is fitted to",
    "in front of it, such as reasoning_features()",
    "leave-one-out evaluation needs",
    "scorer is {scorer}, but must be",
    "takes THEIRS=OURS, as in text=claims",
    "cannot make a table",
    "transformer_list",
    "return_groups=True",
    "instead of a ReasoningGraph",
    "download_if_missing",
    "data_home",
    "cv={",
    "is a single ReasoningGraph",
    "weight={",
    "gave {n} groups",
    "gave a table",
    "its group by=",
    "(by={",
    "by={guarantee.by",
    "leave both at None",
    "no ChatClient",
    "is from a file and knows no address",
    "keeps no replies",
    "model is None",
    "features[{i}]",
    "why=False",
    "not linear",
    "cannot be saved: it holds an object",
    "filter {name}",
    "use skdcf.save",
    "compares one class",
    "scoring is",
    "accept_provenance is",
    "confirm_above=",
    "answer(text)",
    "fit takes X",
    "no table of numbers",
    "one array per problem, of several lengths",
    "one array per problem and no class",
)


def messages():
    """The texts of the package that may reach a reader, with {} where values stand."""
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE).as_posix()
        tree = ast.parse(path.read_text("utf-8"))
        inside = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                inside.add(node.value)  # a docstring
            if isinstance(node, ast.JoinedStr):
                inside |= set(node.values)
        for node in ast.walk(tree):
            if isinstance(node, (ast.JoinedStr, ast.Constant)) and node not in inside:
                text = text_of(node)
                if len(text) > 40 and " " in text:
                    yield place, text


def text_of(argument):
    """A literal, or an f-string with the code of its values in braces."""
    if isinstance(argument, ast.JoinedStr):
        return "".join(map(text_of, argument.values))
    if isinstance(argument, ast.FormattedValue):
        return "{" + ast.unparse(argument.value) + "}"
    is_text = isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    return argument.value if is_text else ""


@cache
def all_messages():
    """Read once, by the process that runs these tests."""
    return sorted(set(messages()))


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row["python"][:40])
def test_each_wording_is_that_of_a_message(row):
    """So that a message that changes takes its row of the table with it."""
    parts = [re.escape(part) for part in re.split(r"<\w+>", row["python"])]
    pattern = re.compile(r"[^ ]*(?:\{[^}]*\})?.*?".join(parts), re.DOTALL)
    said = [re.sub(r"\{key_shown\}", "key", text) for _, text in all_messages()]
    assert any(pattern.search(text) for text in said), row["python"]


def test_no_message_that_a_command_can_cause_holds_python():
    found = []
    for place, text in all_messages():
        if place.startswith(tuple(NO_COMMAND)) or any(p in text for p in NOT_REACHED):
            continue
        said = OPTION.sub("", reworded(text, "program"))
        said = re.sub(r"\{[^{}]*\}", "VALUE", said)
        if PYTHON.search(said):
            found.append(f"{place}: {said}")
    assert found == []


def test_values_are_said_again_and_doors_differ():
    text = 'Rename it (rename={"claim": "claims"}), or put'
    assert reworded(text, "program") == "Rename it (--map claim=claims), or put"
    assert reworded(text, "client") == "Rename it, or put"
    field = (
        "Give context=[...], texts that were got as those of the calibration problems, "
    )
    field += "or context=() where there are none"
    assert reworded(field, "program").startswith('Give each line "context": texts that')


def test_problems_count_from_1_where_lines_do():
    """What a message calls problem 6 is what `skdcf explain --id 6` prints."""
    text = 'problem 5 ("q7") has no claims, and problem 10 neither'
    words = 'problem 6 ("q7") has no claims, and problem 11 neither'
    assert reworded(text, "program") == words
    assert reworded(text, "client") == text


def test_the_service_answers_in_words_of_a_request():
    from skdcf.apps.web.refusal import fault_of

    broken = {"labls": [1], "question": "?", "claims": ["a"]}
    with pytest.raises(ValueError, match="rename=") as caught:
        skdcf.datasets.records.read_problem(broken)
    status, said = fault_of("/v1/filter", caught.value)
    assert status == 400 and 'did you mean "labels"? Rename it, or put' in said
    assert not PYTHON.search(said)
