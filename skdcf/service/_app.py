"""The service as an ASGI application: what it answers, whom, and what it remembers."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import secrets
import threading
from collections import Counter
from contextlib import suppress
from itertools import compress
from time import perf_counter
from typing import Any

import numpy as np

from .._checks import is_loopback
from .._files import append_journal, read_journal
from .._messages import reworded
from ..datasets.records import BROKEN, read_problem
from ..inspection import explain
from ..monitoring import CoverageMonitor
from ._questions import Questions

_MOST_CLAIMS = 2_000  # of an answer: others wait while it is decided about
_LONGEST, _IDLE = 8 * 2**20, 600  # bytes of a request; seconds between two claims
_JSON, _LINES = "application/json", "application/x-ndjson"
_WAITING = 4000  # requests; one more is asked to come again later
_TOGETHER, _LARGE = 32, 2**14  # requests that are decided in one go, each of few bytes
_QUICK = 0.02  # seconds that other requests may well wait
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
        Where the journal stands, which holds ids, masks, labels and keyed hashes of the
        questions, and no text. None forgets everything when the process ends.

    Returns
    -------
    callable
        An ASGI application, which needs no lifespan.

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
    are for those who run it; with a token the first says that it is alive and no more.

    A filter with ``online=True`` also decides while an answer is written: with the content
    type ``application/x-ndjson`` the first line of the request is what is known
    beforehand (``question``, ``context``, ``feature_names``, ``alpha``), and each further
    one a claim (``text``, ``parents``, ``features``). The line with its decision is sent
    before the next claim is read, and at the end one with id, mask and text.
    """
    if token is not None and not (token.isascii() and token.isprintable() and token):
        raise ValueError("the token must be a text of printable ASCII characters")
    return _Service(filter, token, folder)


class _RefusedError(ValueError):
    """What is answered instead: a status and a sentence."""


class _Service:
    """The application, and its journal: a line for each answer, and one for its labels.

    Labels of answers that another filter judged are kept, but say nothing of this one.
    ``calibrated`` is what it says of when that was.
    """

    def __init__(self, filter, token, folder):
        try:
            from starlette import requests, responses
        except ImportError as error:
            raise ImportError('no starlette: pip install "skdcf[serve]"') from error
        self.read = requests.Request
        self.write = responses.Response
        # The pace is in seconds for each of the answers that were decided last.
        self.filter = filter
        self.token = token
        self.pace = 1.0
        self.waiting = 0
        self.calibrated = None
        self.queue = (None, None, None)
        self.requests = Counter()
        self.claims = Counter(kept=0, dropped=0)
        post = {"/v1/filter": self.filter_one, "/v1/labels": self.label}
        get = {"/health": self.health, "/metrics": self.metrics}
        self.works = {"POST": post, "GET": get, "HEAD": get}
        self.routes = {*post, *get}
        description = (
            f"{filter!r} {filter.n_calibration_} {filter.threshold()!r}".encode()
        )
        scores = np.asarray(filter.largest_risks_, dtype=np.float64).tobytes()
        self.digest = hashlib.sha256(description + scores).hexdigest()[:16]
        self.guarantee = filter.calibration_.guarantee
        self.alpha = self.guarantee.level(None, filter.alpha)
        self.monitor = CoverageMonitor(filter)
        self.lock = threading.Lock()
        self.answers = {}
        self.questions = Questions(filter, token, folder)
        self.journal = None
        if folder is not None:
            read_journal(path := os.path.join(folder, "journal.jsonl"), self._take)
            self.journal = path

    def _take(self, entry):
        """Take in an answer, or its labels, as the journal has them."""
        if "labels" in entry:
            return self._save(entry)
        name, *_ = [entry[key] for key in ("id", "mask", "filter", "alpha")]
        self.answers[name] = entry

    async def __call__(self, scope, receive, send):
        """Answer one request, as any ASGI server asks for it."""
        request = self.read(scope, receive)
        begun = False
        status = 200
        reply = None
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
            status, told = _fault(route, error)
            reply = {"error": told}
        finally:
            self.waiting -= 1
        self.requests[route if route in self.routes else "other", status] += 1
        if not begun:
            text = isinstance(reply, str)
            kind, content = ("text/plain", reply) if text else (_JSON, _SAY(reply))
            response = self.write(content, status, _ALSO.get(status), kind)
            return await response(scope, receive, send)
        if status != 200:
            await send(_part(reply))
        await send({"type": "http.response.body", "body": b""})

    async def _decide(self, lines):
        """A decision for each claim, and at the end what is kept of all."""
        head, coming, mask, texts = await anext(lines, {}), [], [], []
        alpha, level, graph = self._read_one(head | {"claims": []})
        fields = {name: getattr(graph, name) for name in _ABOUT}
        decisions = self.filter.stream(iter(coming.pop, None), alpha, **fields)
        while (claim := await asyncio.wait_for(anext(lines, None), _IDLE)) is not None:
            coming.append(claim)
            mask.append(await asyncio.to_thread(next, decisions))
            texts.append(claim.get("text"))
            yield {"claim": len(mask) - 1, "keep": mask[-1]}
        yield self._told(graph, texts, np.array(mask, bool), level)

    def _admit(self, request, route):
        """What does the work, and the kind of content; or the request is refused."""
        headers = request.headers
        work = self.works.get(request.method, {}).get(route)
        host = headers.get("host", "").rpartition(":")
        is_local = self.token is not None or is_loopback(
            (host[0] or host[2]).strip("[]")
        )
        authorization = headers.get("authorization", "").encode("utf-8")
        good = secrets.compare_digest(authorization, f"Bearer {self.token}".encode())
        good |= self.token is None or route == "/health"
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        fits = kind in (_JSON, _LINES) or not route.startswith("/v1/")
        for wrong, status, message in (
            (self.waiting > _WAITING, 503, "too many requests wait: come again later"),
            ("origin" in headers, 403, "pages of a browser are not answered"),
            (not is_local, 403, "without a token only this machine is answered"),
            (not good, 401, "the token is missing or wrong"),
            (work is None, 404 + (route in self.routes), "no such path or method"),
            (not fits, 415, f"the content type must be {_JSON}"),
        ):
            if wrong:
                raise _RefusedError(status, message)
        return work, kind

    async def filter_one(self, body):
        """What is kept of one answer, why the rest was dropped, and an id for labels."""
        if len(body) > _LARGE:  # others do not wait for it
            request = await asyncio.to_thread(lambda: [*self._read_one(_object(body))])
            await asyncio.to_thread(self._explain, [request])
        else:
            request = [*self._read_one(_object(body))]
            loop = asyncio.get_running_loop()
            if self.queue[0] is not loop:
                self.queue = loop, asyncio.Lock(), []
            _, turn, coming = self.queue
            coming.append(request)
            async with turn:
                while len(request) == 3:  # nobody has decided about it with others
                    await asyncio.sleep(0)  # for those that come at the same time
                    # Together they take less time; a thread would add its own.
                    group = coming[:_TOGETHER]
                    begin = perf_counter()
                    if self.pace * len(group) < _QUICK:
                        self._explain(group)
                    else:
                        await asyncio.to_thread(self._explain, group)
                    self.pace = (perf_counter() - begin) / len(group)
                    del coming[: len(group)]
        _, level, graph, *_, notes = request
        if isinstance(notes, Exception):
            raise notes
        told = self._told(graph, graph.claims, notes[0], level)
        return told | {"reasons": notes[1]}

    def _read_one(self, record):
        """The alpha that is asked for, the level that it means, and the graph."""
        alpha = record.pop("alpha", None)
        level = self.guarantee.level(alpha, self.filter.alpha)
        try:
            graph = read_problem(record).graph
        except BROKEN as error:
            raise ValueError(str(error)) from error
        if graph.n_claims > _MOST_CLAIMS:
            raise _RefusedError(413, f"an answer has at most {_MOST_CLAIMS:,} claims")
        return alpha, level, graph

    def _explain(self, some):
        """Add mask and reasons to each request, or the error that it meets by itself."""
        try:
            [alpha] = {request[0] for request in some}
            explanations = explain(
                self.filter, [request[2] for request in some], alpha=alpha
            )
            explanations = [
                (explanation.kept, explanation.reasons) for explanation in explanations
            ]
            for request, explanation in zip(some, explanations, strict=True):
                request.append(explanation)
        except Exception as error:
            if len(some) == 1:
                return some[0].append(error)
            self._explain(some[::2])
            self._explain(some[1::2])

    def _told(self, graph, claims, kept, alpha):
        """Mask, text and id of an answer, once the journal holds them."""
        name = secrets.token_hex(12)
        mask = kept.tolist()
        entry = {"id": name, "mask": "".join("01"[keep] for keep in mask)}
        entry |= {"filter": self.digest, "alpha": alpha} | self.questions.name(graph)
        append_journal(self.journal, entry, sync=False)
        self.answers[name] = entry
        self.claims.update(kept=sum(mask), dropped=mask.count(False))
        text = None if None in (claims or [None]) else "\n".join(compress(claims, mask))
        reply = {"id": name, "alpha": alpha, "mask": mask, "text": text}
        return reply | {"text_promise": "claims"}

    async def label(self, body):
        """Take the labels of an answer."""
        name, labels, drawn = map(_object(body).get, ("id", "labels", "drawn"))
        if not isinstance(name, str) or drawn not in (None, "random", "reached"):
            raise ValueError(
                '"id" must be a text, and "drawn" is "random", or "reached" for an answer '
                "without claims, or left out"
            )
        if not isinstance(labels, list) or not all(v in (-1, 0, 1) for v in labels):
            raise ValueError("labels are 1 or true, 0 or false, and -1 where unknown")
        entry = {"id": name, "labels": [*map(int, labels)], "drawn": bool(drawn)}
        if not labels:  # nobody judges it: it counts where the order had come to it
            entry["drawn"] = drawn == "reached"
        message = await asyncio.to_thread(self._save, entry)
        return {"said": message, "alarm": self.monitor.alarm}

    def _save(self, entry):
        """Take labels that are new; they are on disk before it is said what became of them."""
        with self.lock:
            if (answer := self.answers.get(entry["id"])) is None:
                raise _RefusedError(404, "no answer has this id")
            if (n_labels := len(entry["labels"])) != (n := len(answer["mask"])):
                raise ValueError(f"{n_labels} labels but {n} claims")
            if entry.items() <= answer.items():
                return "these labels were known"
            if "labels" in answer:
                raise _RefusedError(409, "this answer has other labels")
            append_journal(self.journal, entry)
            answer |= entry
            ours = answer["filter"] == self.digest and answer["alpha"] == self.alpha
            watched = ours and entry["drawn"]
            if watched and not self.questions.counts(answer):
                self.monitor.n_repeated_ += 1
            elif watched:
                mask = np.array([bit == "1" for bit in answer["mask"]], dtype=bool)
                ends = np.array([0, len(mask)])
                lost = self.guarantee.loss(np.array(entry["labels"]), mask, ends)
                with suppress(ValueError):  # errors without a known law are not watched
                    self.monitor.update_errors(lost > 0, shown=[mask.any()])
            return "saved"

    async def health(self, _):
        """What runs here; behind a token only that it does, since nobody has to show it."""
        if self.token is not None:
            return {"status": "ok"}
        reply = {"status": "ok", "alpha": self.alpha, "alarm": self.monitor.alarm}
        reply |= {"promise": self.filter.describe(), "filter": self.digest}
        reply |= {"n_calibration": self.filter.n_calibration_}
        reply |= {"calibrated": self.calibrated}
        return reply | {"origin": getattr(self.filter, "origin_", None)}

    async def metrics(self, _):
        """Counters and the state of the monitor, in the text format of Prometheus."""
        summary = self.monitor.summary()
        asked = sorted(self.requests.items())
        rows = {f'requests_total{{route="{r}",status="{s}"}}': n for (r, s), n in asked}
        rows |= {f'claims_total{{was="{was}"}}': n for was, n in self.claims.items()}
        rows |= {"answers_judged_total": summary["n_problems"], "alpha": self.alpha}
        rows |= {
            "answers_with_error_total": summary["n_errors"],
            "waiting": self.waiting,
        }
        if summary["n_problems"]:
            rows |= {
                "shown_share": summary["shown"],
                "false_among_shown_share": summary["false_among_shown"],
            }
        rows |= {
            "monitor_wealth": summary["wealth"],
            "monitor_alarm": +summary["alarm"],
        }
        return "".join(f"skdcf_{name} {value}\n" for name, value in rows.items())


def _fault(route, error):
    """Status and message of what went wrong."""
    if isinstance(error, _RefusedError):
        return error.args
    if isinstance(error, ValueError):
        return 400, reworded(error, "client")
    if isinstance(error, TimeoutError):
        return 408, f"no claim came for {_IDLE} seconds"
    # Its message may hold texts.
    _LOG.error("%s: %s", route, getattr(error, "strerror", type(error).__name__))
    return 500, "the service failed; its log says where"


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
        # The end comes as an empty piece, whether or not the last line has one.
        *complete, rest = (rest + (chunk or b"\n")).split(b"\n")
        for line in filter(bytes.strip, complete):
            yield _object(line)


def _object(content):
    with suppress(ValueError, RecursionError):
        if isinstance(record := _READ(content.decode()), dict):
            return record
    raise ValueError("the request must be an object of JSON")
