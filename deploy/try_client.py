"""Test the service with a generated client and with schemathesis.

openapi-python-client generates the client, which calls every route. Schemathesis generates
requests from the description of the service and compares each reply with the description.
"""

import importlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import skdcf
from skdcf.datasets import make_reasoning_graphs

BIN = Path(sys.executable).parent
GRAPHS, LABELS = make_reasoning_graphs(220, random_state=0, return_X_y=True)
RUNS = [
    graph.replace(edges=[(v - 1, v) for v in range(1, graph.n_claims)])
    for graph in GRAPHS
]
CONFIG = """
project_name_override: skdcf-client
package_name_override: skdcf_client
content_type_overrides:
  application/x-ndjson: application/octet-stream
"""
# Some conditions cannot be expressed in a schema, for example that the positions of parents are
# positions of claims. Violations lead to the status 400. The body of a stream is text, so values
# of other types can be valid lines.
SCHEMATHESIS = """
[checks.positive_data_acceptance]
expected-statuses = ["2xx", 400, 404, 409, 501]

[[operations]]
include-path = "/v1/stream"
checks.negative_data_rejection.enabled = false
"""


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        filter = skdcf.HardCF("frequency-score", alpha=0.2, online=True)
        skdcf.save(filter.fit(RUNS[:200], LABELS[:200]), folder / "filter.skops")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [BIN / "skdcf", "serve", folder / "filter.skops"]
        command += ["--port", str(port), "--folder", folder / "journal"]
        service = subprocess.Popen(command)
        try:
            url = f"http://127.0.0.1:{port}"
            wait_for(f"{url}/ready", service)
            call_every_route(url, generate_client(url, folder))
            send_requests_of_all_kinds(url, folder)
        finally:
            service.terminate()
            service.wait()


def wait_for(url, service):
    for _ in range(3000):
        try:
            return urllib.request.urlopen(url, timeout=5)
        except OSError:
            assert service.poll() is None, "the service has ended"
            time.sleep(0.1)
    raise TimeoutError(url)


def generate_client(url, folder):
    """Generate a client package, and return the routes of the service."""
    (folder / "config.yaml").write_text(CONFIG)
    command = [
        BIN / "openapi-python-client",
        "generate",
        "--url",
        f"{url}/openapi.json",
    ]
    command += ["--config", folder / "config.yaml", "--fail-on-warning"]
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(command, cwd=folder, check=True, env={**os.environ, "PATH": path})
    sys.path.insert(0, str(folder / "skdcf-client"))
    with urllib.request.urlopen(f"{url}/openapi.json") as reply:
        return json.load(reply)["paths"]


def call_every_route(url, paths):
    """Call every route with the client, and compare the results with those of the filter."""
    client = importlib.import_module("skdcf_client").Client(base_url=url)
    models = importlib.import_module("skdcf_client.models")
    asked = []

    def ask(name, body=None):
        asked.append(name)
        route = importlib.import_module(f"skdcf_client.api.default.{name}")
        given = {} if body is None else {"body": body}
        reply = route.sync_detailed(client=client, **given)
        return int(reply.status_code), reply.parsed, reply.content

    graph = RUNS[200]
    record = {
        "question": "?",
        "claims": [f"claim {v}" for v in range(graph.n_claims)],
        "features": graph.features.tolist(),
        "feature_names": list(graph.feature_names),
        "edges": graph.edges.tolist(),
    }
    filter_request = models.FilterRequest.from_dict(record)
    status, kept, _ = ask("filter_answer", filter_request)
    assert status == 200 and len(kept.mask) == graph.n_claims
    said = {"id": kept.id, "labels": [1] * len(kept.mask), "sampling": "random"}
    status, labelled, _ = ask("label_answer", models.LabelRequest.from_dict(said))
    assert status == 200 and labelled.said == "saved" and not labelled.alarm

    head = {"question": "?", "feature_names": list(graph.feature_names)}
    steps = [
        {"text": text, "features": row}
        for text, row in zip(record["claims"], record["features"], strict=True)
    ]
    lines = [head] + [
        step | {"parents": [v - 1] if v else []} for v, step in enumerate(steps)
    ]
    body = io_file("".join(json.dumps(line) + "\n" for line in lines))
    status, _, content = ask("stream_answer", body)
    assert status == 200
    assert json.loads(content.splitlines()[-1])["mask"] == kept.mask

    status, opened, _ = ask("open_run", models.RunRequest.from_dict(head))
    assert status == 200
    for v, step in enumerate(steps):
        step = models.StepRequest.from_dict(step | {"run": opened.run, "claim": v})
        status, decided, _ = ask("add_step", step)
        assert status == 200 and decided.keep == kept.mask[v]
    status, closed, _ = ask("close_run", models.CloseRequest(run=opened.run))
    assert status == 200 and closed.mask == kept.mask

    question = models.AnswerRequest(question="What is 2 + 2?")
    status, refusal, _ = ask("answer_question", question)
    assert status == 404 and "--base-url" in refusal.error
    for name in ("health", "ready", "metrics"):
        assert ask(name)[0] == 200
    assert len(set(asked)) == len(paths)
    print(f"the generated client called all {len(paths)} routes")


def io_file(text):
    from io import BytesIO

    types = importlib.import_module("skdcf_client.types")
    return types.File(payload=BytesIO(text.encode()))


# Schemathesis serialises JSON by default. This hook sends lines unchanged.
HOOKS = """
import schemathesis

@schemathesis.serializer("application/x-ndjson")
def write_lines(context, value):
    return value if isinstance(value, bytes) else str(value).encode()
"""


def send_requests_of_all_kinds(url, folder):
    (folder / "schemathesis.toml").write_text(SCHEMATHESIS)
    (folder / "hooks.py").write_text(HOOKS)
    command = [BIN / "schemathesis", "--config-file", folder / "schemathesis.toml"]
    command += ["run", f"{url}/openapi.json", "--max-examples", "60", "--seed", "0"]
    environment = os.environ | {
        "SCHEMATHESIS_HOOKS": "hooks",
        "PYTHONPATH": str(folder),
    }
    subprocess.run(command, check=True, cwd=folder, env=environment)


if __name__ == "__main__":
    main()
