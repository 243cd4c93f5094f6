"""Runs of agents over HTTP: open, a decision for each step, close; whatever happens between."""

import http.client
import json
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="fastapi is not installed")
pytest.importorskip("uvicorn", reason="uvicorn is not installed")

from serving import GRAPHS, LINES, Serving, Y, as_lines, call, rows_of

import skdcf
from skdcf.apps.service import _runs, _served, create_app
from skdcf.edges import chain_edges
from skdcf.guarantees import NoFalseClaim

RUNS = [
    graph.replace(edges=[(v - 1, v) for v in range(1, graph.n_claims)])
    for graph in GRAPHS
]


def out_degree(batch):
    """A score that looks ahead, so that only the setting makes it one of prefixes."""
    built_on = np.bincount(batch.edges[:, 0], minlength=batch.n_claims)
    return batch.features[:, 0] - built_on


def half_pass():
    """A filter at which half of the runs pass, so it keeps nothing of the others."""
    cf = skdcf.HardCF(
        "frequency-score",
        alpha=0.3,
        guarantee=NoFalseClaim(show=0.5),
        online=True,
        edges=chain_edges,
    )
    return cf.fit(RUNS[:200], Y[:200])


@pytest.fixture(scope="module")
def filters():
    scorers = {"alone": "frequency-score", "around": out_degree}
    return {
        name: skdcf.HardCF(scorer, alpha=0.05, online=True).fit(RUNS[:200], Y[:200])
        for name, scorer in scorers.items()
    } | {"share": half_pass()}


@pytest.fixture
def app(filters, tmp_path):
    return create_app(filters["alone"], folder=tmp_path)


def ask(app, path, **record):
    status, reply, _ = call(app, path, json.dumps(record).encode())
    return status, reply


def head_of(graph, **about):
    return {
        "question": graph.problem,
        "feature_names": list(graph.feature_names),
    } | about


def steps_of(graph):
    rows = zip(graph.claims, graph.features.tolist(), strict=True)
    return [{"text": text, "features": row} for text, row in rows]


def opened(app, graph, **about):
    status, reply = ask(app, "/v1/runs", **head_of(graph, **about))
    assert status == 200, reply
    return reply["run"]


def decided(app, name, graph, first=0):
    """All decisions from a step on."""
    keeps = []
    for v, step in enumerate(steps_of(graph)[first:], first):
        status, reply = ask(app, "/v1/runs/steps", run=name, claim=v, **step)
        assert (status, reply["claim"]) == (200, v)
        keeps.append(reply["keep"])
    return keeps


@pytest.mark.parametrize(
    ("kind", "alpha"),
    [
        ("alone", None),
        ("alone", 0.02),
        ("around", None),
        ("around", 0.02),
        ("share", None),
    ],
)
def test_a_run_is_decided_about_like_a_whole_answer(filters, tmp_path, kind, alpha):
    cf = filters[kind]
    app = create_app(filters, folder=tmp_path)
    about = {"filter": kind} | ({} if alpha is None else {"alpha": alpha})
    masks = cf.predict(RUNS[200:212], alpha)
    for graph, mask in zip(RUNS[200:212], masks, strict=True):
        name = opened(app, graph, **about)
        assert decided(app, name, graph) == mask.tolist()
        status, reply = ask(app, "/v1/runs/close", run=name)
        kept = [c for c, keep in zip(graph.claims, mask, strict=True) if keep]
        assert status == 200 and reply["id"] == name
        assert (reply["mask"], reply["text"]) == (mask.tolist(), "\n".join(kept))
        assert reply["alpha"] == (alpha or cf.alpha)

        lines = [{**head_of(graph, **about), "stop": True}]
        for v, step in enumerate(steps_of(graph)):
            lines.append(step | {"parents": [v - 1] if v else []})
        text = call(app, "/v1/stream", as_lines(lines), **LINES)[1]
        streamed = [json.loads(line)["keep"] for line in text.splitlines()[:-1]]
        assert streamed == mask[: mask.sum() + 1].tolist()
    assert 0 < np.concatenate(list(masks)).mean() < 1


def test_a_run_goes_on_in_another_process(app, filters, tmp_path):
    graph = max(RUNS[200:], key=lambda run: run.n_claims)
    mask = filters["alone"].predict([graph])[0].tolist()
    name = opened(app, graph)
    steps = steps_of(graph)
    for v, step in enumerate(steps):  # a new one for each step
        app = create_app(filters["alone"], folder=tmp_path)
        for _ in range(2):  # the reply was lost, or it was not
            status, reply = ask(app, "/v1/runs/steps", run=name, claim=v, **step)
            assert (status, reply) == (200, {"claim": v, "keep": mask[v]})
        again = create_app(filters["alone"], folder=tmp_path)
        assert ask(again, "/v1/runs/steps", run=name, claim=v, **step) == (200, reply)
    status, reply = ask(
        create_app(filters["alone"], folder=tmp_path), "/v1/runs/close", run=name
    )
    assert (status, reply["mask"]) == (200, mask)


def test_labels_of_a_run_that_is_closed(app, tmp_path):
    for graph, labels in zip(RUNS[200:210], Y[200:210], strict=True):
        name = opened(app, graph)
        decided(app, name, graph)
        said = {"id": name, "labels": labels.tolist(), "sampling": "random"}
        assert ask(app, "/v1/labels", **said)[0] == 404
        assert ask(app, "/v1/runs/close", run=name)[0] == 200
        assert ask(app, "/v1/labels", **said)[0] == 200
    text = call(app, "/metrics", method="GET")[1]
    assert 'skdcf_answers_judged_total{filter="default"} 10.0\n' in text
    assert "skdcf_runs 0.0\n" in text
    [empty] = [opened(app, RUNS[300])]
    assert ask(app, "/v1/runs/close", run=empty)[1]["mask"] == []
    assert len(rows_of(tmp_path, "id")) == 11


def test_texts_are_on_the_disk_until_the_run_is_over(app, tmp_path):
    def texts():
        return b"".join(path.read_bytes() for path in tmp_path.iterdir())

    graph = RUNS[200].replace(
        claims=[f"a secret {v}" for v in range(RUNS[200].n_claims)]
    )
    name = opened(app, graph, question="a secret question")
    decided(app, name, graph)
    assert b"a secret 0" in texts() and b"a secret question" in texts()
    assert ask(app, "/v1/runs/close", run=name)[0] == 200
    assert b"a secret" not in texts()
    assert ask(app, "/v1/runs/close", run=name)[0] == 404


@pytest.mark.parametrize(
    ("record", "status", "message"),
    [
        ({"claim": 3}, 409, "Send step 1 first"),
        ({"claim": 0, "text": "another"}, 409, "step 0 was already decided"),
        ({"claim": -1}, 400, '"claim" is -1'),
        ({"claim": "1"}, 400, "\"claim\" is '1'"),
        ({"claim": True}, 400, '"claim" is True'),
        ({"claim": 1, "features": ["x"]}, 400, ""),
        ({"claim": 1, "features": [1.0]}, 400, ""),
        ({"claim": 1, "parents": []}, 400, "does not depend on claim 0"),
        ({"claim": 1, "parents": [1]}, 400, "positions of earlier claims"),
        ({"claim": 1, "run": "nobody"}, 404, "no run with this id is open"),
        ({"claim": 1, "run": None}, 400, '"run" is None'),
        ({"claim": 1, "text": "x" * 9000}, 413, "at most 5,000 characters"),
    ],
)
def test_a_step_that_is_refused_leaves_the_run_as_it_was(
    app, filters, monkeypatch, record, status, message
):
    graph = next(run for run in RUNS[200:] if filters["alone"].predict([run])[0].all())
    name = opened(app, graph)
    steps = steps_of(graph)
    assert ask(app, "/v1/runs/steps", run=name, claim=0, **steps[0])[0] == 200
    with monkeypatch.context() as smaller:
        smaller.setattr(_runs, "_LONGEST", 5000)
        sent = {"run": name, **steps[1], **record}
        given, reply = ask(app, "/v1/runs/steps", **sent)
    assert given == status and message in reply["error"]
    assert decided(app, name, graph, first=1) == [True] * (graph.n_claims - 1)


def test_what_cannot_be_opened(app, filters, tmp_path):
    assert ask(app, "/v1/runs", stop=False)[0] == 400
    assert ask(app, "/v1/runs", alpha=3)[0] == 400
    assert ask(app, "/v1/runs", context=3)[0] == 400
    assert ask(app, "/v1/runs", filter="nobody")[0] == 400
    whole = skdcf.HardCF("frequency-score").fit(RUNS[:200], Y[:200])
    status, reply = ask(create_app(whole, folder=tmp_path), "/v1/runs")
    assert status == 400 and "send the whole answer" in reply["error"]
    apart = skdcf.HardCF("frequency-score", edges="none", online=True)
    apart = create_app(apart.fit(RUNS[:200], Y[:200]), folder=tmp_path)
    assert "edges that form a chain" in ask(apart, "/v1/runs")[1]["error"]
    status, reply = ask(create_app(filters["alone"]), "/v1/runs")
    assert status == 501 and "--folder" in reply["error"]
    assert "skdcf_runs 0.0\n" in call(app, "/metrics", method="GET")[1]


def test_open_runs_are_bounded_in_number_size_and_time(
    app, tmp_path, monkeypatch, filters
):
    monkeypatch.setattr(_runs, "_MOST_RUNS", 2)
    monkeypatch.setattr(_served, "_MOST_CLAIMS", 3)
    graph = next(run for run in RUNS[200:] if run.n_claims > 3)
    first, second = opened(app, graph), opened(app, graph)
    status, reply = ask(app, "/v1/runs", **head_of(graph))
    assert status == 503 and "too many runs" in reply["error"]
    assert len(decided(app, first, graph.subgraph(np.arange(graph.n_claims) < 3))) == 3
    status, _ = ask(app, "/v1/runs/steps", run=first, claim=3, **steps_of(graph)[3])
    assert status == 413

    _, held = app.journal.size_of_runs()
    texts = [head_of(graph), head_of(graph), *steps_of(graph)[:3]]
    assert held == sum(len(json.dumps(text)) for text in texts)
    with monkeypatch.context() as smaller:
        smaller.setattr(_runs, "_MOST_TEXT", held + 10)
        sent = {"run": second, "claim": 0, **steps_of(graph)[0]}
        status, reply = ask(app, "/v1/runs/steps", **sent)
        assert status == 503 and "too much text" in reply["error"]
    assert ask(app, "/v1/runs/steps", **sent)[0] == 200

    monkeypatch.setattr(_runs, "_LONGEST_PAUSE", -1.0)
    assert ask(app, "/v1/runs/steps", **sent)[0] == 404
    assert app.runs.n_open == 0 and rows_of(tmp_path, "*") == []
    opened(app, graph)
    assert create_app(filters["alone"], folder=tmp_path).runs.n_open == 0


def test_another_filter_does_not_go_on_with_a_run(app, filters, tmp_path):
    graph = RUNS[200]
    name = opened(app, graph)
    step = {"run": name, "claim": 0, **steps_of(graph)[0]}
    other = create_app(filters["around"], folder=tmp_path)
    status, reply = ask(other, "/v1/runs/steps", **step)
    assert status == 409 and "no longer served" in reply["error"]
    app.replace({"default": filters["around"]})  # what is open goes on with the old one
    assert ask(app, "/v1/runs/steps", **step)[0] == 200
    both = create_app(filters, folder=tmp_path)
    assert ask(both, "/v1/runs/steps", **step)[0] == 200

    app.journal._db.execute("UPDATE steps SET keep = 1 - keep")
    again = create_app(filters, folder=tmp_path)
    status, reply = ask(again, "/v1/runs/steps", **step)
    assert status == 409 and "step 0" in reply["error"]


@pytest.mark.parametrize("key", ["claims", "features", "text", "spans", "steps"])
def test_an_answer_before_its_first_claim_is_refused(app, key):
    value = {"claims": ["a"], "features": [[1.0]], "text": "a"}.get(key, [{"a": 1}])
    status, reply, _ = call(app, "/v1/stream", as_lines([{key: value}]), **LINES)
    assert status == 400 and key in reply["error"]


def test_steps_come_one_after_the_other(app, monkeypatch):
    graph = RUNS[200]
    name = opened(app, graph)
    begun, goes_on = threading.Event(), threading.Event()
    plain = _served.Writing.add

    def slow(writing, claim):
        begun.set()
        assert goes_on.wait(60)
        return plain(writing, claim)

    monkeypatch.setattr(_served.Writing, "add", slow)
    step = {"run": name, "claim": 0, **steps_of(graph)[0]}
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(ask, app, "/v1/runs/steps", **step)
        assert begun.wait(60)
        status, reply = ask(app, "/v1/runs/steps", **step)
        assert status == 409 and "Wait for its reply" in reply["error"]
        assert ask(app, "/v1/runs/close", run=name)[0] == 409
        goes_on.set()
        assert first.result()[0] == 200
    assert ask(app, "/v1/runs/steps", **step) == first.result()


def test_a_step_that_the_disk_does_not_take_was_not_decided_about(
    app, filters, monkeypatch
):
    graph = RUNS[200]
    mask = filters["alone"].predict([graph])[0]
    name = opened(app, graph)
    with monkeypatch.context() as full:

        def fail(*_):
            raise OSError(28, "No space left on device")

        full.setattr(app.journal, "add_step", fail)
        step = {"run": name, "claim": 0, **steps_of(graph)[0]}
        assert ask(app, "/v1/runs/steps", **step)[0] == 500
        full.setattr(app.journal, "close_run", fail)
        assert ask(app, "/v1/runs/close", run=name)[0] == 500
    other = {**step, "text": "what the agent does instead"}
    assert ask(app, "/v1/runs/steps", **other)[0] == 200
    assert ask(app, "/v1/runs/close", run=name)[1]["mask"] == [mask[0]]


@pytest.mark.long
@pytest.mark.skipif(os.name != "posix", reason="kills of POSIX")
def test_kill_9_loses_no_run(filters, tmp_path):
    rng = np.random.default_rng(0)
    skdcf.save(filters["alone"], tmp_path / "m.skops")
    folder = tmp_path / "journal"
    graphs = RUNS[200:210]
    names, keeps = {}, [[] for _ in graphs]

    def go_on(serving, n_until_kill):
        """Send what has no reply yet; the kill comes while a step is decided about."""
        for i, graph in enumerate(graphs):
            if i not in names:
                names[i] = asked(serving, "/v1/runs", **head_of(graph))["run"]
            steps = list(enumerate(steps_of(graph)))
            for v, step in steps[len(keeps[i]) :]:
                n_until_kill -= 1
                if n_until_kill == 0:
                    kill = serving.process.kill
                    threading.Timer(rng.uniform(0, 0.01), kill).start()
                sent = {"run": names[i], "claim": v, **step}
                keeps[i].append(asked(serving, "/v1/runs/steps", **sent)["keep"])

    for n_until_kill in (7, 12, 9):
        with Serving(tmp_path / "m.skops", "--folder", folder) as serving:
            with pytest.raises((OSError, http.client.HTTPException)):
                go_on(serving, n_until_kill)
                asked(serving, "/v1/runs", **head_of(RUNS[0]))
            assert serving.process.wait(60) == -signal.SIGKILL
    with Serving(tmp_path / "m.skops", "--folder", folder) as serving:
        assert sum(map(len, keeps)) < sum(graph.n_claims for graph in graphs)
        go_on(serving, 0)
        for i, mask in enumerate(filters["alone"].predict(graphs)):
            assert keeps[i] == mask.tolist()
            reply = asked(serving, "/v1/runs/close", run=names[i])
            assert reply["mask"] == mask.tolist()


def asked(serving, path, **record):
    status, reply = serving.ask("POST", path, record)
    assert status == 200, reply
    return json.loads(reply)
