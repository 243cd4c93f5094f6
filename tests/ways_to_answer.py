"""Ways in which servers answer, and what each costs and loses: a table.

    python tests/ways_to_answer.py > tests/ways_to_answer.tsv

A server of our own plays one way after the other over real HTTP. Six answers of three claims
each are cut into claims, get their graph and a judge's verdicts, and are filtered. What a
server says in each way is not ours: it comes from the thread that is named beside it. No time is
measured: a busy server counts the seconds for which its client would have waited. The clock of
"one slot" runs a hundred times as fast.
"""

import itertools
import json
import os
import re
import threading
import time
import warnings
from dataclasses import dataclass

from chat_server import ChatServer, HangUp, Raw, Say, Status

from skdcf import HardCF
from skdcf.apps.llm import CallError, ChatClient, ClaimExtractor, Verify
from skdcf.apps.llm import _model as pace_module

SCALE = 0.01
#: Claims, and whether each is true. Commands begin like escapes of JSON: \b \f \n \r \t.
ANSWERS = [
    [
        (rf"$\frac{{{2 * n}}}{{2}} = {n}$, which is half of {2 * n}.", True),
        (rf"So ${n} \times 2 = {2 * n}$ and ${n} \neq {n + 1}$.", True),
        (rf"Therefore \boxed{{{2 * n + n % 2}}} is what comes out.", n % 2 == 0),
    ]
    for n in range(2, 8)
]
TRUTH = dict(pair for answer in ANSWERS for pair in answer)
TRUTH_OF_NUMBERS = {tuple(re.findall(r"\d+", c)): truth for c, truth in TRUTH.items()}


@dataclass
class Asked:
    """One request: which step asks, what it shows, and how often it came before."""

    step: str
    payload: dict
    request: dict
    n_before: int
    n_in_all: int


def step_of(request):
    payload = json.loads(request["messages"][-1]["content"].split("\n\nThis reply")[0])
    if "answer" in payload:
        return "claims", payload
    return ("verdict" if "premises" in payload else "graph"), payload


def plain(asked):
    """What the protocol asks for: an object, with the probabilities of its words."""
    if asked.step == "claims":
        lines = asked.payload["answer"].split("\n")
        return json.dumps({"claims": [{"span": c, "text": c} for c in lines]})
    if asked.step == "graph":
        n = len(asked.payload["claims"])
        rows = [{"claim": v, "builds_on": [v - 1] * (v > 1)} for v in range(1, n + 1)]
        return json.dumps({"premises": rows})
    return with_odds(json.dumps({"why": "Checked.", "verdict": word_of(asked)}))


def word_of(asked):
    """What the judge thinks, who knows a claim by its numbers, however it is spelt."""
    numbers = re.findall(r"\d+", asked.payload["claim"])
    return "true" if TRUTH_OF_NUMBERS.get(tuple(numbers), False) else "false"


def with_odds(text):
    """A reply of the judge, letter by letter, with what else each might have been."""
    tops = [{letter: -0.01} for letter in text]
    for match in re.finditer(r"(?i)true|false|yes|no|(?:in)?correct", text):
        tops[match.start()] = {match[0]: -0.02, "true": -4.0, "false": -4.0}
        tops[match.start()][match[0]] = -0.02
    return Say(text, top_logprobs=tops)


WAYS = {}


def way(name, source, step=None):
    """A way to answer: a function of a request, for all steps or for one."""

    def add(function):
        def script(asked):
            if step is None or asked.step == step:
                return function(asked)
            return plain(asked)

        WAYS[name] = source, script
        return function

    return add


def claims_as(change):
    """The claims, written otherwise."""
    return lambda asked: change(plain(asked))


def verdict_as(form):
    """The judge's verdict in another form, in which {} is "true" or "false"."""

    def answer(asked):
        word = word_of(asked)
        true = word == "true"
        words = {
            "{}": word,
            "{bool}": str(true).lower(),
            "{Bool}": str(true),
            "{yes}": "Yes" if true else "No",
            "{correct}": "correct" if true else "incorrect",
        }
        text = form
        for name, value in words.items():
            text = text.replace(name, value)
        return with_odds(text)

    return answer


def single(text, *, everywhere):
    """Backslashes that are not doubled, everywhere or where JSON allows it."""
    return re.sub(r"\\\\" if everywhere else r"\\\\(?=[bfnrt])", r"\\", text)


HERE = "reported to this package"

way("as asked", "the protocol")(plain)

# --- mathematics and loose JSON
way("LaTeX, single where JSON allows it", "wttwins/wrong-notebook#3", "claims")(
    claims_as(lambda text: single(text, everywhere=False))
)
way("LaTeX, all single", "iDiagoValeta/localOllamaRAG#153", "claims")(
    claims_as(lambda text: single(text, everywhere=True))
)
way("raw line breaks in texts", "mastra-ai/mastra#8973", "claims")(
    claims_as(lambda text: text.replace(", which", ",\nwhich"))
)
way("a fence around it", "vicentereig/dspy.rb#17", "claims")(
    claims_as(lambda text: f"## Output\n```json\n{text}\n```")
)
way("prose around it", "Skyvern-AI/skyvern#290", "claims")(
    claims_as(lambda text: f"Here's a JSON object: {text} Let me know!")
)
way("commas at the end", "langchain-ai/langchain#11476", "claims")(
    claims_as(lambda text: text.replace("}]", "},],"[:-1]))
)
way("literals of Python", "ml-explore/mlx-lm#1004", "claims")(
    claims_as(lambda text: repr(json.loads(text)))
)
way("a list in the place of the object", "guardrails-ai/guardrails#596", "claims")(
    claims_as(lambda text: json.dumps(json.loads(text)["claims"]))
)
way("a draft, then the object", "langgenius/dify#42006", "claims")(
    claims_as(lambda text: '{"claims": ["a draft"]}\n' + text)
)
way("spans that are null", HERE, "claims")(
    claims_as(
        lambda text: json.dumps(
            {"claims": [{**c, "span": None} for c in json.loads(text)["claims"]]}
        )
    )
)
way("thinking in the text", "vllm-project/vllm#13375")(
    lambda asked: prefixed(plain(asked), "<think>Is it {}? true? false?</think>\n")
)
way(
    "the object again as a draft of the graph",
    "Usagi-org/ai-goofish-monitor#396",
    "graph",
)(lambda asked: '{"premises": [{"claim": 1, "builds_on": []}]} ' + plain(asked))
way("rows of the graph without numbers", HERE, "graph")(
    claims_as(lambda text: re.sub(r'"claim": \d+, ', "", text))
)
way("rows of the graph from 0", HERE, "graph")(
    claims_as(lambda text: re.sub(r"\d+", lambda m: str(int(m[0]) - 1), text))
)


def prefixed(said, text):
    if isinstance(said, str):
        return text + said
    return Say(
        text + said.text, top_logprobs=[{c: -0.01} for c in text] + said.top_logprobs
    )


# --- verdicts
FORMS = {
    '"why": null': '{"why": null, "verdict": "{}"}',
    '"why": a list': '{"why": ["a", "b"], "verdict": "{}"}',
    "a boolean": '{"why": "Checked.", "verdict": {bool}}',
    "True of Python": "{'why': 'Checked.', 'verdict': {Bool}}",
    "Yes and No": '{"why": "Checked.", "verdict": "{yes}"}',
    "correct and incorrect": '{"why": "Checked.", "verdict": "{correct}"}',
    "a bare Yes or No": "{yes}",
    "a last sentence": "I looked at it. After checking, the claim is **{}**.",
    "Verdict: true": "Verdict: {}",
}
for form_name, form in FORMS.items():
    source = HERE
    if form_name == "True of Python":
        source = "microsoft/RD-Agent#1374"
    if form_name.startswith("a last"):
        source = "IBM/ai4rag#107"
    way(f"verdict: {form_name}", source, "verdict")(verdict_as(form))
REFUSED = {
    "two verdicts": "The claim is true. So the answer is false.",
    "a quoted verdict": 'The claim says "this is true".',
    "a negated verdict": "I would not say that the claim is true.",
    "a draft of a verdict": "<think>The claim is true.",
}
for form_name, form in REFUSED.items():
    way(f"no verdict: {form_name}", HERE, "verdict")(verdict_as(form))


# --- servers
@way("log odds ignored", "ollama/ollama#16117", "verdict")
def _(asked):
    return plain(asked).text


@way("log odds refused", "BerriAI/litellm#17165")
def _(asked):
    if "logprobs" in asked.request:
        message = "UnsupportedParamsError: does not support parameters: ['logprobs']"
        return Status(400, body=json.dumps({"error": {"message": message}}))
    said = plain(asked)
    return said if isinstance(said, str) else said.text


@way("schemas refused", "ItzCrazyKns/Vane#969")
def _(asked):
    form = asked.request.get("response_format", {}).get("type")
    if form == "json_schema":
        message = "This response_format type is unavailable now"
        return Status(400, body=json.dumps({"error": {"message": message}}))
    return plain(asked)


@way("no system role", "huggingface/chat-ui#1386")
def _(asked):
    if asked.request["messages"][0]["role"] == "system":
        return Status(400, body='{"message": "System role not supported"}')
    return plain(asked)


@way("server-sent events", "BerriAI/litellm#25766")
def _(asked):
    said = plain(asked)
    text, tops = (said, []) if isinstance(said, str) else (said.text, said.top_logprobs)
    rows = [
        {
            "token": max(top, key=top.get),
            "top_logprobs": [{"token": t, "logprob": p} for t, p in top.items()],
        }
        for top in tops
    ]
    choice = {"index": 0, "delta": {"content": text}, "logprobs": {"content": rows}}
    end = {"index": 0, "delta": {}, "finish_reason": "stop"}
    chunks = [json.dumps({"choices": [part]}) for part in (choice, end)]
    lines = [f"data: {chunk}\n\n" for chunk in [*chunks, "[DONE]"]]
    return Raw("".join(lines).encode())


@way("one redirect among good replies", HERE)
def _(asked):
    moved = asked.n_in_all == 12
    return Status(302, {"Location": "http://127.0.0.1:9/"}) if moved else plain(asked)


@way("llama.cpp cannot read its model", "ggml-org/llama.cpp#26381", "verdict")
def _(asked):
    if asked.request.get("seed") == 0 and "half" in asked.payload["claim"]:
        message = "The model produced output that does not match the expected peg-native format"
        return Status(
            500, body=json.dumps({"error": {"code": 500, "message": message}})
        )
    return plain(asked)


@way("content is null, all is reasoning", "vllm-project/vllm#30139", "graph")
def _(asked):
    if asked.n_before or len(asked.request["messages"][-1]["content"]) < 10:
        return plain(asked)
    message = {"role": "assistant", "content": None, "reasoning_content": "Hm."}
    body = {"choices": [{"message": message, "finish_reason": "stop"}]}
    again = "cannot be used" in asked.request["messages"][-1]["content"]
    return plain(asked) if again else Raw(json.dumps(body).encode())


@way("content in parts", HERE, "claims")
def _(asked):
    text = plain(asked)
    parts = [{"type": "text", "text": part} for part in (text[:9], text[9:])]
    return Raw(json.dumps({"choices": [{"message": {"content": parts}}]}).encode())


@way("connections that are closed", HERE)
def _(asked):
    return HangUp() if asked.n_before == 0 else plain(asked)


def busy(name, source, seconds, body, status=429, **headers):
    """A server that refuses requests for some seconds, in which no later step asks."""

    def answer(asked):
        waited = sum(min(0.5 * 2**n, 60) for n in range(asked.n_before))
        is_busy = asked.step == "claims" and waited < seconds
        return Status(status, headers, json.dumps(body)) if is_busy else plain(asked)

    way(name, source)(answer)


OVERLOADED = {"type": "error", "error": {"type": "overloaded_error"}}
SPENT = {"error": {"message": "Resource exhausted. Try again later."}}
LIMIT = {"error": {"message": "Limit: 3 / min. Please try again in 200ms."}}
INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.47s"}
QUOTA = {"code": 429, "message": "You exceeded your current quota.", "details": [INFO]}
RESET = {"x-ratelimit-reset-requests": "300ms", "x-ratelimit-remaining-requests": 0}
GEMINI = "browserbase/mcp-server-browserbase#129"
ANTHROPIC = "anthropics/anthropic-sdk-typescript#357"
CODE = "anthropics/claude-code#3633"
busy("overloaded, status 529, for 20 s", CODE, 20, OVERLOADED, 529)
busy("429 without a header for 90 s", "google-gemini/gemini-cli#14811", 90, SPENT)
busy('429, "try again in 20s"', "n3d1117/chatgpt-telegram-bot#341", 20, LIMIT)
busy("429, Gemini's retryDelay of 47 s", GEMINI, 47, {"error": QUOTA})
busy("429, x-ratelimit-reset of 30 s", ANTHROPIC, 30, {"error": "slow down"}, **RESET)


SLOT = threading.Lock()


@way("one slot of 10 s", "ollama/ollama#1187")
def _(asked):
    with SLOT:
        time.sleep(10 * SCALE)
    return plain(asked)


@way("a prompt that was cut", "ollama/ollama#10368", "claims")
def _(asked):
    message = {"content": plain(asked)}
    usage = {"prompt_tokens": 300, "completion_tokens": 9}
    return Raw(json.dumps({"choices": [{"message": message}], "usage": usage}).encode())


# --- the table


def extract(server, scale=1):
    """Graphs of the answers, by a client with defaults, whose clock is scaled."""
    client = ChatClient(server.url, timeout=ChatClient().timeout * scale)
    extractor = ClaimExtractor("m", client, features=[Verify()])
    texts = ["\n".join(claim for claim, _ in answer) for answer in ANSWERS]
    return extractor.transform([(f"q{i}", text) for i, text in enumerate(texts)])


def play(script):
    """A script for a server, of a function of what is asked."""
    number = itertools.count(1)

    def answer(request, n):
        step, payload = step_of(first_of(request))
        return script(Asked(step, payload, request, n, next(number)))

    return answer


def first_of(request):
    """The request without a complaint about the reply before, and its prompt apart."""
    messages = request["messages"][:2]
    content = messages[-1]["content"]
    return {"messages": [{"content": content[content.index('{"question') :]}]}


def measure(script, scale):
    """Requests, claims kept whole and true, and claims kept that are not."""
    with ChatServer(play(plain)) as server:
        graphs = extract(server)
    known = [g for g in graphs for _ in range(10)]
    known = [
        g.replace(id=str(i), problem=f"k{i}", provenance=None)
        for i, g in enumerate(known)
    ]
    labels = [[int(TRUTH[claim]) for claim in g.claims] for g in known]
    filter = HardCF("judge_verdict", alpha=0.2).fit(known, labels, groups=False)
    with ChatServer(play(script)) as server:
        try:
            # The options that a server does not support are part of the provenance.
            graphs = [g.replace(provenance=None) for g in extract(server, scale)]
            masks = filter.predict(graphs)
        except CallError:
            return len(server.requests), 0, 0
        n_requests = len(server.requests)
    kept = []
    for graph, mask in zip(graphs, masks, strict=True):
        kept += [plain_space(claim) for claim in graph.subgraph(mask).claims or ()]
    n_good = sum(TRUTH.get(claim, False) for claim in kept)
    return n_requests, n_good, len(kept) - n_good


def plain_space(claim):
    return " ".join(claim.split())


def table():
    """For each way its requests, claims kept whole, and claims kept spoiled or false."""
    os.environ.setdefault("OPENAI_API_KEY", "sk-ways-123456")
    pace_module.back_off = lambda n: 0
    rows = {}
    for name, (_, script) in WAYS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scale = SCALE if name.startswith("one slot") else 1
            rows[name] = measure(script, scale)
    return rows


def main():
    for name, counts in table().items():
        print(name, WAYS[name][0], *counts, sep="\t", flush=True)


if __name__ == "__main__":
    main()
