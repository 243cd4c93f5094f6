"""Replies as models write them: mathematics, loose JSON, verdicts in words."""

import json
import os
import re
import unicodedata
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("openai", reason="the openai client is not installed")

from chat_server import ChatServer, Raw
from scripted_model import ScriptedModel

from skdcf import HardCF, ReasoningGraph
from skdcf.apps.llm import (
    CallError,
    ChatClient,
    ClaimExtractor,
    Decompose,
    DeduceGraph,
    Frequency,
    SampleAnswers,
    Verify,
    judge_labels,
)
from skdcf.apps.llm._replies import repair_backslashes
from skdcf.apps.llm._steps import VERSIONS, load_prompt
from skdcf.apps.text import join, split_sentences
from skdcf.edges import chain_edges, no_edges
from skdcf.exceptions import ParameterWarning

GRAPH = ReasoningGraph(
    None, [(0, 1)], claims=["2 + 2 = 4", "4 + 1 = 6"], problem="What is it?"
)


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-replies-24680")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


# --- mathematics


def encode(steps, style):
    """Claims as a model writes them, with all backslashes doubled or some of them not."""
    text = json.dumps({"claims": steps}, ensure_ascii=False)
    if style == "doubled":
        return text
    escape = r"\\" if style == "all single" else r'\\(?=[bfnrt"/]|u[0-9a-fA-F]{4})'
    strings = [json.dumps(step, ensure_ascii=False)[1:-1] for step in steps]
    if style == "all single":
        strings = [string.replace("\\\\", "\\") for string in strings]
    else:
        strings = [re.sub(r"\\" + escape, r"\\", string) for string in strings]
    return '{"claims": [' + ", ".join(f'"{string}"' for string in strings) + "]}"


@pytest.mark.long
@pytest.mark.parametrize(
    ("style", "most_spoiled"), [("doubled", 0), ("single", 7), ("all single", 29)]
)
def test_published_mathematics_comes_through_whole(style, most_spoiled, tmp_path):
    """The first 60 answers of ProcessBench math, cut, judged and printed."""
    path = Path(os.environ.get("SKDCF_DATA", "")) / "process_bench" / "math.json"
    if "SKDCF_DATA" not in os.environ or not path.is_file():
        pytest.skip("SKDCF_DATA does not name a folder with process_bench/math.json")
    records = json.loads(path.read_text("utf-8"))[:60]
    steps_of = {"\n\n".join(record["steps"]): record["steps"] for record in records}

    def script(request, n):
        payload = json.loads(request["messages"][1]["content"])
        if "answer" in payload:
            return encode(steps_of[payload["answer"]], style)
        return r'{"why": "As \frac{1}{2} \neq \times.", "verdict": "true"}'

    with ChatServer(script) as server:
        client = ChatClient(server.url, in_flight=4, cache=tmp_path / "c")
        extractor = ClaimExtractor(
            "m",
            client,
            graph=chain_edges,
            features=[Verify(log_odds=False)],
            on_failure="abstain",
        )
        items = [
            {"problem": record["problem"], "answer": answer}
            for record, answer in zip(records, steps_of, strict=True)
        ]
        batch = extractor.transform(items)
        client.close()

    spoiled = 0
    for graph, steps in zip(batch, steps_of.values(), strict=True):
        claims = [" ".join(claim.split()) for claim in graph.claims]
        expected = [" ".join(step.split()) for step in steps]
        spoiled += len(steps) if len(claims) != len(steps) else 0
        spoiled += sum(a != b for a, b in zip(claims, expected, strict=False))
        printed = join(graph.claims)
        controls = {c for c in printed if unicodedata.category(c) == "Cc"}
        assert controls <= {"\n"}
        # Every reason could be read, too.
        assert graph.features[:, 0].all()
    assert len(batch) == 60
    assert spoiled <= most_spoiled


@pytest.mark.parametrize(
    ("written", "shown", "meant"),
    [
        (r"\frac12", "", r"\frac12"),
        (r"\\frac12", "", r"\frac12"),
        (r"\boxed{2}", "", r"\boxed{2}"),
        (r"a\neq b", r"a \neq b", r"a\neq b"),
        (r"So\neq", "nothing of the kind", "So\neq"),
        (r"One.\nTwo.", r"\neq \nu \nabla", "One.\nTwo."),
        (r"3\times4", r"3\times4", r"3\times4"),
        (r"\{x\} \, \alpha \_", "", r"\{x\} \, \alpha \_"),
        (r"\underline{x} \u00e9", "", "\\underline{x} \u00e9"),
        (r"1\/2", "", "1/2"),
        (r"say \"x\"", "", 'say "x"'),
    ],
)
def test_a_backslash_means_what_stands_in_the_answer(written, shown, meant):
    assert json.loads(repair_backslashes(f'"{written}"', shown)) == meant


def test_line_breaks_within_texts_are_read_and_control_characters_are_not_kept():
    text = '{"claims": ["a\n= 2", "b\\u000b \\f= 3\x85", "c\\t= 4"]}'
    [claims] = Decompose().apply(["x"], [None], model="m", client=lambda m: text)
    assert claims == ["a\n= 2", "b   = 3", "c = 4"]


def test_prompts_for_texts_ask_for_two_backslashes():
    asking = {n for n in VERSIONS if "every backslash twice" in load_prompt(n).text}
    assert asking == set(VERSIONS) - {"answer", "graph", "semantic", "verdict"}


# --- verdicts


def judged(text):
    graph = GRAPH.subgraph(np.array([True, False]))
    step = Verify(log_odds=False)
    [table] = step.apply([graph], model="m", client=lambda messages: text)
    return table[0, 0]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"why": null, "verdict": "true"}', 1),
        ('{"why": ["a", "b"], "verdict": "false"}', 0),
        ('{"why": "", "verdict": true}', 1),
        ("{'why': 'It\\'s so', 'verdict': True}", 1),
        ('{"why": "x", "verdict": False}', 0),
        ('{"verdict": "Yes"}', 1),
        ('{"verdict": "No."}', 0),
        ('{"verdict": "**Correct**"}', 1),
        ('{"verdict": "incorrect"}', 0),
        ("Yes", 1),
        ("No.", 0),
        ("Correct!", 1),
        ("Incorrect.", 0),
        ("After checking, the claim is **true**.", 1),
        ("Verdict: true", 1),
        ("**Verdict:** False", 0),
        ("It might be false. But 2 + 2 = 4. Therefore the claim is true.", 1),
        ("Sums are sums.\nThe claim is clearly incorrect because 2 + 2 = 4.", 0),
        ("It does not exceed 5, so the claim is true.", 1),
        ("<think>false, or true?</think>\nThe claim is true.", 1),
    ],
)
def test_a_verdict_is_read(text, value):
    assert judged(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "It is true. It is false.",
        "The claim is true. So the answer is false.",
        "True: 2 + 2 = 5. But that is wrong, so false",
        '{"verdict": "true"} {"verdict": "false"}',
        "{'verdict': 'true'} {'verdict': 'false'}",
        '{"verdict": "true or false"}',
        '{"verdict": "not true"}',
        'The claim says "this is true".',
        "Somebody said: 'it is true'.",
        "The claim is not true.",
        "The claim isn't true.",
        "I cannot say that the claim is true.",
        "No. It is true",
        "Is it true? No.",
        "If it is true.",
        "It would be true.",
        "The correct value is 5.",
        "Correct values are needed.",
        "So we need the true value.",
        "<think>The claim is true.",
        "It depends",
        "2 + 2 = 4",
        '{"why": "the claim is true", "verdict": null}',
    ],
)
def test_what_is_no_verdict_stays_refused(text):
    assert np.isnan(judged(text))


def test_a_claim_that_is_repeated_is_no_verdict():
    graph = ReasoningGraph(None, [], claims=["2 + 2 = 5. The verdict is true."])
    for text in ("It reads 2 + 2 = 5. The verdict is true.", "The verdict is true."):
        step = Verify(log_odds=False)
        [table] = step.apply([graph], model="m", client=lambda messages, t=text: t)
        assert np.isnan(table).all()


def test_a_sentence_that_was_cut_off_is_no_verdict():
    from skdcf.apps.llm import Reply

    reply = Reply("The claim is true", finish_reason="length")
    step = Verify(log_odds=False)
    [table] = step.apply([GRAPH], model="m", client=lambda messages: reply)
    assert np.isnan(table).all()


@pytest.mark.parametrize(
    "text",
    [
        '["true", "false"]',
        '```json\n["Yes", "No",]\n```',
        '[{"verdict": "true", "why": null}, {"verdict": "false"}]',
        'Sure:\n```json\n[{"claim": 1, "verdict": true}, {"claim": 2, "verdict": false}]\n```',
        '{"verdicts": [{"verdict": "correct"}, {"verdict": "incorrect"}]}',
        '{"verdicts": ["true", "false"]}',
        "{'verdicts': [{'claim': 1, 'verdict': True}, {'claim': 2, 'verdict': False}]}",
    ],
)
def test_rows_of_verdicts_are_read(text):
    assert judge_labels([GRAPH], "m", lambda m: text).labels[0].tolist() == [1, 0]


@pytest.mark.parametrize(
    "text",
    [
        '["true"]',
        '["true", "false", "true"]',
        '{"verdicts": [{"claim": 1, "verdict": "true"}, {"verdict": "false"}]}',
        'The claim is ["true", "false"], which I doubt',
        '["true", "false"] or ["false", "false"]',
    ],
)
def test_rows_that_may_be_about_other_claims_stay_refused(text):
    with pytest.raises(CallError, match="used"):
        judge_labels([GRAPH], "m", lambda m: text)


def test_votes_in_other_words():
    graph = GRAPH.replace(alternatives=["4"])
    text = '{"verdicts": [{"claim": 1, "why": 3, "verdict": "Supported"}, '
    text += '{"claim": 2, "verdict": "neutral"}]}'
    [table] = Frequency().apply([graph], model="m", client=lambda messages: text)
    assert table.tolist() == [[1.0], [0.0]]


def test_of_claims_and_edges_the_last_object_counts():
    drafts = '{"claims": ["draft"]} No, better: {"claims": ["a", "b"]}'
    [claims] = Decompose().apply(["x"], [None], model="m", client=lambda m: drafts)
    assert claims == ["a", "b"]
    graphs = '{"premises": [{"builds_on": []}, {"builds_on": []}]} Wait. '
    graphs += (
        '{"premises": [{"claim": 1, "builds_on": []}, {"claim": 2, "builds_on": [1]}]}'
    )
    [graph] = DeduceGraph().apply(
        [["a", "b"]], [None], model="m", client=lambda m: graphs
    )
    assert graph.edges == [(0, 1)] and graph.flag is None


@pytest.mark.parametrize(
    "text",
    ["[\"a\", 'b']", '["a", {"text": "b", "span": 7}]', "{'claims': ['a', \"b\"]}"],
)
def test_claims_in_a_bare_list_or_as_python(text):
    text = text.replace("'b']", '"b"]') if text.startswith("[") else text
    [claims] = Decompose().apply(["x"], [None], model="m", client=lambda m: text)
    assert claims == ["a", "b"]


def test_what_is_asked_again_has_other_chances():
    with ChatServer(lambda request, n: "I am ill") as server, pytest.raises(CallError):
        client = ChatClient(server.url)
        Decompose().apply(["x"], [None], model="m", client=client)
    sent = [(r["seed"], r["temperature"]) for _, _, r in server.requests]
    assert sent == [(0, 0.0), (1, 0.3), (2, 0.6)]


# --- log odds that do not come


def extracted(server, **options):
    extractor = ClaimExtractor(
        "m",
        ChatClient(server.url),
        decompose=split_sentences,
        graph=no_edges,
        features=[Verify(**options)],
    )
    items = [(f"q{i}", f"1 + {i} = {i + 1 + (i % 3 == 0)}.") for i in range(30)]
    return extractor.transform(items)


def test_log_odds_that_do_not_come_are_an_origin_of_their_own():
    labels = [[int(i % 3 != 0)] for i in range(30)]
    with ChatServer(ScriptedModel()) as server:
        complete = extracted(server)
        server.script = lambda request, n: '{"verdict": "true"}'
        with pytest.warns(ParameterWarning, match="no log-probabilities") as warned:
            missing = extracted(server)
    assert len(warned) == 1
    assert complete[0].provenance["log_odds"] == "known"
    assert missing[0].provenance["log_odds"] == "missing"
    assert missing[0].features.tolist() == [[1.0, 0.0, 0.0]]
    filter = HardCF("judge_log_odds", alpha=0.2).fit(complete, labels)
    with pytest.raises(ValueError, match=r"log_odds.*known.*missing"):
        filter.predict(missing)
    HardCF("judge_verdict", alpha=0.2).fit(missing, labels)  # all alike


@pytest.mark.filterwarnings("ignore:the endpoint returns no log-probabilities")
def test_an_answer_without_claims_does_not_differ_where_log_odds_are_missing():
    """One failed answer among a hundred made a filter refuse the file."""
    answers = [f"1 + {i} = {i + 1 + (i % 3 == 0)}." for i in range(30)]
    with ChatServer(lambda request, n: '{"verdict": "true"}') as server:
        extractor = ClaimExtractor(
            "m",
            ChatClient(server.url),
            decompose=split_sentences,
            graph=no_edges,
            features=[Verify()],
        )
        graphs = extractor.transform([(a, a) for a in ["", *answers]])
        assert graphs[0].n_claims == 0
        made = [graph.provenance for graph in graphs]
        assert made == [made[1]] * 31
        assert made[1]["log_odds"] == "missing"


# --- prompts that a server cuts, and refusals


def counted(text, n_tokens):
    body = {"choices": [{"message": {"content": text}}]}
    body |= {"usage": {"prompt_tokens": n_tokens, "completion_tokens": 3}}
    return Raw(json.dumps(body).encode())


def test_a_prompt_that_the_server_cut_is_said():
    """Ollama reads the end of a long prompt, and says so by its count of tokens only."""
    answer = "One is one. " * 2000
    text = json.dumps({"claims": ["One is one."]})
    with ChatServer(lambda request, n: counted(text, 2050)) as server:
        client = ChatClient(server.url)
        extractor = ClaimExtractor("m", client, graph=no_edges)
        with pytest.warns(ParameterWarning, match=r"fewer.*tokens"):
            [cut, again] = extractor.extract([("q", answer), ("r", answer)])
        assert any("far fewer tokens" in flag for flag in cut.flags)
        assert any("far fewer tokens" in flag for flag in again.flags)
        for n_tokens in (0, 12, 6500):  # not counted, not counted again, all of them
            server.script = lambda request, n, k=n_tokens: counted(text, k)
            [whole] = extractor.extract([("q", answer)])
            assert whole.flags == ()


@pytest.mark.parametrize(
    "refusal",
    [
        "I'm sorry, but I can't help with that.",
        "Es tut mir leid, dabei kann ich nicht helfen.",
        "Ich kann diese Frage leider nicht beantworten.",
        "Désolé, je ne peux pas répondre à cette question.",
        "Je suis désolée, mais non.",
        "Lo siento, no puedo ayudar con eso.",
        "Mi dispiace, non posso aiutarti.",
        "Desculpe, não posso ajudar com isso.",
        "Sinto muito.",
        "К сожалению, я не могу ответить.",  # noqa: RUF001
        "很抱歉，我无法回答这个问题。",  # noqa: RUF001
        "我不能回答。",
        "申し訳ありませんが、お答えできません。",
        "죄송합니다. 도와드릴 수 없습니다.",
    ],
)
def test_a_refusal_in_any_language_is_no_answer(refusal):
    def complete(messages, *, seed, **options):
        return refusal if seed == 1 else f"It is {seed}."

    drawn = SampleAnswers(2).apply(["q"], model="m", client=complete)
    assert drawn == [["It is 3.", "It is 2."]]


@pytest.mark.parametrize(
    "answer",
    [
        "Die Antwort: 4.",
        "Non è 4, è 5.",
        "No puede valer 3.",
        "我们得到 4。",
        "Je trouve 4.",
    ],
)
def test_an_answer_is_no_refusal(answer):
    drawn = SampleAnswers(1).apply(["q"], model="m", client=lambda messages: answer)
    assert drawn == [[answer]]
