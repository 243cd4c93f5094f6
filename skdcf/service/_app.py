"""The service as an ASGI application: what it answers, and whom."""

from __future__ import annotations

import hmac
import io
import json
import logging
import secrets
import threading
from collections import Counter
from functools import partial
from typing import Any

import numpy as np

from ..datasets import iter_jsonl
from ..graphs import answer_text
from ..inspection import explain
from ..metrics import filter_in
from ._journal import Journal

_LONGEST = 8 * 2**20  # bytes of a request
_WAITING = 4000  # requests; one more is asked to come again later
_HERE = ("127.0.0.1", "localhost", "[::1]")
_LOG = logging.getLogger("skdcf.service")


def create_app(filter: Any, *, token: str | None = None, folder: Any = None) -> Any:
    """Make an ASGI application that filters answers.

    Parameters
    ----------
    filter : fitted filter
    token : str, optional
        Secret that each request has to send as ``Authorization: Bearer TOKEN``. Without
        one, only requests to this machine's own names are answered.
    folder : path-like, optional
        Where the journal stands, which holds ids, masks and labels, and no text. None
        forgets everything when the process ends.

    Returns
    -------
    starlette.applications.Starlette
        It works with and without a lifespan.

    Raises
    ------
    ImportError
        Without the extra ``serve``.
    ValueError
        If the token is empty, or holds characters that no header can.

    Notes
    -----
    ``POST /v1/filter`` takes one problem as a line of JSON Lines has it (``claims``,
    ``parents`` or ``edges``, ``question``, ``context`` and so on), and ``alpha`` if it is
    not the filter's own. ``POST /v1/labels`` takes ``id``, ``labels`` and ``drawn``, which is
    ``"random"`` where the answer was chosen blindly. ``GET /health`` and ``GET /metrics``
    are for those who run it.
    """
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.routing import Route

    if token is not None and not (token.isascii() and token.isprintable() and token):
        raise ValueError("the token must be a text of printable ASCII characters")
    service = _Service(filter, token, folder)
    routes = [
        Route(
            "/v1/filter", partial(service.answer, service.filter_one), methods=["POST"]
        ),
        Route("/v1/labels", partial(service.answer, service.label), methods=["POST"]),
        Route("/health", partial(service.answer, service.health), methods=["GET"]),
        Route("/metrics", partial(service.answer, service.metrics), methods=["GET"]),
    ]
    refuse = {
        HTTPException: lambda request, error: _json(error.status_code, error.detail)
    }
    app = Starlette(routes=routes, exception_handlers=refuse)
    app.state.service = service
    return app


class _RefusedError(Exception):
    """What is answered instead: a status and a sentence."""


class _Service:
    def __init__(self, filter, token, folder):
        self.filter, self.token = filter, token
        self.journal = Journal(filter, folder)
        self.waiting, self.counts, self.calibrated = 0, Counter(), None
        self.lock = threading.Lock()

    async def answer(self, work, request):
        """Admit a request, do the work in a thread, and answer with JSON."""
        from starlette.concurrency import run_in_threadpool
        from starlette.responses import PlainTextResponse

        route = request.url.path
        self.waiting += 1
        try:
            self._admit(request)
            body = await _body(request) if request.method == "POST" else None
            result = await run_in_threadpool(work, body)
            status, reply = 200, result
        except _RefusedError as error:
            status, reply = error.args[0], error.args[1]
        except ValueError as error:
            status, reply = 400, str(error)
        except Exception as error:  # its message may hold texts of users
            _LOG.error("%s failed: %s", route, type(error).__name__)
            status, reply = 500, "the service failed; its log says where"
        finally:
            self.waiting -= 1
        self.counts[route, status] += 1
        if status == 200 and isinstance(reply, str):
            return PlainTextResponse(reply)
        return _json(status, reply)

    def _admit(self, request):
        if self.waiting > _WAITING:
            raise _RefusedError(503, "too many requests are waiting: come again later")
        if "origin" in request.headers:
            raise _RefusedError(403, "pages of a browser are not answered")
        if self.token is None:
            host = request.headers.get("host", "").rpartition(":")
            if (host[0] or host[2]) not in _HERE:
                raise _RefusedError(
                    403, "without a token only this machine is answered"
                )
        elif request.url.path != "/health":
            given = request.headers.get("authorization", "").encode("utf-8")
            if not hmac.compare_digest(given, f"Bearer {self.token}".encode()):
                raise _RefusedError(401, "the token is missing or wrong")

    def filter_one(self, record):
        """What is kept of one answer, why the rest was dropped, and an id for labels."""
        alpha = record.pop("alpha", None)
        if alpha is not None and type(alpha) not in (int, float):
            raise ValueError("alpha must be a number")
        if record.pop("stream", False):
            raise ValueError(
                "answers are not streamed: the filter looks at whole answers. Leave "
                '"stream" out'
            )
        line = json.dumps(record).encode("ascii")
        graph = next(iter_jsonl(io.BytesIO(line))).graph
        explained = explain(self.filter, graph, alpha=alpha)
        kept = np.asarray(explained.kept, dtype=bool)
        name = secrets.token_hex(12)
        self.journal.add(name, kept, explained.alpha)
        with self.lock:  # several threads count
            self.counts.update(kept=int(kept.sum()), dropped=int((~kept).sum()))
        return {
            "id": name,
            "alpha": explained.alpha,
            "mask": kept.tolist(),
            "text": answer_text(graph.subgraph(kept)) if graph.claims else None,
            "text_promise": "claims",
            "reasons": {str(v): reason for v, reason in explained.reasons.items()},
        }

    def label(self, record):
        """Take the labels of an answer."""
        name, labels = record.get("id"), record.get("labels")
        if not isinstance(name, str) or not isinstance(labels, list):
            raise ValueError('"id" must be a text and "labels" a list')
        labels = [int(v) if isinstance(v, bool) else v for v in labels]
        if not all(type(v) is int and v in (-1, 0, 1) for v in labels):
            raise ValueError("labels are 1 or true, 0 or false, and -1 where unknown")
        drawn = record.get("drawn")
        if drawn not in (None, "random"):
            raise ValueError('"drawn" is "random" or left out')
        status, said = self.journal.label(name, labels, drawn == "random")
        if status != 200:
            raise _RefusedError(status, said)
        return {"said": said, "alarm": self.journal.monitor.alarm}

    def health(self, _):
        """What runs here."""
        filter, journal = filter_in(self.filter), self.journal
        return {
            "status": "ok",
            "alpha": journal.alpha,
            "n_calibration": journal.n_calibration,
            "calibrated": self.calibrated,
            "promise": filter.calibration_.describe(journal.alpha),
            "origin": getattr(filter, "origin_", None),
            "filter": journal.digest,
            "alarm": journal.monitor.alarm,
        }

    def metrics(self, _):
        """Counters and the state of the monitor, in the text format of Prometheus."""
        found = self.journal.monitor.summary()
        requests = [
            (f'skdcf_requests_total{{route="{key[0]}",status="{key[1]}"}}', n)
            for key, n in sorted(self.counts.items(), key=str)
            if isinstance(key, tuple) and key[0] in _ROUTES
        ]
        rows = [
            *requests,
            *((f'skdcf_claims_total{{was="{k}"}}', self.counts[k]) for k in _CLAIMS),
            ("skdcf_waiting", self.waiting),
            ("skdcf_alpha", self.journal.alpha),
            ("skdcf_answers_judged_total", found["n_problems"]),
            ("skdcf_answers_with_error_total", found["n_errors"]),
            ("skdcf_monitor_wealth", found["wealth"]),
            ("skdcf_monitor_alarm", int(found["alarm"])),
        ]
        return "".join(f"{name} {value}\n" for name, value in rows)


_ROUTES = ("/v1/filter", "/v1/labels", "/health", "/metrics")
_CLAIMS = ("kept", "dropped")


async def _body(request):
    """The object that a request holds, read no further than the bound."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise _RefusedError(415, "the content type must be application/json")
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > _LONGEST:
            raise _RefusedError(413, f"a request has at most {_LONGEST} bytes")
    try:
        record = json.loads(content)
    except (ValueError, RecursionError):
        raise _RefusedError(400, "the request is no JSON") from None
    if not isinstance(record, dict):
        raise _RefusedError(400, "the request must be an object")
    return record


def _json(status, reply):
    from starlette.responses import JSONResponse

    content = reply if status == 200 else {"error": reply}
    headers = {"Retry-After": "1"} if status == 503 else {}
    headers |= {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    plain = json.loads(json.dumps(content, default=str))
    return JSONResponse(plain, status, headers)
