"""Columns that a model makes: pairs of texts, and rewards from a scripted server."""

import json
import pickle
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from sklearn.base import clone

from skdcf import HardCF, ReasoningGraph
from skdcf.features import PairFeature, StepReward


def graph_of(claims, **more):
    return ReasoningGraph(None, [], claims=claims, **more)


def column(transformer, *graphs):
    return transformer.fit_transform(list(graphs)).features[:, 0].tolist()


class Counted:
    """A verifier: share of the claim's letters that the text has."""

    def __init__(self):
        self.calls, self.pairs = [], []

    def __call__(self, texts, claims):
        self.calls.append(len(texts))
        self.pairs += list(zip(texts, claims, strict=True))
        return [
            np.mean([c in text for c in claim])
            for text, claim in zip(texts, claims, strict=True)
        ]


def test_pairs_with_passages_take_the_largest():
    graph = graph_of(["ab", "cd"], context=["a", "abc", " "])
    assert column(PairFeature(Counted()), graph) == [1.0, 0.5]
    assert column(PairFeature(Counted()), graph.replace(context=())) == [0, 0]


def test_pairs_with_alternatives_take_the_mean():
    graph = graph_of(["ab"], alternatives=["a", "abc"])
    assert column(PairFeature(Counted(), over="alternatives"), graph) == [0.75]


def test_pairs_with_ancestors_and_the_question():
    graph = ReasoningGraph.from_parents(
        [[], [0], [1], []], claims=["a", "b", "c", "d"], problem="q"
    )
    score = Counted()
    transformer = PairFeature(score, over="ancestors")
    column(transformer, graph)
    texts = {claim: text for text, claim in score.pairs}
    assert texts == {"a": "q", "b": "q\na", "c": "q\na\nb", "d": "q"}
    assert transformer.reads_edges and not PairFeature(score).reads_edges


def test_chunks_of_words_take_the_largest():
    score = Counted()
    graph = graph_of(["xy"], context=["x a b y c"])
    assert column(PairFeature(score, chunk_words=2), graph) == [0.5]
    assert {text for text, _ in score.pairs} == {"x a", "b y", "c"}


def test_each_pair_is_asked_for_once_by_all_copies():
    score = Counted()
    graphs = [graph_of(["a", "b"], context=[f"t{k % 3}"]) for k in range(30)]
    transformer = PairFeature(score, batch_size=4)
    column(transformer, *graphs)
    assert len(set(score.pairs)) == 6
    assert score.calls == [4, 4, 4, 2]  # the first four once more, in both orders
    column(clone(transformer), *graphs)
    column(transformer, *graphs[::-1])
    assert len(score.calls) == 4
    assert pickle.loads(pickle.dumps(PairFeature(len, name="n"))).name == "n"


def test_what_was_paid_for_is_kept_when_a_later_call_fails():
    score = Counted()

    def failing(texts, claims):
        if "t9" in texts:
            raise ConnectionError("down")
        return score(texts, claims)

    graphs = [graph_of(["a"], context=[f"t{k}"]) for k in range(10)]
    transformer = PairFeature(failing, batch_size=1)
    with pytest.raises(ConnectionError):
        column(transformer, *graphs)
    asked = len(score.calls)
    column(clone(transformer), *graphs[:9])
    assert len(score.calls) == asked


@pytest.mark.parametrize(
    ("score", "message"),
    [
        (lambda t, c: [np.nan] * len(t), r"nan for claim 'a' of problem 0"),
        (lambda t, c: [0.5], r"shape \(1,\) for 2 pairs"),
        (lambda t, c: np.zeros((len(t), 2)), r"shape \(2, 2\) for 2 pairs"),
        (lambda t, c: np.arange(len(t)), "score.*order"),
    ],
)
def test_wrong_numbers_are_refused(score, message):
    graphs = [graph_of(["a"], context=["t"]), graph_of(["b"], context=["u"])]
    with pytest.raises(ValueError, match=message):
        column(PairFeature(score), *graphs)


def test_unknown_texts_are_refused():
    with pytest.raises(ValueError, match=r"context.*problem.*0"):
        column(PairFeature(Counted()), graph_of(["a"]))
    with pytest.raises(ValueError, match=r"alternatives.*problem.*0"):
        column(PairFeature(Counted(), over="alternatives"), graph_of(["a"]))
    for wrong in ({"over": "x"}, {"chunk_words": 0}, {"batch_size": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            PairFeature(Counted(), **wrong).fit([graph_of(["a"], context=())])


class Server(ThreadingHTTPServer):
    """Replies as vLLM's /pooling does: two probabilities per separator."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked, self.reply, self.status = [], None, 200
        self.url = f"http://127.0.0.1:{self.server_port}/pooling"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(body)
        steps = body["messages"][1]["content"].split("<extra_0>")[:-1]
        rows = [[1 - len(step) / 100, len(step) / 100] for step in steps]
        reply = {"data": [{"data": rows}]}
        if self.server.reply is not None:
            reply = self.server.reply
        content = json.dumps(reply).encode()
        self.send_response(self.server.status)
        self.send_header("Location", self.server.url + "/elsewhere")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self):  # a redirected request comes back like this, without its texts
        self.server.asked.append(self.path)
        content = json.dumps({"data": [{"data": [[0, 1], [0, 1]]}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    server = Server()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_rewards_over_http(server):
    graphs = [graph_of(["aa", "b"], problem="Why?"), graph_of(["ccc"], problem="How?")]
    transformer = StepReward(server.url, model="prm", task="token_classify", timeout=60)
    assert column(transformer, *graphs) == [0.02, 0.01, 0.03]
    first = server.asked[0]
    assert first["messages"][0]["content"] == "Why?"
    assert first["messages"][1]["content"] == "aa<extra_0>b<extra_0>"
    assert (first["model"], first["task"]) == ("prm", "token_classify")
    column(clone(transformer), *graphs)
    assert len(server.asked) == 2  # one request an answer, once
    wrong = StepReward(server.url, column=0)
    np.testing.assert_allclose(column(wrong, *graphs), [0.98, 0.99, 0.97])
    named = StepReward(server.url, separator=" ;; <extra_0>", name="steps").fit(graphs)
    assert named.transform(graphs).feature_names == ("steps",)
    assert server.asked[-1]["messages"][1]["content"] == "ccc ;; <extra_0>"


def test_a_server_that_fails_names_the_problem_and_loses_nothing(server):
    graphs = [graph_of(["a"]), graph_of(["b"], id="x")]
    transformer = StepReward(server.url).fit(graphs)
    transformer.transform(graphs[:1])
    server.status = 503
    with pytest.raises(ConnectionError, match=r'problem 1 \("x"\): the reward .*503'):
        transformer.transform(graphs)
    server.status = 200
    assert transformer.transform(graphs).features[:, 0].tolist() == [0.01, 0.01]
    assert [body["messages"][1]["content"][0] for body in server.asked] == [
        "a",
        "b",
        "b",
    ]


@pytest.mark.long
@pytest.mark.parametrize(
    "reply",
    [
        {"data": [{"data": [[0.5, 0.5]]}]},
        {"data": [{"data": [0.5, float("nan")]}]},
        {"data": [{"data": [["x", "y"], ["z", "w"]]}]},
        {"error": "no such model"},
        [],
    ],
    ids=["too few", "nan", "words", "error", "list"],
)
def test_replies_that_are_no_rewards_are_refused(server, reply):
    server.reply = reply
    with pytest.raises(ValueError, match=r"problem.*0.*model"):
        column(StepReward(server.url), graph_of(["a", "b"]))


@pytest.mark.long
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_reward_server_sends_nobody_elsewhere(server, status):
    server.status = status
    with pytest.raises(ConnectionError, match=f"failed \\(HTTP Error {status}"):
        column(StepReward(server.url), graph_of(["a", "b"]))
    assert len(server.asked) == 1


def test_no_server_and_wrong_settings(server):
    with pytest.raises(ConnectionError, match="problem 0"):
        column(StepReward("http://127.0.0.1:9/pooling", timeout=2), graph_of(["a"]))
    with pytest.raises(ValueError, match="separator"):
        column(StepReward(server.url), graph_of(["a<extra_0>b"]))
    with pytest.raises(ValueError, match="file:"):
        StepReward("file:///etc/passwd").fit([graph_of(["a"])])
    with pytest.raises(ValueError, match=r"shape \(1,\) for 2 claims"):
        column(StepReward(lambda q, c: [0.5]), graph_of(["a", "b"]))


def test_rewards_calibrate_without_training():
    graphs = [graph_of(["good", f"bad{k}"], problem=f"q{k}") for k in range(60)]
    rewards = StepReward(lambda q, claims: [float(c == "good") for c in claims])
    cf = HardCF("reward", features=rewards, alpha=0.1)
    cf.fit(graphs, [[1, 0]] * 60)
    assert cf.predict(graphs[:2])[0].tolist() == [True, False]
