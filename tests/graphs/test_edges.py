"""Guessed dependency graphs: the rules, the measured agreement, hostile text."""

import pytest

from skdcf.edges import (
    chain_edges,
    cited_edges,
    heading_edges,
    number_flow_edges,
)


def test_simple_rules():
    assert chain_edges([]) == []
    assert chain_edges(["a"], "question") == []
    assert chain_edges(["a", "b", "c"]) == [(0, 1), (1, 2)]
    assert number_flow_edges([]) == []
    assert number_flow_edges(["a"], None) == []


@pytest.mark.parametrize(
    ("question", "claims", "expected"),
    [
        # numbers of the question are given, results are handed on
        ("3 bags of 4", ["3 * 4 = 12", "5 + 2 = 7", "12 + 7 = 19"],
         [(0, 1), (0, 2), (1, 2)]),
        # the latest mention counts
        ("", ["12", "12 / 2 = 6", "12 + 6 = 18"], [(0, 1), (1, 2)]),
        # thousands separators and trailing zeros
        ("", ["1,200.50 dollars", "7", "1200.5"], [(0, 1), (0, 2)]),
        ("", ["1{,}200", "7", "1200"], [(0, 1), (0, 2)]),
        # symbols
        ("", ["Let $x$ be the age.", "Let $y$ be the height.", "Hence x = 12."],
         [(0, 1), (0, 2)]),
        ("", ["a_{n} = 5", "b = 7", "a_n + 3"], [(0, 1), (0, 2)]),
        # step numbers, 0, 1 and articles link nothing; then the previous claim does
        ("", ["Step 3: a car", "Step 4: a bus", "Step 7: 3 cars", "1 bus"],
         [(0, 1), (1, 2), (2, 3)]),
        # the s of a genitive is no symbol
        ("", ["Ann's 12 apples", "Tom's 7 pears", "Tom\u2019s and 12"],
         [(0, 1), (0, 2)]),
    ],
)  # fmt: skip
def test_number_flow(question, claims, expected):
    assert number_flow_edges(claims, question) == expected


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        # numbered facts of the question are cited, too, and are no claims
        (["#3. (by #1) 12", "#4. (by #2) 7", "#5. (by #3 #4) 19"], [(0, 2), (1, 2)]),
        (["Step 1: 12", "Step 2 (from step 1): 6", "Step 4: 3", "So (by #4, #1) 1."],
         [(0, 1), (0, 3), (2, 3)]),
        # without numbers claims are counted from 1; nothing follows from later ones
        (["a (by #2)", "b (by #1 #1)", "c (using steps 3 and step 2)"], [(0, 1), (1, 2)]),
        # a number that comes twice means the latest
        (["#1 a", "#1 b", "#2 (by #1) c"], [(1, 2)]),
        # brackets and numbers that cite nothing
        (["3 apples", "6 (from 1 bag)", "7 (#1)", "8 (by 1)"], []),
        ([], []),
    ],
)  # fmt: skip
def test_cited_premises(claims, expected):
    assert cited_edges(claims) == expected


@pytest.mark.parametrize(
    "piece", ["1", " ", "a_", "step ", "**", "1,", "123,", "{", ".1", "** ", "\0", "٣"]
)
def test_hostile_text_takes_linear_time(piece):
    text = piece * 25_000  # a quadratic pattern would not come back today
    edges = number_flow_edges([text, text], text)
    assert set(edges) <= {(0, 1)}


def test_a_claim_depends_on_the_heading_above_it():
    claims = [
        "It is old.",
        "# A",
        "__It covers:__",
        "Fire.",
        "**Not covered**",
        "**Yes.**",
    ]
    claims += ["## B", "Floods.", "# C"]
    found = heading_edges(claims)
    assert found == [(1, 2), (2, 3), (1, 4), (4, 5), (1, 6), (6, 7)]
