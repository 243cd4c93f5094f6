"""The client against a real server on loopback: faults, limits, cache, keys."""

import asyncio
import json
import logging
import re
import sqlite3
import stat

import numpy as np
import pytest
from chat_server import HangUp, Raw, Say, Status

from skdcf import ReasoningGraph
from skdcf.apps.llm import (
    CallError,
    ChatClient,
    Decompose,
    EndpointError,
    Verify,
)
from skdcf.exceptions import ParameterWarning

TEXTS = [str(i) for i in range(12)]


def claims(*texts):
    return json.dumps({"claims": texts})


def decompose(client, answers=("x",)):
    return Decompose().apply(answers, [None] * len(answers), model="m", client=client)


def answer_of(request):
    return json.loads(request["messages"][-1]["content"])["answer"]


# --- requests


def test_a_request_has_the_schema_the_seed_and_the_key(model):
    server, client = model(lambda request, n: claims("a", "b"))
    assert decompose(client) == [["a", "b"]]
    [(_, headers, body)] = server.requests
    assert headers["authorization"].startswith("Bearer sk-secret")
    assert (body["model"], body["seed"], body["temperature"]) == ("m", 0, 0)
    form = body["response_format"]["json_schema"]
    assert form["strict"] is True and form["schema"]["required"] == ["claims"]
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    question = json.loads(body["messages"][1]["content"])
    assert question == {"question": None, "answer": "x"}


def test_calls_are_concurrent_within_the_limit(model):
    server, client = model(lambda r, n: Say(claims("a"), 0.03), in_flight=3)
    decompose(client, TEXTS)
    assert server.most_in_flight == 3


def test_a_call_works_in_a_running_loop_and_with_asynchronous_functions():
    async def complete(messages):
        await asyncio.sleep(0)
        return claims("a")

    async def notebook():
        return decompose(ChatClient(complete=complete))

    assert asyncio.run(notebook()) == [["a"]]
    with pytest.raises(CallError, match="string, got int"):
        decompose(lambda messages: 3)


# --- faults

FAULTS = {
    "429": Status(429, {"Retry-After": "0"}),
    "500": Status(500, body="<html>oops</html>"),
    "408": Status(408),
    "hang up": HangUp(),
    "half a body": Raw(b'{"choices": [{"mess', promised=500),
    "no JSON": Raw(b"<html>not an API</html>"),
    "an error": Raw(b'{"error": {"message": "overloaded", "code": 400}}'),
    "no choices": Raw(b'{"choices": []}'),
    "wrong types": Raw(b'{"choices": [{"message": {"content": 7}}]}'),
    "deep": Raw(b'{"choices": ' + b"[" * 50_000),
    "no schema": Status(400, body='{"error": {"code": "json_validate_failed"}}'),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_stays_is_an_error(model, fault):
    server, client = model(lambda request, n: FAULTS[fault])
    with pytest.raises(CallError, match="problem 0: "):
        decompose(client)
    assert len(server.requests) == {"no schema": 3, "408": 2}.get(fault, 9)


@pytest.mark.parametrize("code", [302, 401, 404])
def test_what_cannot_succeed_ends_the_run(model, code):
    other, _ = model(lambda request, n: claims("stolen"))
    headers = {"Location": f"{other.url}/chat/completions"}
    server, client = model(lambda request, n: Status(code, headers), in_flight=2)
    with pytest.raises(EndpointError, match=f"POST .*/v1/chat/.*status {code}"):
        decompose(client, [str(i) for i in range(100)])
    assert len(server.requests) <= 4 and other.requests == []


@pytest.mark.long
def test_a_server_that_always_fails_is_given_up(model):
    server, client = model(lambda request, n: Status(500), in_flight=2)
    with pytest.raises(EndpointError, match=r"last \d+ calls"):
        decompose(client, [str(i) for i in range(100)])
    assert len(server.requests) <= 9 * 12


def test_the_server_says_how_long_to_wait(model):
    def script(request, n):
        return claims("a") if n else Status(429, {"Retry-After": "0.5"})

    server, client = model(script)
    decompose(client)
    (first, _, _), (second, _, _) = server.requests
    assert second - first >= 0.5


@pytest.mark.long
def test_a_call_that_is_slow_twice_fails(model):
    server, client = model(lambda r, n: Say(claims("a"), 2.0 * (n == 0)), timeout=0.5)
    assert decompose(client) == [["a"]]
    server.script = lambda request, n: Say(claims("a"), 2.0)
    with pytest.raises(CallError, match=r"2 attempts.*0\.5 seconds"):
        decompose(client)
    assert len(server.requests) == 4


# --- options that an endpoint refuses


def refusing(option, status, message):
    def script(request, n):
        roles = {message["role"] for message in request["messages"]}
        if option in {*request, *roles}:
            return Status(status, body=json.dumps({"error": {"message": message}}))
        return claims("a")

    return script


@pytest.mark.parametrize(
    ("option", "status", "message"),
    [
        ("system", 500, "System role not supported"),
        ("response_format", 422, "This response_format type is unavailable now"),
        ("max_tokens", 400, "Unsupported: use max_completion_tokens"),
        ("temperature", 400, "Unsupported value: 'temperature'"),
        ("seed", 400, "seed: Extra inputs are not permitted"),
    ],
)
def test_an_option_that_is_refused_is_left_out_from_then_on(
    model, option, status, message
):
    server, client = model(refusing(option, status, message), in_flight=1)
    with pytest.warns(ParameterWarning, match=f"'{option}'.*'m'") as warned:
        assert decompose(client, TEXTS[:3]) == [["a"]] * 3
    assert len(warned) == 1 and len(server.requests) == 4
    text = "\n".join(m["content"] for m in server.requests[-1][2]["messages"])
    assert text.startswith("You receive one JSON object") and '"answer"' in text


@pytest.mark.parametrize("is_refused", [False, True])
def test_without_log_probabilities_the_odds_are_those_of_the_verdict(model, is_refused):
    def script(request, n):
        if is_refused and "logprobs" in request:
            return Status(403, body="You are not allowed to request logprobs")
        return '{"why": "", "verdict": "false"}'

    server, client = model(script, in_flight=1)
    graph = ReasoningGraph(None, [], claims=["a", "b"])
    with pytest.warns(ParameterWarning, match="'logprobs'") as warned:
        [table] = Verify().apply([graph], model="m", client=client)
    np.testing.assert_array_equal(table, [[0, -1], [0, -1]])
    assert len(warned) == 1 and "logprobs" not in server.requests[-1][2]


# --- asking again


def test_an_unusable_reply_is_sent_back_with_the_fault(model):
    server, client = model(lambda request, n: "I am ill")
    with pytest.raises(CallError, match=r"decompose-3.*used"):
        decompose(client)
    bodies = [body for _, _, body in server.requests]
    assert [body["seed"] for body in bodies] == [0, 1000, 2000]
    assert [body["temperature"] for body in bodies] == [0, 0.3, 0.6]
    roles = [message["role"] for message in bodies[1]["messages"]]
    assert roles == ["system", "user", "assistant", "user"]
    limits = [body["max_tokens"] for body in bodies]
    assert limits == [limits[0], 2 * limits[0], 4 * limits[0]]


def test_a_reply_that_was_cut_off_is_asked_for_without_a_schema(model):
    def script(request, n):
        is_first = "response_format" in request
        return Say("", finish="length") if is_first else claims("a")

    server, client = model(script, max_tokens=77)
    assert decompose(client) == [["a"]]
    (_, _, first), (_, _, second) = server.requests
    assert first["max_tokens"] == second["max_tokens"] == 77
    # An empty reply is not sent back.
    assert [message["role"] for message in second["messages"]] == ["system", "user"]
    assert "cut off, so be brief" in second["messages"][1]["content"]


def test_a_repetitive_reply_is_asked_for_again_with_its_schema_and_not_sent_back(model):
    def script(request, n):
        is_first = request["seed"] == 0
        cut = Say("""{"claims": [{"text": "a""", finish="length")
        return cut if is_first else claims("a")

    server, client = model(script)
    assert decompose(client) == [["a"]]
    (_, _, first), (_, _, second) = server.requests
    assert [message["role"] for message in second["messages"]] == ["system", "user"]
    rows = second["response_format"]["json_schema"]["schema"]["properties"]["claims"]
    assert first["response_format"] == second["response_format"]
    assert rows["minItems"] == 0 and rows["maxItems"] == 20
    assert rows["items"]["properties"]["text"]["maxLength"] == 101


@pytest.mark.parametrize(
    "fault", ["Invalid schema: 'maxLength' is not permitted", "failed to parse grammar"]
)
def test_bounds_that_an_endpoint_refuses_are_left_out_of_the_schema(model, fault):
    def script(request, n):
        if "maxLength" in json.dumps(request["response_format"]):
            return Status(400, body=fault)
        return claims("a")

    server, client = model(script)
    with pytest.warns(ParameterWarning, match="bounds"):
        assert decompose(client) == [["a"]]
    sent = server.requests[-1][2]["response_format"]
    assert sent["type"] == "json_schema" and "max" not in json.dumps(sent)


@pytest.mark.parametrize("n", [1500, 20_000])
def test_no_bound_is_so_large_that_servers_refuse_it(model, n):
    server, client = model(lambda request, n: claims("a"))
    decompose(client, ["a" * n])
    sent = json.dumps(server.requests[-1][2]["response_format"])
    assert "maxItems" in sent and max(map(int, re.findall(r"\d+", sent))) < 2000


# --- the cache


def test_no_reply_is_requested_twice(model, tmp_path, monkeypatch):
    path = tmp_path / "folder" / "cache.sqlite"
    server, client = model(lambda request, n: claims(answer_of(request)), cache=path)
    first = decompose(client, TEXTS)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    monkeypatch.setenv("OPENAI_API_KEY", "")  # no key is needed for stored replies
    assert decompose(client, TEXTS) == first
    assert len(server.requests) == 12
    assert b"sk-secret" not in path.read_bytes()
    step = Decompose(prompt="Cut.")
    step.apply(["1"], [None], model="m", client=client)
    assert len(server.requests) == 13


def test_only_usable_replies_are_stored(model, tmp_path):
    path = tmp_path / "cache.sqlite"
    server, client = model(lambda request, n: "I am ill today", cache=path)
    with pytest.raises(CallError):
        decompose(client)
    server.script = lambda request, n: claims("a")
    assert decompose(client) == decompose(client) == [["a"]]
    assert len(server.requests) == 4
    with sqlite3.connect(path) as database:
        database.execute("""UPDATE replies SET reply = '{"text": "", "later": 1}'""")
    database.close()
    assert decompose(client) == [["a"]]
    assert len(server.requests) == 5


def test_what_is_not_a_cache_is_refused_by_name(model, tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("These are notes. " * 100)
    _, client = model(lambda request, n: claims("a"), cache=path)
    with pytest.raises(ValueError, match=r"notes\.txt.*not a database"):
        decompose(client)


# --- keys and addresses


def test_keys_are_neither_shown_nor_stored(model, caplog, tmp_path):
    caplog.set_level(logging.DEBUG)

    def script(request, n):
        key = server.requests[0][1]["authorization"].removeprefix("Bearer ")
        is_bad = answer_of(request) == "bad"
        return Status(401, body=f"bad key {key}") if is_bad else claims(f"a {key}")

    server, client = model(script, cache=tmp_path / "c")
    assert decompose(client) == [["a ***"]]
    with pytest.raises(EndpointError, match=r"status 401: bad key \*\*\*") as caught:
        decompose(client, ["bad"])
    shown = f"{caught.value} {caplog.text} {client!r} {(tmp_path / 'c').read_bytes()}"
    assert "sk-secret" not in shown


@pytest.mark.parametrize("key", ["", "sk-line\nend-123456", "sk-\u00e9t\u00e9-1234"])
def test_wrong_keys_are_refused_before_a_call(monkeypatch, key):
    monkeypatch.setenv("MY_KEY", key)
    client = ChatClient("https://example.org/v1", key_variable="MY_KEY")
    with pytest.raises(EndpointError, match=r"MY_KEY.*example\.org") as caught:
        decompose(client)
    assert not key or key not in str(caught.value)


def test_no_key_is_sent_if_none_is_named(model):
    server, client = model(lambda request, n: claims("a"), key_variable=None)
    decompose(client)
    assert "sk-secret" not in str(server.requests)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"base_url": "127.0.0.1:8000"}, "base_url"),
        ({"base_url": "http://ann:secret@localhost/v1"}, "base_url"),
        ({"base_url": "http://localhost/v1?key=1"}, "base_url"),
        ({"base_url": "http://localhost", "complete": print}, "complete"),
        ({"complete": 3}, "complete"),
        ({"in_flight": 0}, "in_flight"),
    ],
)
def test_wrong_settings_are_refused(options, named):
    with pytest.raises(ValueError, match=named):
        decompose(ChatClient(**options))
