"""Two processes that serve one folder: one truth, whichever of them is asked."""

import http.client
import json
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
    seen = [call(app, "/v1/status", method="GET")[1] for app in pair]
    assert seen[0] == seen[1] == seen[2]
    assert seen[0]["n_judged"] == len(lost) == 30
    assert seen[0]["wealth"] == pytest.approx(expected["wealth"])


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
def test_kill_9_of_one_of_two_loses_nothing(fitted, tmp_path):
    path = skdcf.save(fitted, tmp_path / "m.skops")
    folder = tmp_path / "journal"
    rng = np.random.default_rng(0)
    n_labels = 100
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
        for n in range(n_labels):
            i = int(rng.integers(200))
            graph = RUNS[200 + i]
            if n == n_labels * 3 // 4:
                killed.__exit__()
                pair[pair.index(killed)] = Serving(*options)
            name = asked("/v1/filter", **json.loads(body_of(graph)))["id"]
            labels = [int(v) for v in Y[200 + i]]
            said = {"id": name, "labels": labels, "sampling": "random"}
            if n >= n_labels // 2 and killed is None:  # while it takes in labels
                killed = pair[1]
                delay = rng.uniform(0, 0.01)
                threading.Timer(delay, killed.process.kill).start()
            asked("/v1/labels", **said)
            saved[name] = labels
        seen = [json.loads(s.ask("GET", "/v1/status")[1]) for s in pair]
    finally:
        for serving in pair:
            serving.__exit__()
    assert seen[0]["wealth"] == seen[1]["wealth"]
    found = {name: json.loads(y) for name, y in rows_of(folder, "id, labels") if y}
    assert found == saved and len(saved) == n_labels
    assert seen[0]["n_judged"] == seen[1]["n_judged"] == n_labels
