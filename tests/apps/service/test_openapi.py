"""The description of the service against its routes, and against what they really say."""

import json
import re

import pytest

pytest.importorskip("starlette", reason="starlette is not installed")

from openapi_checker import fault_of, fault_of_reply, resolved
from serving import GRAPHS, TOKEN, Y, as_lines, body_of, call, lines_of

import skdcf
from skdcf.apps.service import create_app
from skdcf.datasets.records import jsonl_schema


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    filter = skdcf.HardCF("frequency-score", alpha=0.2, online=True)
    folder = tmp_path_factory.mktemp("journal")
    return create_app(filter.fit(GRAPHS[:200], Y[:200]), folder=folder)


@pytest.fixture(scope="module")
def description(app):
    status, described, _ = call(app, "/openapi.json", method="GET")
    assert status == 200
    return described


def test_the_checker_sees_faults(description):
    schema = description["components"]["schemas"]["Filtered"]
    good = {
        "id": "a",
        "alpha": 0.1,
        "mask": [True],
        "text": None,
        "text_promise": "none",
    }
    good |= {"origin": "unknown", "reasons": {}}
    assert fault_of(description, schema, good) is None
    for bad in (
        {"mask": [1]},
        {"origin": "guessed"},
        {"alpha": "0.1"},
        {"other": 1},
        {"reasons": {"0": 3}},
    ):
        assert fault_of(description, schema, good | bad)
    assert fault_of(description, schema, {"id": "a"}) == " lacks alpha"
    alpha = {"$ref": "#/components/schemas/Alpha"}
    assert fault_of(description, alpha, 0) and not fault_of(description, alpha, None)


def test_all_routes_are_described_and_no_others(app, description):
    described = {
        (method.upper(), path)
        for path, methods in description["paths"].items()
        for method in methods
    }
    assert described == set(app._routes)


def test_every_reference_leads_somewhere(description):
    names = re.findall(r'"\$ref": "(.*?)"', json.dumps(description))
    assert names
    for name in names:
        assert resolved(description, {"$ref": name})
    assert description["info"]["version"] == skdcf.__version__
    assert description["components"]["schemas"]["Problem"] == jsonl_schema()
    operations = [o for path in description["paths"].values() for o in path.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(set(names)) == len(names)


def test_replies_are_those_that_are_described(app, description):
    replies = {}
    for path, methods in description["paths"].items():
        for method in methods:
            if method == "get":
                replies[path, "GET"] = [call(app, path, method="GET")]
            else:
                bad = (b"{", b"{}", b'{"alpha": 2}')
                replies[path, "POST"] = [call(app, path, content) for content in bad]
    whole = call(app, "/v1/filter", body_of(GRAPHS[200]))
    replies["/v1/filter", "POST"] += [whole]
    replies["/v1/filter", "POST"] += [
        call(
            app,
            "/v1/filter",
            as_lines(lines_of(GRAPHS[200])),
            content_type="application/x-ndjson",
        )
    ]
    labels = {"id": whole[1]["id"], "labels": [1] * len(whole[1]["mask"])}
    replies["/v1/labels", "POST"] += [
        call(app, "/v1/labels", json.dumps(labels).encode())
    ]
    head, claim, *_ = lines_of(GRAPHS[200])
    opened = call(app, "/v1/runs", json.dumps(head).encode())
    replies["/v1/runs", "POST"].append(opened)
    step = json.dumps({**opened[1], "claim": 0, **claim}).encode()
    for path, content in (("steps", step), ("close", json.dumps(opened[1]).encode())):
        path = f"/v1/runs/{path}"
        replies[path, "POST"].append(call(app, path, content))
    for (path, method), some in replies.items():
        for reply in some:
            assert fault_of_reply(description, path, method, reply) is None
        # Here no model is asked; its replies are compared where one is.
        expected = 404 if path == "/v1/answer" else 200
        assert expected in [status for status, *_ in some], path
    last = json.loads(replies["/v1/filter", "POST"][-1][1].splitlines()[-1])
    schema = description["components"]["schemas"]["Filtered"]
    assert fault_of(description, schema, last) == " lacks reasons"


def test_requests_that_are_described_are_taken(app, description):
    """Examples are requests of the service; what they are about has to fit the filter."""
    operation = description["paths"]["/v1/filter"]["post"]
    example = operation["requestBody"]["content"]["application/json"]["example"]
    names = GRAPHS[0].feature_names
    example |= {"features": [[1.0] * len(names)] * 2, "feature_names": list(names)}
    status, reply, _ = call(app, "/v1/filter", json.dumps(example).encode())
    assert status == 200 and len(reply["mask"]) == 2


def test_who_may_read_it_and_what_needs_no_token(app, description):
    behind = create_app(app.served["default"].filter, token=TOKEN)
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            status, *_ = call(behind, path, b"{}", method=method.upper())
            is_open = operation.get("security") == [{}]
            assert (status == 401) != is_open
