"""Servers with one slot, rate limits without a header, and bodies that are not quite JSON.

Clocks are scaled: a hundredth of a second here is a second there.
"""

import asyncio
import contextlib
import json
import threading
import time

import pytest

pytest.importorskip("openai", reason="the openai client is not installed")

from chat_server import ChatServer, HangUp, Raw, Say, Status

from skdcf.apps.llm import CallError, ChatClient, Decompose, EndpointError
from skdcf.apps.llm import _model as pace_module
from skdcf.apps.llm._model import RefusedError, read_wait

SCALE = 0.01


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(pace_module, "back_off", lambda n: SCALE * min(0.5 * 2**n, 60))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-limits-13579")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def claims(*texts):
    return json.dumps({"claims": list(texts)})


def decompose(server, n=20, **options):
    answers = [f"answer {i}" for i in range(n)]
    client = ChatClient(server.url, **options)
    return Decompose().apply(answers, [None] * n, model="m", client=client)


class OneSlot:
    """A server that works on one call at a time, like Ollama on a small machine."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.slot = threading.Lock()

    def __call__(self, request, n):
        with self.slot:
            time.sleep(self.seconds)
        return claims("a")


# --- one slot


def test_the_default_timeout_is_long_enough_for_a_queue():
    assert ChatClient().timeout == 600
    with ChatServer(OneSlot(10 * SCALE)) as server:
        assert decompose(server, 8, timeout=600 * SCALE) == [["a"]] * 8
    assert len(server.requests) == 8


def test_a_single_call_that_is_slow_is_only_made_again():
    with ChatServer(lambda request, n: Say(claims("a"), 0.5 * (n == 0))) as server:
        assert decompose(server, 1, timeout=0.2) == [["a"]]
    assert len(server.requests) == 2


# --- rate limits


def test_a_server_that_refuses_everybody_for_90_seconds_loses_nothing():
    begin = time.monotonic()

    def script(request, n):
        refused = time.monotonic() - begin < 90 * SCALE
        return Status(429) if refused else claims("a")

    with ChatServer(script) as server:
        assert decompose(server, 20) == [["a"]] * 20
    assert len(server.requests) - 20 <= 60


def test_a_limit_that_comes_again_and_again_loses_nothing():
    """Ten calls a second, which is what many free plans allow."""
    recent = []
    lock = threading.Lock()

    def script(request, n):
        with lock:
            now = time.monotonic()
            recent[:] = [t for t in recent if now - t < 0.1]
            if len(recent) >= 5:
                return Status(429)
            recent.append(now)
        return claims("a")

    with ChatServer(script) as server:
        assert decompose(server, 40) == [["a"]] * 40
    assert len(server.requests) < 3 * 40


def test_a_server_that_refuses_for_ever_is_given_up(monkeypatch):
    monkeypatch.setattr(pace_module, "_PATIENCE", 0.5)
    with (
        ChatServer(lambda request, n: Status(429)) as server,
        pytest.raises(EndpointError, match=r"calls for .* s.*status 429"),
    ):
        decompose(server, 20)
    assert len(server.requests) < 40


def test_a_server_that_requests_a_wait_of_0_seconds_is_not_flooded():
    pace = pace_module.Pace(in_flight=8)
    n_calls = 0

    async def refused_for(seconds):
        nonlocal n_calls
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with contextlib.suppress(RefusedError):
                async with pace.turn():
                    n_calls += 1
                    await asyncio.sleep(0.005)
                    raise RefusedError("status 429", wait=0.0)

    async def refuse_all():
        await asyncio.gather(*(refused_for(1.0) for _ in range(8)))

    asyncio.run(refuse_all())
    assert n_calls < 200


@pytest.mark.parametrize(
    ("wait", "error", "message"),
    [
        (300.0, RefusedError, "status 429"),
        (700.0, EndpointError, r"700 s.*600 s.*status 429"),
    ],
)
def test_pauses_of_up_to_ten_minutes_are_waited_for(wait, error, message):
    pace = pace_module.Pace(in_flight=1)

    async def refuse():
        async with pace.turn():
            raise RefusedError("status 429", wait=wait)

    with pytest.raises(error, match=message):
        asyncio.run(refuse())


def test_other_faults_end_a_pause_neither_sooner_nor_later():
    outcomes = [Status(429), Status(500), HangUp(), Status(429)]

    def script(request, n):
        return outcomes[n] if n < len(outcomes) else claims("a")

    with ChatServer(script) as server:
        assert decompose(server, 10) == [["a"]] * 10


def test_what_a_server_says_is_waited_for_and_no_longer_than_the_patience_allows(
    monkeypatch,
):
    monkeypatch.setattr(pace_module, "_PATIENCE", 5.0)
    body = json.dumps({"error": {"message": "Please try again in 300ms."}})

    def script(request, n):
        first = len(server.requests) == 1
        return Status(429, body=body) if first else claims("a")

    with ChatServer(script) as server:
        assert decompose(server, 3, in_flight=1) == [["a"]] * 3
        times = [t for t, _, _ in server.requests]
        assert times[1] - times[0] >= 0.3
        hours = json.dumps({"error": {"message": "Please try again in 2h5m0s."}})
        server.script = lambda request, n: Status(429, body=hours)
        with pytest.raises(CallError, match=r"7500 s.*status 429"):
            decompose(server, 1)


GEMINI = json.dumps(
    {
        "error": {
            "code": 429,
            "message": "You exceeded your current quota. Please retry in 39.86s.",
            "status": "RESOURCE_EXHAUSTED",
            "details": [
                {
                    "@type": "type.googleapis.com/google.rpc.RetryInfo",
                    "retryDelay": "39s",
                }
            ],
        }
    }
)


@pytest.mark.parametrize(
    ("headers", "message", "seconds"),
    [
        ({}, "", None),
        ({"retry-after": "7"}, "try again in 3s", 7),
        ({"retry-after-ms": "250"}, "", 0.25),
        ({}, "Rate limit reached. Please try again in 20s. Visit ...", 20),
        ({}, "Please try again in 1m12.5s.", 72.5),
        ({}, "Please try again in 6ms", 0.006),
        ({}, "Please retry after 9 seconds.", 9),
        ({}, '{"details": [{"retryDelay": "39s"}]}', 39),
        ({}, GEMINI, 39.86),
        ({"x-ratelimit-reset-requests": "20ms"}, "", 0.02),
        ({"x-ratelimit-reset-tokens": "6m0s"}, "", 60),
        (
            {
                "x-ratelimit-reset-tokens": "6m0s",
                "x-ratelimit-reset-requests": "1.5s",
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-remaining-tokens": "149984",
            },
            "",
            1.5,
        ),
        ({}, "Your quota will reset after 12s.", 12),
        ({"x-ratelimit-reset": "12"}, "", 12),
        ({"x-ratelimit-reset": "soon"}, "Try again later", None),
    ],
)
def test_how_long_a_server_asks_to_wait(headers, message, seconds):
    assert read_wait(headers, message) == pytest.approx(seconds)


def test_a_quota_per_minute_is_a_limit_and_an_empty_account_is_not():
    with ChatServer(
        lambda request, n: claims("a") if n else Status(429, body=GEMINI)
    ) as server:
        body = GEMINI.replace("39", "0")
        server.script = lambda r, n: claims("a") if n else Status(429, body=body)
        assert decompose(server, 1) == [["a"]]
        empty = '{"error": {"message": "You exceeded your current quota"}}'
        server.script = lambda request, n: Status(429, body=empty)
        with pytest.raises(EndpointError, match="quota"):
            decompose(server, 1)


# --- bodies and answers that are not quite what was asked for


def events(*chunks, end=True):
    lines = [": keep-alive", *(f"data: {json.dumps(chunk)}" for chunk in chunks)]
    return Raw("\n\n".join([*lines, *["data: [DONE]"] * end]).encode())


def delta(text, reason=None):
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": reason}
    return {"object": "chat.completion.chunk", "choices": [choice]}


def test_a_stream_that_nobody_asked_for_is_read():
    usage = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 5}}
    parts = delta('{"claims": ["a\u2028'), delta('b"]}'), delta(None, "stop"), usage
    with ChatServer(lambda request, n: events(*parts)) as server:
        assert decompose(server, 1) == [["a\u2028b"]]
        assert server.requests[0][2]["stream"] is False
        cut = delta('{"claims": ["a"]}')
        server.script = lambda r, n: events(*parts) if n else events(cut, end=False)
        assert decompose(server, 2) == [["a\u2028b"]] * 2


def test_a_redirect_among_good_replies_ends_nothing():
    def script(request, n):
        moved = len(server.requests) == 5
        return (
            Status(302, {"Location": "http://127.0.0.1:9/"}) if moved else claims("a")
        )

    with ChatServer(script) as server:
        assert decompose(server, 12, in_flight=1) == [["a"]] * 12
        assert len(server.requests) == 13
        server.script = lambda request, n: Status(302, {"Location": "/"})
        with pytest.raises(EndpointError, match=r"redirects.*followed"):
            decompose(server, 1)


def test_a_reply_that_llama_cpp_cannot_read_is_asked_for_with_another_seed():
    """It was repeated six times, with the same seed and so with the same end."""
    message = (
        "The model produced output that does not match the expected peg-native format"
    )
    body = json.dumps({"error": {"code": 500, "message": message}})

    def script(request, n):
        return Status(500, body=body) if request["seed"] < 2 else claims("a")

    with ChatServer(script) as server:
        assert decompose(server, 1) == [["a"]]
        assert [r["seed"] for _, _, r in server.requests] == [0, 1, 2]
        server.script = lambda request, n: Status(500, body=body)
        with pytest.raises(CallError, match="used"):
            decompose(server, 1)
    assert len(server.requests) == 6
