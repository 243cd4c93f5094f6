"""Replies as models write them: mathematics, loose JSON, verdicts in words."""

import json
import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdcf.apps.llm import Decompose, DeduceGraph, Reply, Verify
from skdcf.apps.llm._replies import (
    conform,
    log_odds,
    number_rows,
    read_object,
    read_verdict,
    repair_json,
    verdicts_of,
)

# --- mathematics


@pytest.mark.parametrize(
    ("written", "shown", "meant"),
    [
        (r"\frac12", "", r"\frac12"),
        (r"\\frac12", "", r"\frac12"),
        (r"a\neq b", r"a \neq b", r"a\neq b"),
        (r"So\neq", "nothing of the kind", "So\neq"),
        (r"One.\nTwo.", r"\neq \nu \nabla", "One.\nTwo."),
        (r"\{x\} \, \alpha \_", "", r"\{x\} \, \alpha \_"),
        (r"\underline{x} \u00e9", "", "\\underline{x} \u00e9"),
        (r"1\/2", "", "1/2"),
        (r"say \"x\"", "", 'say "x"'),
        (r"caf\\u00e9", "", "caf\u00e9"),
        (r"In JSON, \\u00e9", r"In JSON, \u00e9", r"In JSON, \u00e9"),
    ],
)
def test_a_backslash_means_what_it_means_in_the_answer(written, shown, meant):
    repaired = repair_json(f'["{written}"]', shown)
    assert json.loads(repaired) == [meant]


WORDS = st.sampled_from([r"\frac12", r"\neq", r"\times", r"\beta", r"\rho", "is", "\n"])


@given(st.lists(WORDS, min_size=1).map(" ".join), st.booleans())
def test_mathematics_survives_single_and_double_backslashes(text, is_single):
    """Only a command whose first letter is that of an escape sequence can be written singly."""
    written = json.dumps([text])
    if is_single:
        written = re.sub(r"\\\\(?=[a-z])", r"\\", written)
    assert json.loads(repair_json(written, text)) == [text]


# --- objects

ROWS = {"claims": [{"span": "", "text": "a"}, {"span": "", "text": "b"}]}


@pytest.mark.parametrize(
    "text",
    [
        '{"claims": ["a", "b"]}',
        'Sure:\n```json\n{"claims": ["a", "b"]}\n```\nAnything else?',
        '{"claims": ["a", "b",],}',
        "{'claims': ['a', \"b\"]}",
        '{"thought": "{"} and then {"claims": ["a", "b"]}',
        '<think>{"claims": ["draft"]}</think>{"claims": ["a", "b"]}',
        '{"claims": ["draft"]} No, better: {"claims": ["a", "b"]}',
        '{"claims": ["draft"]} No, better: {"claims": [\'a\', \'b\']}',
        '{"reply": {"claims": ["a", "b"]}}',
        '["a", {"text": "b", "span": 7}]',
        '```json\n[{"text": "a"}, {"text": "b", "label": 1}]\n```',
        '{"claims": ["a\u200b", {"text": "b\\u000b", "span": null}]}',
        '{"claims": ["a", "b\\ud800"]}',
    ],
)
def test_claims_are_read_in_all_wrappings(text):
    rows = read_object(text, Decompose._reply)
    rows["claims"][1]["text"] = rows["claims"][1]["text"].removesuffix("?")
    assert rows == ROWS


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I am ill",
        "{" * 5000,
        '{"claims": ["a", "b"',
        '{"claims": [{"text": "a"}, {"text": "b"}',
        "{'claims': ['a', 'b",
        '{"claims": 3}',
        '{"claims": [3]}',
        "The claims are [1] and [2]",
        '{"claims": ["a"]} {"claims": ["b", ',
    ],
)
def test_what_is_incomplete_or_no_object_is_refused(text):
    with pytest.raises(ValueError, match="claims"):
        read_object(text, Decompose._reply)


@pytest.mark.parametrize("wrong", ["x", 1.5, [2], "NaN", None])
def test_numbers_are_checked(wrong):
    with pytest.raises(ValueError, match=r"builds_on.*got"):
        conform(
            {"premises": [{"claim": 1, "builds_on": [1, wrong]}]}, DeduceGraph._reply
        )


@given(st.permutations(range(4)), st.integers(0, 1))
def test_rows_are_numbered_in_order(order, first):
    rows = [{"claim": v + first, "builds_on": [first], "n": v} for v in order]
    numbered = number_rows(rows, 4)
    assert [row["n"] for row in numbered] == [0, 1, 2, 3]
    assert all(row["builds_on"] == [1] for row in numbered)


@pytest.mark.parametrize("claims", [[1], [1, 1], [1, 3], [2, 3], [1, None], [1, 2, 3]])
def test_rows_that_may_be_about_other_claims_are_refused(claims):
    with pytest.raises(ValueError, match="from 1 to 2"):
        number_rows([{"claim": claim} for claim in claims], 2)


@pytest.mark.parametrize(
    "text",
    [
        '["true", "TRUE, keep it"]',
        'The claim is ["true", "false"], which I doubt',
        '{"verdicts": ["true"]} or {"verdicts": ["false"]}',
    ],
)
def test_other_words_and_two_lists_are_refused(text):
    with pytest.raises(ValueError, match="verdict"):
        read_object(text, verdicts_of("true", "false"))


# --- verdicts


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ('{"why": null, "verdict": "true"}', "true"),
        ('{"why": ["a", "b"], "verdict": "incorrect"}', "false"),
        ("{'why': 'It\\'s so', 'verdict': True}", "true"),
        ('{"verdict": "true", "verdict": true}', "true"),
        ("Yes", "true"),
        ("No.", "false"),
        ("**Verdict:** False", "false"),
        ("After checking, the claim is **true**.", "true"),
        ("It might be so. But 2 + 2 = 4. Therefore the claim is true.", "true"),
        ("Sums are sums.\nThe claim is clearly incorrect because 2 + 2 = 4.", "false"),
        ("<think>false, or true?</think>\nThe claim is true.", "true"),
    ],
)
def test_a_verdict_is_read(text, verdict):
    assert read_verdict(Reply(text), Verify._reply) == verdict


@pytest.mark.parametrize(
    "text",
    [
        "The claim is true. So the answer is false.",
        "True, but the date is wrong",
        "True: 2 + 2 = 5. But that is wrong, so false",
        '{"verdict": "true"} {"verdict": "false"}',
        "{'verdict': 'true'} {'verdict': 'false'}",
        '{"verdict": "true", "verdict": "false"}',
        '{"reply": {"why": "a", "verdict": "true", "verdict": false}}',
        '{"verdict": "true or false"}',
        '{"why": "the claim is true", "verdict": null}',
        r'{"why": "{\"verdict\": \"true\"}"}',
        'The claim says "this is true".',
        "The claim isn't true.",
        "I cannot say that the claim is true.",
        "No. It is true",
        "Is it true? No.",
        "If it is true.",
        "It would be true.",
        "The correct value is 5.",
        "<think>The claim is true.",
        "It depends",
    ],
)
def test_what_is_no_clear_verdict_is_refused(text):
    with pytest.raises(ValueError, match="true or false"):
        read_verdict(Reply(text), Verify._reply)


def test_a_sentence_that_was_cut_off_is_no_verdict():
    with pytest.raises(ValueError, match="true or false"):
        read_verdict(Reply("The claim is true", finish_reason="length"), Verify._reply)


# --- log odds


def reply_of(*tokens):
    """A reply whose tokens are texts, or dicts with their alternatives."""
    tops = [{token: -0.01} if isinstance(token, str) else token for token in tokens]
    names = [next(iter(top)) for top in tops]
    return Reply("".join(names), tokens=names, top_logprobs=tops)


def test_the_odds_are_those_at_the_place_of_the_verdict():
    thought = {"true": -0.01, "false": -5.0}
    verdict = {"false": -0.1, " False": -3.0, "true": -2.4, "x": -0.5}
    reply = reply_of("<think>", thought, "</think>", '{"verdict": "', verdict, '"}')
    expected = -2.4 - math.log(math.exp(-0.1) + math.exp(-3.0))
    np.testing.assert_allclose(log_odds(reply, "false"), expected)


def test_the_last_verdict_counts_and_its_odds_are_clipped():
    first = '{"verdict": "', {"Yes": -0.1, "no": -2.0}, '"}'
    np.testing.assert_allclose(log_odds(reply_of(*first), "true"), 1.9)
    reply = reply_of(*first, '{"verdict": "', "no", '"}')
    assert log_odds(reply, "false") == -14


@pytest.mark.parametrize(
    "reply",
    [
        Reply("true"),
        Reply("true", tokens=["true"]),
        reply_of("It depends"),
        reply_of({"true": -3.0, "false": -0.1}),
    ],
)
def test_odds_that_are_unknown_or_contradict_the_verdict_have_its_sign(reply):
    assert log_odds(reply, "true") == 1.0
