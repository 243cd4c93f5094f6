"""The service as an ASGI application: what it answers, and whom."""

from __future__ import annotations

import asyncio
import hmac
import io
import json
import logging
import secrets
import threading
from collections import Counter
from collections.abc import AsyncIterator
from functools import partial
from itertools import compress
from typing import Any

import numpy as np

from ..datasets.jsonl import iter_jsonl
from ..inspection import explain
from ._journal import Journal

_LONGEST = 8 * 2**20  # bytes of a request
_IDLE = 600  # seconds between two claims of an answer that is being written
_LINES = "application/x-ndjson"
_WAITING = 4000  # requests; one more is asked to come again later
_HERE = ("127.0.0.1", "localhost", "[::1]")
_ROUTES = dict.fromkeys(("/v1/filter", "/v1/labels"), "POST")
_ROUTES |= dict.fromkeys(("/health", "/metrics"), "GET")
_LOG = logging.getLogger("skdcf.service")


def create_app(filter: Any, *, token: str | None = None, folder: Any = None) -> Any:
    """Make an ASGI application that filters answers.

    Parameters
    ----------
    filter : fitted filter
        Decides about the claims; with ``online=True`` also as they come in.
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

    A filter with ``online=True`` also decides while an answer is written: with the content
    type ``application/x-ndjson`` the first line of the request is what is known
    beforehand (``question``, ``context``, ``feature_names``, ``alpha``), and each further
    one a claim (``text``, ``parents``, ``features``). The line with its decision is sent
    before the next claim is read, and at the end one with id, mask and text.
    """
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.routing import Route

    if token is not None and not (token.isascii() and token.isprintable() and token):
        raise ValueError("the token must be a text of printable ASCII characters")
    service = _Service(filter, token, folder)
    works = service.filter_one, service.label, service.health, service.metrics
    routes = [
        Route(path, partial(service.answer, work), methods=[method])
        for (path, method), work in zip(_ROUTES.items(), works, strict=True)
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
            if work == self.filter_one and _kind(request) == _LINES:
                return await self._stream(request)
            body = await _body(request) if request.method == "POST" else None
            status, reply = 200, await run_in_threadpool(work, body)
        except Exception as error:
            status, reply = _fault(route, error)
        finally:
            self.waiting -= 1
        self.counts[route, status] += 1
        if status == 200 and isinstance(reply, str):
            return PlainTextResponse(reply)
        return _json(status, reply)

    async def _stream(self, request):
        """A response that decides about each claim when its line has come in."""
        decided = self._decide(_lines(request))
        first = await anext(decided)  # what is wrong so far has a status of its own

        async def respond(scope, receive, send):
            async def write(line):
                body = json.dumps(line).encode() + b"\n"
                part = {"type": "http.response.body", "body": body, "more_body": True}
                await send(part)

            kind, status = [(b"content-type", _LINES.encode())], 200
            start = {"type": "http.response.start", "status": 200, "headers": kind}
            self.waiting += 1
            try:
                await send(start)
                await write(first)
                async for line in decided:
                    await write(line)
            except Exception as error:
                status, said = _fault(request.url.path, error)
                await write({"error": said})
            finally:
                self.waiting -= 1
                self.counts[request.url.path, status] += 1
            await send({"type": "http.response.body", "body": b""})

        return respond

    async def _decide(self, lines: AsyncIterator[dict]) -> AsyncIterator[dict]:
        """A decision for each claim, and at the end what is kept of all."""
        from starlette.concurrency import run_in_threadpool

        head = await anext(lines, {})
        alpha, filter = _take_alpha(head), self.filter
        names = head.pop("feature_names", None)
        known = _graph_of(head | {"claims": []})
        parts = "problem", "context", "alternatives", "id", "metadata"
        about = {name: getattr(known, name) for name in parts}
        coming, mask, texts = [], [], []
        decisions = filter.stream(
            iter(coming.pop, None), alpha, feature_names=names, **about
        )
        while (claim := await _next(lines)) is not None:
            coming.append(claim)
            mask.append(await run_in_threadpool(next, decisions))
            texts.append(claim.get("text"))
            yield {"claim": len(mask) - 1, "keep": mask[-1]}
        level = filter.calibration_.guarantee.level(alpha, filter.alpha)
        claims = texts if mask and texts[0] is not None else None
        yield await run_in_threadpool(self._told, claims, np.array(mask, bool), level)

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
        alpha = _take_alpha(record)
        graph = _graph_of(record)
        explained = explain(self.filter, graph, alpha=alpha)
        kept = np.asarray(explained.kept, dtype=bool)
        reasons = {str(v): reason for v, reason in explained.reasons.items()}
        return self._told(graph.claims, kept, explained.alpha) | {"reasons": reasons}

    def _told(self, claims, kept, alpha):
        """Mask, text and id of an answer, once the journal holds them."""
        name = secrets.token_hex(12)
        self.journal.add(name, kept, alpha)
        with self.lock:  # several threads count
            self.counts.update(kept=int(kept.sum()), dropped=int((~kept).sum()))
        return {
            "id": name,
            "alpha": alpha,
            "mask": kept.tolist(),
            "text": "\n".join(compress(claims, kept)) if claims else None,
            "text_promise": "claims",
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
        filter, journal = self.filter, self.journal
        return {
            "status": "ok",
            "alpha": journal.alpha,
            "n_calibration": filter.n_calibration_,
            "calibrated": self.calibrated,
            "promise": filter.describe(),
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
            ('skdcf_claims_total{was="kept"}', self.counts["kept"]),
            ('skdcf_claims_total{was="dropped"}', self.counts["dropped"]),
            ("skdcf_waiting", self.waiting),
            ("skdcf_alpha", self.journal.alpha),
            ("skdcf_answers_judged_total", found["n_problems"]),
            ("skdcf_answers_with_error_total", found["n_errors"]),
            ("skdcf_monitor_wealth", found["wealth"]),
            ("skdcf_monitor_alarm", int(found["alarm"])),
        ]
        return "".join(f"{name} {value}\n" for name, value in rows)


def _fault(route, error):
    """Status and message of what went wrong."""
    if isinstance(error, _RefusedError):
        return error.args
    if isinstance(error, ValueError):
        return 400, str(error)
    if isinstance(error, TimeoutError):
        return 408, f"no claim came for {_IDLE} seconds"
    _LOG.error(
        "%s failed: %s", route, type(error).__name__
    )  # its message may hold texts
    return 500, "the service failed; its log says where"


def _take_alpha(record):
    alpha = record.pop("alpha", None)
    if alpha is not None and type(alpha) not in (int, float):
        raise ValueError("alpha must be a number")
    return alpha


def _graph_of(record):
    line = json.dumps(record).encode("ascii")
    return next(iter_jsonl(io.BytesIO(line))).graph


def _kind(request):
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def _body(request):
    """The object that a request holds."""
    if _kind(request) != "application/json":
        raise _RefusedError(415, "the content type must be application/json")
    return _object(b"".join([chunk async for chunk in _chunks(request)]))


async def _chunks(request):
    """What comes in, read no further than the bound."""
    n = 0
    async for chunk in request.stream():
        n += len(chunk)
        if n > _LONGEST:
            raise _RefusedError(413, f"a request has at most {_LONGEST} bytes")
        yield chunk


async def _lines(request):
    """The object of each line, as soon as its end has come in."""
    rest = b""
    async for chunk in _chunks(request):
        *whole, rest = (rest + chunk).split(b"\n")
        for line in filter(bytes.strip, whole):
            yield _object(line)
    if rest.strip():
        yield _object(rest)


async def _next(lines):
    async with asyncio.timeout(_IDLE):
        return await anext(lines, None)


def _object(content):
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
