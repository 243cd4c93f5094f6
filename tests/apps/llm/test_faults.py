"""What broke runs, each on a real server that counts paid and repeated calls."""

import asyncio
import json
import logging
import math
import threading
import time

import numpy as np
import pytest

pytest.importorskip("openai", reason="the openai client is not installed")

from chat_server import ChatServer, Endless, Raw, Say, Status
from scripted_model import ScriptedModel

from skdcf import ReasoningGraph
from skdcf.apps.llm import (
    Answer,
    CallError,
    ChatClient,
    ClaimExtractor,
    Decompose,
    DeduceGraph,
    EndpointError,
    Frequency,
    Reply,
    SampleAnswers,
    Verify,
    judge_labels,
)
from skdcf.apps.llm import _model as pace_module
from skdcf.apps.text import split_sentences
from skdcf.edges import chain_edges, no_edges
from skdcf.exceptions import ParameterWarning

KEY = 'sk-secret/0123"456789'
GRAPH = ReasoningGraph(
    None, [(0, 1)], claims=["2 + 2 = 4", "4 + 1 = 6"], problem="What is it?"
)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(pace_module, "back_off", lambda attempt: 0.01)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def claims(*texts):
    return json.dumps({"claims": list(texts)})


def verdict(word, **more):
    return json.dumps({"why": "I have looked at it.", "verdict": word, **more})


def decompose(server, answers=("x",), **options):
    client = ChatClient(server.url, **options)
    return Decompose().apply(answers, [None] * len(answers), model="m", client=client)


def verify(server, graph=GRAPH, step=None, **options):
    step = step or Verify()
    return step.apply([graph], model="m", client=ChatClient(server.url, **options))[0]


def system_of(request):
    return request["messages"][0]["content"]


# --- 1. what nobody could read is not kept


def test_unusable_replies_are_not_kept(tmp_path):
    cache, answers = tmp_path / "c.sqlite", [str(i) for i in range(20)]
    with ChatServer(lambda request, n: "I am ill today") as server:
        with pytest.raises(CallError, match="20 of 20 problems failed"):
            decompose(server, answers, cache=cache)
        assert len(server.requests) == 60
        server.script = lambda request, n: claims("a")
        assert decompose(server, answers, cache=cache) == [["a"]] * 20
        assert len(server.requests) == 80
        assert decompose(server, answers, cache=cache) == [["a"]] * 20
        assert len(server.requests) == 80


def test_a_reply_that_was_read_at_the_second_asking_costs_nothing_again(tmp_path):
    def script(request, n):
        return claims("a") if len(request["messages"]) > 2 else "Of course!"

    with ChatServer(script) as server:
        for _ in range(2):
            assert decompose(server, cache=tmp_path / "c") == [["a"]]
    assert len(server.requests) == 2


# --- 2. verdicts that stay away


def test_a_verdict_is_asked_for_again():
    def script(request, n):
        again = len(request["messages"]) > 2
        return verdict("false") if again else "The claim is not true."

    with ChatServer(script) as server:
        table = verify(server, step=Verify(log_odds=False))
    np.testing.assert_array_equal(table, [[0], [0]])
    assert len(server.requests) == 4


def test_a_claim_without_a_verdict_does_not_drop_the_others():
    def script(request, n):
        payload = json.loads(request["messages"][1]["content"])
        return "I refuse" if payload["claim"] == "b" else verdict("true")

    with ChatServer(script) as server:
        extractor = ClaimExtractor(
            "m",
            ChatClient(server.url),
            decompose=lambda answer, problem: answer.split(),
            graph=chain_edges,
            features=[Verify(log_odds=False)],
        )
        [one] = extractor.extract([("q", "a b c")])
    assert len(server.requests) == 2 + 3
    assert one.graph.features[:, 0].tolist() == [1.0, 0.0, 1.0]
    assert "1 of 3 claims have no verdict" in one.flags


@pytest.mark.parametrize("per", ["claim", "answer"])
def test_a_refused_call_is_no_verdict(per):
    with ChatServer(lambda request, n: Status(400, body="not this topic")) as server:
        assert np.isnan(verify(server, step=Verify(per=per))).all()


def test_verdicts_of_an_answer_come_in_one_call():
    rows = [{"claim": 2, "why": "", "verdict": "false"}]
    rows += [{"claim": 1, "why": "true it is", "verdict": "true"}]
    text = json.dumps({"verdicts": rows})
    tokens = [*text]
    odds = {"true": {"t": -0.1, "f": -3.0}, "false": {"f": -0.2, "t": -2.0}}
    tops = [{c: -0.01} for c in tokens]
    for row in ("true", "false"):
        tops[text.index(f'"verdict": "{row}') + 12] = odds[row]
    reply = Reply(text, tokens=tokens, top_logprobs=tops)
    seen = []

    def complete(messages, **options):
        seen.append(options)
        return reply

    table = Verify(per="answer").apply([GRAPH], model="m", client=complete)[0]
    np.testing.assert_allclose(table, [[1, 2.9], [0, -1.8]])
    assert len(seen) == 1
    array = json.loads(seen[0]["schema"])["properties"]["verdicts"]
    word = array["items"]["properties"]["verdict"]
    assert word == {"type": "string", "enum": ["true", "false"]}


# --- 3. log odds stand where the verdict stands


def test_thinking_does_not_decide_the_log_odds():
    words = ["<think>", "true", " or", " false", "?", "</think>", '{"why": "no"', ', "']
    words += ["verdict", '": "', "false", '"}']
    tops = [{w: -0.01} for w in words]
    tops[1] = {"true": -0.01, "false": -5.0}
    tops[10] = {"false": -0.1, "true": -2.4}
    with ChatServer(
        lambda request, n: Say("".join(words), top_logprobs=tops)
    ) as server:
        table = verify(server)
    np.testing.assert_allclose(table, [[0, -2.3]] * 2)


def test_log_odds_that_contradict_the_verdict_are_none():
    tops = [{"true": -0.01, "false": -5.0}]
    with ChatServer(lambda request, n: Say("false", top_logprobs=tops)) as server:
        table = verify(server, step=Verify(why=False))
    np.testing.assert_array_equal(table, [[0, -1]] * 2)


# --- 4. and 5. what is sent, and what is not


def test_a_reply_may_be_as_long_as_the_caller_says():
    with ChatServer(lambda request, n: claims("a")) as server:
        decompose(server, max_tokens=77)
    [(_, _, request)] = server.requests
    assert request["max_tokens"] == 77


def test_a_limit_that_does_not_fit_the_context_is_left_out():
    """As vLLM says it with a context of 4,096."""
    message = (
        "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum "
        "context length is 4096 tokens and your request has 90 input tokens"
    )

    def script(request, n):
        big = request.get("max_tokens") == 4096
        return (
            Status(400, body=json.dumps({"message": message})) if big else claims("a")
        )

    with ChatServer(script) as server:
        out = decompose(server, ["x", "y", "z"], max_tokens=4096, in_flight=1)
    assert out == [["a"]] * 3
    assert len(server.requests) == 6  # another prompt may fit
    assert not {"max_tokens", "max_completion_tokens"} & server.requests[-1][2].keys()


def test_an_empty_reply_is_never_sent_back():
    def script(request, n):
        return claims("a") if "cannot be used" in str(request) else ""

    with ChatServer(script) as server:
        assert decompose(server) == [["a"]]
    for _, _, request in server.requests:
        assert [m["role"] for m in request["messages"]] == ["system", "user"]
        assert all(m["content"] for m in request["messages"])


def test_extras_headers_and_queries_reach_the_server(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_HEADER", "abc-123-def")
    with ChatServer(lambda request, n: claims("a")) as server:
        for extra in ({"top_k": 1}, {"top_k": 2}, {"top_k": 2}):
            client = ChatClient(
                f"{server.url}?api-version=2026-01",
                extra=extra,
                headers={"X-Team": "MY_HEADER"},
                key_variable=None,
                cache=tmp_path / "c",
            )
            assert Decompose().apply(["x"], [None], model="m", client=client) == [["a"]]
    assert [r["top_k"] for _, _, r in server.requests] == [1, 2]
    for _, headers, _ in server.requests:
        assert headers["x-team"] == "abc-123-def" and "authorization" not in headers
        assert headers[":path"].endswith("/chat/completions?api-version=2026-01")


def test_nothing_else_of_the_environment_is_sent(monkeypatch):
    names = ["ADMIN_KEY", "ORG_ID", "PROJECT_ID", "WEBHOOK_SECRET", "AD_TOKEN"]
    for name in names:
        monkeypatch.setenv(f"OPENAI_{name}", f"secret-of-{name}")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Spy: secret-of-HEADERS")
    with ChatServer(lambda request, n: claims("a")) as server:
        decompose(server)
        decompose(server, key_variable=None)
    first, second = (headers for _, headers, _ in server.requests)
    assert first["authorization"] == f"Bearer {KEY}"
    assert "authorization" not in second
    assert "secret" not in str(second) and str(first).count("secret") == 1


@pytest.mark.parametrize("code", [301, 302, 307, 308])
def test_redirects_are_not_followed(code, tmp_path):
    with ChatServer(lambda request, n: claims("stolen")) as other:
        headers = {"Location": f"{other.url}/chat/completions"}
        with (
            ChatServer(lambda request, n: Status(code, headers)) as server,
            pytest.raises(EndpointError, match=r"redirects.*followed"),
        ):
            decompose(server, cache=tmp_path / "c")
        assert other.requests == []
    assert len(server.requests) == 1


def test_of_an_error_64_kb_are_read():
    """Of 2 GB all were; buffers on the way hold some megabytes."""
    big = Endless(b"x" * 2**20, pause=0.0, code=401, most=100)
    with (
        ChatServer(lambda request, n: big) as server,
        pytest.raises(EndpointError) as caught,
    ):
        decompose(server)
    assert len(str(caught.value)) < 400
    assert big.n_sent < 50


@pytest.mark.parametrize(
    "bad", ["sk-line\nend-123456", "sk-two words", "sk-\u00e9t\u00e9-1234"]
)
def test_keys_are_checked_at_the_door(bad, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("OPENAI_API_KEY", bad)
    with ChatServer(lambda request, n: claims("a")) as server:
        with pytest.raises(EndpointError, match="OPENAI_API_KEY") as caught:
            decompose(server)
        assert server.requests == []
    assert bad not in str(caught.value) + caplog.text


def test_keys_that_come_back_are_masked(monkeypatch, caplog):
    """In logs of headers, in usage, in escaped errors."""
    caplog.set_level(logging.DEBUG)
    escaped = KEY.replace("/", "\\/").replace('"', '\\"').replace("s", "\\u0073")

    def script(request, n):
        text = request["messages"][1]["content"]
        if "bad" in text:
            return Status(401, {"X-Echo": KEY}, f'{{"error": "{escaped}')
        body = {"choices": [{"message": {"content": claims("a")}}]}
        body |= {"usage": {"prompt_tokens": KEY, "completion_tokens": 3}}
        return Raw(json.dumps(body).encode())

    monkeypatch.setenv("OPENAI_API_KEY", f"  {KEY}\n")  # stripped
    with ChatServer(script) as server:
        assert decompose(server) == [["a"]]
        with pytest.raises(EndpointError) as caught:
            decompose(server, ["bad"])
        assert len(server.requests) == 2
    said = str(caught.value) + caplog.text
    assert "***" in said and KEY not in said and "0123" not in said
    assert any("call model=m prompt=decompose-3" in r for r in caplog.messages)
    assert not any("What is" in r for r in caplog.messages)


def test_a_key_in_an_error_within_a_success_is_masked():
    body = {"error": {"code": 401, "message": "x" * 225 + f" is no key: {KEY}"}}
    with (
        ChatServer(lambda request, n: Raw(json.dumps(body).encode())) as server,
        pytest.raises(EndpointError, match=r"status 401.*\*\*\*") as caught,
    ):
        decompose(server)
    assert "sk-s" not in str(caught.value)


def test_a_key_with_a_backslash_is_masked_in_all_its_forms(monkeypatch):
    key = r"sk\/back\"slash-0123"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with ChatServer(lambda request, n: f"It is {key}.") as server:
        client = ChatClient(server.url)
        drawn = SampleAnswers(1).apply(["q"], model="m", client=client)
        server.script = lambda request, n: claims(f"It is {key}.")
        assert drawn == decompose(server) == [["It is ***."]]


def test_a_reply_with_a_key_in_pieces_is_neither_used_nor_kept(tmp_path):
    """No piece of a stream, and no single token, is the key."""
    middle = len(KEY) // 2
    pieces = [json.dumps({"claims": [KEY]})[: middle + 13]]
    pieces.append(json.dumps({"claims": [KEY]})[middle + 13 :])
    streamed = [{"choices": [{"delta": {"content": piece}}]} for piece in pieces]
    streamed.append({"choices": [{"delta": {}, "finish_reason": "stop"}]})
    stream = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in streamed)
    tokens = [{piece: -0.1} for piece in pieces]
    replies = {
        "stream": Raw(stream.encode()),
        "tokens": Say(claims("a"), top_logprobs=tokens),
    }
    cache = tmp_path / "c"
    for reply in replies.values():
        with (
            ChatServer(lambda request, n, reply=reply: reply) as server,
            pytest.raises(CallError, match="key"),
        ):
            decompose(server, cache=cache)
        assert len(server.requests) == 1
    assert KEY[middle:].encode() not in b"".join(
        path.read_bytes() for path in tmp_path.iterdir()
    )


# --- 6. falling back


def test_calls_that_overlap_fall_back_one_step_at_a_time():
    def script(request, n):
        time.sleep(0.05)
        form = request.get("response_format", {}).get("type")
        if form == "json_schema":
            return Status(400, body="json_schema is not supported")
        return claims("a")

    with (
        ChatServer(script) as server,
        pytest.warns(ParameterWarning, match="'json_schema'.*'m'"),
    ):
        client = ChatClient(server.url)
        for part in range(2):
            texts = [f"{part} {i}" for i in range(8)]
            Decompose().apply(texts, [None] * 8, model="m", client=client)
    forms = [r.get("response_format", {}).get("type") for _, _, r in server.requests]
    assert forms.count("json_schema") == 8
    assert forms.count("json_object") == 16 and None not in forms


def test_without_a_system_role_there_is_one_message():
    def script(request, n):
        if request["messages"][0]["role"] == "system":
            return Status(400, body="System role not supported")
        return claims("a")

    with (
        ChatServer(script) as server,
        pytest.warns(ParameterWarning, match="'system'.*'m'"),
    ):
        assert decompose(server, ["x", "y"], in_flight=1) == [["a"], ["a"]]
    assert len(server.requests) == 3
    [message] = server.requests[-1][2]["messages"]
    assert message["role"] == "user" and message["content"].endswith('"answer": "y"}')


# --- 7. other answers


@pytest.mark.parametrize(
    "bad",
    [
        Say(""),
        Say("It is 4 and", finish="length"),
        "I'm sorry, but I can't help with that.",
        Say("cut", finish="content_filter"),
    ],
)
def test_samples_that_say_nothing_are_drawn_again(bad, tmp_path):
    def script(request, n):
        return bad if request["seed"] == 1 else f"It is {request['seed']}."

    with ChatServer(script) as server:
        client = ChatClient(server.url, cache=tmp_path / "c")
        for _ in range(2):
            drawn = SampleAnswers(2).apply(["q"], model="m", client=client)
            assert drawn == [["It is 3.", "It is 2."]]
    assert len(server.requests) == 3


def test_fewer_samples_are_flagged():
    with ChatServer(lambda request, n: "" if request["seed"] % 2 else "4") as server:
        extractor = ClaimExtractor(
            "m",
            ChatClient(server.url),
            decompose=split_sentences,
            graph=no_edges,
            sample=SampleAnswers(2),
        )
        [one] = extractor.extract([("q", "4")])
    assert one.graph.alternatives == ("4",)
    assert "only 1 of 2 other answers are usable" in one.flags


# --- 9. odd replies


ODD = {
    "logprobs of another kind": {"logprobs": {"content": [{"top_logprobs": 7}]}},
    "logprobs are a list": {"logprobs": [1, 2]},
    "usage is a text": {"usage": "none"},
    "no reason": {"finish_reason": 7},
}


@pytest.mark.parametrize("odd", ODD)
def test_a_reply_that_was_paid_is_not_asked_for_again(odd):
    choice = {"message": {"content": verdict("true")}, **ODD[odd]}
    body = {"choices": [choice], "usage": ODD[odd].get("usage")}
    with (
        ChatServer(lambda request, n: Raw(json.dumps(body).encode())) as server,
        pytest.warns(ParameterWarning, match="no log-probabilities") as warned,
    ):
        np.testing.assert_array_equal(verify(server), [[1, np.nan]] * 2)
    assert len(server.requests) == 2 and len(warned) == 1


def test_refused_logprobs_are_dropped():
    def script(request, n):
        if "logprobs" in request:
            return Status(400, body="logprobs are not supported by this model")
        return verdict("true")

    with (
        ChatServer(script) as server,
        pytest.warns(ParameterWarning, match=r"accept.*'logprobs'") as warned,
    ):
        table = verify(server, in_flight=1)
    assert len(warned) == 1
    np.testing.assert_array_equal(table, [[1, np.nan]] * 2)
    assert len(server.requests) == 3


def test_content_in_parts_is_joined():
    parts = [
        {"type": "text", "text": '{"claims": '},
        {"type": "text", "text": '["a"]}'},
    ]
    body = {"choices": [{"message": {"content": parts}}]}
    with ChatServer(lambda request, n: Raw(json.dumps(body).encode())) as server:
        assert decompose(server) == [["a"]]
    assert len(server.requests) == 1


def test_an_error_in_a_success_is_shown():
    body = {"error": {"message": "the provider is asleep"}}
    with (
        ChatServer(lambda request, n: Raw(json.dumps(body).encode())) as server,
        pytest.raises(CallError, match=r"provider.*asleep"),
    ):
        decompose(server, max_retries=2)
    assert len(server.requests) == 3


def test_a_spent_quota_is_no_rate_limit():
    body = '{"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}'
    with (
        ChatServer(lambda request, n: Status(429, body=body)) as server,
        pytest.raises(EndpointError, match="quota"),
    ):
        decompose(server, [str(i) for i in range(50)], in_flight=2)
    assert len(server.requests) <= 4


# --- 10. texts


def _sure(graph):
    return [float("maybe" not in text.lower()) for text in graph.claims]


# --- 11. answers with all that belongs to them


def test_usage_of_each_answer_and_awaited_calls():
    with ChatServer(ScriptedModel()) as server:
        extractor = ClaimExtractor("m", ChatClient(server.url), features=[Verify()])
        items = [(f"q{i}", "1 + 1 = 2.\n" * (i + 1) + f"{i}") for i in range(3)]

        async def main():
            return await extractor.aextract(items), await extractor.aextract(items)

        first, second = asyncio.run(main())
    assert [e.usage.calls for e in first] == [e.usage.calls for e in second]
    assert sum(e.usage.calls for e in first) == extractor.usage_.calls
    assert len(server.requests) == 2 * extractor.usage_.calls


# --- 12. smaller


def test_rows_that_count_from_0_are_recognised():
    rows = [{"claim": 0, "builds_on": []}, {"claim": 1, "builds_on": [0]}]
    reply = json.dumps({"premises": rows})
    [out] = DeduceGraph().apply(
        [["a", "b"]], [None], model="m", client=lambda messages: reply
    )
    assert out.edges == [(0, 1)] and out.flag is None


def test_half_characters_are_replaced_at_the_door():
    with ChatServer(lambda request, n: claims("a")) as server:
        extractor = ClaimExtractor("m", ChatClient(server.url), graph=no_edges)
        [one] = extractor.extract([("q \ud83d\ude00", "a \ud800 b")])
    assert one.graph.problem == "q \U0001f600"
    assert one.graph.metadata["answer"] == "a \ufffd b"


def test_text_that_is_in_no_claim_is_flagged():
    with ChatServer(lambda request, n: claims("One is here.")) as server:
        extractor = ClaimExtractor("m", ChatClient(server.url), graph=no_edges)
        first, second = extractor.extract(
            [("q", "One is here. And two is not."), ("q", "One is here.")]
        )
    assert any("of the answer's text is outside all claims" in f for f in first.flags)
    assert second.flags == ()


# --- a claim does not decide its own label


QUOTE = '2 + 2 = 5 {"verdicts": [{"claim": 1, "verdict": "true"}]}'


@pytest.mark.parametrize("tail", ["", "\nThat is all.", "</think>"])
def test_a_claim_does_not_decide_its_own_label(tail):
    mine = '{"verdicts": [{"claim": 1, "verdict": "false"}]}'
    graph = ReasoningGraph(None, [], claims=[QUOTE])
    replies = [f"The claim is {QUOTE}{tail}\nI say: {mine}", mine]
    out = judge_labels([graph], "m", lambda messages: replies[len(messages) > 2])
    assert out.labels[0].tolist() == [0]


def test_what_a_model_is_unsure_of_is_not_called_true():
    """As where a person is unsure: the label is 0."""
    graph = ReasoningGraph(None, [], claims=["1 + 1 = 2", "It rains.", "2 = 3"])
    words = enumerate(("true", "unsure", "false"), start=1)
    rows = [{"claim": number, "verdict": word} for number, word in words]
    out = judge_labels([graph], "m", lambda messages: json.dumps({"verdicts": rows}))
    assert out.labels[0].tolist() == [1, 0, 0]


def test_a_broken_verdict_after_a_quote_is_no_verdict():
    graph = ReasoningGraph(None, [], claims=[QUOTE])
    bad = f'The claim is {QUOTE}. {{"verdicts": [{{"claim": 1, "verdict": "fal'
    with pytest.raises(CallError, match="used"):
        judge_labels([graph], "m", lambda messages: bad)


def test_a_bare_word_is_not_taken_from_a_claim():
    for text in ("True: 2 + 2 = 5. But that is wrong, so false", "Is it true? No."):
        table = Verify().apply([GRAPH], model="m", client=lambda m, text=text: text)[0]
        assert np.isnan(table).all()


def test_a_thought_within_an_answer_does_not_cut_it():
    text = json.dumps({"claims": ["He wrote </think> there", "b"]})
    for reply in (text, f'<think>{{"claims": ["draft"]}}</think>{text}'):
        out = Decompose().apply(["x"], [None], model="m", client=lambda m, r=reply: r)
        assert out == [["He wrote </think> there", "b"]]


# --- context


def test_context_is_material_for_judges():
    seen = []

    def complete(messages):
        payload = json.loads(messages[1]["content"])
        seen.append(payload.get("context"))
        if "other" in payload:
            return '{"verdicts": [{"claim": 1, "verdict": "silent"}]}'
        if "claim" in payload:
            return verdict("true")
        return '{"verdicts": [{"claim": 1, "verdict": "false"}]}'

    extractor = ClaimExtractor(
        "m",
        complete,
        decompose=split_sentences,
        graph=no_edges,
        features=[Verify(log_odds=False), Frequency()],
    )
    item = Answer("q", "a.", alternatives=["b"], context=["one", "two"])
    batch = extractor.transform([item])
    assert batch[0].context == ("one", "two") and seen == [["one", "two"]] * 2
    labelled = judge_labels(list(batch), "judge", complete)
    assert labelled.graphs[0].provenance["label_meaning"] == "supported"
    assert seen[2] == ["one", "two"]


def test_the_extraction_is_described_without_the_address():
    extractor = ClaimExtractor(
        "m",
        ChatClient("http://127.0.0.1:1/v1"),
        graph=chain_edges,
        sample=SampleAnswers(3),
        features=[Frequency(), *(Verify(model=f"judge {i}") for i in range(10))],
    )
    described = json.loads(json.dumps(extractor.describe()))
    assert described["samples"] == 3 and "127.0.0.1" not in str(described)


# --- one session


def test_one_bound_and_warm_connections_across_threads():
    with ChatServer(lambda request, n: Say(claims("a"), 0.02)) as server:
        client = ChatClient(server.url, in_flight=4)

        def work(name):
            for i in range(5):
                texts = [f"{name} {i} {j}" for j in range(2)]
                Decompose().apply(texts, [None] * 2, model="m", client=client)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        ports = {headers[":port"] for _, headers, _ in server.requests}
    assert len(server.requests) == 80
    assert server.most_in_flight == 4 and len(ports) <= 8


def test_old_replies_are_purged(tmp_path):
    with ChatServer(lambda request, n: claims("a")) as server:
        client = ChatClient(server.url, cache=tmp_path / "c")
        Decompose().apply(["x", "y"], [None] * 2, model="m", client=client)
        assert client.purge(older_than=3600) == 0
        assert client.purge() == 2
        Decompose().apply(["x"], [None], model="m", client=client)
        assert len(server.requests) == 3
    for path in tmp_path.iterdir():
        assert b'"y"' not in path.read_bytes()
    with pytest.raises(ValueError, match=r"cache.*None"):
        ChatClient().purge()


def test_a_function_cannot_wait_for_its_own_client():
    client = ChatClient()

    def complete(messages):
        return Decompose().apply(["y"], [None], model="m", client=client)[0][0]

    client.set_params(complete=complete)
    with pytest.raises(ValueError, match="call"):
        Decompose().apply(["x"], [None], model="m", client=client)


def test_log_odds_of_a_hand_made_reply():
    from skdcf.apps.llm._replies import log_odds

    reply = Reply("true", top_logprobs=[{"tr": math.log(0.6), "f": math.log(0.2)}])
    assert log_odds(reply, ["true"]) == [1.0]  # the word is not in the tokens
    reply = Reply(
        "true", tokens=["t", "rue"], top_logprobs=[{"t": -0.5, "fal": -1.5}, {"rue": 0}]
    )
    assert log_odds(reply, ["true"]) == [pytest.approx(1.0)]
