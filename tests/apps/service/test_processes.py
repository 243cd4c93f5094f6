"""Two processes that serve one folder: one truth, whichever of them is asked."""

import http.client
import json
import re
import sys
import threading

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="fastapi is not installed")
pytest.importorskip("uvicorn", reason="uvicorn is not installed")

from serving import GRAPHS, Serving, Y, body_of, call, rows_of

import skdcf
from skdcf.apps.service import create_app
from skdcf.monitoring import CoverageMonitor

# A run of a chain, and steps as they are sent.
RUNS = [
    graph.replace(edges=[(v - 1, v) for v in range(1, graph.n_claims)])
    for graph in GRAPHS
]


def head_of(graph):
    return {"question": graph.problem, "feature_names": list(graph.feature_names)}


def steps_of(graph):
    rows = zip(graph.claims, graph.features.tolist(), strict=True)
    return [{"text": text, "features": row} for text, row in rows]


@pytest.fixture(scope="module")
def fitted():
    filter = skdcf.HardCF("frequency-score", alpha=0.2, online=True)
    return filter.fit(RUNS[:200], Y[:200])


@pytest.fixture
def pair(fitted, tmp_path):
    return [create_app(fitted, folder=tmp_path) for _ in range(2)]


def ask(app, path, **record):
    status, reply, _ = call(app, path, json.dumps(record).encode())
    return status, reply


def numbers_in(text):
    """The numbers of a process that the folder decides about."""
    pattern = r"^skdcf_((?:answers|monitor|claims|shown|false|runs).*) (\S+)$"
    found = dict(re.findall(pattern, text, re.MULTILINE))
    return {name: value for name, value in found.items() if value != "NaN"}


def test_a_run_goes_through_both(pair, fitted):
    """Opened at one, a run was 404 at the other."""
    for graph in RUNS[200:210]:
        mask = fitted.predict([graph])[0].tolist()
        name = ask(pair[0], "/v1/runs", **head_of(graph))[1]["run"]
        for v, step in enumerate(steps_of(graph)):
            for app in (
                pair[(v + 1) % 2],
                pair[v % 2],
            ):  # the second one sends it again
                sent = {"run": name, "claim": v, **step}
                said = ask(app, "/v1/runs/steps", **sent)
                assert said == (200, {"claim": v, "keep": mask[v]})
            other = {"run": name, "claim": v, **step, "text": "another"}
            assert ask(pair[v % 2], "/v1/runs/steps", **other)[0] == 409
        status, reply = ask(pair[1], "/v1/runs/close", run=name)
        assert (status, reply["mask"]) == (200, mask)
        for app in pair:
            assert ask(app, "/v1/runs/close", run=name)[0] == 404
            assert ask(app, "/v1/runs/steps", run=name, claim=0)[0] == 404


def test_one_step_number_is_given_once(pair, fitted, monkeypatch):
    """Both decide about the same step at the same time; the slower one finds it taken."""
    graph = RUNS[200]
    name = ask(pair[0], "/v1/runs", **head_of(graph))[1]["run"]
    first, second = steps_of(graph)[:2]
    slow = pair[0].journal.add_step
    sent = {"run": name, "claim": 0}

    def meanwhile(*given):
        assert ask(pair[1], "/v1/runs/steps", **sent, **first)[0] == 200
        monkeypatch.undo()
        return slow(*given)

    monkeypatch.setattr(pair[0].journal, "add_step", meanwhile)
    assert ask(pair[0], "/v1/runs/steps", **sent, **second)[0] == 409
    sent["claim"] = 1
    monkeypatch.setattr(pair[0].journal, "add_step", meanwhile)
    first, keep = second, fitted.predict([graph])[0].tolist()
    status, reply = ask(pair[0], "/v1/runs/steps", **sent, **second)
    assert (status, reply["keep"]) == (200, keep[1])


def test_a_run_is_not_closed_over_a_step_that_comes_meanwhile(pair, monkeypatch):
    graph = RUNS[200]
    name = ask(pair[0], "/v1/runs", **head_of(graph))[1]["run"]
    close = pair[0].journal.close_run

    def meanwhile(entry):
        step = steps_of(graph)[0]
        assert ask(pair[1], "/v1/runs/steps", run=name, claim=0, **step)[0] == 200
        monkeypatch.undo()
        return close(entry)

    monkeypatch.setattr(pair[0].journal, "close_run", meanwhile)
    assert ask(pair[0], "/v1/runs/close", run=name)[0] == 409
    assert len(ask(pair[0], "/v1/runs/close", run=name)[1]["mask"]) == 1


def test_labels_of_both_are_one_stream(pair, fitted, tmp_path):
    """A question whose answers were judged in two processes counted twice."""
    lost = []
    for i in range(200, 260):
        graph = RUNS[i].replace(problem=f"Question {i // 2}?")
        _, reply, _ = call(pair[i % 2], "/v1/filter", body_of(graph))
        labels = [int(v) for v in Y[i]]
        said = {"id": reply["id"], "labels": labels, "sampling": "random"}
        for app in (pair[(i + 1) % 2], pair[0]):
            assert ask(app, "/v1/labels", **said)[0] == 200
        if i % 2 == 0:
            lost.append(bool((np.array(reply["mask"]) & (Y[i] != 1)).any()))
    expected = CoverageMonitor(fitted).update_losses(lost).summary()
    pair.append(create_app(fitted, folder=tmp_path))
    seen = [numbers_in(call(app, "/metrics", method="GET")[1]) for app in pair]
    assert seen[0] == seen[1] == seen[2]
    judged = seen[0]['answers_judged_total{filter="default"}']
    assert float(judged) == len(lost) == 30
    wealth = seen[0]['monitor_wealth{filter="default"}']
    assert float(wealth) == pytest.approx(expected["wealth"])


def test_processes_that_begin_together_have_one_key(fitted, tmp_path, monkeypatch):
    import os

    from skdcf.apps.service import _questions

    link, keys = os.link, []

    def later(*paths):  # another process is faster
        monkeypatch.setattr(os, "link", link)
        keys.append(_questions.read_key(None, tmp_path))
        return link(*paths)

    monkeypatch.setattr(os, "link", later)
    assert [_questions.read_key(None, tmp_path)] == keys and len(keys[0]) == 32
    assert [path.name for path in tmp_path.iterdir()] == ["journal.key"]


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize(("n_runs", "n_labels"), [(20, 100)])
def test_kill_9_of_one_of_two_loses_nothing(fitted, tmp_path, n_runs, n_labels):
    path = skdcf.save(fitted, tmp_path / "m.skops")
    folder = tmp_path / "journal"
    rng = np.random.default_rng(0)
    masks = fitted.predict(RUNS[200:])
    n_rounds = n_runs + n_labels
    kinds = rng.permutation(np.repeat(["run", "label"], [n_runs, n_labels]))
    options = path, "--folder", folder
    pair = [Serving(*options), Serving(*options)]

    def asked(route, **record):
        """Ask in turns; what had no reply is sent again to the other process."""
        pair.reverse()
        for serving in pair:
            try:
                status, reply = serving.ask("POST", route, record)
            except (OSError, http.client.HTTPException):
                continue
            assert status == 200, (route, status, reply)
            return json.loads(reply)
        raise AssertionError("no process answers")

    try:
        saved, killed = {}, None
        for n, kind in enumerate(kinds):
            i = int(rng.integers(200))
            graph = RUNS[200 + i]
            if n == n_rounds * 3 // 4:
                killed.__exit__()
                pair[pair.index(killed)] = Serving(*options)
            if kind == "run":
                name = asked("/v1/runs", **head_of(graph))["run"]
                keeps = [
                    asked("/v1/runs/steps", run=name, claim=v, **step)["keep"]
                    for v, step in enumerate(steps_of(graph))
                ]
                assert keeps == masks[i].tolist()
                assert asked("/v1/runs/close", run=name)["mask"] == keeps
            else:
                name = asked("/v1/filter", **json.loads(body_of(graph)))["id"]
                labels = [int(v) for v in Y[200 + i]]
                said = {"id": name, "labels": labels, "sampling": "random"}
                if n >= n_rounds // 2 and killed is None:  # while it takes in labels
                    killed = pair[1]
                    delay = rng.uniform(0, 0.01)
                    threading.Timer(delay, killed.process.kill).start()
                asked("/v1/labels", **said)
                saved[name] = labels
        seen = [numbers_in(s.ask("GET", "/metrics")[1].decode()) for s in pair]
    finally:
        for serving in pair:
            serving.__exit__()
    assert seen[0] == seen[1]
    found = {name: json.loads(y) for name, y in rows_of(folder, "id, labels") if y}
    assert found == saved and len(saved) == n_labels
    assert float(seen[0]['answers_judged_total{filter="m"}']) == n_labels
    assert seen[0]["runs"] == "0.0"
