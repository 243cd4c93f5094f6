"""The labelling page, as a person uses it: in a real browser, by keyboard."""

import json
import urllib.error
import urllib.request

import numpy as np
import pytest
from browser import Browser

from skdcf import ReasoningGraph
from skdcf.labelling import LabelServer, LabelStore

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
        token, port = server.token, server.server_address[1]
    tab.press("t", "f")
    tab.wait("document.querySelector('#saved').textContent.includes('2 not saved')")
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
        assert "builds on 1" in tab.run("document.body.innerText")
        tab.press("j", "j", "e")
        tab.wait("document.activeElement.tagName === 'INPUT'")
        tab.press("1", ",", "2", "Enter")
        ready(tab)
        assert [e for e in store.edges(0, "ann") if e[1] == 2] == [[0, 2], [1, 2]]
        tab.press("k", "k", "e")
        tab.wait("document.activeElement.tagName === 'INPUT'")
        tab.press("3", "Enter")
        tab.wait("document.body.innerText.includes('in a circle')")
        tab.press("Escape", "t")
        ready(tab)
    assert [e for e in store.edges(0, "ann") if e[1] == 0] == []
    assert store.said(0, "ann")[0] == "true"


def test_without_a_keyboard_the_keys_can_be_clicked(store, browser):
    with LabelServer(store, "ann") as server:
        tab = browser.open(server.url)
        ready(tab)
        for key in ("t", "j", "f"):
            keys = "[...document.querySelectorAll('kbd')]"
            tab.run(f"{keys}.find(k => k.textContent === '{key}').click()")
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
    port = server.server_address[1]
    headers = {k.replace("_", "-"): v for k, v in headers.items()}
    if token is not None:
        headers["X-Token"] = token
    body = None if data is None else json.dumps(data).encode()
    if body is not None:
        headers.setdefault("Content-Type", "application/json")
    url = f"http://127.0.0.1:{port}{path}"
    asked = urllib.request.Request(url, data=body, headers=headers, method=method)
    try:
        with urllib.request.urlopen(asked, timeout=10) as answer:
            return answer.status, answer.read().decode(), dict(answer.headers)
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(), dict(error.headers)


JUDGEMENT = {"problem": 0, "claim": 0, "label": "true"}


@pytest.mark.parametrize(
    "path", ["/", "/problems", "/version", "/labels.jsonl", "/none"]
)
@pytest.mark.parametrize("token", [None, "", "wrong", "\u00e9"])
def test_no_token_no_answer(store, path, token):
    with LabelServer(store, "ann") as server:
        status, body, _ = request(
            server, path, token=token and token.encode().decode("latin-1")
        )
        assert status == 403 and "claim 0" not in body
        assert request(server, f"{path}?token=wrong", token=None)[0] == 403


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
        {"Content_Type": "text/plain"},
        {"Content_Type": "application/x-www-form-urlencoded"},
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


def test_our_own_page_is_answered(store):
    with LabelServer(store, "ann") as server:
        port = server.server_address[1]
        own = {"Origin": f"http://127.0.0.1:{port}", "Sec_Fetch_Site": "same-origin"}
        status, body, _ = request(
            server, "/label", method="POST", data=JUDGEMENT, **own
        )
        assert status == 200 and json.loads(body) == {"version": 1}
        status, page, headers = request(server, f"/?token={server.token}", token=None)
        assert status == 200 and "__NONCE__" not in page
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert server.server_address[0] == "127.0.0.1"
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
        assert status == 400


def test_files_for_other_programs(store):
    store.label(0, 0, "false", by="ann")
    with LabelServer(store, "ann") as server:
        _, lines, _ = request(server, "/labels.jsonl")
        _, tasks, _ = request(server, "/label-studio.json")
    assert [len(json.loads(line)["labels"]) for line in lines.splitlines()] == [8, 7, 5]
    assert len(json.loads(tasks)) == 20
    assert np.sum([len(t.get("annotations", [])) for t in json.loads(tasks)]) == 1
