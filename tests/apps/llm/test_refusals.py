"""Refusals of one call that must not change the others, and replies in other wrappings."""

import json

import numpy as np
import pytest

pytest.importorskip("openai", reason="the openai client is not installed")

from chat_server import ChatServer, Raw, Say, Status

from skdcf import ReasoningGraph
from skdcf.apps.llm import (
    ChatClient,
    ClaimExtractor,
    Decompose,
    DeduceGraph,
    EndpointError,
    Verify,
)
from skdcf.apps.llm import _model as pace_module
from skdcf.edges import no_edges
from skdcf.exceptions import ParameterWarning

ANSWERS = [f"Answer {i}." for i in range(8)]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(pace_module, "back_off", lambda n: 0.01)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def claims(*texts):
    return json.dumps({"claims": list(texts)})


def extract(server, **options):
    client = ChatClient(server.url, key_variable=None, **options)
    extractor = ClaimExtractor("m", client, graph=no_edges, on_failure="abstain")
    return extractor.transform([(f"q{i}", answer) for i, answer in enumerate(ANSWERS)])


def error(message, **more):
    return json.dumps({"error": {"message": message, **more}})


# --- a refusal of one answer


@pytest.mark.parametrize("in_flight", [1, 8])
@pytest.mark.parametrize(
    "body",
    [
        error("Input was flagged by moderation", code=403),
        error("The prompt violates our usage policy", type="access_denied"),
        '{"message": "Blocked by a guardrail"}',
    ],
)
def test_an_answer_that_is_moderated_fails_alone(body, in_flight):
    def script(request, n):
        refused = "Answer 1" in request["messages"][1]["content"]
        return Status(403, body=body) if refused else claims("a")

    with ChatServer(script) as server:
        graphs = extract(server, in_flight=in_flight)
    assert [graph.n_claims for graph in graphs] == [1, 0, 1, 1, 1, 1, 1, 1]
    assert "status 403" in graphs[1].metadata["flags"][0]


@pytest.mark.parametrize(
    "message",
    [
        "Rejected. Input: 'At which temperature does the seed of a schema melt?'",
        "The system message may not speak of logprobs or of a response_format",
        "max_tokens, temperature and structured output are no topics here",
    ],
)
def test_a_refusal_that_repeats_the_input_changes_no_later_call(message):
    def script(request, n):
        refused = "Answer 1" in request["messages"][-1]["content"]
        return Status(400, body=error(message, param=None)) if refused else claims("a")

    with ChatServer(script) as server:
        graphs = extract(server, in_flight=1)
    assert [graph.n_claims for graph in graphs] == [1, 0, 1, 1, 1, 1, 1, 1]
    first, *_, last = (request for _, _, request in server.requests)
    for name in first.keys() - {"messages", "max_tokens"}:
        assert first[name] == last[name]
    assert [message["role"] for message in last["messages"]] == ["system", "user"]
    assert graphs[-1].provenance["left_out"] == ""


def test_what_an_endpoint_never_takes_is_learnt_said_and_described():
    def script(request, n):
        if "temperature" in request:
            return Status(400, body=error("Unsupported value", param="temperature"))
        return claims("a")

    with (
        ChatServer(script) as server,
        pytest.warns(ParameterWarning, match="'temperature'.*'m'") as warned,
    ):
        graphs = extract(server, in_flight=1)
    assert len(warned) == 1 and len(server.requests) == len(ANSWERS) + 1
    described = [graph.provenance for graph in graphs]
    assert described == [described[0]] * len(ANSWERS)
    assert described[0]["left_out"] == "temperature"


def test_a_limit_that_is_sent_under_another_name_is_said_and_described():
    def script(request, n):
        if "max_tokens" in request:
            message = "Unsupported: use max_completion_tokens"
            return Status(400, body=error(message, param="max_tokens"))
        return claims("a")

    with (
        ChatServer(script) as server,
        pytest.warns(ParameterWarning, match="'max_tokens'.*'m'") as warned,
    ):
        graphs = extract(server, in_flight=1)
    assert len(warned) == 1 and len(server.requests) == len(ANSWERS) + 1
    assert graphs[-1].provenance["left_out"] == "max_tokens"
    assert server.requests[-1][2]["max_completion_tokens"] > 300


def test_what_was_taken_once_is_sent_again_after_a_refusal():
    def script(request, n):
        is_third = "Answer 2" in request["messages"][1]["content"]
        if is_third and "response_format" in request:
            return Status(400, body=error("This schema is too deep for this input"))
        return claims("a")

    with ChatServer(script) as server:
        graphs = extract(server, in_flight=1)
    assert all(graph.n_claims == 1 for graph in graphs)
    assert server.requests[-1][2]["response_format"]["type"] == "json_schema"


@pytest.mark.parametrize("status", [400, 403])
def test_log_probabilities_that_are_refused_end_nothing(status):
    """OpenAI refuses them with status 403 for some models."""
    graph = ReasoningGraph(None, [], claims=["a", "b"])

    def script(request, n):
        if "logprobs" in request:
            message = "You are not allowed to request logprobs from this model"
            return Status(status, body=error(message, param=None))
        return json.dumps({"why": "", "verdict": "true"})

    with (
        ChatServer(script) as server,
        pytest.warns(ParameterWarning, match="'logprobs'") as warned,
    ):
        client = ChatClient(server.url, key_variable=None)
        [table] = Verify().apply([graph], model="m", client=client)
    assert table[:, 0].tolist() == [1, 1] and np.isnan(table[:, 1]).all()
    assert len(warned) == 1


# --- faults that pass


@pytest.mark.parametrize(
    "fault",
    [
        Status(
            400,
            body=error(
                "Failed to generate JSON. Please adjust your prompt.",
                code="json_validate_failed",
                failed_generation='{ "claims": [',
            ),
        ),
        Status(400, body='{"error": {"code": "json_validate_failed"}}'),
        Status(400, body='{"error": {"code": "tool_use_failed"}}'),
        Raw(b'{"error": {"message": "Provider returned error", "code": 400}}'),
        Raw(b'{"error": "overloaded"}'),
        Raw(b'{"error": {"message": "x", "code": "server_error"}, "choices": []}'),
    ],
)
@pytest.mark.parametrize("in_flight", [1, 8])
def test_a_reply_that_failed_at_the_server_is_asked_for_again(fault, in_flight):
    def script(request, n):
        return fault if len(server.requests) % 4 == 0 else claims("a")

    with ChatServer(script) as server:
        graphs = extract(server, in_flight=in_flight)
    assert all(graph.n_claims == 1 for graph in graphs)


# --- addresses and protocols


def test_a_wrong_address_is_said_with_the_path_that_was_asked():
    with ChatServer(lambda request, n: Status(404, body="no such page")) as server:
        for url, expected in [
            (server.url.removesuffix("/v1"), "/chat/completions.*base_url .*/v1"),
            (server.url, "POST .*/v1/chat/completions"),
        ]:
            client = ChatClient(url, key_variable=None)
            with pytest.raises(EndpointError, match=expected):
                Decompose().apply(["x"], [None], model="m", client=client)
    assert len(server.requests) == 2


# --- replies in other wrappings

WANTED = {"claims": [{"span": "Answer", "text": "It is caf\u00e9 No. 1."}, "b"]}
PLAIN = json.dumps(WANTED, ensure_ascii=False)


def message(**parts):
    choice = {"message": {"role": "assistant", **parts}, "finish_reason": "stop"}
    return Raw(json.dumps({"choices": [choice]}).encode())


def call(arguments):
    return {"id": "1", "type": "function", "function": {"name": "f", **arguments}}


def streamed(*deltas):
    """Server-sent events, the last of which ends the reply."""
    choices = [{"delta": delta} for delta in deltas]
    choices[-1]["finish_reason"] = "stop"
    lines = [f"data: {json.dumps({'choices': [c]})}\n\n" for c in choices]
    return Raw("".join([*lines, "data: [DONE]\n\n"]).encode())


WRAPPED = {
    "the final channel": message(
        content='<|channel|>analysis<|message|>{"claims": ["draft"]}<|end|>'
        f"<|start|>assistant<|channel|>final<|message|>{PLAIN}<|return|>"
    ),
    "the final channel with a form": message(
        content=f"<|channel|>final <|constrain|>json<|message|>{PLAIN}"
    ),
    "a string": json.dumps(PLAIN),
    "a string between blanks": f"\n {json.dumps(json.dumps(WANTED))} \n",
    "no-break spaces": PLAIN.replace(": ", ":\u00a0").replace("{", "{\u00a0"),
    "no-break spaces and a fence": f"```json\n\u00a0{PLAIN}\u00a0\n```",
    "letters escaped twice": json.dumps(WANTED).replace("\\u00e9", "\\\\u00e9"),
    "quotation marks of print": PLAIN.replace('"', "\u201c", 1).replace(
        'claims"', "claims\u201d", 1
    ),
    "a comment": PLAIN.replace("[", "[ /* two */ ", 1),
    "a string in a string": json.dumps(json.dumps(PLAIN)),
    "a missing comma": PLAIN.replace('}, "b"', '} "b"'),
}


@pytest.mark.parametrize("name", WRAPPED)
def test_a_right_reply_is_read_in_another_wrapping(name):
    with ChatServer(lambda request, n: WRAPPED[name]) as server:
        client = ChatClient(server.url, key_variable=None)
        out = Decompose().apply(["Answer b"], [None], model="m", client=client)
    assert out == [["It is caf\u00e9 No. 1.", "b"]]
    assert len(server.requests) == 1


@pytest.mark.parametrize("name", ["why", "span", "text"])
def test_a_verdict_in_a_text_that_is_quoted_is_no_verdict(name):
    graph = ReasoningGraph(None, [], claims=["a"])
    reply = json.dumps({name: json.dumps({"verdict": "true"})})
    step = Verify(log_odds=False)
    [table] = step.apply([graph], model="m", client=lambda messages: reply)
    assert np.isnan(table).all()


def test_letters_that_the_answer_escapes_stay_escaped():
    answer = r"In JSON, \u00e9 is a letter."
    reply = json.dumps({"claims": [answer]})
    [out] = Decompose().apply([answer], [None], model="m", client=lambda m: reply)
    assert out == [answer]


@pytest.mark.parametrize(
    "reply",
    [
        '{"claims": ["a", "b"',
        '{"claims": [{"text": "a"}, {"text": "b"}',
        "{'claims': ['a', 'b",
        '{"reply": {"claims": ["a", "b"',
    ],
)
def test_half_a_reply_is_not_read(reply):
    seen = []

    def complete(messages):
        seen.append(messages)
        return reply if len(seen) == 1 else claims("a", "b")

    [out] = Decompose().apply(["x"], [None], model="m", client=complete)
    assert out == ["a", "b"] and len(seen) == 2


@pytest.mark.parametrize("nothing", [None, [0], 0, "", "none", [None], []])
def test_a_claim_may_build_on_nothing_in_other_words(nothing):
    rows = [{"claim": 1, "builds_on": [0]}, {"claim": 2, "builds_on": nothing}]
    rows += [{"claim": 3, "builds_on": [1]}]
    seen = []

    def complete(messages):
        seen.append(messages)
        return json.dumps({"premises": rows})

    [graph] = DeduceGraph().apply([["a", "b", "c"]], [None], model="m", client=complete)
    assert (graph.edges, graph.flag, len(seen)) == ([(0, 2)], None, 1)


# --- verdicts and log odds


@pytest.mark.parametrize(
    "reply",
    [
        '{"verdict": "true", "verdict": "false"}',
        "{'verdict': 'false', 'why': '', 'verdict': 'true'}",
        '{"reply": {"why": "a", "verdict": "true", "verdict": false}}',
    ],
)
def test_keys_that_contradict_each_other_are_no_verdict(reply):
    graph = ReasoningGraph(None, [], claims=["a"])
    step = Verify(log_odds=False)
    [table] = step.apply([graph], model="m", client=lambda messages: reply)
    assert np.isnan(table).all()


def test_keys_that_say_the_same_twice_are_one_verdict():
    graph = ReasoningGraph(None, [], claims=["a"])
    reply = '{"verdict": "true", "verdict": true}'
    step = Verify(log_odds=False)
    [table] = step.apply([graph], model="m", client=lambda messages: reply)
    assert table.tolist() == [[1.0]]


@pytest.mark.parametrize(
    "top",
    [
        [],
        [{"token": "true", "logprob": -9999.0}],
        [{"token": "token_id:7", "logprob": -1}],
    ],
)
def test_log_odds_that_say_nothing_are_missing_and_said_once(top):
    text = json.dumps({"why": "", "verdict": "true"})
    rows = [{"token": c, "logprob": -1.0, "top_logprobs": top} for c in text]
    choice = {"message": {"content": text}, "finish_reason": "stop"}
    body = {"choices": [choice | {"logprobs": {"content": rows}}]}
    graph = ReasoningGraph(None, [], claims=["a", "b", "c"])
    with (
        ChatServer(lambda request, n: Raw(json.dumps(body).encode())) as server,
        pytest.warns(ParameterWarning, match="log-probabilities") as warned,
    ):
        client = ChatClient(server.url, key_variable=None)
        [table] = Verify().apply([graph], model="m", client=client)
    assert table[:, 0].tolist() == [1, 1, 1] and np.isnan(table[:, 1]).all()
    assert len(warned) == 1


# --- how long a reply may be


def test_a_reply_has_a_limit_and_one_that_reaches_it_is_asked_for_without_a_schema():
    answer = "One is one. " * 20

    def script(request, n):
        if "response_format" in request:
            return Say('{"claims": ["One is' + " one" * 99, finish="length")
        return claims("One is one.")

    with ChatServer(script) as server:
        client = ChatClient(server.url, key_variable=None)
        Decompose().apply([answer], [None], model="m", client=client)
    first, second = (request for _, _, request in server.requests)
    assert 300 < first["max_tokens"] < 2000
    assert second["max_tokens"] == 2 * first["max_tokens"]


@pytest.mark.parametrize("thought", ["", "<think>Let me see. "])
def test_a_model_that_thinks_has_no_limit_once_its_thoughts_reached_it(thought):
    def script(request, n):
        is_short = "max_tokens" in request
        return Say(thought, finish="length") if is_short else claims("a")

    with ChatServer(script) as server:
        graphs = extract(server, in_flight=1)
    assert all(graph.n_claims == 1 for graph in graphs)
    n_limited = sum("max_tokens" in request for _, _, request in server.requests)
    assert 1 <= n_limited <= 2  # the second call had begun


def test_endless_whitespace_is_no_thought():
    """A grammar allows whitespace between the tokens of JSON, and small models repeat it."""
    blank = Say("\n" * 900, finish="length")
    with ChatServer(lambda request, n: blank) as server:
        extract(server, in_flight=1)
    assert all("max_tokens" in request for _, _, request in server.requests)


def test_a_bare_verdict_has_a_schema():
    seen = []

    def complete(messages, **options):
        seen.append(options["schema"])
        return '{"verdict": "false"}'

    graph = ReasoningGraph(None, [], claims=["a"])
    step = Verify(log_odds=False, why=False)
    [table] = step.apply([graph], model="m", client=complete)
    assert table.tolist() == [[0.0]]
    assert json.loads(seen[0])["required"] == ["verdict"]
