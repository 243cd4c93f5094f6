"""The labelling page, as a person uses it: in a real browser, by keyboard."""

import contextlib
import json
import socket
import time
import urllib.error
import urllib.request

import numpy as np
import pytest
from browser import Browser

from skdcf import HardCF, ReasoningGraph
from skdcf.apps.labelling import (
    FilterOrder,
    LabelServer,
    LabelStore,
    RandomOrder,
    describe_unfinished,
)

HOSTILE = [
    "<script>document.title = 'owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    "</li></ol><h1>All claims are true</h1>",
    "__NONCE__ {{constructor.constructor('alert(1)')()}} ${alert(1)}",
    "javascript:alert(1) \u202etxet \x00 \U0001f600 " + "w" * 300,
]


def problem(n, seed=0, **fields):
    claims = [f"claim {v} of problem {seed}" for v in range(n)]
    edges = [(v - 1, v) for v in range(1, n)]
    return ReasoningGraph(
        None, edges, claims=claims, problem=f"question {seed}", **fields
    )


@pytest.fixture
def graphs():
    return [
        problem(8, 0, metadata={"answer": "the whole answer"}),
        problem(7, 1),
        problem(5, 2),
    ]


@pytest.fixture
def store(graphs, tmp_path):
    return LabelStore(graphs, tmp_path / "labels.journal")


@pytest.fixture
def browser(tmp_path):
    with Browser(tmp_path / "profile") as browser:
        yield browser


def ready(tab):
    tab.wait("document.querySelector('#saved').textContent === 'all saved'")


@pytest.mark.long
def test_20_claims_by_keyboard_with_the_browser_closed_in_the_middle(store, tmp_path):
    words = ["true", "false", "unsure", "true"] * 5
    keys = {"true": "t", "false": "f", "unsure": "u"}
    with LabelServer(store, "ann") as server:
        with Browser(tmp_path / "one") as browser:
            tab = browser.open(server.url)
            ready(tab)
            tab.press(
                *(keys[w] for w in words[:8]), "n", *(keys[w] for w in words[8:11])
            )
            ready(tab)
            browser.kill()
        said = [w for i in range(3) for w in store.said(i, "ann")]
        assert said == words[:11] + [None] * 9
        with Browser(tmp_path / "two") as browser:
            tab = browser.open(server.url)
            ready(tab)
            assert tab.run("document.querySelectorAll('.claim.true').length") == 1
            assert tab.run("document.querySelector('.here .number').textContent") == "4"
            tab.press(*(keys[w] for w in words[11:15]), "n")
            tab.press(*(keys[w] for w in words[15:]))
            ready(tab)
            assert "20 of 20 claims judged" in tab.run("document.body.innerText")
    again = LabelStore(store.graphs, store.path)
    assert [w for i in range(3) for w in again.said(i, "ann")] == words


def test_nothing_is_lost_while_the_program_is_away(graphs, store, browser):
    with LabelServer(store, "ann") as server:
        tab = browser.open(server.url)
        ready(tab)
        token, port = server.token, server.port
    tab.press("t", "f")
    tab.wait("document.querySelector('#saved').textContent.includes('Not saved: 2')")
    assert store.said(0, "ann")[:2] == [None, None]
    server = LabelServer(LabelStore(graphs, store.path), "ann", port)
    server.token = token
    with server:
        ready(tab)
        assert server.store.said(0, "ann")[:3] == ["true", "false", None]


def test_two_tabs_see_each_other(store, browser):
    with LabelServer(store, "ann") as server:
        first, second = browser.open(server.url), browser.open(server.url)
        ready(first)
        ready(second)
        second.press("n", "f")
        first.press("t")
        ready(first)
        browser.send("Target.activateTarget", targetId=target_of(browser, first))
        first.send("Page.bringToFront")
        first.press("n")
        first.wait("document.querySelector('.claim.false') !== null")
        first.press("Backspace")
        ready(first)
        second.send("Page.bringToFront")
        second.wait("document.querySelector('.claim.false') === null")
        second.press("p")
        second.wait("document.querySelector('.claim.true') !== null")
    assert store.said(0, "ann")[0] == "true"
    assert store.said(1, "ann") == [None] * 7


def target_of(browser, tab):
    return tab.send("Target.getTargetInfo")["targetInfo"]["targetId"]


def test_edges_are_corrected_by_keyboard(store, browser):
    with LabelServer(store, "ann") as server:
        tab = browser.open(server.url)
        ready(tab)
        assert "depends on 1" in tab.run("document.body.innerText")
        tab.press("j", "j", "e")
        tab.wait("document.activeElement.tagName === 'INPUT'")
        tab.press("1", ",", "2", "Enter")
        ready(tab)
        assert [e for e in store.edges(0, "ann") if e[1] == 2] == [[0, 2], [1, 2]]
        tab.press("k", "k", "e")
        tab.wait("document.activeElement.tagName === 'INPUT'")
        tab.press("3", "Enter")
        tab.wait("document.body.innerText.includes('cycle')")
        tab.press("Escape", "t")
        ready(tab)
    assert [e for e in store.edges(0, "ann") if e[1] == 0] == []
    assert store.said(0, "ann")[0] == "true"


def test_without_a_keyboard_the_keys_can_be_clicked(store, browser):
    with LabelServer(store, "ann") as server:
        tab = browser.open(server.url)
        ready(tab)
        for key in ("t", "ArrowDown", "f"):
            tab.run(f"document.querySelector('button[data-key={key}]').click()")
        ready(tab)
    assert store.said(0, "ann")[:3] == ["true", None, "false"]


def test_hostile_text_shows_as_text(browser, tmp_path):
    graph = ReasoningGraph(
        None,
        [(0, 1)],
        claims=HOSTILE,
        problem=HOSTILE[0],
        metadata={"answer": HOSTILE[1]},
    )
    store = LabelStore([graph], tmp_path / "j")
    with LabelServer(store, HOSTILE[1]) as server:
        tab = browser.open(server.url)
        ready(tab)
        shown = tab.run(
            "[...document.querySelectorAll('.claim .text')].map(e => e.textContent)"
        )
        assert shown == HOSTILE
        assert tab.run("document.querySelector('#question').textContent") == HOSTILE[0]
        tags = "document.querySelectorAll('main script, main img, main h1').length"
        assert tab.run(tags) == 0
        assert tab.run("document.title") == "skdcf: label claims"
        tab.press("f")
        ready(tab)
    assert store.export(HOSTILE[1]).labels[0].tolist() == [0, -1, -1, -1, -1]


def test_a_port_that_is_taken_is_an_error(store):
    """Windows would give it to both, if they asked for an address to be used again."""
    with LabelServer(store, "ann") as server, pytest.raises(OSError):
        LabelServer(store, "ben", server.port)


@pytest.mark.parametrize("width", [1200, 420])
def test_it_fits_wide_and_narrow_windows(store, browser, tmp_path, width):
    """The pictures are looked at by people; here: nothing sticks out, nothing is hidden."""
    with LabelServer(store, "ann") as server:
        tab = browser.open(server.url, width, 900)
        ready(tab)
        tab.press("t", "f", "u")
        ready(tab)
        tab.screenshot(tmp_path / f"labelling-{width}.png")
        assert tab.run("document.documentElement.scrollWidth") <= width
        box = "document.querySelector('.claim .text').getBoundingClientRect().width"
        assert tab.run(box) > width * 0.4


# --- requests of others


def request(server, path, *, method="GET", data=None, **headers):
    """Status and body of a request; ``token=None`` leaves the token out."""
    token = headers.pop("token", server.token)
    port = server.port
    headers = {k.replace("_", "-"): v for k, v in headers.items()}
    if token is not None:
        headers["X-Token"] = token
    body = None if data is None else json.dumps(data).encode()
    if body is not None:
        headers.setdefault("Content-Type", "application/json")
    url = f"http://127.0.0.1:{port}{path}"
    asked = urllib.request.Request(url, data=body, headers=headers, method=method)
    try:
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return answer.status, answer.read().decode(), dict(answer.headers)
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(), dict(error.headers)


JUDGEMENT = {"problem": 0, "claim": 0, "label": "true"}


@pytest.mark.parametrize("path", ["/", "/problems", "/version", "/none"])
@pytest.mark.parametrize("token", [None, "", "wrong", "\u00e9"])
def test_no_token_no_answer(store, path, token):
    with LabelServer(store, "ann") as server:
        status, body, _ = request(
            server, path, token=token and token.encode().decode("latin-1")
        )
        assert status == 403 and "claim 0" not in body
        assert request(server, f"{path}?token=wrong", token=None)[0] == 403


@pytest.mark.parametrize("method", ["PUT", "HEAD", "DELETE", "OPTIONS"])
def test_other_methods_are_refused(store, method):
    with LabelServer(store, "ann") as server:
        for path, allowed in (("/label", "POST"), ("/version", "GET")):
            status, body, headers = request(server, path, method=method)
            if method == "HEAD" and allowed == "GET":
                assert status == 200 and not body
            else:
                assert status == 405 and headers["allow"] == allowed
                assert bool(body) == (method != "HEAD")


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "https://127.0.0.1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Host": "evil.example"},
        {"Host": "localhost"},
        {"token": None},
        {"token": "wrong"},
    ],
)
def test_other_origins_are_refused(store, headers):
    with LabelServer(store, "ann") as server:
        status, _, sent = request(
            server, "/label", method="POST", data=JUDGEMENT, **headers
        )
        assert status == 403
        assert not any(name.lower().startswith("access-control") for name in sent)
        assert request(server, "/label", method="OPTIONS", **headers)[0] == 403
        # A token in the address is not enough to change anything: pages can send that.
        path = f"/label?token={server.token}"
        assert (
            request(server, path, method="POST", data=JUDGEMENT, token=None)[0] == 403
        )
    assert store.version == 0


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded"])
def test_forms_of_other_pages_change_nothing(store, kind):
    with LabelServer(store, "ann") as server:
        status, *_ = request(
            server, "/label", method="POST", data=JUDGEMENT, Content_Type=kind
        )
    assert status == 415 and store.version == 0


def test_our_own_page_is_answered(store):
    with LabelServer(store, "ann") as server:
        port = server.port
        own = {"Origin": f"http://127.0.0.1:{port}", "Sec_Fetch_Site": "same-origin"}
        status, body, _ = request(
            server, "/label", method="POST", data=JUDGEMENT, **own
        )
        assert status == 200 and json.loads(body) == {"version": 1}
        status, page, headers = request(server, f"/?token={server.token}", token=None)
        assert status == 200 and "__NONCE__" not in page
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        assert server.token not in page


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("/label", {**JUDGEMENT, "label": "maybe"}),
        ("/label", {**JUDGEMENT, "label": ["true"]}),
        ("/label", {**JUDGEMENT, "label": {}}),
        ("/label", {**JUDGEMENT, "claim": 8}),
        ("/label", {**JUDGEMENT, "claim": -1}),
        ("/label", {**JUDGEMENT, "claim": True}),
        ("/label", {**JUDGEMENT, "problem": "0"}),
        ("/label", {"problem": 0}),
        ("/label", [1]),
        ("/label", "text"),
        ("/edges", {"problem": 0, "edges": [[0, 1], [1, 0]]}),
        ("/edges", {"problem": 0, "edges": [[0, 99]]}),
        ("/edges", {"problem": 0, "edges": "01"}),
        ("/edges", {"problem": 0, "edges": [[0, "x"]]}),
        ("/edges", {"problem": 0, "edges": [0]}),
    ],
)
def test_bad_requests_change_nothing(store, path, data):
    with LabelServer(store, "ann") as server:
        status, reason, _ = request(server, path, method="POST", data=data)
        assert status == 400 and reason
    assert store.version == 0


def test_long_requests_are_not_read(store):
    with LabelServer(store, "ann") as server:
        status, _, _ = request(
            server, "/label", method="POST", data=JUDGEMENT, Content_Length=str(2**40)
        )
        assert status == 413


# --- what is asked for, and in what order

TEXT = "document.body.innerText"


def scored(risks, y, alpha):
    """Problems with texts, whose claims have these risks, and a filter fitted to them."""
    graphs = [
        ReasoningGraph(
            [[-r] for r in row],
            [],
            claims=[f"claim {v} with risk {r:.2f}" for v, r in enumerate(row)],
            problem=f"question {i}",
        )
        for i, row in enumerate(risks)
    ]
    return graphs, HardCF(0, alpha=alpha).fit(graphs, y)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*no claims judged")
def test_with_a_filter_only_what_moves_the_threshold_is_asked_for(tmp_path):
    """100 answers by keyboard, killed in the middle: fewer strokes, the same threshold."""
    rng = np.random.default_rng(5)
    risks = [np.sort(rng.normal(size=4)) for _ in range(100)]
    truth = [(rng.random(4) > 0.3).astype(int) for _ in risks]
    graphs, filter = scored(risks, [[-1] * 4 for _ in risks], alpha=0.1)
    here = "document.querySelector('.claim.here .text').textContent"
    where = "document.querySelector('#question').textContent"
    strokes = 0
    for end in (25, 400):
        store = LabelStore(graphs, tmp_path / "j")
        order = FilterOrder(filter, graphs)
        with (
            LabelServer(store, "ann", order=order) as server,
            Browser(tmp_path / f"profile {end}") as browser,
        ):
            tab = browser.open(server.url)
            ready(tab)
            while strokes < end and not tab.run(
                "document.querySelector('#done').className"
            ):
                i, v = (int(tab.run(code).split()[1]) for code in (where, here))
                assert store.said(i, "ann")[v] is None
                tab.press("t" if truth[i][v] else "f")
                strokes += 1
                ready(tab)
            assert (end == 25) != ("No further label can change" in tab.run(TEXT))
    labels = store.labels("ann")
    judged = sum(int((row >= 0).sum()) for row in labels)
    # In the order of the file each answer is read up to its first error.
    in_order = sum(min(int(row.cumprod().sum()) + 1, 4) for row in truth)
    assert judged == strokes < 0.5 * in_order
    asked = HardCF(0, alpha=0.1).fit(graphs, labels).threshold()
    assert asked == HardCF(0, alpha=0.1).fit(graphs, truth).threshold()


def test_a_look_at_the_version_does_not_hide_that_a_label_is_unsaved(store, browser):
    """The page asks for the version now and then; a key may be pressed meanwhile."""
    held = """
    window.held = {}; window.real = window.fetch;
    window.fetch = (path, options) => new Promise(done => {
      window.held[path] = () => done(window.real(path, options)); });
    """
    with LabelServer(store, "ann") as server:
        tab = browser.open(server.url)
        ready(tab)
        tab.run(held)
        tab.wait("window.held['/version'] !== undefined")
        tab.press("t")
        tab.wait("window.held['/label'] !== undefined")
        tab.run("window.held['/version'](); window.held['/version'] = undefined")
        # Long enough for the reply, which says nothing of the label.
        tab.run("new Promise(done => setTimeout(done, 500))")
        assert tab.run("document.querySelector('#saved').textContent") == "saving"
        assert store.said(0, "ann")[0] is None
        tab.run("window.fetch = window.real; window.held['/label']()")
        ready(tab)
        assert store.said(0, "ann")[0] == "true"


def test_false_and_on_by_one_key(tmp_path, browser):
    graphs = [
        ReasoningGraph(None, [(0, 1), (1, 2)], claims=list("abcd"), problem="one"),
        ReasoningGraph(None, [], claims=["e", "f"], problem="two"),
    ]
    store = LabelStore(graphs, tmp_path / "j")
    with LabelServer(store, "ann") as server:
        tab = browser.open(server.url)
        ready(tab)
        tab.press("t", "x")
        ready(tab)
        assert store.said(0, "ann") == ["true", "false", "unknown", None]
        # What does not build on it counts as false until it is judged.
        assert tab.run("document.querySelector('.here .number').textContent") == "4"
        tab.press("t", "n")
        ready(tab)
        assert store.said(0, "ann") == ["true", "false", "unknown", "true"]
        assert tab.run("document.querySelector('#question').textContent") == "two"
        assert not tab.run("document.querySelector('button[data-key=x]')")
        tab.press("x")
        ready(tab)
        assert tab.run("document.querySelector('.here .number').textContent") == "2"
    assert store.said(1, "ann") == ["false", None]


def test_the_page_says_what_answers_that_are_not_finished_cost(tmp_path, browser):
    graphs = [
        ReasoningGraph(None, edges, claims=list("abc"), problem=f"q{i}")
        for i, edges in enumerate(([(0, 1)], [], []))
    ]
    store = LabelStore(graphs, tmp_path / "j")
    message = "document.querySelector('#unfinished').textContent"
    with LabelServer(store, "ann") as server:
        tab = browser.open(server.url)
        ready(tab)
        tab.press("f")
        ready(tab)
        assert tab.run(message) == ""  # somebody is at it
        tab.press("n")
        assert "1 claim in 1 answer." in tab.run(message)
        tab.press("t", "n")
        ready(tab)
        assert "3 claims in 2 answers." in tab.run(message)
    out = store.export("ann")
    said = describe_unfinished(out.graphs, out.labels)
    assert "3 claims in 2 answers" in said


def test_the_question_mark_opens_the_help_and_judges_nothing(store, browser):
    with LabelServer(store, "ann") as server:
        tab = browser.open(server.url)
        ready(tab)
        tab.press("?")
        assert tab.run("document.querySelector('#help').open")
        tab.press("t")
        assert store.said(0, "ann") == [None] * len(store.said(0, "ann"))
        tab.run("document.querySelector('#help button').click()")
        tab.press("c")
        ready(tab)
    assert store.said(0, "ann")[0] == "no claim"


def test_the_place_is_said_once_and_edges_only_if_there_are_any(tmp_path, browser):
    graphs = [
        ReasoningGraph(None, [], claims=["a", "b"], problem="one", id="i-1"),
        ReasoningGraph(None, [(0, 1)], claims=["c", "d"], problem="two"),
    ]
    store = LabelStore(graphs, tmp_path / "j")
    with LabelServer(store, "ann") as server:
        tab = browser.open(server.url)
        ready(tab)
        progress = "document.querySelector('#progress').textContent"
        edges = (
            "[...document.querySelectorAll('.claim .below')].map(e => e.textContent)"
        )
        assert tab.run(progress) == "answer 1 of 2 (line 1)"
        assert tab.run(edges) == ["", ""]
        tab.press("n")
        assert tab.run(edges) == ["depends on no claim", "depends on 1"]


def test_random_order_is_recorded_only_where_it_was_followed(tmp_path):
    graphs = [problem(2, seed) for seed in range(40)]
    order = RandomOrder()
    store = LabelStore(graphs, tmp_path / "j")
    listed = order.order(store)
    assert sorted(listed) == list(range(40)) and listed != list(range(40))
    assert order.order(LabelStore(graphs, tmp_path / "other")) == listed
    assert RandomOrder(1).order(store) != listed
    for i in listed[:5]:
        store.label(i, 0, "true", by="ann")
    assert order.up_to_last_judged(store, "ann") == listed[:5]
    store.label(listed[7], 1, "true", by="ann")
    assert order.up_to_last_judged(store, "ann") == listed[:8]
    assert [i for i, _ in order(store, "ann")] == listed
    store.label(listed[0], 1, "unsure", by="ann")
    assert [i for i, _ in order(store, "ann")] == listed[1:]


def test_passage_notes_seconds_and_guideline(tmp_path, browser):
    passage = (
        "The moon is made of rock. It orbits the earth in 27 days! Nobody lives there."
    )
    graph = ReasoningGraph(
        None,
        [],
        claims=["It takes 27 days", "It is rock"],
        context=[passage],
        problem="q",
    )
    store = LabelStore([graph], tmp_path / "j")
    guide = "Look at <b>numbers</b> first."
    more = {"meaning": "supported", "guideline": guide}
    with LabelServer(store, "ann", **more) as server:
        tab = browser.open(server.url)
        ready(tab)
        marked = "document.querySelector('#context mark').textContent"
        assert tab.run(marked) == "It orbits the earth in 27 days! "
        assert "Does the passage support" in tab.run("document.body.innerText")
        assert tab.run("document.querySelector('#guideline').textContent") == guide
        tab.press("t")
        ready(tab)
        assert "made of rock" in tab.run(marked)
        tab.press("m")
        tab.wait("document.activeElement.tagName === 'INPUT'")
        tab.press("w", "h", "y", "Enter")
        ready(tab)
        tab.press("f")
        ready(tab)
    again = LabelStore([graph], store.path).export("ann")
    first, second = again.sources[0]
    assert first.note is None and second.note == "why"
    assert 0 <= first.seconds < 60
    with pytest.raises(ValueError, match="meaning"):
        LabelServer(store, "ann", meaning="nice")


def test_labels_that_came_with_the_problems_are_shown_only_if_asked_for(
    graphs, tmp_path
):
    labels = [np.arange(graph.n_claims) % 2 for graph in graphs]
    store = LabelStore(graphs, tmp_path / "known.journal", labels)
    for show, expected in ((False, [None] * 3), (True, [y.tolist() for y in labels])):
        with LabelServer(store, "ann", show_known=show) as server:
            rows = server.problems()["problems"]
        assert [row["known"] for row in rows] == expected


def test_mathematics_is_drawn_and_stays_harmless(tmp_path, browser):
    pytest.importorskip("latex2mathml")
    claims = [
        r"so $\frac{1}{2} < 3$ holds",
        r"bad \(\text{<script>document.title='owned'</script>}\) text",
        r"link $\href{javascript:alert(1)}{x}$",
        r"open $x^{ and \[x^{\]",
        "it costs $5 and then $6 more",
    ]
    store = LabelStore([ReasoningGraph(None, [], claims=claims)], tmp_path / "j")
    with LabelServer(store, "ann") as server:
        tab = browser.open(server.url)
        ready(tab)
        assert tab.run("document.querySelectorAll('.claim math mfrac').length") == 1
        assert tab.run("document.querySelectorAll('.claim math').length") == 1
        texts = "[...document.querySelectorAll('.claim .text')].map(e => e.textContent)"
        assert tab.run(texts)[1:] == claims[1:]
        assert tab.run("document.title") == "skdcf: label claims"


@pytest.mark.long
def test_half_sent_requests_keep_nobody_out(store, monkeypatch):
    monkeypatch.setattr("skdcf.apps.web.server._HEAD", 2.0)
    with LabelServer(store, "ann") as server, contextlib.ExitStack() as stack:
        address = "127.0.0.1", server.port
        halves = []
        for _ in range(300):
            halves.append(stack.enter_context(socket.create_connection(address)))
            halves[-1].sendall(b"GET / HTTP/1.1\r\nHost: x\r\n")
        # Somebody who comes after them is answered at once.
        start = time.monotonic()
        assert request(server, "/version")[0] == 200
        assert time.monotonic() - start < 30
        # One that sends a byte now and then is ended, too.
        slow = stack.enter_context(socket.create_connection(address))
        ended, end = False, time.monotonic() + 60
        while not ended and time.monotonic() < end:
            try:
                slow.sendall(b"G")
            except OSError:
                ended = True
            time.sleep(0.2)
        assert ended and all(half.recv(10) == b"" for half in halves)


def test_what_comes_after_the_end_is_not_taken(store):
    """A browser opens connections in advance, and would judge on one of them."""
    server = LabelServer(store, "ann")
    with server, contextlib.ExitStack() as stack:
        address = "127.0.0.1", server.port
        early = stack.enter_context(socket.create_connection(address))
        assert request(server, "/label", method="POST", data=JUDGEMENT)[0] == 200
        early.sendall(b"POST /label HTTP/1.1\r\n")
        stack.pop_all()
    said = store.version
    body = json.dumps({**JUDGEMENT, "claim": 1}).encode()
    head = f"Host: 127.0.0.1:{server.port}\r\nX-Token: {server.token}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    with early, contextlib.suppress(OSError):
        early.sendall(head.encode() + body)
        assert not early.recv(10)
    with pytest.raises(urllib.error.URLError):
        request(server, "/version")
    assert store.version == said == 1


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("/note", {"problem": 0, "claim": 0, "note": 3}),
        ("/note", {"problem": 0, "claim": 0, "note": "x" * 10_001}),
        ("/note", {"problem": 0, "claim": 99, "note": "x"}),
        ("/label", {**JUDGEMENT, "seconds": "1"}),
        ("/label", {**JUDGEMENT, "seconds": -1}),
        ("/label", {**JUDGEMENT, "seconds": True}),
    ],
)
def test_bad_notes_and_seconds_change_nothing(store, path, data):
    with LabelServer(store, "ann") as server:
        assert request(server, path, method="POST", data=data)[0] == 400
    assert store.version == 0


def test_unknown_edges_are_called_unknown_until_all_are_known(tmp_path, browser):
    texts = ["2 + 2 = 4", "so it is even"]
    graphs = [
        ReasoningGraph(None, None, claims=[f"{t} ({i})" for t in texts], id=f"T{i}")
        for i in range(2)
    ]
    store = LabelStore(graphs, tmp_path / "j")
    body = "document.body.innerText"
    with LabelServer(store, "ann", order=RandomOrder()) as server:
        tab = browser.open(server.url)
        ready(tab)
        assert tab.run(body).count("dependencies unknown") == 2
        assert "depends on no claim" not in tab.run(body)
        first = RandomOrder().order(store)[0]
        assert f"answer 1 of 2 (line {first + 1})" in tab.run(body)
        assert tab.run("document.querySelector('#linked').className") == ""
        tab.press("j", "e")
        tab.wait("document.activeElement.tagName === 'INPUT'")
        tab.press("1", "Enter")
        ready(tab)
        assert "depends on 1" in tab.run(body)
        assert "1 of the 2 answers" in tab.run(body)
        tab.run("document.querySelector('#all').click()")
        tab.wait(f"{body}.includes('depends on no claim')")
        assert "dependencies unknown" not in tab.run(body)
        assert store.export("ann").graphs.edges_known.all()
        tab.run("document.querySelector('#not-all').click()")
        tab.wait(f"{body}.includes('dependencies unknown')")
    assert not store.export("ann").graphs.edges_known.any()


def test_what_is_judged_can_be_changed_after_the_last_claim(tmp_path, browser):
    graphs = [problem(2, 0, id="a"), problem(1, 1, id="b")]
    store = LabelStore(graphs, tmp_path / "j")
    for i, n in enumerate((2, 1)):
        for v in range(n):
            store.label(i, v, "true", by="ann")
    with LabelServer(store, "ann", order=RandomOrder()) as server:
        tab = browser.open(server.url)
        ready(tab)
        assert "Every claim is judged" in tab.run("document.body.innerText")
        tab.press("f")
        ready(tab)
    assert [w for i in (0, 1) for w in store.said(i, "ann")].count("false") == 1
