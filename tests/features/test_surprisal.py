"""Surprisal of claims, from a function and from a scripted server."""

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from sklearn.base import clone

from skdcf import HardCF, ReasoningGraph
from skdcf.features import Surprisal

NAMES = ("surprisal_mean", "surprisal_sum", "surprisal_max", "surprisal_digits")


def split(text):
    return re.findall(r"\s*\w+|\s*[^\w\s]|\s+$", text)


def price(token):
    """-log p that is known for each token, whatever stands before it."""
    return 1 + len(token.strip()) / 4


def source(text):
    tokens = split(text)
    return tokens, [None, *(-price(token) for token in tokens[1:])]


def graph_of(*claims, **more):
    return ReasoningGraph(None, (), claims=claims, **more)


def columns(transformer, *graphs):
    return transformer.fit_transform(list(graphs)).features


def by_hand(claim):
    tokens = re.findall(r"\w+|[^\w\s]", claim)
    values = [price(token) for token in tokens]
    digits = [price(token) for token in tokens if re.search(r"\d", token)]
    return [np.mean(values), sum(values), max(values), max(digits, default=0)]


def test_the_four_columns_are_those_of_each_claim():
    claims = ["He bought 12 eggs.", "So it costs 1250 in all", "None is left"]
    graph = graph_of(*claims, problem="How much?", context=["A text.", "Another."])
    table = columns(Surprisal(source), graph)
    assert np.allclose(table, [by_hand(claim) for claim in claims])
    batch = Surprisal(source).fit_transform([graph])
    assert batch.feature_names == NAMES


def test_the_model_reads_passages_question_and_claims_in_order():
    seen = []

    def watched(text):
        seen.append(text)
        return source(text)

    columns(Surprisal(watched), graph_of("c ", "d", problem=" q", context=["p"]))
    assert seen == ["p\nq\nc\nd\n"]
    columns(Surprisal(watched), graph_of("first"))
    assert seen[1] == "first\n"


def test_nothing_behind_a_claim_is_read():
    def context(text):  # as a real one, which looks at all that stands before
        tokens = split(text)
        return tokens, [-0.01 * i for i in range(len(tokens))]

    claims = ["a 1 b", "c.", "d 22"]
    whole = columns(Surprisal(context), graph_of(*claims, problem="q"))
    for n in (1, 2):
        so_far = columns(Surprisal(context), graph_of(*claims[:n], problem="q"))
        assert (so_far == whole[:n]).all()


def test_an_online_filter_streams_what_it_predicts():
    rng = np.random.default_rng(0)
    graphs = [
        graph_of(
            *(f"{'x' * n} {n}" for n in rng.integers(1, 9, size=3)), problem=f"q{i}"
        )
        for i in range(60)
    ]
    y = [[int(len(c) >= 8) for c in g.claims] for g in graphs]
    cf = HardCF("surprisal_sum", features=Surprisal(source), alpha=0.3, online=True)
    cf.fit(graphs, y)
    new = graph_of("xx 2", "xxxxxxx 7", problem="new")
    streamed = list(
        cf.stream([{"text": text, "parents": []} for text in new.claims], problem="new")
    )
    assert streamed == cf.predict([new])[0].tolist() == [False, True]


@pytest.mark.parametrize(
    ("reply", "named"),
    [
        (lambda t: (split(t), [-1.0] * (len(split(t)) - 2)), r"got \d+ .*for \d+ tokens"),
        (lambda t: (split(t), [None, None] + [-1.0] * len(split(t))), r"token 1"),
        (lambda t: (split(t), [-1.0, np.nan] + [-1.0] * len(split(t))), r"token 1 .*nan"),
        (lambda t: (split(t), [-1.0, 0.5] + [-1.0] * len(split(t))), r"token 1 .*0\.5"),
        (lambda t: source("something else entirely"), r"match the text.*entirely|else"),
        (lambda t: source(t[: len(t) // 2]), r"characters"),
    ],
)  # fmt: skip
def test_bad_log_probabilities_are_refused(reply, named):
    graph = graph_of("a b c d e f", "g h", problem="Why?")
    with pytest.raises(ValueError, match=f"problem 0.*(?:{named})"):
        columns(Surprisal(reply), graph)


def test_parts_of_characters_and_marks_of_the_model_are_passed_over():
    def parts(text):
        tokens = ["<s>", "q", "\n", "\ufffd", "\ufffd", " 5", "\n"]
        return tokens, [None, -1, -1, -2, -3, -4, -1]

    table = columns(Surprisal(parts), graph_of("€ 5", problem="q"))
    assert table.tolist() == [[3.0, 9.0, 4.0, 4.0]]


def test_a_blank_before_parts_of_a_character_is_not_taken_for_the_one_after_it():
    """SmolLM2 cuts " ÷ 2" like this; the text was refused as another one."""

    def parts(text):
        tokens = ["q", "\n", "50", " \ufffd", "\ufffd", " ", "2", "\n"]
        return tokens, [None, -1, -1, -2, -3, -4, -5, -1]

    table = columns(Surprisal(parts), graph_of("50 ÷ 2", problem="q"))
    assert table.tolist() == [[3.0, 15.0, 5.0, 5.0]]

    def two(text):
        tokens = [
            "q",
            "\n",
            "t",
            "\ufffd",
            "\ufffd",
            " \ufffd",
            "\ufffd",
            " ",
            "1",
            "\n",
        ]
        return tokens, [None, -1, -1, -2, -3, -4, -5, -1, -6, -1]

    table = columns(Surprisal(two), graph_of("t₁ ≈ 1", problem="q"))
    assert table.tolist() == [[22 / 7, 22.0, 6.0, 6.0]]


def test_an_answer_is_read_once_by_all_copies():
    calls = []

    def counted(text):
        calls.append(text)
        return source(text)

    transformer = Surprisal(counted)
    graph = graph_of("a", problem="q")
    columns(transformer, graph, graph)
    columns(clone(transformer), graph)
    assert len(calls) == 1


class Server(ThreadingHTTPServer):
    """Replies to ``/v1/completions`` as vLLM does, with the tokens of `source`."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked = []
        self.reply = None
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1/completions"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(body)
        tokens, numbers = source(body["prompt"])
        reply = self.server.reply or {
            "model": body.get("model", "any"),
            "choices": [{"logprobs": {"tokens": tokens, "token_logprobs": numbers}}],
        }
        content = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    server = Server()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_a_server_gives_the_columns_of_the_function(server):
    graph = graph_of("It costs 12.", "So 13", problem="q", context=["p"])
    table = columns(Surprisal(server.url, model="m"), graph)
    assert (table == columns(Surprisal(source), graph)).all()
    [asked] = server.asked
    assert asked["model"] == "m"
    assert asked["echo"] is True
    assert asked["max_tokens"] == 0


def test_other_models_and_other_replies_are_refused(server):
    graph = graph_of("a", problem="q")
    server.reply = {"choices": [{"text": "a", "logprobs": None}]}  # as llama.cpp's
    with pytest.raises(ValueError, match=r"problem.*0"):
        columns(Surprisal(server.url), graph)
    tokens, numbers = source("q\na\n")
    logprobs = {"tokens": tokens, "token_logprobs": numbers}
    server.reply = {"model": "other", "choices": [{"logprobs": logprobs}]}
    with pytest.raises(ValueError, match=r"model.*'m'.*'other'"):
        columns(Surprisal(server.url, model="m"), graph)
    with pytest.raises(ConnectionError, match="problem 0"):
        columns(Surprisal("http://127.0.0.1:9/v1/completions", timeout=2), graph)
    with pytest.raises(ValueError, match=r"source.*'localhost'"):
        columns(Surprisal("localhost"), graph)
