"""The service as an ASGI application: whom it answers, and what."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
import sqlite3
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.resources import files
from itertools import compress
from time import perf_counter
from typing import Any

import numpy as np

from ..._checks import import_extra, is_loopback
from ..._version import __version__
from ...datasets.records import jsonl_schema
from ...graphs import ReasoningGraph
from .._messages import reworded
from ..llm import ChatClient
from ._answers import Answers
from ._counts import Counts, line_of
from ._journal import Journal
from ._questions import read_key
from ._requests import Bodies, RefusedError, read_lines, read_object
from ._runs import Runs
from ._served import Served, Writing

_JSON, _LINES = "application/json", "application/x-ndjson"
_MOST_WAITING = 4000  # requests at a time; one more is asked to come again later
_MOST_STREAMS = 1000
# Routes that answer everybody, since they say no more than yes or no.
_OPEN = (
    "/health",
    "/ready",
)
_SPENT = "calls", "prompt_tokens", "completion_tokens"
_GONE = 499  # the usual status of a request whose client went away
_STARTED = {
    "type": "http.response.start",
    "status": 200,
    "headers": [(b"content-type", _LINES.encode())],
}
_ALSO = {
    401: {"WWW-Authenticate": "Bearer"},
    429: {"Retry-After": "600"},
    503: {"Retry-After": "1"},
}
_encoded = json.JSONEncoder(default=str).encode
_LOG = logging.getLogger("skdcf.apps.service")


def create_app(
    filter: Any,
    *,
    token: str | None = None,
    folder: str | os.PathLike[str] | None = None,
    client: ChatClient | None = None,
    model: str | None = None,
    answer_seconds: float = 300.0,
    budget: float | None = None,
) -> Service:
    """Make an ASGI application that filters answers.

    Parameters
    ----------
    filter : fitted filter, or dict of them
        Decides about the claims; with ``online=True`` also as they come in. Of several,
        by name, a request says by ``"filter"`` which one it means.
    token : str, optional
        Secret that each request has to send as ``Authorization: Bearer TOKEN``. Without
        one, only requests to this machine's own names are answered.
    folder : path-like, optional
        Where the journal stands, which holds ids, masks, labels and keyed hashes of the
        questions, and no text but that of open runs. None keeps the newest 10,000 answers
        until the process ends, and no runs.
    client : ChatClient, optional
        Where the models are that extract claims and judge them, for ``POST /v1/answer``.
        Its ``max_calls`` and ``confirm_above`` bound each answer. None calls no model.
    model : str, optional
        Name of the model. None is that of calibration.
    answer_seconds : float, default=300.0
        Longest time for an answer; after it the reply is 504.
    budget : float, optional
        Cost of a day (UTC), or tokens where the client knows no prices, after which no
        answer is begun (429). It counts from the start of the process.

    Returns
    -------
    Service
        An ASGI application, which needs no lifespan.

    Raises
    ------
    ImportError
        Without the extra ``apps``.
    ValueError
        If the token is empty, or holds characters that no header can; if there is no
        filter, or one that does not know what extracted its claims beside a client; or if
        what is about models is set without a client.

    Notes
    -----
    ``POST /v1/filter`` takes one problem as a line of JSON Lines has it (``claims``,
    ``parents`` or ``edges``, ``question``, ``context`` and so on), and ``alpha`` if it is
    not the filter's own. ``POST /v1/answer`` takes a ``question``, and if they are known an
    ``answer``, a ``context`` and so on: a model writes what is missing, extracts the claims
    and judges them as it did for calibration.

    ``POST /v1/labels`` takes ``id``, ``labels`` and ``sampling``, which is ``"random"`` where
    the answer was chosen blindly. ``GET /health``, ``GET /ready`` and
    ``GET /metrics`` are for those who run it; with a token the first two say no more than yes.
    ``GET /openapi.json`` describes all of them for programs that make clients.

    A filter with ``online=True`` also decides while an answer is written: with the content
    type ``application/x-ndjson`` the first line of the request is what is known
    beforehand (``question``, ``context``, ``feature_names``, ``alpha``), and each further
    one a claim (``text``, ``parents``, ``features``). The line with its decision is sent
    before the next claim is read, and at the end one with id, mask and text.

    The run of an agent may take longer than a request. ``POST /v1/runs`` takes what is known
    beforehand, and gives an id as ``run``. ``POST /v1/runs/steps`` takes it with ``claim``,
    the position of the step from 0 on, and with what is known of the step, and says whether
    to ``keep`` it. Both take ``messages`` of a chat in place of columns. Each step builds on
    the one before it. ``POST /v1/runs/close`` ends the run. Its texts stand in the journal
    until then, or until it had no step for a week, so that neither a restart nor a reply that
    was lost changes anything. This needs a folder.
    """
    if token is not None and not (token.isascii() and token.isprintable() and token):
        raise ValueError("the token must be a text of printable ASCII characters")
    filters = filter if isinstance(filter, Mapping) else {"default": filter}
    answers = None
    if client is not None:
        answers = Answers(client, model, seconds=answer_seconds, budget=budget)
    elif model is not None or budget is not None:
        raise ValueError(
            "model and budget are about models that are asked, but there is no client: pass "
            "one, or leave them out"
        )
    return Service(filters, token, folder, answers)


class Service:
    """The application that `create_app` makes.

    Parameters
    ----------
    filters : dict
        Fitted filters by name.
    token : str or None
        As for `create_app`.
    folder : path-like or None
        As for `create_app`.
    answers : Answers, optional
        Asks models, where there are some.
    """

    def __init__(
        self,
        filters: Mapping[str, Any],
        token: str | None,
        folder: str | os.PathLike[str] | None,
        answers: Answers | None = None,
    ) -> None:
        requests = import_extra("starlette.requests", "apps")
        responses = import_extra("starlette.responses", "apps")
        self._request = requests.Request
        self._response = responses.Response
        self._gone = requests.ClientDisconnect
        self._token = token
        self._answers = answers
        self._key = read_key(token, folder)
        self._journal = Journal(folder)
        self._runs = Runs(self._journal)
        self._bodies = Bodies()
        self._counts = Counts()
        self._n_waiting = 0
        self._n_streams = 0
        self._lock = threading.Lock()  # held while labels are taken in
        self.served: dict[str, Served] = {}
        self.replace(filters)
        self._routes = {
            ("POST", "/v1/filter"): self._filter_one,
            ("POST", "/v1/answer"): self._answer,
            ("POST", "/v1/labels"): self._label,
            ("POST", "/v1/runs"): self._open_run,
            ("POST", "/v1/runs/steps"): self._add_step,
            ("POST", "/v1/runs/close"): self._close_run,
            ("GET", "/health"): self._health,
            ("GET", "/ready"): self._ready,
            ("GET", "/metrics"): self._metrics,
            ("GET", "/openapi.json"): self._describe,
        }

    def replace(
        self, filters: Mapping[str, Any], calibrated: Mapping[str, str] | None = None
    ) -> None:
        """Put other filters in the place of these; requests that run go on with the old.

        Parameters
        ----------
        filters : dict
            Fitted filters by name.
        calibrated : dict, optional
            When each was made, for ``GET /health``.

        Raises
        ------
        ValueError
            If there is none, or one that a model cannot work for; then the old ones stay.
        """
        if not filters:
            raise ValueError("there is no filter to serve: pass at least one")
        served = {}
        for name, filter in filters.items():
            new = Served(filter, self._key, (calibrated or {}).get(name))
            if self._answers is not None:
                new.pipeline = self._answers.pipeline(name, filter)
            old = self.served.get(name)
            if old is not None and old.digest == new.digest:
                # It is the same one, which has counted already.
                old.calibrated = new.calibrated
                new = old
            served[name] = new
        with self._lock:
            for name, new in served.items():
                if new is not self.served.get(name):
                    for entry in self._journal.judged(new.digest):
                        new.watch(entry)
            self.served = served

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request, as any ASGI server asks for it.

        Parameters
        ----------
        scope : dict
            As ASGI has it.
        receive, send : callable
            Likewise.
        """
        begin = perf_counter()
        request = self._request(scope, receive)
        route = scope["path"].removeprefix(scope.get("root_path", ""))

        async def send_on(message: Any) -> None:
            try:
                await send(message)
            except OSError as error:
                raise self._gone from error

        status = _GONE
        with suppress(self._gone):
            status = await self._reply(request, route, send_on)
        seconds = perf_counter() - begin
        named = route if any(route == known for _, known in self._routes) else "other"
        self._counts.add(named, status, seconds)
        line = {"route": named, "status": status, "seconds": round(seconds, 6)}
        _LOG.info("request", line)

    async def _reply(self, request: Any, route: str, send: Any) -> int:
        """Answer a request; the status of the reply."""
        has_begun = False
        status = 200
        try:
            work, kind = self._admit(request, route)
            if kind == _LINES:
                reply: Any = None
                async for line in self._decide_lines(request):
                    if not has_begun:  # an error before this has a status of its own
                        await send(_STARTED)
                        has_begun = True
                    await send(_chunk(line))
            else:
                reply = await work(request)
        except self._gone:
            raise
        except Exception as error:
            status, message = _fault(route, error)
            reply = {"error": message}
        if has_begun:
            if status != 200:
                await send(_chunk(reply))
            await send({"type": "http.response.body", "body": b""})
        else:
            is_text = isinstance(reply, str)
            content = reply if is_text else _encoded(reply)
            kind = "text/plain" if is_text else _JSON
            response = self._response(content, status, _ALSO.get(status), kind)
            await response(request.scope, request.receive, send)
        return status

    def _admit(self, request: Any, route: str) -> tuple[Any, str]:
        """What does the work, and the kind of content; or the request is refused."""
        headers = request.headers
        method = "GET" if request.method == "HEAD" else request.method
        work = self._routes.get((method, route))
        host = headers.get("host", "").rpartition(":")
        is_local = self._token is not None or is_loopback(
            (host[0] or host[2]).strip("[]")
        )
        authorization = headers.get("authorization", "").encode("utf-8")
        good = secrets.compare_digest(authorization, f"Bearer {self._token}".encode())
        good |= self._token is None or route in _OPEN
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        has_kind = kind == _JSON or (kind == _LINES and route == "/v1/filter")
        is_known = any(route == known for _, known in self._routes)
        for wrong, status, message in (
            ("origin" in headers, 403, "pages of a browser are not answered"),
            (not is_local, 403, "without a token only this machine is answered"),
            (not good, 401, "the token is missing or wrong"),
            (work is None, 405 if is_known else 404, "no such path or method"),
            (
                method == "POST" and not has_kind,
                415,
                f"the content type must be {_JSON}",
            ),
        ):
            if wrong:
                raise RefusedError(status, message)
        return work, kind

    @contextmanager
    def _in_work(self) -> Iterator[None]:
        """Count a request that is there as a whole; one too many is refused."""
        if self._n_waiting >= _MOST_WAITING:
            raise RefusedError(503, "too many requests wait: come again later")
        self._n_waiting += 1
        try:
            yield
        finally:
            self._n_waiting -= 1

    def _named(self, record: dict[str, Any]) -> Served:
        """The filter that a request means, whose name is taken out of it."""
        name = record.pop("filter", None)
        served = self.served
        if name is None and len(served) == 1:
            [name] = served
        if not isinstance(name, str) or name not in served:
            raise ValueError(
                f'"filter" is {name!r}, but must be one of {", ".join(sorted(served))}'
            )
        return served[name]

    async def _filter_one(self, request: Any) -> dict[str, Any]:
        """What is kept of one answer, why the rest was dropped, and an id for labels."""
        body = await self._bodies.read(request)
        with self._in_work():
            record = read_object(body)
            served = self._named(record)
            asked = await served.decide(record, len(body))
            reply = self._told(served, asked.graph, asked.kept, asked.level)
            return reply | {"reasons": asked.reasons}

    async def _answer(self, request: Any) -> dict[str, Any]:
        """What is kept of the answer to a question, which a model writes if it is missing."""
        if self._answers is None:
            raise RefusedError(404, "this service asks no model: it has no --base-url")
        record = read_object(await self._bodies.read(request))
        served = self._named(record)
        answer, doubts = await self._answers.make(served.pipeline, record, request)
        graph = answer.original
        reply = self._told(served, graph, answer.kept, answer.alpha)
        places = np.flatnonzero(~answer.kept).tolist()
        dropped = [
            {"claim": place, "text": text, "reason": reason}
            for place, (text, reason) in zip(places, answer.dropped, strict=True)
        ]
        return reply | {
            "text": answer.text,
            "claims": list(graph.claims or ()),
            "abstained": answer.abstained,
            "complete": answer.complete,
            "error_probability": answer.error_probability,
            "dropped": dropped,
            "flags": doubts,
            "usage": {name: getattr(answer.usage, name) for name in _SPENT},
        }

    async def _decide_lines(self, request: Any) -> AsyncIterator[dict[str, Any]]:
        """A decision for each claim, and at the end what is kept of all."""
        if self._n_streams >= _MOST_STREAMS:
            raise RefusedError(503, "too many answers are written: come again later")
        self._n_streams += 1
        try:
            lines = read_lines(request)
            head = await anext(lines, {})
            writing = Writing(self._named(head), head)
            async for claim in lines:
                keep = await asyncio.to_thread(writing.add, claim)
                yield {"claim": len(writing.mask) - 1, "keep": keep}
                if writing.has_stopped:
                    break
            yield self._told_of(writing)
        finally:
            self._n_streams -= 1

    def _told_of(self, writing: Writing, name: str | None = None) -> dict[str, Any]:
        """Mask, text and id of an answer that was written."""
        return self._told(
            writing.served,
            writing.graph,
            np.array(writing.mask, dtype=bool),
            writing.level,
            texts=writing.texts,
            name=name,
        )

    def _told(
        self,
        served: Served,
        graph: ReasoningGraph,
        kept: Any,
        level: float,
        texts: Any = None,
        name: str | None = None,
    ) -> dict[str, Any]:
        """Give mask, text and id of an answer, once the journal holds them."""
        name = name or secrets.token_hex(12)
        self._journal.add(served.entry(name, graph, kept, level))
        claims = graph.claims if texts is None else texts
        text = None
        if claims and None not in claims:
            text = "\n".join(compress(claims, kept))
        reply = {"id": name, "alpha": level, "mask": kept.tolist(), "text": text}
        return reply | served.origin(graph)

    async def _open_run(self, request: Any) -> dict[str, Any]:
        """Begin the run of an agent, which is decided about step by step."""
        head = read_object(await self._bodies.read(request))
        with self._in_work():
            served = self._named(head)
            name = await asyncio.to_thread(self._runs.open, served, head)
            return {"run": name}

    async def _add_step(self, request: Any) -> dict[str, Any]:
        """Say whether a step may be carried out."""
        step = read_object(await self._bodies.read(request))
        with self._in_work():
            name, number = step.pop("run", None), step.pop("claim", None)
            filters = self.served.values()
            add = self._runs.add
            keep = await asyncio.to_thread(add, name, number, step, filters)
            return {"claim": number, "keep": keep}

    async def _close_run(self, request: Any) -> dict[str, Any]:
        """End a run; its id is that of an answer from then on."""
        record = read_object(await self._bodies.read(request))
        with self._in_work():
            name, filters = record.get("run"), self.served.values()
            return await asyncio.to_thread(
                self._runs.close, name, filters, self._told_of
            )

    async def _label(self, request: Any) -> dict[str, Any]:
        """Take the labels of an answer."""
        record = read_object(await self._bodies.read(request))
        name, labels, drawn = (record.get(key) for key in ("id", "labels", "sampling"))
        if not isinstance(name, str) or drawn not in (None, "random", "reached"):
            raise ValueError(
                '"id" must be a text, and "sampling" is "random", or "reached" for an answer '
                "without claims, or left out"
            )
        if not isinstance(labels, list) or not all(v in (-1, 0, 1) for v in labels):
            raise ValueError("labels are 1 or true, 0 or false, and -1 where unknown")
        # Nobody judges an answer without claims: it counts where the order had come to it.
        is_drawn = bool(drawn) if labels else drawn == "reached"
        with self._in_work():
            return await asyncio.to_thread(
                self._save, name, [*map(int, labels)], is_drawn
            )

    def _save(self, name: str, labels: list[int], is_drawn: bool) -> dict[str, Any]:
        """Take labels that are new; they are on disk before it is said what became of them."""
        with self._lock:
            entry = self._journal.label(name, labels, is_drawn)
            if entry is not None:
                for served in self.served.values():
                    served.watch(entry)
            alarm = any(served.monitor.alarm for served in self.served.values())
        return {"said": "saved" if entry else "these labels were known", "alarm": alarm}

    async def _health(self, _: Any) -> dict[str, Any]:
        """Say what runs here, or only that it does where requests need a token."""
        reply: dict[str, Any] = {"status": "ok"}
        if self._token is None:
            filters = {name: served.describe() for name, served in self.served.items()}
            reply["filters"] = filters
        return reply

    async def _ready(self, _: Any) -> dict[str, Any]:
        """Whether a request would be taken now."""
        if self._n_waiting >= _MOST_WAITING:
            raise RefusedError(503, "too many requests wait: come again later")
        return {"status": "ok"}

    async def _metrics(self, _: Any) -> str:
        """Counters and the state of each promise, in the text format of Prometheus."""
        lines = [*self._counts.lines(), line_of("waiting", self._n_waiting)]
        lines.append(line_of("streams", self._n_streams))
        lines.append(line_of("runs", self._runs.n_open))
        if self._answers is not None:
            lines.append(line_of("answers_being_made", self._answers.n_made))
            spent = self._answers.spent()
            for name in _SPENT:
                lines.append(line_of(f"model_{name}_total", getattr(spent, name)))
        for name, served in self.served.items():
            for was, count in served.claims.items():
                lines.append(line_of("claims_total", count, filter=name, was=was))
            for number, value in served.numbers().items():
                lines.append(line_of(number, value, filter=name))
        return "".join(f"{line}\n" for line in lines)

    async def _describe(self, _: Any) -> dict[str, Any]:
        """All routes with what they take and give, for programs that make clients."""
        return describe_routes()


def describe_routes() -> dict[str, Any]:
    """The description of all routes, as OpenAPI 3.1 has it.

    Returns
    -------
    dict
    """
    text = files("skdcf.apps.service").joinpath("openapi.json").read_text("utf-8")
    described: dict[str, Any] = json.loads(text)
    described["info"]["version"] = __version__
    described["components"]["schemas"]["Problem"] = jsonl_schema()
    return described


def _fault(route: str, error: Exception) -> tuple[int, str]:
    """Status and message of what went wrong."""
    if isinstance(error, RefusedError):
        return error.status, str(error)
    if isinstance(error, ValueError):
        return 400, reworded(error, "client")
    # Its message may hold texts, unless it is of the operating system or the journal.
    told = getattr(error, "strerror", None) or type(error).__name__
    if isinstance(error, sqlite3.Error):
        told = str(error)
    _LOG.error("%s: %s", route, told)
    return 500, "the service failed; its log says where"


def _chunk(line: Any) -> dict[str, Any]:
    body = _encoded(line).encode() + b"\n"
    return {"type": "http.response.body", "body": body, "more_body": True}
