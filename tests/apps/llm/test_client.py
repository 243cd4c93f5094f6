"""The client against a real server on loopback: faults, limits, cache, keys."""

import asyncio
import json
import logging
import os
import pickle
import sqlite3
import stat
import sys
import threading
import time
from concurrent.futures import Future, wait
from contextlib import closing

import pytest

pytest.importorskip("openai", reason="the openai client is not installed")

from chat_server import ChatServer, Endless, HangUp, Raw, Say, Status
from sklearn.base import clone

from skdcf.apps.llm import (
    CallError,
    ChatClient,
    Decompose,
    EndpointError,
    Reply,
    SampleAnswers,
)
from skdcf.apps.llm import _model as pace_module
from skdcf.exceptions import ParameterWarning

KEY = "sk-secret-0123456789-abcdef"


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """No time is lost between attempts, unless a server asks for it."""
    monkeypatch.setattr(pace_module, "back_off", lambda attempt: 0.01)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def claims(*texts):
    return json.dumps({"claims": list(texts)})


def decompose(server, answers, client=None, **options):
    client = client or ChatClient(server.url, **options)
    return Decompose().apply(answers, [None] * len(answers), model="m", client=client)


def question_of(request):
    return json.loads(request["messages"][1]["content"])["answer"]


# --- the protocol


def test_ctrl_c_is_seen_while_replies_are_waited_for(monkeypatch):
    """Windows shows it between two waits only: one without an end hides it till the end."""
    waiting, result = threading.Event(), Future.result

    def checked(future, timeout=None):
        assert timeout is not None or future.done()
        return result(future, timeout)

    def wait_shortly(futures, timeout):
        waiting.set()
        assert timeout <= 1
        return wait(futures, timeout)

    def complete(messages):
        assert waiting.wait(60)
        return claims("one")

    monkeypatch.setattr(Future, "result", checked)
    monkeypatch.setattr("skdcf.apps.llm._model.wait", wait_shortly)
    found = decompose(None, ["One."], client=ChatClient(complete=complete))
    assert found[0] == ["one"]


def test_one_call_says_all_that_the_protocol_asks_for():
    with ChatServer(lambda request, n: claims("a", "b")) as server:
        assert decompose(server, ["x"]) == [["a", "b"]]
    [(_, headers, body)] = server.requests
    assert headers["authorization"] == f"Bearer {KEY}"
    assert body["model"] == "m" and body["seed"] == 0 and body["temperature"] == 0
    form = body["response_format"]["json_schema"]
    assert form["strict"] is True and form["schema"]["required"] == ["claims"]
    assert [m["role"] for m in body["messages"]] == ["system", "user"]
    assert json.loads(body["messages"][1]["content"]) == {
        "question": None,
        "answer": "x",
    }


def test_seeds_and_temperature_reach_the_server():
    with ChatServer(lambda request, n: f"answer {request['seed']}") as server:
        step = SampleAnswers(3, temperature=0.7)
        drawn = step.apply(["q"], model="m", client=ChatClient(server.url))
    assert drawn == [["answer 1", "answer 2", "answer 3"]]
    assert {r["temperature"] for _, _, r in server.requests} == {0.7}


def test_no_more_calls_in_flight_than_allowed():
    with ChatServer(lambda request, n: Say(claims("a"), 0.03)) as server:
        decompose(server, [str(i) for i in range(30)], in_flight=3)
    assert server.most_in_flight == 3


def test_the_same_call_at_once_is_made_once():
    with ChatServer(lambda request, n: Say(claims("a"), 0.05)) as server:
        assert decompose(server, ["same"] * 12) == [["a"]] * 12
    assert len(server.requests) == 1


def test_an_unusable_reply_to_equal_calls_is_not_asked_for_by_each_of_them():
    with (
        ChatServer(lambda request, n: "no JSON") as server,
        pytest.raises(CallError, match="12 of 12 problems failed"),
    ):
        decompose(server, ["same"] * 12)
    assert len(server.requests) == 3


def ask_in_turn(server, works, **options):
    """Results of several things that are done in one run, and what they cost."""
    client = ChatClient(server.url, **options)

    async def do(chat, work):
        return await work(chat)

    with closing(client):
        return client._submit(works, do, "m").result(timeout=30)


def texts_of(reply):
    return json.loads(reply.text)["claims"]


async def ask_claims(chat):
    return await chat.ask(Decompose().wording(), {"answer": "same"}, texts_of)


def test_who_waits_for_an_equal_call_reads_its_reply_and_one_of_them_pays():
    with ChatServer(lambda request, n: Say(claims("a"), 0.1)) as server:
        (first, second), usage = ask_in_turn(server, [ask_claims, ask_claims])
    assert first == second == ["a"]
    assert first is not second
    assert (len(server.requests), usage.calls, usage.cached) == (1, 1, 1)


def test_who_waits_for_a_call_that_is_given_up_makes_it():
    async def begin(chat):
        call = asyncio.create_task(ask_claims(chat))
        while not server.requests:
            await asyncio.sleep(0.01)
        return call

    async def give_up(chat):
        (await begin(chat)).cancel()
        return chat.usage.calls

    async def wait_for_it(chat):
        await (await begin(chat))
        return chat.usage.calls

    with ChatServer(lambda request, n: Say(claims("a"), 0.4)) as server:
        counted, usage = ask_in_turn(server, [give_up, wait_for_it])
    assert (counted, usage.calls, len(server.requests)) == ([0, 1], 1, 2)


def test_asking_again_never_lowers_the_temperature():
    with ChatServer(lambda request, n: claims("a") if n > 1 else "no JSON") as server:
        prompt = Decompose().wording()
        ask_in_turn(
            server,
            [lambda chat: chat.ask(prompt, "x", texts_of, temperature=1.3)],
        )
    assert [r["temperature"] for _, _, r in server.requests] == [1.3] * 3


def test_a_reply_that_cannot_be_kept_is_used_and_said(tmp_path):
    cache = tmp_path / "cache.sqlite"
    with ChatServer(lambda request, n: claims("a")) as server:
        client = ChatClient(server.url, cache=cache)
        decompose(server, ["x"], client=client)
        with closing(sqlite3.connect(cache)) as database:
            database.execute("DROP TABLE replies")
            database.execute(
                "CREATE VIEW replies AS SELECT 1 AS key, 2 AS reply, 3 AS prompt"
            )
            database.commit()
        with pytest.warns(ParameterWarning, match=r"stored.*cache"):
            assert decompose(server, ["y"], client=client) == [["a"]]


def test_a_reply_of_another_shape_in_the_cache_is_asked_for_again(tmp_path):
    cache = tmp_path / "cache.sqlite"
    with ChatServer(lambda request, n: claims("a")) as server:
        decompose(server, ["x"], cache=cache)
        with closing(sqlite3.connect(cache)) as database:
            database.execute(
                """UPDATE replies SET reply = '{"text": "", "later": 1}'"""
            )
            database.commit()
        assert decompose(server, ["x"], cache=cache) == [["a"]]
    assert len(server.requests) == 2


# --- faults


FAULTS = {
    "429": Status(429),
    "500": Status(500, body="<html>oops</html>"),
    "503": Status(503),
    "408": Status(408),
    "hang up": HangUp(),
    "half a body": Raw(b'{"choices": [{"mess', promised=500),
    "no JSON": Raw(b"<html>not an API</html>"),
    "no choices": Raw(b'{"choices": []}'),
    "null": Raw(b"null"),
    "wrong kinds": Raw(b'{"choices": [{"message": {"content": 7}}]}'),
    "deep": Raw(b'{"choices": ' + b"[" * 50_000),
    "empty": Raw(b""),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_passing_fault_is_survived(fault):
    with ChatServer(lambda request, n: claims("a") if n else FAULTS[fault]) as server:
        assert decompose(server, ["x", "y"]) == [["a"], ["a"]]
    assert sorted(server.seen.values()) == [2, 2]


def test_all_faults_mixed_lose_nothing_and_count_nothing_twice():
    """Each of 60 calls meets three faults, in an order of its own."""
    kinds = list(FAULTS.values())

    def script(request, n):
        i = int(question_of(request))
        return kinds[(i + 5 * n) % len(kinds)] if n < 3 else claims(f"claim {i}")

    client = ChatClient("http://placeholder/v1", in_flight=8)
    with ChatServer(script) as server:
        client.set_params(base_url=server.url)
        out = decompose(server, [str(i) for i in range(60)], client)
    assert out == [[f"claim {i}"] for i in range(60)]
    assert set(server.seen.values()) == {4}


def test_a_fault_that_stays_ends_with_an_error_that_says_so():
    with (
        ChatServer(lambda request, n: Status(500, body="broken\nfor good")) as server,
        pytest.raises(CallError, match="3 attempts: status 500: broken for good"),
    ):
        decompose(server, ["x"], max_retries=2)
    assert len(server.requests) == 3


def test_others_go_on_when_one_call_fails(tmp_path):
    def script(request, n):
        return Status(400) if question_of(request) == "3" else claims("a")

    cache = tmp_path / "cache.sqlite"
    with ChatServer(script) as server:
        with pytest.raises(CallError, match=r"1 of 9 problems failed.*problem 3"):
            decompose(server, [str(i) for i in range(9)], cache=cache)
        before = len(server.requests)
        server.script = lambda request, n: claims("b")
        out = decompose(server, [str(i) for i in range(9)], cache=cache)
    assert len(server.requests) == before + 1
    assert out == [["a"]] * 3 + [["b"]] + [["a"]] * 5


@pytest.mark.parametrize("code", [401, 403, 404])
def test_what_cannot_succeed_ends_all_at_once(code):
    with (
        ChatServer(lambda request, n: Status(code)) as server,
        pytest.raises(EndpointError, match=f"status {code}"),
    ):
        decompose(server, [str(i) for i in range(200)], in_flight=2)
    assert len(server.requests) <= 4


def test_a_dead_endpoint_is_given_up():
    """200 calls of six attempts each would take an hour of waiting in real life."""
    with (
        ChatServer(lambda request, n: Status(500)) as server,
        pytest.raises(EndpointError, match=r"last \d+ calls.*status 500"),
    ):
        decompose(server, [str(i) for i in range(200)], max_retries=1, in_flight=2)
    assert len(server.requests) <= 2 * 14


def test_nobody_listens():
    with pytest.raises(
        CallError, match=r"ConnectionError|ConnectError|Connection error"
    ):
        decompose(None, ["x"], ChatClient("http://127.0.0.1:9/v1", max_retries=1))


@pytest.mark.long
@pytest.mark.parametrize("headers", ["seconds", "ms"])
def test_retry_after_is_honoured_by_all_calls(headers):
    wait = 0.6

    def script(request, n):
        if server.requests[0][2] != request or n:
            return claims("a")
        value = {
            "seconds": {"Retry-After": wait},
            "ms": {"Retry-After-Ms": 1000 * wait},
        }[headers]
        return Status(429, value)

    with ChatServer(script) as server:
        decompose(server, [str(i) for i in range(6)], in_flight=1)
    times = [t for t, _, _ in server.requests]
    assert times[1] - times[0] >= wait
    assert len(times) == 7


@pytest.mark.long
def test_a_pause_holds_for_calls_that_were_not_refused():
    def script(request, n):
        first = question_of(request) == "0" and n == 0
        return Status(429, {"Retry-After": "0.5"}) if first else Say(claims("a"), 0.05)

    with ChatServer(script) as server:
        decompose(server, [str(i) for i in range(12)], in_flight=2)
    start = min(t for t, _, r in server.requests if question_of(r) == "0")
    pause = [t for t, _, _ in server.requests if start + 0.1 < t < start + 0.45]
    assert pause == []


def test_an_hour_is_not_waited_for():
    with (
        ChatServer(lambda request, n: Status(429, {"Retry-After": "3600"})) as server,
        pytest.raises(CallError, match=r"3600 s.*status 429"),
    ):
        decompose(server, ["x"])


@pytest.mark.long
def test_slow_replies_are_cut_off():
    def script(request, n):
        return claims("a") if n else Say(claims("late"), 4.0)

    with ChatServer(script) as server:
        assert decompose(server, ["x"], timeout=2.0) == [["a"]]


@pytest.mark.long
@pytest.mark.parametrize("chunk", [b" ", b" " * 2**20])
def test_endless_output_is_cut_off(chunk):
    """Bytes that keep coming never let a read time out, and could fill the memory."""
    begin = time.monotonic()

    def script(request, n):
        return claims("a") if n else Endless(chunk, 0.001)

    with ChatServer(script) as server:
        assert decompose(server, ["x"], timeout=3.0) == [["a"]]
    assert time.monotonic() - begin < 60


def test_an_endless_reply_of_the_model_is_asked_for_again():
    def script(request, n):
        if len(request["messages"]) > 2:
            return claims("a")
        return Say('{"claims": ["a' + ", a" * 5000, finish="length")

    with ChatServer(script) as server:
        assert decompose(server, ["x"]) == [["a"]]
    assert "cut off, so be brief" in server.requests[1][2]["messages"][3]["content"]


# --- parameters that a model does not take


def test_structured_output_is_asked_for_less_and_less():
    def script(request, n):
        form = request.get("response_format", {}).get("type")
        if form == "json_schema":
            return Status(
                400, body='{"error": {"message": "json_schema not supported"}}'
            )
        if form == "json_object":
            return Status(422, body="response_format: extra fields not permitted")
        return f"Of course!\n```json\n{claims('a')}\n```"

    with (
        ChatServer(script) as server,
        pytest.warns(ParameterWarning, match="'response_format'.*'m'") as warned,
    ):
        assert decompose(server, ["x", "y", "z"], in_flight=1) == [["a"]] * 3
    assert len(server.requests) == 5  # learnt once
    assert len(warned) == 1


def test_models_that_think_take_other_parameters():
    def script(request, n):
        for name in ("max_tokens", "temperature"):
            if name in request:
                error = {"error": {"message": "Unsupported", "param": name}}
                return Status(400, body=json.dumps(error))
        return claims("a")

    with (
        ChatServer(script) as server,
        pytest.warns(ParameterWarning, match=r"'max_tokens'.*'temperature'"),
    ):
        assert decompose(server, ["x"], max_tokens=4096) == [["a"]]
    assert server.requests[-1][2]["max_completion_tokens"] == 4096
    assert len(server.requests) == 3


def test_another_bad_request_is_an_error():
    with (
        ChatServer(lambda request, n: Status(400, body="context too long")) as server,
        pytest.raises(CallError, match=r"400.*context"),
    ):
        decompose(server, ["x"])
    assert len(server.requests) == 1


# --- the cache


def test_nothing_is_asked_twice(tmp_path):
    cache = tmp_path / "folder" / "cache.sqlite"
    with ChatServer(lambda request, n: claims(question_of(request))) as server:
        first = decompose(server, ["x", "y"], cache=cache)
        assert decompose(server, ["y", "x"], cache=cache) == first[::-1]
        assert len(server.requests) == 2
        decompose(server, ["x", "z"], cache=cache)
    assert len(server.requests) == 3


def test_another_prompt_model_or_endpoint_is_another_call(tmp_path):
    cache = tmp_path / "cache.sqlite"
    with ChatServer(lambda request, n: claims("a")) as server:
        client = ChatClient(server.url, cache=cache)
        for step, model in [
            (Decompose(), "m"),
            (Decompose("Cut it up."), "m"),
            (Decompose(), "other"),
            (Decompose(model="other"), "m"),
        ]:
            chat = step.model or model
            step.apply(["x"], [None], model=chat, client=client)
        assert len(server.requests) == 3
        with ChatServer(lambda request, n: claims("b")) as second:
            client.set_params(base_url=second.url)
            assert Decompose().apply(["x"], [None], model="m", client=client) == [["b"]]
    with closing(sqlite3.connect(cache)) as database:
        rows = database.execute("SELECT prompt FROM replies").fetchall()
    assert sorted({p for (p,) in rows})[0] == "decompose-3"
    assert any(p.startswith("decompose-own-") for (p,) in rows)


@pytest.mark.skipif(os.name != "posix", reason="modes of files are those of POSIX")
@pytest.mark.parametrize("there", [False, True])
def test_only_the_owner_may_read_the_cache(tmp_path, there):
    cache = tmp_path / "cache.sqlite"
    if there:
        cache.touch(0o666)
        cache.chmod(0o666)
    modes = set()

    def script(request, n):
        modes.update(stat.S_IMODE(p.stat().st_mode) for p in tmp_path.iterdir())
        return claims("a")

    old = os.umask(0)
    try:
        with ChatServer(script) as server:
            decompose(server, ["x"], cache=cache)
            decompose(server, ["y"], cache=cache)
    finally:
        os.umask(old)
    assert modes == {0o600}
    with closing(sqlite3.connect(cache)) as database:
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        [(text,), _] = database.execute("SELECT reply FROM replies").fetchall()
    assert json.loads(text)["text"] == claims("a")


def test_a_file_that_is_no_cache_is_refused(tmp_path):
    path = tmp_path / "cache.sqlite"
    path.write_text("this is a diary, and no database at all" * 100)
    with pytest.raises(ValueError, match=r"cache\.sqlite"):
        decompose(None, ["x"], ChatClient("http://127.0.0.1:9/v1", cache=path))
    assert path.read_text().startswith("this is a diary")


def test_two_programs_may_share_a_cache(tmp_path):

    cache = tmp_path / "cache.sqlite"
    with ChatServer(lambda request, n: Say(claims("a"), 0.005)) as server:
        out = []
        texts = [str(i) for i in range(40)]

        def work():
            out.append(decompose(server, texts, cache=cache))

        threads = [threading.Thread(target=work) for _ in range(3)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert out == [[["a"]] * 40] * 3


# --- keys


def test_the_key_stands_nowhere(tmp_path, caplog):
    """Not in the cache, logs, errors or the pickled client, even if a server says it back."""
    caplog.set_level(logging.DEBUG)
    cache = tmp_path / "cache.sqlite"

    def script(request, n):
        if question_of(request) == "bad":
            return Status(401, body=f"Incorrect API key provided: {KEY}")
        return claims(f"your key is {KEY}")

    client = None
    with ChatServer(script) as server:
        client = ChatClient(server.url, cache=cache)
        assert decompose(server, ["x"], client) == [["your key is ***"]]
        with pytest.raises(EndpointError) as caught:
            decompose(server, ["bad"], client)
    errors, error = [], caught.value
    while error is not None and error not in errors:
        errors.append(error)
        error = error.__cause__ or error.__context__
    shown = [str(vars(e)) + repr(e) for e in errors]
    assert "Incorrect API key provided: ***" in shown[0]
    shown += [caplog.text, repr(client), str(pickle.dumps(client))]
    shown += [str(r.__dict__) for r in caplog.records]
    assert [text for text in shown if KEY in text] == []
    files = list(tmp_path.iterdir())
    assert files and all(KEY.encode() not in path.read_bytes() for path in files)


def test_connection_errors_hold_no_key():
    with pytest.raises(CallError) as caught:
        decompose(None, ["x"], ChatClient("http://127.0.0.1:9/v1", max_retries=0))
    error = caught.value
    while error is not None:
        assert not hasattr(error, "request")
        error = error.__cause__ or error.__context__


def test_the_key_is_taken_from_the_variable_that_is_named(monkeypatch):
    monkeypatch.setenv("OTHER_KEY", "k2")
    with ChatServer(lambda request, n: claims("a")) as server:
        decompose(server, ["x"], key_variable="OTHER_KEY")
        monkeypatch.delenv("OPENAI_API_KEY")
        decompose(server, ["x"])  # a model on this machine needs none
    sent = [headers.get("authorization") for _, headers, _ in server.requests]
    assert sent == ["Bearer k2", None]


def test_a_missing_key_is_named(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(EndpointError, match=r"OPENAI_API_KEY.*example\.com"):
        decompose(None, ["x"], ChatClient("https://llm.example.com/v1"))


def test_what_is_cached_needs_neither_key_nor_client(tmp_path, monkeypatch):
    cache = tmp_path / "cache.sqlite"
    with ChatServer(lambda request, n: claims("a")) as server:
        client = ChatClient(server.url, cache=cache)
        decompose(server, ["x"], client)
    monkeypatch.setitem(sys.modules, "openai", None)
    assert decompose(None, ["x"], client) == [["a"]]
    client.close()
    with pytest.raises(ImportError, match=r'pip install "\.\[apps\]"'):
        decompose(None, ["y"], client)


# --- settings, callables, loops


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"base_url": "ftp://x"}, "http"),
        (
            {"base_url": "https://user:pw@host/v1"},
            "Store keys in environment variables",
        ),
        ({"base_url": "https://host/v1?key=7"}, "Store keys in environment variables"),
        ({"base_url": "http://a/v1", "complete": len}, "base_url and complete"),
        ({"in_flight": 0}, "in_flight"),
        ({"timeout": 0}, "timeout"),
        ({"max_retries": -1}, "max_retries"),
    ],
)
def test_wrong_settings_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        ChatClient(**options).validate()


def test_endpoints_without_a_key_may_be_anywhere():
    for url in ("http://ollama:11434/v1", "http://10.0.0.7:8000/v1?api-version=1"):
        ChatClient(url, key_variable=None).validate()


def test_a_folder_is_no_cache(tmp_path):
    mode = tmp_path.stat().st_mode
    with pytest.raises(IsADirectoryError):
        decompose(None, ["x"], ChatClient("http://127.0.0.1:9/v1", cache=tmp_path))
    assert tmp_path.stat().st_mode == mode


def test_a_client_is_a_value():
    client = ChatClient("http://127.0.0.1:1/v1", in_flight=3)
    assert clone(client).get_params() == client.get_params()
    assert pickle.loads(pickle.dumps(client)).in_flight == 3


def test_a_client_of_openai_is_refused():
    import openai

    with pytest.raises(ValueError, match="pass ChatClient"):
        decompose(None, ["x"], openai.AsyncOpenAI(api_key=KEY))


def test_callables_of_all_kinds():
    async def later(messages, **options):
        assert options["seed"] == 0 and options["model"] == "m"
        return Reply(claims("later"))

    assert decompose(None, ["x"], ChatClient(complete=later)) == [["later"]]
    assert decompose(None, ["x"], lambda messages: claims("now")) == [["now"]]
    with pytest.raises(CallError, match="got int"):
        decompose(None, ["x"], lambda messages: 7)


def test_a_function_that_shows_no_signature_is_called_all_the_same():
    class Odd:
        __signature__ = None
        __qualname__ = "Odd"

        def __call__(self, messages):
            return claims("a")

    odd = Odd()
    assert decompose(None, ["x"], odd) == [["a"]]


def test_replies_of_two_functions_do_not_mix(tmp_path):
    def first(messages):
        return claims("first")

    def second(messages):
        return claims("second")

    for function in (first, second, first):
        client = ChatClient(complete=function, cache=tmp_path / "c.sqlite")
        assert decompose(None, ["x"], client) == [[function.__name__]]


def test_inside_a_running_loop():
    import asyncio

    async def notebook():
        return decompose(None, ["x"], lambda messages: claims("a"))

    assert asyncio.run(notebook()) == [["a"]]

    async def failing():
        return decompose(None, ["x"], lambda messages: "nonsense")

    with pytest.raises(CallError, match="used"):
        asyncio.run(failing())


def test_errors_of_a_callable_come_through():
    def broken(messages):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        decompose(None, ["x"], broken)


def test_progress_is_shown_when_asked(capsys):
    from skdcf.apps.llm import ClaimExtractor
    from skdcf.edges import no_edges

    for verbose in (False, True):
        ClaimExtractor(
            "m", lambda messages: claims("a"), graph=no_edges, verbose=verbose
        ).transform([("q", "x")])
        assert ("1/1" in capsys.readouterr().err) == verbose


def test_a_cache_that_another_program_is_making_is_waited_for(tmp_path):
    """SQLite waits for locks, but not while the kind of journal is changed."""
    path = tmp_path / "cache.sqlite"
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("CREATE TABLE theirs (a)")
    other.execute("BEGIN IMMEDIATE")
    threading.Timer(0.2, other.execute, ["COMMIT"]).start()
    calls = []

    def complete(messages):
        calls.append(messages)
        return '{"claims": ["a"]}'

    client = ChatClient(complete=complete, cache=path)
    for _ in range(2):
        [claims] = Decompose().apply(["x"], [None], model="m", client=client)
        assert [str(claim) for claim in claims] == ["a"]
    assert len(calls) == 1  # the second one comes from the cache
    client.close()
    other.close()
