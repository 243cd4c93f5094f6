"""The service as an ASGI application: what it answers, whom, and what it remembers."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import secrets
import threading
from collections import Counter
from contextlib import suppress
from itertools import compress
from pathlib import Path
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
_HERE = ("127.0.0.1", "localhost", "[::1]")
_ABOUT = "problem", "context", "alternatives", "id", "metadata"
_HEAD = [(b"content-type", _LINES.encode())]
_START = {"type": "http.response.start", "status": 200, "headers": _HEAD}
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
    """The application. ``calibrated`` is what it says of when that was."""

    def __init__(self, filter, token, folder):
        from starlette import requests, responses

        self.read, self.write = requests.Request, responses.Response
        self.filter, self.token = filter, token
        self.journal = Journal(filter, folder)
        self.waiting, self.calibrated = 0, None
        self.requests, self.claims = Counter(), Counter(kept=0, dropped=0)
        self.lock = threading.Lock()
        self.works = {
            "/v1/filter": ("POST", self.filter_one),
            "/v1/labels": ("POST", self.label),
            "/health": ("GET", self.health),
            "/metrics": ("GET", self.metrics),
        }

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
            self._admit(request, route)
            if route == "/v1/filter" and _kind(request) == _LINES:
                async for line in self._decide(_lines(request)):
                    if not begun:  # what was wrong before has a status of its own
                        await send(_START)
                        begun = True
                    await send(_part(line))
            else:
                reply = await self._work(request, route)
        except Exception as error:
            status, reply = _fault(route, error)
        finally:
            self.waiting -= 1
        if route in self.works:
            self.requests[route, status] += 1
        if not begun:
            return await self._reply(status, reply)(scope, receive, send)
        if status != 200:
            await send(_part({"error": reply}))
        await send({"type": "http.response.body", "body": b""})

    async def _work(self, request, route):
        """Do what a route is for, in a thread."""
        method, work = self.works[route]
        if method == "GET":
            return await asyncio.to_thread(work)
        if _kind(request) != _JSON:
            raise _RefusedError(415, f"the content type must be {_JSON}")
        body = _object(b"".join([chunk async for chunk in _chunks(request)]))
        return await asyncio.to_thread(work, body)

    def _reply(self, status, content):
        """A response: text as it is, else JSON; what is no success is an error."""
        kind = "text/plain" if status == 200 and isinstance(content, str) else _JSON
        said = content if status == 200 else {"error": content}
        body = json.dumps(said, default=str) if kind == _JSON else said
        headers = {"Retry-After": "1"} if status == 503 else {}
        headers |= {"WWW-Authenticate": "Bearer"} if status == 401 else {}
        return self.write(body, status, headers, kind)

    async def _decide(self, lines):
        """A decision for each claim, and at the end what is kept of all."""
        head, coming, mask, texts = await anext(lines, {}), [], [], []
        alpha, names = head.pop("alpha", None), head.pop("feature_names", None)
        level = self.journal.guarantee.level(alpha, self.filter.alpha)
        known = _graph_of(head | {"claims": []})
        about = {name: getattr(known, name) for name in _ABOUT}
        told = iter(coming.pop, None)
        decisions = self.filter.stream(told, alpha, feature_names=names, **about)
        while (claim := await _next(lines)) is not None:
            coming.append(claim)
            mask.append(await asyncio.to_thread(next, decisions))
            texts.append(claim.get("text"))
            yield {"claim": len(mask) - 1, "keep": mask[-1]}
        claims = texts if mask and texts[0] is not None else None
        yield await asyncio.to_thread(self._told, claims, np.array(mask, bool), level)

    def _admit(self, request, route):
        headers, there = request.headers, self.works.get(route)
        if self.waiting > _WAITING:
            raise _RefusedError(503, "too many requests are waiting: come again later")
        if "origin" in headers:
            raise _RefusedError(403, "pages of a browser are not answered")
        host = headers.get("host", "").rpartition(":")
        if self.token is None and (host[0] or host[2]) not in _HERE:
            raise _RefusedError(403, "without a token only this machine is answered")
        given = headers.get("authorization", "").encode("utf-8")
        good = hmac.compare_digest(given, f"Bearer {self.token}".encode())
        if not (good or self.token is None or route == "/health"):
            raise _RefusedError(401, "the token is missing or wrong")
        if there is None or request.method.replace("HEAD", "GET") != there[0]:
            raise _RefusedError(405 if there else 404, "there is nothing to do here")

    def filter_one(self, record):
        """What is kept of one answer, why the rest was dropped, and an id for labels."""
        alpha, graph = record.pop("alpha", None), _graph_of(record)
        explained = explain(self.filter, graph, alpha=alpha)
        kept = np.asarray(explained.kept, dtype=bool)
        reasons = {str(v): reason for v, reason in explained.reasons.items()}
        return self._told(graph.claims, kept, explained.alpha) | {"reasons": reasons}

    def _told(self, claims, kept, alpha):
        """Mask, text and id of an answer, once the journal holds them."""
        name = secrets.token_hex(12)
        self.journal.add(name, kept, alpha)
        with self.lock:  # several threads count
            self.claims.update(kept=int(kept.sum()), dropped=int((~kept).sum()))
        return {
            "id": name,
            "alpha": alpha,
            "mask": kept.tolist(),
            "text": "\n".join(compress(claims, kept)) if claims else None,
            "text_promise": "claims",
        }

    def label(self, record):
        """Take the labels of an answer."""
        name, labels, drawn = map(record.get, ("id", "labels", "drawn"))
        if not isinstance(name, str) or drawn not in (None, "random"):
            raise ValueError('"id" must be a text, and "drawn" is "random" or left out')
        if not isinstance(labels, list) or not all(v in (-1, 0, 1) for v in labels):
            raise ValueError("labels are 1 or true, 0 or false, and -1 where unknown")
        said = self.journal.label(name, list(map(int, labels)), drawn == "random")
        return {"said": said, "alarm": self.journal.monitor.alarm}

    def health(self):
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

    def metrics(self):
        """Counters and the state of the monitor, in the text format of Prometheus."""
        found, asked = self.journal.monitor.summary(), sorted(self.requests.items())
        rows = {f'requests_total{{route="{r}",status="{s}"}}': n for (r, s), n in asked}
        rows |= {f'claims_total{{was="{was}"}}': n for was, n in self.claims.items()}
        rows |= {
            "waiting": self.waiting,
            "alpha": self.journal.alpha,
            "answers_judged_total": found["n_problems"],
            "answers_with_error_total": found["n_errors"],
            "monitor_wealth": found["wealth"],
            "monitor_alarm": int(found["alarm"]),
        }
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


def _kind(request):
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _part(line):
    body = json.dumps(line).encode() + b"\n"
    return {"type": "http.response.body", "body": body, "more_body": True}


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
    record = None
    with suppress(ValueError, RecursionError):
        record = json.loads(content, parse_constant=int)  # which refuses NaN
    if not isinstance(record, dict):
        raise ValueError("the request must be an object of JSON")
    return record


class Journal:
    """A file that only grows: one line for each answer, and one for its labels.

    Parameters
    ----------
    filter : fitted filter
        Labels of answers that another filter judged are kept, but say nothing of this one.
    folder : path-like or None
        Where the file stands; None keeps everything in memory.
    """

    def __init__(self, filter: Any, folder: Any):
        told = f"{filter!r} {filter.n_calibration_} {filter.threshold()!r}".encode()
        scores = np.asarray(filter.largest_risks_, dtype=np.float64).tobytes()
        self.digest = hashlib.sha256(told + scores).hexdigest()[:16]
        self.guarantee = filter.calibration_.guarantee
        self.alpha = self.guarantee.level(None, filter.alpha)
        self.answers: dict[str, dict[str, Any]] = {}
        self.lock = threading.Lock()
        self.monitor, self.watches = CoverageMonitor(filter), False
        with suppress(ValueError):  # where errors have no known law, nothing is watched
            self.monitor.update_errors([])
            self.watches = True
        self.path = folder and Path(folder) / "journal.jsonl"
        for line in open_journal(self.path) if self.path else ():
            with suppress(json.JSONDecodeError):  # half written when it was killed
                self._take(json.loads(line))

    def _take(self, entry, *, sync=None):
        """Take in an answer or its labels, once they are on disk."""
        if self.path and sync is not None:
            append_journal(self.path, entry, sync=sync)
        if "labels" in entry:
            self._judge(entry)
        else:
            self.answers[entry["id"]] = entry

    def add(self, name: str, mask: Any, alpha: float) -> None:
        """Remember what was kept of an answer."""
        bits = "".join("01"[int(keep)] for keep in mask)
        entry = {"id": name, "mask": bits, "filter": self.digest, "alpha": alpha}
        with self.lock:
            self._take(entry, sync=False)

    def label(self, name: str, labels: list[int], drawn: bool) -> str:
        """Remember the labels of an answer, or refuse them.

        Parameters
        ----------
        name : str
        labels : list of int
            1 true, 0 false, -1 not judged.
        drawn : bool
            Whether the answer was chosen at random, whatever was kept of it.

        Returns
        -------
        str
            What became of them.
        """
        with self.lock:
            if (answer := self.answers.get(name)) is None:
                raise _RefusedError(404, "no answer has this id")
            if len(labels) != (n := len(answer["mask"])):
                raise ValueError(f"{len(labels)} labels but {n} claims")
            entry = {"id": name, "labels": labels, "drawn": drawn}
            if entry.items() <= answer.items():
                return "these labels were known"
            if "labels" in answer:
                raise _RefusedError(409, "this answer has other labels")
            self._take(entry, sync=True)
            return "saved"

    def _judge(self, entry):
        answer = self.answers[entry["id"]]
        answer |= {"labels": entry["labels"], "drawn": entry["drawn"]}
        ours = answer["filter"] == self.digest and answer["alpha"] == self.alpha
        if ours and entry["drawn"] and self.watches:
            mask = np.array([bit == "1" for bit in answer["mask"]], dtype=bool)
            ends = np.array([0, len(mask)])
            lost = self.guarantee.loss(np.array(entry["labels"]), mask, ends)
            self.monitor.update_errors(lost > 0)
