"""The description of the service, and what holds for the requests and replies of all routes."""

import json
import logging

import pytest

pytest.importorskip("fastapi", reason="fastapi is not installed")

from serving import GOOD, GRAPHS, TOKEN, Y, as_lines, call, lines_of

import skdcf
from skdcf.apps.service import create_app

ROUTES = {
    "/v1/filter": "POST",
    "/v1/stream": "POST",
    "/v1/labels": "POST",
    "/v1/status": "GET",
    "/health": "GET",
}


@pytest.fixture(scope="module")
def fitted():
    filter = skdcf.HardCF("frequency-score", alpha=0.2, online=True)
    return filter.fit(GRAPHS[:200], Y[:200])


@pytest.fixture(scope="module")
def app(fitted, tmp_path_factory):
    return create_app(fitted, folder=tmp_path_factory.mktemp("journal"))


@pytest.fixture(scope="module")
def description(app):
    status, described, _ = call(app, "/openapi.json", method="GET")
    assert status == 200
    return described


def kind_of(path):
    return "application/x-ndjson" if path == "/v1/stream" else "application/json"


def test_all_routes_are_described_and_no_others(description):
    described = {
        path: method.upper()
        for path, methods in description["paths"].items()
        for method in methods
    }
    assert described == ROUTES
    assert description["info"]["version"] == skdcf.__version__
    operations = [o for path in description["paths"].values() for o in path.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(set(names)) == len(names) and all(map(str.isidentifier, names))


def test_models_are_flat_and_each_key_is_described(description):
    """No request or reply is pieced together of others, so that programs can make clients."""
    for name, model in description["components"]["schemas"].items():
        assert model["type"] == "object" and not model.keys() & {"allOf", "anyOf"}, name
        assert model["description"], name
    for name in ("FilterRequest", "Filtered", "LabelRequest"):
        keys = description["components"]["schemas"][name]["properties"]
        assert all("description" in value for value in keys.values()), name


@pytest.mark.parametrize("path", [path for path in ROUTES if ROUTES[path] == "POST"])
@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b'{"alpha": NaN}', b'{"alpha": 2, "alpha": 3}'],
)
def test_what_is_no_object_is_refused_by_every_route(app, path, content):
    status, reply, head = call(app, path, content, content_type=kind_of(path))
    assert status == 400 and list(reply) == ["error"]
    assert head["content-type"] == "application/json"


def test_an_example_of_the_description_is_taken(app, description):
    example = description["components"]["schemas"]["FilterRequest"]["example"]
    names = GRAPHS[0].feature_names
    example |= {"features": [[1.0] * len(names)] * 2, "feature_names": list(names)}
    status, reply, _ = call(app, "/v1/filter", json.dumps(example).encode())
    assert status == 200 and len(reply["mask"]) == 2


@pytest.mark.parametrize("zeros", ["1" + 400 * "0", "0." + 400 * "0" + "1", "1e400"])
def test_numbers_that_no_float_holds_are_refused(app, zeros):
    """An alpha of 400 zeros was a fault of the service, 500."""
    content = GOOD[:-1] + b', "alpha": %s}' % zeros.encode()
    status, reply, _ = call(app, "/v1/filter", content)
    assert status == 400 and '"alpha"' in reply["error"]
    record = json.loads(GOOD)
    record["features"][0][0] = "HERE"
    content = json.dumps(record).encode().replace(b'"HERE"', b"1" + 400 * b"0")
    status, reply, _ = call(app, "/v1/filter", content)
    assert status == 400 and '"features.0.0"' in reply["error"]


def test_a_key_that_is_given_twice_is_refused_wherever_it_stands(app):
    """Of two labels of one answer the last one counted."""
    for content, key in (
        (GOOD[:-1] + b', "claims": ["a"]}', "claims"),
        (b'{"claims": ["a"], "metadata": {"x": 1, "y": 2, "x": 3}}', "x"),
        (b'{"id": "a", "labels": [1], "labels": [0]}', "labels"),
    ):
        path = "/v1/labels" if key == "labels" else "/v1/filter"
        status, reply, _ = call(app, path, content)
        assert status == 400 and f"{key!r} must not occur twice" in reply["error"]


def test_who_may_read_it_and_what_needs_no_token(fitted, description):
    behind = create_app(fitted, token=TOKEN)
    for path, method in ROUTES.items():
        status, *_ = call(behind, path, b"{}", method, content_type=kind_of(path))
        assert (status == 401) != (path == "/health")
    for path in ("/openapi.json", "/docs"):
        assert call(behind, path, method="GET")[0] == 200
    described = call(behind, "/openapi.json", method="GET")[1]
    assert "security" in described["paths"]["/v1/filter"]["post"]
    assert "security" not in description["paths"]["/v1/filter"]["post"]


def test_other_methods_are_told_which_one_there_is(app):
    for path, method in ROUTES.items():
        for other in {"GET", "POST", "PUT", "DELETE", "TRACE"} - {method}:
            status, reply, head = call(app, path, method=other)
            assert status == 405 and list(reply) == ["error"]
            assert head["allow"] == method
    assert call(app, "/health", method="HEAD")[0] == 200


def test_a_compressed_body_is_refused(app):
    coded = {"content_encoding": "gzip"}
    status, reply, _ = call(app, "/v1/filter", GOOD, **coded)
    assert status == 415 and "'gzip'" in reply["error"]
    assert call(app, "/v1/filter", GOOD, content_encoding="identity")[0] == 200


def test_pages_of_named_origins_are_answered(fitted):
    page = {"origin": "https://app.example"}
    asks = {"access_control_request_method": "POST"}
    asks["access_control_request_headers"] = "authorization,content-type"
    for app in (create_app(fitted), create_app(fitted, cors=["https://other.example"])):
        assert call(app, "/v1/filter", GOOD, **page)[0] == 403
        status, _, head = call(app, "/v1/filter", method="OPTIONS", **page, **asks)
        assert status >= 400 and "access-control-allow-origin" not in head
    app = create_app(fitted, cors=["https://app.example"], token=TOKEN)
    status, _, head = call(app, "/v1/filter", method="OPTIONS", **page, **asks)
    assert status == 200
    assert head["access-control-allow-origin"] == "https://app.example"
    assert call(app, "/v1/filter", GOOD, **page)[0] == 401
    token = {"authorization": f"Bearer {TOKEN}"}
    status, _, head = call(app, "/v1/filter", GOOD, **page, **token)
    assert status == 200
    assert head["access-control-allow-origin"] == "https://app.example"
    own = {"host": "127.0.0.1:8000", "origin": "http://127.0.0.1:8000"}
    assert call(create_app(fitted), "/v1/filter", GOOD, **own)[0] == 200


def test_each_reply_has_the_request_id_of_the_log(app, caplog):
    caplog.set_level(logging.INFO, logger="skdcf.apps.service")
    sent = []
    for given in ("from-a-proxy.1", "two words", "x" * 65, "", "bad\x7f"):
        for path, content in (("/v1/filter", GOOD), ("/v1/filter", b"{"), ("/no", b"")):
            head = call(app, path, content, x_request_id=given)[2]
            sent.append(head["x-request-id"])
        assert (sent[-1] == given) == (given == "from-a-proxy.1")
    assert [record.args["request"] for record in caplog.records] == sent
    assert len(set(sent)) == 13


def test_a_stream_has_a_route_of_its_own(app):
    lines = as_lines(lines_of(GRAPHS[200]))
    kind = {"content_type": "application/x-ndjson"}
    assert call(app, "/v1/filter", lines, **kind)[0] == 415
    assert call(app, "/v1/stream", lines)[0] == 415
    assert call(app, "/v1/stream", lines, **kind)[0] == 200
