"""The labelling page, as people use it in a browser, and what its server refuses."""

import json
import urllib.error
import urllib.request

import numpy as np
import pytest
from browser import Browser, read_axe

from skdcf import HardCF, ReasoningGraph
from skdcf.apps.labelling import (
    LabelServer,
    LabelStore,
    RandomOrder,
    ReviewOrder,
)
from skdcf.apps.text import AnswerSplitter
from skdcf.datasets import make_reasoning_graphs

HOSTILE = [
    "<script>document.title = 'owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    "__NONCE__ ${alert(1)} \u202etxet \x00 \U0001f600 " + "w" * 300,
    r"bad \(\text{<script>document.title='owned'</script>}\) text",
    r"link $\href{javascript:alert(1)}{x}$ and open $x^{",
    "it costs $5 and then $6 more",
]
TEXT = "document.body.innerText"
QUESTION = "document.querySelector('#question').textContent"
HERE = "document.querySelector('.claim.here .text').textContent"


def problem(n, seed=0, **fields):
    claims = [f"claim {v} of {seed}" for v in range(n)]
    edges = [(v - 1, v) for v in range(1, n)]
    fields = {"problem": f"question {seed}", **fields}
    return ReasoningGraph(None, edges, claims=claims, **fields)


class InOrder(RandomOrder):
    """The order of the file."""

    def order(self, store):
        return list(range(len(store.graphs)))


@pytest.fixture
def browser(tmp_path):
    with Browser(tmp_path / "profile") as browser:
        yield browser


@pytest.fixture
def server(tmp_path):
    """Start servers of the page for problems, or for a store."""
    started = []

    def start(graphs=None, *, purpose="labels", order=None, **settings):
        if graphs is None:
            graphs = [problem(3, 0), problem(2, 1), problem(1, 2)]
        store = LabelStore(graphs, tmp_path / "journal", purpose=purpose)
        server = LabelServer(store, "ann", order=order or InOrder(), **settings)
        started.append(server.__enter__())
        return server

    yield start
    for server in started:
        server.__exit__()


def ready(tab):
    tab.wait("document.querySelector('#saved').textContent === 'all saved'")


def opened(browser, server, *size):
    tab = browser.open(server.url, *size)
    ready(tab)
    return tab


def press(tab, *keys):
    for key in keys:
        tab.press(key)
        ready(tab)


def said(server):
    store = server.store
    return [store.said(i, "ann") for i in range(len(store.graphs))]


# --- what people do


def test_verdicts_by_keyboard_survive_a_reload(server, browser):
    server = server()
    tab = opened(browser, server)
    press(tab, "t", "f", "u", "c")
    assert said(server) == [["true", "false", "unsure"], ["no claim", None], [None]]
    assert "answer 2 of 3" in tab.run(TEXT) and tab.run(HERE) == "claim 1 of 1"
    press(tab, "n")
    assert "answer 3 of 3" in tab.run(TEXT)
    tab.run("window.is_old = true")
    tab.send("Page.reload")
    tab.wait("!window.is_old")
    ready(tab)
    assert "answer 3 of 3" in tab.run(TEXT) and "4 of 6 claims" in tab.run(TEXT)
    fresh = opened(browser, server)  # the first tab shows answer 3
    assert "answer 2 of 3" in fresh.run(TEXT)


def test_backspace_clears_the_last_verdict_across_answers(server, browser):
    server = server()
    tab = opened(browser, server)
    press(tab, "t", "x")  # claim 2 depends on claim 1, and is skipped
    assert said(server)[0] == ["true", "false", "unknown"]
    press(tab, "t", "t")
    assert tab.run(QUESTION) == "question 2"
    press(tab, "Backspace", "Backspace")
    assert said(server)[1] == [None, None] and tab.run(HERE) == "claim 0 of 1"
    press(tab, "Backspace")
    assert said(server)[0] == ["true", None, None]
    assert tab.run(HERE) == "claim 1 of 0"
    tab = opened(browser, server)  # also verdicts of an earlier session
    press(tab, "Backspace", "Backspace")
    assert said(server) == [[None] * 3, [None] * 2, [None]]


def test_a_late_request_does_not_free_the_next_answer(server):
    server = server([problem(1, i) for i in range(3)])
    server.store.label(0, 0, "true", by="ann")
    assert server.asked("first", 0)["ask"][0][0] == 1
    server.keep("first", 0)
    assert server.asked("second", -1)["ask"][0][0] == 2


def test_two_tabs_are_not_asked_about_the_same_answer(server, browser):
    server = server([problem(1, i) for i in range(4)])
    first, second = opened(browser, server), opened(browser, server)
    places = [first.run(QUESTION), second.run(QUESTION)]
    press(first, "t")
    press(second, "t")
    places += [first.run(QUESTION), second.run(QUESTION)]
    assert len(set(places)) == 4
    press(first, "f")
    assert "open in another tab" in first.run(TEXT)
    press(second, "f")
    first.wait(f"{TEXT}.includes('Every claim is judged')")
    assert sum(map(len, said(server))) == 4 and [None] not in said(server)


def test_nothing_is_lost_while_the_program_is_away(server, browser):
    first = server()
    tab = opened(browser, first)
    first.__exit__()
    tab.press("t", "f")
    tab.wait("document.querySelector('#saved').textContent.includes('Not saved: 2')")
    again = LabelServer(first.store, "ann", first.port, order=InOrder())
    again.token = first.token
    with again:
        ready(tab)
    assert said(again)[0] == ["true", "false", None]


def test_edges_and_notes_are_written_by_keyboard(server, browser):
    server = server([ReasoningGraph(None, (), claims=["a", "b", "c"])])
    store = server.store
    tab = opened(browser, server)
    editing = "document.activeElement.tagName === 'INPUT'"
    for keys in (["j", "j", "e", "1", ",", "2"], ["m", "w", "h", "y"]):
        for key in keys:
            tab.press(key)
            if key in "em":
                tab.wait(editing)
        press(tab, "Enter")
    assert store.edges(0, "ann") == [[0, 2], [1, 2]]
    assert store.said(0, "ann", "note") == [None, None, "why"]
    press(tab, "k", "k")
    tab.press("e")
    tab.wait(editing)
    tab.press("3", "Enter")
    tab.wait(f"{TEXT}.includes('cycle')")
    press(tab, "Escape")


def test_a_review_shows_what_is_kept_and_what_to_check(server, browser):
    graphs, y = make_reasoning_graphs(150, random_state=0, return_X_y=True)
    cf = HardCF("frequency-score", alpha=0.1).fit(graphs[:100], y[:100])
    new = [
        graph.replace(claims=[f"{i} {v}" for v in range(graph.n_claims)])
        for i, graph in enumerate(graphs[100:])
    ]
    order = ReviewOrder(cf, new)
    n_before = sum(int(mask.sum()) for mask in order.masks())
    server = server(new, purpose="review", order=order)
    tab = opened(browser, server)
    for _ in range(6):
        i, v = tab.run("[i, v]")
        assert (i, v) == order.asked()[0]
        press(tab, "t" if y[100 + i][v] else "f")
    assert order.n_checks == 6
    n_kept = sum(int(mask.sum()) for mask in order.masks())
    assert f"{n_kept} claims are kept, compared with {n_before}" in tab.run(TEXT)
    press(tab, "Backspace")
    assert order.n_checks == 5 and tab.run("[i, v]") == [i, v]


def test_models_cannot_write_into_the_page(server, browser):
    about = {
        "claims": HOSTILE,
        "problem": HOSTILE[0],
        "metadata": {"answer": HOSTILE[1]},
    }
    right = r"so $\frac{1}{2} < 3$ holds"
    graphs = [
        ReasoningGraph(None, [], **about),
        ReasoningGraph(None, [], claims=[right]),
    ]
    server = server(graphs)
    tab = opened(browser, server)
    texts = "[...document.querySelectorAll('.claim .text')].map(e => e.textContent)"
    assert tab.run(texts) == HOSTILE and tab.run(QUESTION) == HOSTILE[0]
    tags = "document.querySelectorAll('main script, main img, main math').length"
    assert tab.run(tags) == 0 and tab.run("document.title") == "skdcf: label claims"
    press(tab, "n")
    assert tab.run("document.querySelectorAll('.claim math mfrac').length") == 1


# --- accessibility


def test_small_screens_and_fingers(server, browser):
    """Nothing sticks out at 390 pixels, and each target has 44 pixels."""
    server = server([problem(3, context=["It is so. " * 30], metadata={"answer": "a"})])
    tab = opened(browser, server, 390, 844)
    assert tab.run("document.documentElement.scrollWidth") <= 390
    sizes = tab.run(
        "[...document.querySelectorAll('button, summary, .claim, footer label')]"
        ".map(e => e.getBoundingClientRect()).filter(b => b.width)"
        ".map(b => [b.width, b.height])"
    )
    assert len(sizes) > 12 and np.min(sizes) >= 44


@pytest.mark.parametrize("purpose", ["labels", "review"])
def test_axe_finds_nothing(checkout, server, browser, purpose):
    axe = read_axe(checkout)
    claims = [r"It is $\frac{1}{2}$.", "לכן זה אמת"]
    about = {"context": ["It is a half. " * 30], "metadata": {"answer": "So."}}
    graphs = [ReasoningGraph(None, [(0, 1)], claims=claims, **about), problem(1)]
    order = InOrder()
    if purpose == "review":
        order.masks = lambda: [np.ones(graph.n_claims, dtype=bool) for graph in graphs]
    server = server(graphs, purpose=purpose, order=order, meaning="supported")
    for width in (390, 1280):
        tab = opened(browser, server, width, 900)
        for scheme in ("light", "dark"):
            for key in ("m", "Escape", "t", "n", "p"):
                tab.press(key)
                assert tab.faults(axe, scheme) == [], (width, scheme, key)


# --- requests of others


def request(server, path, data=None, **headers):
    """Return the status, the body and the headers of a reply."""
    headers = {"X-Token": server.token, "Content-Type": "application/json", **headers}
    url = f"http://127.0.0.1:{server.port}{path}"
    body = None if data is None else json.dumps(data).encode()
    asked = urllib.request.Request(url, data=body, headers=headers)
    try:
        with urllib.request.urlopen(asked, timeout=60) as reply:
            return reply.status, reply.read().decode(), dict(reply.headers)
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(), dict(error.headers)


SAVE = "/save?tab=a&at=0"
VERDICT = {"problem": 0, "claim": 0, "word": "true"}


def test_other_pages_and_programs_are_refused(server):
    server = server()
    wrong = [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Host": "evil.example"},
        {"Host": "localhost"},
        {"X-Token": ""},
        {"X-Token": "\u00e9"},
    ]
    for path, data in ((SAVE, VERDICT), ("/problems?tab=a&at=0", None), ("/", None)):
        for headers in wrong:
            status, body, sent = request(server, path, data, **headers)
            assert status == 403 and "claim 0" not in body
            assert not any(name.lower().startswith("access-control") for name in sent)
    # Other pages can send a token in the address.
    path = f"{SAVE}&token={server.token}"
    assert request(server, path, VERDICT, **{"X-Token": ""})[0] == 403
    assert server.store.version == 0


def test_the_page_forbids_other_sources(server):
    server = server()
    headers = {"X-Token": "", "Origin": f"http://127.0.0.1:{server.port}"}
    status, page, sent = request(server, f"/?token={server.token}", **headers)
    assert status == 200 and "__NONCE__" not in page and server.token not in page
    policy = sent["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert sent["x-frame-options"] == "DENY"
    status, body, _ = request(server, SAVE, VERDICT, Origin=headers["Origin"])
    assert status == 200 and json.loads(body)["version"] == 1


def test_the_whole_answer_is_shown_without_thoughts(server):
    record = {"metadata": {"reply": "<think>B?</think>It is so."}}
    graph = AnswerSplitter().split(record, {"metadata.reply": "answer"})
    [shown] = server([graph]).problems("tab", 0)["problems"]
    assert shown["answer"] == "It is so."


def test_bad_requests_change_nothing(server):
    server = server()
    for data in (
        {**VERDICT, "word": "maybe"},
        {**VERDICT, "problem": 3},
        {**VERDICT, "claim": True},
        {**VERDICT, "more": 1},
        {"problem": 0},
        {"problem": 0, "edges": [[0, 1], [1, 0]]},
        {"problem": 0, "edges": [[0, 99]]},
        {"problem": 0, "claim": 0, "text": "x" * 10_001},
        {"problem": 0, "claim": 9, "text": "x"},
    ):
        status, body, _ = request(server, SAVE, data)
        assert status == 422 and json.loads(body)["detail"]
    for key in ("text", "word"):
        data = {"problem": 0, "claim": 0, key: "\ud800"}
        status, body, _ = request(server, SAVE, data)
        assert status == 400 and "surrogate" in json.loads(body)["detail"]
    with pytest.raises(ValueError, match="'text' contains an unpaired surrogate"):
        server.store.note(0, 0, "\ud800", by="ann")
    assert server.store.version == 0
