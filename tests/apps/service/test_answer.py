"""From a question to filtered text over HTTP: a model behind a real server, and its bounds."""

import asyncio
import json
import random
import threading
from datetime import date

import pytest

pytest.importorskip("fastapi", reason="fastapi is not installed")
pytest.importorskip("openai", reason="the openai client is not installed")

from chat_server import ChatServer, Status
from scripted_model import ScriptedModel, is_right, make_question
from serving import Serving, call, reply_of

from skdcf import CoherentConformalFilter, HardCF, accept_provenance, save
from skdcf.apps.cli import main
from skdcf.apps.llm import (
    ChatClient,
    ClaimExtractor,
    ConformalFactualityPipeline,
    Verify,
)
from skdcf.apps.service import create_app
from skdcf.estimators import choose, chosen_answers

KEY = "sk-behind-the-service-97531"
QUESTION = "Start with 12, add 5, then multiply by 3. What comes out?"
PASSAGE = "Sums are sums, whoever adds."


class Model(ScriptedModel):
    """The scripted model, which waits for ``open``, and may be told to answer otherwise."""

    def __init__(self):
        super().__init__(slips=0.3)
        self.open = threading.Event()
        self.open.set()
        self.script = None

    def __call__(self, request, n):
        self.open.wait(60)
        if self.script is not None:
            return self.script(request, n)
        user = request["messages"][1]["content"]
        if '{"context"' in user:  # of a request that writes
            request = json.loads(json.dumps(request))
            request["messages"][1]["content"] = user.partition("\n\n")[0]
        return super().__call__(request, n)


@pytest.fixture(scope="module")
def model():
    return Model()


@pytest.fixture(scope="module")
def server(model):
    with ChatServer(model) as server:
        yield server


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def extract(server, n, *, written, context=None):
    rng = random.Random(7)
    scripted = ScriptedModel(slips=0.3)
    items = []
    for _ in range(n):
        question = make_question(rng)
        answer = None if written else scripted.solve(question, rng)
        items.append({"problem": question, "answer": answer, "context": context})
    extractor = ClaimExtractor(
        "m", ChatClient(server.url, key_variable=None), features=[Verify()]
    )
    graphs = [e.graph for e in extractor.extract(items, write=written)]
    return graphs, [[int(is_right(text)) for text in g.claims] for g in graphs]


@pytest.fixture(scope="module")
def written(server):
    """A filter that calibrated on answers which the model wrote."""
    graphs, y = extract(server, 60, written=True)
    return HardCF("judge_log_odds", alpha=0.3).fit(graphs, y)


@pytest.fixture(scope="module")
def logged(server):
    """A filter that calibrated on a log."""
    graphs, y = extract(server, 60, written=False)
    cf = CoherentConformalFilter("neyman-pearson", alpha=0.3, random_state=0)
    return cf.fit(graphs, y)


def app_of(
    filter, server, *, max_calls=None, confirm_above=None, prices=None, **options
):
    client = ChatClient(
        server.url,
        max_calls=max_calls,
        confirm_above=confirm_above,
        prices=prices,
        max_retries=0,
    )
    return create_app(filter, client=client, **options)


def ask(app, question=QUESTION, **record):
    content = json.dumps({"question": question, **record}).encode()
    return call(app, "/v1/answer", content)


# --- what comes back


def test_an_answer_over_http_is_that_of_the_pipeline(written, server):
    app = app_of(written, server)
    pipeline = ConformalFactualityPipeline.from_filter(written, ChatClient(server.url))
    rng = random.Random(3)
    kept = []
    for _ in range(8):
        question = make_question(rng)
        [expected] = pipeline.answer([question])
        status, reply, _ = ask(app, question)
        assert status == 200
        assert reply["text"] == expected.text
        assert reply["mask"] == expected.kept.tolist()
        assert reply["claims"] == list(expected.original.claims)
        rows = [(row["text"], row["reason"]) for row in reply["dropped"]]
        assert rows == list(expected.dropped)
        places = [row["claim"] for row in reply["dropped"]]
        assert places == [v for v, keep in enumerate(reply["mask"]) if not keep]
        assert reply["complete"] == expected.complete == reply["mask"][-1]
        assert reply["abstained"] == expected.abstained == (not any(reply["mask"]))
        assert reply["alpha"] == 0.3
        assert (reply["text_guarantee"], reply["origin"]) == ("claims", "as calibrated")
        assert reply["usage"]["calls"] == expected.usage.calls > 3
        for _, reason in rows:
            assert reason.startswith(("it is too uncertain (Claim", "it depends on"))
        kept += reply["mask"]
    assert any(kept) and not all(kept)


def test_an_answer_of_the_clients(logged, server):
    app = app_of(logged, server)
    shown = 0
    for text in ("12 + 5 = 17.\n17 * 3 = 51.", "12 + 5 = 16.\n16 * 3 = 48."):
        status, reply, _ = ask(app, answer=text, group="q")
        assert status == 200 and reply["claims"] == text.split("\n")
        assert reply["flags"][0].startswith("the authors of the calibration answers")
        assert reply["origin"] == "as calibrated"
        shown += not reply["abstained"]
    assert shown


def test_who_wrote_an_answer_may_be_known_and_has_to_be_the_same(
    written, logged, server
):
    status, reply, _ = ask(app_of(written, server))
    assert (status, reply["origin"]) == (200, "as calibrated")
    with pytest.warns(UserWarning, match="written_by"):
        status, reply, _ = ask(app_of(written, server), answer="12 + 5 = 17.")
    assert (status, reply["origin"]) == (200, "unknown")

    n = len(server.requests)
    status, reply, _ = ask(app_of(logged, server))
    assert status == 400 and "written by an unknown writer" in reply["error"]
    assert "skdcf.accept_provenance" not in reply["error"]
    assert "operator of the service" in reply["error"]
    status, reply, _ = ask(app_of(written, server, model="other"))
    assert status == 400 and "model other" in reply["error"]
    assert len(server.requests) == n
    reason = "the same model wrote the log"
    with accept_provenance(reason), pytest.warns(UserWarning, match="written_by"):
        status, reply, _ = ask(app_of(logged, server))
    assert status == 200 and reply["flags"][-1].endswith(reason)
    assert reply["origin"] == "unknown"


def test_the_model_that_writes_sees_the_passages(server):
    graphs, y = extract(server, 30, written=True, context=[PASSAGE])
    app = app_of(HardCF("judge_log_odds", alpha=0.3).fit(graphs, y), server)
    for context in (["Another passage."], "Another passage."):
        n = len(server.requests)
        status, reply, _ = ask(app, context=context)
        assert status == 200 and reply["claims"]
        writing = server.requests[n][2]["messages"][1]["content"]
        question, _, passages = writing.partition("\n\n")
        assert question == QUESTION
        assert json.loads(passages) == {"context": ["Another passage."]}
    n = len(server.requests)
    status, reply, _ = ask(app)  # those that calibrated had passages
    assert status == 400 and "do not have contexts" in reply["error"]
    assert len(server.requests) == n


def test_labels_of_an_answer_feed_the_monitor(written, server):
    app = app_of(written, server)
    _, reply, _ = ask(app)
    labels = {
        "id": reply["id"],
        "labels": [1] * len(reply["mask"]),
        "sampling": "random",
    }
    _, said, _ = call(app, "/v1/labels", json.dumps(labels).encode())
    assert said["said"] == "saved"
    text = call(app, "/metrics", method="GET")[1]
    assert 'skdcf_answers_judged_total{filter="default"} 1.0\n' in text
    assert f"skdcf_model_calls_total {reply['usage']['calls']}.0\n" in text
    assert "skdcf_answers_being_made 0.0\n" in text


def test_several_filters_by_name(written, logged, server):
    app = app_of({"written": written, "logged": logged}, server)
    assert ask(app)[0] == 400
    assert ask(app, filter="written")[0] == 200
    _, reply, _ = ask(app, filter="logged", answer="12 + 5 = 17.", alpha=0.5)
    assert reply["alpha"] == 0.5


# --- what is refused


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ({"question": None}, '"question" is None'),
        ({"question": " "}, "\"question\" is ' '"),
        ({"claims": ["a"]}, '"claims" is'),
        ({"answer": 3}, '"answer" is 3'),
        ({"context": [3]}, "context"),
        ({"alpha": 2}, "alpha"),
        ({"filter": "other"}, "must be one of default"),
        ({"metadata": "text"}, "metadata"),
    ],
)
def test_bad_requests_cost_nothing(written, server, record, words):
    n = len(server.requests)
    status, reply, _ = ask(app_of(written, server), **record)
    assert status == 400 and words in reply["error"]
    assert len(server.requests) == n


def test_services_that_cannot_answer_say_so_at_once(written, server, capsys, tmp_path):
    status, reply, _ = ask(create_app(written))
    assert status == 404 and "--base-url" in reply["error"]
    by_hand, y = extract(server, 30, written=False)
    unknown = [graph.replace(metadata=None) for graph in by_hand]
    filter = HardCF("judge_log_odds", alpha=0.3).fit(unknown, y)
    with pytest.raises(ValueError, match=r"filter 'default'.*extract"):
        app_of(filter, server)
    with pytest.raises(ValueError, match=r"client.*None"):
        create_app(written, model="m")
    with pytest.raises(ValueError, match=r"seconds .*got 0"):
        app_of(written, server, answer_seconds=0)
    with pytest.raises(ValueError, match=r"budget .*got -1"):
        app_of(written, server, budget=-1)
    path = tmp_path / "m.skops"
    save(written, path)
    assert main(["serve", str(path), "--budget", "3"]) == 2
    assert "--budget has no effect" in capsys.readouterr().err


def test_an_answer_that_costs_too_much_is_refused_before_the_first_call_on_it(
    written, server
):
    app = app_of(written, server, confirm_above=8000)
    n = len(server.requests)
    for record in ({"answer": "12 + 5 = 17.\n" * 500}, {"question": QUESTION * 1000}):
        status, reply, _ = ask(app, **record)
        assert status == 413 and "the limit of the service" in reply["error"]
        assert len(server.requests) == n
    assert ask(app)[0] == 200


@pytest.mark.filterwarnings("ignore:written_by")
def test_an_answer_may_take_so_many_calls_and_no_more(written, server):
    n = len(server.requests)
    lines = "\n".join(f"{a} + 5 = {a + 5}." for a in range(60))
    status, reply, _ = ask(app_of(written, server, max_calls=10), answer=lines)
    assert status == 502 and "max_calls" in reply["error"]
    assert "Shorten the answer" in reply["error"]
    # A call that was let through may be cancelled before the server hears of it.
    assert 0 < len(server.requests) - n <= 10


@pytest.mark.parametrize("prices", [None, (1e6, 1e6)])
def test_a_budget_is_for_a_day(written, server, prices):
    app = app_of(written, server, budget=1, prices=prices, confirm_above=1e9)
    assert ask(app)[0] == 200
    n = len(server.requests)
    status, reply, headers = ask(app)
    assert status == 429 and "budget" in reply["error"]
    assert headers["retry-after"] == "600" and len(server.requests) == n
    app.answers._day = date(2020, 1, 1)
    assert ask(app)[0] == 200


def test_too_many_answers_at_a_time(written, server, monkeypatch):
    monkeypatch.setattr("skdcf.apps.service._answers._MOST_ANSWERS", 0)
    status, _, headers = ask(app_of(written, server))
    assert status == 503 and headers["retry-after"] == "1"


# --- models that fail, and clients that go away


def test_an_answer_has_a_deadline_and_calls_end_with_it(written, model, server):
    app = app_of(written, server, answer_seconds=0.3)
    model.open.clear()
    try:
        status, reply, _ = ask(app)
        n = len(server.requests)
    finally:
        model.open.set()
    assert status == 504 and "within 0.3 seconds" in reply["error"]
    assert app.answers.n_made == 0
    assert n == len(server.requests)  # nobody asks for more
    assert ask(app_of(written, server))[0] == 200


def test_a_client_that_goes_away_ends_the_work(written, model, server, caplog):
    app = app_of(written, server)
    content = json.dumps({"question": QUESTION}).encode()
    n = len(server.requests)

    async def leave():
        pieces = [{"type": "http.request", "body": content, "more_body": False}]

        async def receive():
            if pieces:
                return pieces.pop()
            while len(server.requests) == n:
                await asyncio.sleep(0.01)
            return {"type": "http.disconnect"}

        return await reply_of(app, "/v1/answer", receive=receive)

    model.open.clear()
    try:
        assert asyncio.run(leave()) is None
    finally:
        model.open.set()
    assert len(server.requests) == n + 1 and not caplog.records
    text = call(app, "/metrics", method="GET")[1]
    assert 'skdcf_requests_total{route="/v1/answer",status="499"} 1.0\n' in text
    assert "skdcf_answers_being_made 0.0\n" in text


@pytest.mark.parametrize(
    ("out", "words", "is_logged"),
    [
        (Status(401, body='{"error": "no such key"}'), "log of the service", True),
        (Status(500), "the model did not answer", False),
    ],
)
def test_a_model_that_fails_is_no_fault_of_the_service(
    written, model, server, caplog, out, words, is_logged
):
    model.script = lambda request, n: out
    try:
        status, reply, _ = ask(app_of(written, server))
    finally:
        model.script = None
    assert status == 502 and words in reply["error"]
    assert (
        KEY not in reply["error"] + caplog.text and "no such key" not in reply["error"]
    )
    assert ("no such key" in caplog.text) == is_logged
    assert QUESTION not in caplog.text


@pytest.mark.filterwarnings("ignore:written_by")
def test_claims_that_cannot_be_read_are_no_abstention(written, model, server):
    model.script = lambda request, n: "I'd rather talk."
    try:
        status, reply, _ = ask(app_of(written, server), answer="12 + 5 = 17.")
    finally:
        model.script = None
    assert status == 502 and "the answer was not filtered" in reply["error"]


def test_others_are_answered_while_a_model_thinks(written, model, server):
    app = app_of(written, server)

    async def both():
        content = json.dumps({"question": QUESTION}).encode()
        slow = asyncio.create_task(reply_of(app, "/v1/answer", content))
        while not app.answers.n_made:
            await asyncio.sleep(0.01)
        health = await reply_of(app, "/health", method="GET")
        assert not slow.done()
        model.open.set()
        return health[0], (await slow)[0]

    model.open.clear()
    try:
        assert asyncio.run(both()) == (200, 200)
    finally:
        model.open.set()


# --- a process of its own


@pytest.mark.long
def test_the_command_answers_questions(written, server, tmp_path):
    path = tmp_path / "math.skops"
    save(written, path)
    variable = {"SERVICE_TOKEN": "a-token-of-the-service-123"}
    options = ["--base-url", server.url, "--token-variable", "SERVICE_TOKEN"]
    bearer = {"Authorization": f"Bearer {variable['SERVICE_TOKEN']}"}
    n = len(server.requests)
    with Serving(path, *options, "--max-calls", 50, **variable) as serving:
        assert serving.ask("POST", "/v1/answer", {"question": QUESTION})[0] == 401
        status, body = serving.ask(
            "POST", "/v1/answer", {"question": QUESTION}, **bearer
        )
        described = serving.ask("GET", "/openapi.json", **bearer)
    reply = json.loads(body)
    assert status == 200 and len(reply["claims"]) == len(reply["mask"]) > 1
    assert "/v1/answer" in json.loads(described[1])["paths"]
    assert server.requests[n][1]["authorization"] == f"Bearer {KEY}"


# --- several answers to a question


def test_one_of_three_answers_is_chosen(server):
    graphs, y = extract(server, 150, written=False)
    graphs = [
        graph.replace(metadata={**(graph.metadata or {}), "group": i // 3})
        for i, graph in enumerate(graphs)
    ]
    cf = HardCF("judge_log_odds", alpha=0.3).fit(graphs[::3], y[::3])
    rows = choose(cf, graphs)
    cf.calibrate(chosen_answers(cf, graphs), [y[i] for i in rows])

    rng = random.Random(11)
    scripted = ScriptedModel(slips=0.3)
    question = make_question(rng)
    answers = [scripted.solve(question, rng) for _ in range(3)]
    extractor = ClaimExtractor(
        "m", ChatClient(server.url, key_variable=None), features=[Verify()]
    )
    items = [{"problem": question, "answer": answer} for answer in answers]
    extracted = [e.graph for e in extractor.extract(items)]
    [place] = choose(cf, extracted)

    app = app_of(cf, server)
    status, reply, _ = ask(app, question, answers=answers)
    assert status == 200, reply
    assert reply["chosen"] == place
    assert reply["claims"] == list(extracted[place].claims)
    [mask] = cf.predict(chosen_answers(cf, extracted))
    assert reply["mask"] == mask.tolist()

    for asked, named in (
        ({"answers": answers[:2]}, "got k = 2 for 1"),
        ({"answer": answers[0]}, "chosen_by"),
        ({"answers": answers, "answer": answers[0]}, "answers"),
        ({"answers": []}, "answers"),
    ):
        status, reply, _ = ask(app, question, **asked)
        assert status in (400, 422), reply
        assert named in str(reply)
