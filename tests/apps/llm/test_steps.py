"""Each step alone: what it asks, and what it makes of the reply."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdcf import ReasoningGraph
from skdcf.apps.llm import (
    CallError,
    Decompose,
    DeduceGraph,
    Frequency,
    SampleAnswers,
    SemanticJudge,
    Verify,
    judge_labels,
)

GRAPH = ReasoningGraph.from_parents(
    [[], [0], [0, 1]],
    claims=["a is 2", "b is 3", "a + b is 5"],
    problem="What is a + b?",
    alternatives=["a = 2, b = 3, so 5", "no idea"],
)


class Replies:
    """Function that returns one reply after the other, the last one again and again."""

    def __init__(self, *replies):
        self.replies = [r if isinstance(r, str) else json.dumps(r) for r in replies]
        self.seen = []

    def __call__(self, messages, **options):
        self.seen.append(messages)
        return self.replies[min(len(self.seen), len(self.replies)) - 1]

    def question(self, i=0):
        return json.loads(self.seen[i][1]["content"])


def run(step, *item, client):
    [result] = step.apply(*([value] for value in item), model="m", client=client)
    return result


def verdicts(*words):
    return {"verdicts": [{"claim": v, "verdict": w} for v, w in enumerate(words, 1)]}


def premises(*parents):
    rows = [{"claim": v, "builds_on": p} for v, p in enumerate(parents, 1)]
    return {"premises": rows}


# --- claims


def test_claims_have_the_words_of_the_answer():
    client = Replies({"claims": [{"span": "it's 4", "text": "2 + 2 = 4"}, "even"]})
    claims = run(Decompose(), "it's 4, even", "2 + 2?", client=client)
    assert claims == ["2 + 2 = 4", "even"]
    assert [claim.span for claim in claims] == ["it's 4", ""]
    assert client.question() == {"question": "2 + 2?", "answer": "it's 4, even"}


@pytest.mark.parametrize("texts", [[""], ["..."], ["a", " "]])
def test_claims_without_words_are_asked_for_again(texts):
    client = Replies({"claims": texts}, {"claims": ["a"]})
    assert run(Decompose(), "a", None, client=client) == ["a"]
    assert len(client.seen) == 2


def test_an_empty_answer_needs_no_call():
    client = Replies("never")
    assert run(Decompose(), " ", None, client=client) == []
    assert client.seen == []


# --- edges


@pytest.mark.parametrize("bad", [[3], [9], [-1], [2], ["x"]])
def test_premises_that_are_no_earlier_claims_are_asked_for_again(bad):
    client = Replies(premises([], bad, []), premises([], [1], [1, 2]))
    edges = run(DeduceGraph(), GRAPH.claims, None, client=client)
    assert edges == [(0, 1), (0, 2), (1, 2)]
    assert "cannot be used" in client.seen[1][3]["content"]


VALUES = st.one_of(st.integers(-2, 6), st.none(), st.booleans(), st.text(max_size=2))
ROWS = st.fixed_dictionaries(
    {}, optional={"claim": VALUES, "builds_on": st.one_of(VALUES, st.lists(VALUES))}
)


@given(st.lists(st.one_of(ROWS, VALUES), max_size=6))
def test_any_reply_leads_to_a_valid_graph_or_to_none(rows):
    claims = ["a", "b", "c", "d"]
    edges = run(DeduceGraph(), claims, None, client=Replies({"premises": rows}))
    if edges is not None:
        ReasoningGraph(None, edges, claims=claims)  # raises if there is a cycle


@pytest.mark.parametrize("claims", [["a"], ["#1. a is 2", "#2. so b (by #1)"]])
def test_single_claims_and_cited_premises_need_no_call(claims):
    client = Replies("never")
    edges = run(DeduceGraph(), claims, None, client=client)
    assert edges == [(0, 1)][: len(claims) - 1] and client.seen == []


# --- columns


def test_frequency_is_the_sum_of_the_votes():
    client = Replies(
        verdicts("supports", "silent", "contradicts"),
        verdicts("Supports", "silent", "silent"),
    )
    graph = GRAPH.replace(context=["passage"])
    table = run(Frequency(), graph, client=client)
    np.testing.assert_array_equal(table, [[2], [0], [-1]])
    assert [client.question(i)["other"] for i in (0, 1)] == list(GRAPH.alternatives)
    assert client.question()["context"] == ["passage"]
    np.testing.assert_array_equal(
        run(Frequency(), GRAPH.replace(alternatives=()), client=client),
        np.zeros((3, 1)),
    )
    with pytest.raises(ValueError, match=r"alternatives.*SampleAnswers"):
        run(Frequency(), GRAPH.replace(alternatives=None), client=client)
    with pytest.raises(CallError, match=r"verdict.*supports"):
        run(Frequency(), GRAPH, client=Replies(verdicts("a", "b", "c")))


def test_semantic_columns_are_the_ratings():
    rating = {
        "coherent_to_ancestors": 0.5,
        "inference_gap_size": 2,
        "has_missing_dependencies": True,
        "has_unnecessary_dependencies": False,
        "problem_relevance": 1,
        "uses_problem_data": False,
        "is_well_formed": True,
    }
    rows = [{"claim": v, **rating} for v in (1, 2, 3)]
    client = Replies({"ratings": rows})
    table = run(SemanticJudge(), GRAPH, client=client)
    row = [0.5, 2, 1, 0, 1, 0, 1]
    np.testing.assert_array_equal(table, [[v, *row] for v in range(3)])
    assert client.question()["claims"][2]["builds_on"] == [1, 2]
    for name, value in {"problem_relevance": 1.5, "inference_gap_size": "NaN"}.items():
        bad = {"ratings": [row | {name: value} for row in rows]}
        with pytest.raises(CallError, match=name):
            run(SemanticJudge(), GRAPH, client=Replies(bad))


def test_verdicts_of_single_claims_see_their_premises():
    client = Replies("false", '{"verdict": "true"}')
    table = run(Verify(), GRAPH, client=client)
    np.testing.assert_array_equal(table, [[0, -1], [1, 1], [1, 1]])
    assert client.question(2)["premises"] == ["a is 2", "b is 3"]
    assert client.seen[0][0]["content"] == Verify().wording().text


# --- other answers


@pytest.mark.parametrize(
    "refusal",
    [
        "",
        "I'm sorry, but I can't help with that.",
        "Es tut mir leid, dabei kann ich nicht helfen.",
        "Je suis désolée, mais non.",
        "Lo siento, no puedo ayudar con eso.",
        "К сожалению, я не могу ответить.",  # noqa: RUF001
        "很抱歉，我无法回答这个问题。",  # noqa: RUF001
    ],
)
def test_a_refusal_is_sampled_again_and_left_out_at_last(refusal):
    def complete(messages, *, seed, **options):
        return (
            refusal
            if seed in (1, 2, 1002, 2002)
            else f"<think>Hm.</think>It is {seed}."
        )

    assert run(SampleAnswers(2), "q", client=complete) == ["It is 1001."]


@pytest.mark.parametrize("answer", ["Non è 4, è 5.", "我们得到 4。", "Je trouve 4."])
def test_an_answer_is_no_refusal(answer):
    assert run(SampleAnswers(1), "q", client=lambda messages: answer) == [answer]


def test_samples_see_the_passages_and_need_a_question():
    client = Replies("It is 5.")
    [texts] = SampleAnswers(1).apply(["q"], [["passage"]], model="m", client=client)
    assert texts == ["It is 5."] and "passage" in client.seen[0][1]["content"]
    with pytest.raises(ValueError, match="question"):
        run(SampleAnswers(2), None, client=client)


# --- labels and prompts


def test_labels_of_a_model_are_marked():
    client = Replies(verdicts("true", "Unsure", "false"))
    data = judge_labels([GRAPH.replace(context=["p"])], "judge", client)
    assert data.labels[0].tolist() == [1, 0, 0]
    assert data.graphs[0].provenance == {
        "label_meaning": "supported",
        "label_source": "model judge",
        "label_prompt": "labels-3",
    }
    with pytest.raises(CallError, match="verdict"):
        judge_labels([GRAPH], "m", Replies(verdicts("true", "true, I say", "false")))


def test_a_prompt_may_be_replaced():
    client = Replies({"claims": ["a"]})
    step = Decompose(prompt=" Cut. ")
    run(step, "x", None, client=client)
    assert client.seen[0][0]["content"] == "Cut."
    assert step.wording().name.startswith("decompose-own-")
    with pytest.raises(ValueError, match=r"decompose.*empty"):
        run(Decompose(prompt=" "), "x", None, client=client)
