"""The service as an ASGI application: what it answers, whom, and what it remembers."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import secrets
import threading
import weakref
from collections import Counter, deque
from contextlib import suppress
from itertools import compress
from time import perf_counter
from typing import Any

import numpy as np

from .._files import append_journal, open_journal
from ..datasets.records import BROKEN, read_problem
from ..inspection import explain
from ..monitoring import CoverageMonitor

_LONGEST = 8 * 2**20  # bytes of a request
_IDLE = 600  # seconds between two claims of an answer that is being written
_JSON, _LINES = "application/json", "application/x-ndjson"
_WAITING = 4000  # requests; one more is asked to come again later
_SMALL = 4096  # bytes; shorter requests take as long
_QUICK = 0.02  # seconds that other requests may well wait
_HERE = ("127.0.0.1", "localhost", "[::1]")
_ABOUT = "problem", "context", "alternatives", "id", "metadata", "feature_names"
_KIND = [(b"content-type", _LINES.encode())]
_START = {"type": "http.response.start", "status": 200, "headers": _KIND}
_ALSO = {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": "1"}}
_READ = json.JSONDecoder(parse_constant=int).decode  # int refuses NaN
_SAY = json.JSONEncoder(default=str).encode
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
    callable
        An ASGI application, which works with and without a lifespan.

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
    if token is not None and not (token.isascii() and token.isprintable() and token):
        raise ValueError("the token must be a text of printable ASCII characters")
    return _Service(filter, token, folder)


class _RefusedError(Exception):
    """What is answered instead: a status and a sentence."""


class _Service:
    """The application, and its journal: a line for each answer, and one for its labels.

    Labels of answers that another filter judged are kept, but say nothing of this one.
    ``calibrated`` is what it says of when that was.
    """

    def __init__(self, filter, token, folder):
        from starlette import requests, responses

        self.read, self.write = requests.Request, responses.Response
        self.filter, self.token = filter, token
        self.waiting, self.calibrated = 0, None
        self.requests, self.claims = Counter(), Counter(kept=0, dropped=0)
        self.paces = deque([1.0] * 5, 5)  # seconds per byte of the latest requests
        post = {"/v1/filter": self.filter_one, "/v1/labels": self.label}
        get = {"/health": self.health, "/metrics": self.metrics}
        self.works, self.routes = {"POST": post, "GET": get, "HEAD": get}, {*post, *get}
        told = f"{filter!r} {filter.n_calibration_} {filter.threshold()!r}".encode()
        scores = np.asarray(filter.largest_risks_, dtype=np.float64).tobytes()
        self.digest = hashlib.sha256(told + scores).hexdigest()[:16]
        self.guarantee = filter.calibration_.guarantee
        self.alpha = self.guarantee.level(None, filter.alpha)
        self.monitor, self.watches = CoverageMonitor(filter), False
        with suppress(ValueError):  # where errors have no known law, nothing is watched
            self.monitor.update_errors([])
            self.watches = True
        self.answers, self.lock, self.file = {}, threading.Lock(), None
        if folder is not None:
            path = os.path.join(folder, "journal.jsonl")
            for line in open_journal(path):
                with suppress(json.JSONDecodeError):  # half written when it was killed
                    self._take(json.loads(line))
            self.file = os.open(path, os.O_WRONLY | os.O_APPEND)
            weakref.finalize(self, os.close, self.file)

    async def __call__(self, scope, receive, send):
        """Answer one request, as any ASGI server asks for it."""
        if scope["type"] == "lifespan":
            for step in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{step}.complete"})
            return
        request, begun, status, reply = self.read(scope, receive), False, 200, None
        route = scope["path"].removeprefix(scope.get("root_path", ""))
        self.waiting += 1
        try:
            work, kind = self._admit(request, route)
            if route == "/v1/filter" and kind == _LINES:
                async for line in self._decide(_lines(request)):
                    if not begun:  # what was wrong before has a status of its own
                        await send(_START)
                        begun = True
                    await send(_part(line))
            else:
                reply = await work(b"".join([part async for part in _chunks(request)]))
        except Exception as error:
            status, reply = _fault(route, error)
        finally:
            self.waiting -= 1
        if route in self.routes:
            self.requests[route, status] += 1
        if not begun:
            return await self._reply(status, reply)(scope, receive, send)
        if status != 200:
            await send(_part({"error": reply}))
        await send({"type": "http.response.body", "body": b""})

    def _reply(self, status, content):
        """A response: text as it is, else JSON; what is no success is an error."""
        if status == 200 and isinstance(content, str):
            return self.write(content, media_type="text/plain")
        said = content if status == 200 else {"error": content}
        return self.write(_SAY(said), status, _ALSO.get(status), _JSON)

    async def _decide(self, lines):
        """A decision for each claim, and at the end what is kept of all."""
        head, coming, mask, texts = await anext(lines, {}), [], [], []
        alpha = head.pop("alpha", None)
        level = self.guarantee.level(alpha, self.filter.alpha)
        known = _graph_of(head | {"claims": []})
        about = {name: getattr(known, name) for name in _ABOUT}
        decisions = self.filter.stream(iter(coming.pop, None), alpha, **about)
        while (claim := await asyncio.wait_for(anext(lines, None), _IDLE)) is not None:
            coming.append(claim)
            mask.append(await asyncio.to_thread(next, decisions))
            texts.append(claim.get("text"))
            yield {"claim": len(mask) - 1, "keep": mask[-1]}
        claims = texts if mask and texts[0] is not None else None
        yield self._told(claims, np.array(mask, bool), level)

    def _admit(self, request, route):
        """What does the work, and the kind of content; or the request is refused."""
        headers, work = request.headers, self.works.get(request.method, {}).get(route)
        if self.waiting > _WAITING:
            raise _RefusedError(503, "too many requests are waiting: come again later")
        if "origin" in headers:
            raise _RefusedError(403, "pages of a browser are not answered")
        host = headers.get("host", "").rpartition(":")
        if self.token is None and (host[0] or host[2]) not in _HERE:
            raise _RefusedError(403, "without a token only this machine is answered")
        given = headers.get("authorization", "").encode("utf-8")
        good = secrets.compare_digest(given, f"Bearer {self.token}".encode())
        if not (good or self.token is None or route == "/health"):
            raise _RefusedError(401, "the token is missing or wrong")
        if work is None:
            status = 404 + (route in self.routes)  # 405: with another method there is
            raise _RefusedError(status, "there is nothing to do here")
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if route.startswith("/v1/") and kind not in (_JSON, _LINES):
            raise _RefusedError(415, f"the content type must be {_JSON}")
        return work, kind

    async def filter_one(self, body):
        """What is kept of one answer, why the rest was dropped, and an id for labels."""
        size, decide = _SMALL + len(body), self._decide_whole
        quick = size * sorted(self.paces)[2] < _QUICK  # a thread would add its own time
        found = decide(body, size) if quick else asyncio.to_thread(decide, body, size)
        *found, reasons = found if quick else await found
        return self._told(*found) | {"reasons": reasons}

    def _decide_whole(self, body, size):
        begin, record = perf_counter(), _object(body)
        alpha, graph = record.pop("alpha", None), _graph_of(record)
        found = explain(self.filter, graph, alpha=alpha)
        reasons = {str(v): reason for v, reason in found.reasons.items()}
        self.paces.append((perf_counter() - begin) / size)
        return graph.claims, found.kept, found.alpha, reasons

    def _told(self, claims, kept, alpha):
        """Mask, text and id of an answer, once the journal holds them."""
        name, mask = secrets.token_hex(12), kept.tolist()
        entry = {"id": name, "mask": "".join("01"[keep] for keep in mask)}
        entry |= {"filter": self.digest, "alpha": alpha}
        self._take(entry, sync=False)
        self.claims.update(kept=sum(mask), dropped=mask.count(False))
        text = "\n".join(compress(claims, mask)) if claims else None
        told = {"id": name, "alpha": alpha, "mask": mask, "text": text}
        return told | {"text_promise": "claims"}

    async def label(self, body):
        """Take the labels of an answer."""
        name, labels, drawn = map(_object(body).get, ("id", "labels", "drawn"))
        if not isinstance(name, str) or drawn not in (None, "random"):
            raise ValueError('"id" must be a text, and "drawn" is "random" or left out')
        if not isinstance(labels, list) or not all(v in (-1, 0, 1) for v in labels):
            raise ValueError("labels are 1 or true, 0 or false, and -1 where unknown")
        entry = {"id": name, "labels": [*map(int, labels)], "drawn": bool(drawn)}
        said = await asyncio.to_thread(self._save, entry)
        return {"said": said, "alarm": self.monitor.alarm}

    def _save(self, entry):
        """Take labels that are new; they are on disk before it is said what became of them."""
        with self.lock:
            if (answer := self.answers.get(entry["id"])) is None:
                raise _RefusedError(404, "no answer has this id")
            if (given := len(entry["labels"])) != (n := len(answer["mask"])):
                raise ValueError(f"{given} labels but {n} claims")
            if entry.items() <= answer.items():
                return "these labels were known"
            if "labels" in answer:
                raise _RefusedError(409, "this answer has other labels")
            self._take(entry, sync=True)
            return "saved"

    def _take(self, entry, *, sync=None):
        """Take in an answer or its labels, once they are on disk."""
        if self.file is not None and sync is not None:
            append_journal(self.file, entry, sync=sync)
        if "labels" in entry:
            self._judge(entry)
        else:
            self.answers[entry["id"]] = entry

    def _judge(self, entry):
        (answer := self.answers[entry["id"]]).update(entry)
        ours = answer["filter"] == self.digest and answer["alpha"] == self.alpha
        if ours and entry["drawn"] and self.watches:
            mask = np.array([bit == "1" for bit in answer["mask"]], dtype=bool)
            ends = np.array([0, len(mask)])
            lost = self.guarantee.loss(np.array(entry["labels"]), mask, ends)
            self.monitor.update_errors(lost > 0)

    async def health(self, _):
        """What runs here."""
        told = {"status": "ok", "alpha": self.alpha, "alarm": self.monitor.alarm}
        told |= {"promise": self.filter.describe(), "filter": self.digest}
        told |= {"n_calibration": self.filter.n_calibration_}
        told |= {"calibrated": self.calibrated}
        return told | {"origin": getattr(self.filter, "origin_", None)}

    async def metrics(self, _):
        """Counters and the state of the monitor, in the text format of Prometheus."""
        found, asked = self.monitor.summary(), sorted(self.requests.items())
        rows = {f'requests_total{{route="{r}",status="{s}"}}': n for (r, s), n in asked}
        rows |= {f'claims_total{{was="{was}"}}': n for was, n in self.claims.items()}
        rows |= {"answers_judged_total": found["n_problems"], "alpha": self.alpha}
        rows |= {"answers_with_error_total": found["n_errors"], "waiting": self.waiting}
        rows |= {"monitor_wealth": found["wealth"]}
        rows |= {"monitor_alarm": int(found["alarm"])}
        return "".join(f"skdcf_{name} {value}\n" for name, value in rows.items())


def _fault(route, error):
    """Status and message of what went wrong."""
    if isinstance(error, _RefusedError):
        return error.args
    if isinstance(error, ValueError):
        return 400, str(error)
    if isinstance(error, TimeoutError):
        return 408, f"no claim came for {_IDLE} seconds"
    # Its message may hold texts.
    _LOG.error("%s failed: %s", route, type(error).__name__)
    return 500, "the service failed; its log says where"


def _graph_of(record):
    try:
        return read_problem(record).graph
    except BROKEN as error:
        raise ValueError(str(error)) from error


def _part(line):
    body = _SAY(line).encode() + b"\n"
    return {"type": "http.response.body", "body": body, "more_body": True}


async def _chunks(request):
    """What comes in, read no further than the bound."""
    n = 0
    async for chunk in request.stream():
        if (n := n + len(chunk)) > _LONGEST:
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


def _object(content):
    with suppress(ValueError, RecursionError):
        if isinstance(record := _READ(content.decode()), dict):
            return record
    raise ValueError("the request must be an object of JSON")
