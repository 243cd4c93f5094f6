"""The routes of the service, the checks of requests, and the store of answers and labels."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import sqlite3
import warnings
import weakref
from pathlib import Path
from typing import Any, Literal

import numpy as np
from fastapi import FastAPI, HTTPException, Request, Security
from fastapi.responses import JSONResponse, StreamingResponse
from fastapi.security import HTTPBearer
from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.requests import ClientDisconnect

from ... import guards
from ...datasets.lines import parse_line
from ...datasets.records import read_graph
from ...graphs import GraphBatch
from ...identity import hashes_of
from ...inspection import explain
from ...monitoring import CoverageMonitor
from .. import is_loopback
from ..text import AnswerSplitter, kept_text

# Exceptions that an invalid request body may raise. Deeply nested brackets exceed the recursion
# limit.
_BAD = (ValueError, RecursionError, ClientDisconnect)


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class Head(_Strict):
    """What is known about an answer before its first claim."""

    version: int | None = None
    id: str | int | None = None
    problem: str | None = None
    question: str | None = None
    context: str | list[str] | None = None
    alternatives: list[str] | None = None
    feature_names: list[str] | None = None
    group: str | int | None = None
    provenance: dict[str, str | float | bool | None] | None = None
    metadata: dict[str, Any] | None = None
    alpha: float | None = None


class Claim(_Strict):
    """One claim of a streamed answer."""

    text: str | None = None
    parents: list[int] | None = None
    features: list[float] | None = None


class Answer(Head):
    """An answer to filter: its claims, or a text to split as the calibration answers were."""

    answer: str | None = None
    logprobs: Any = None
    claims: list[str] | None = None
    features: list[list[float]] | None = None
    parents: list[list[int]] | None = None
    edges: list[list[int]] | None = None


class Verdicts(_Strict):
    """The labels of one answer: 1 (true), 0 (false) or -1 (unknown) for each claim."""

    id: str
    labels: list[Literal[-1, 0, 1]]


class Filtered(BaseModel):
    """A filtered answer. ``reasons`` has the position of each dropped claim as its key."""

    id: str
    alpha: float
    mask: list[bool]
    passes: bool
    text: str | None
    reasons: dict[int, str]
    warnings: list[str]


def create_app(
    filter: Any,
    *,
    token: str | None = None,
    folder: str | os.PathLike[str] | None = None,
) -> FastAPI:
    """Create an ASGI application that filters answers with one filter.

    Parameters
    ----------
    filter : fitted filter
        The filter. With ``online=True``, it also filters answers claim by claim.
    token : str, optional
        Secret that each request must send as a bearer token. If None, only requests to loopback
        host names are answered.
    folder : path-like, optional
        Folder for ids, masks and labels, which several processes may share. If None, they are
        lost when the process ends.

    Returns
    -------
    app : fastapi.FastAPI
        The application. ``GET /docs`` describes its routes.

    Raises
    ------
    ValueError
        If the token is empty.

    Examples
    --------
    >>> import skdcf
    >>> from skdcf.apps.service import create_app
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> graphs, y = make_reasoning_graphs(200, random_state=0, return_X_y=True)
    >>> app = create_app(skdcf.HardCF("frequency-score").fit(graphs, y))
    >>> sorted(app.openapi()["paths"])
    ['/health', '/v1/filter', '/v1/labels', '/v1/status', '/v1/stream']
    """
    if token == "":
        raise ValueError("token must not be empty. Pass a secret string, or None")
    app = FastAPI(
        title="skdcf serve",
        dependencies=[Security(HTTPBearer(auto_error=False))],
        exception_handlers=dict.fromkeys(_BAD, _refuse),
    )
    app.add_middleware(_guard, token=token)
    store = Store(filter, folder)

    # FastAPI runs functions that are not async in another thread, and the switch takes longer than
    # filtering an answer. FastAPI also accepts repeated keys, so each body would be read twice.
    @app.post("/v1/filter", openapi_extra=_body_of(Answer), response_model=Filtered)
    async def filter_answer(request: Request) -> JSONResponse:
        """Filter one answer, which is sent as claims or as a text."""
        record = parse_line(await request.body())
        Answer.model_validate(record)
        return JSONResponse(store.decide(record))

    content = {_Lines.media_type: {}}

    @app.post("/v1/stream", openapi_extra={"requestBody": {"content": content}})
    async def stream_answer(request: Request) -> _Lines:
        """Filter an answer claim by claim.

        The first line of the body is an object with what is known before the answer (question,
        context, feature_names, ...). Each further line is a claim (text, parents, features). The
        reply has a line with "claim" and "keep" for each claim, which is sent before the next
        claim is read. The last line is the filtered answer, or an object with "detail" after an
        error.
        """
        lines = _lines(request)
        head: Any = await anext(lines, None)
        alpha = Head.model_validate(head).alpha
        graph = _read(filter, head | {"claims": []})[0]
        known = "id problem context alternatives feature_names provenance metadata"
        about = {name: getattr(graph, name) for name in known.split()}
        coming: list[Any] = []
        decisions = filter.stream(iter(coming.pop, None), alpha, **about)

        def decide_next(claim: Any) -> bool:
            coming.append(claim)
            return next(decisions)

        return _Lines(_replies(store, head, lines, decide_next))

    @app.post("/v1/labels", openapi_extra=_body_of(Verdicts))
    async def save_labels(request: Request) -> dict[str, bool]:
        """Store the verdicts on an answer that was drawn at random, and update the monitor."""
        store.label(Verdicts.model_validate(parse_line(await request.body())))
        return {"alarm": store.watch().alarm}

    @app.get("/v1/status")
    async def show_status() -> dict[str, Any]:
        """Return the guarantee, the numbers of answers and claims, and the monitor's state."""
        return store.status()

    @app.get("/health")
    async def show_health() -> dict[str, str]:
        """Return that the service is running."""
        return {"status": "ok"}

    return app


def _body_of(model: type[BaseModel]) -> dict[str, Any]:
    """Return the description of a request body."""
    content = {"application/json": {"schema": model.model_json_schema()}}
    return {"requestBody": {"required": True, "content": content}}


def _guard(app, token):
    """Return an ASGI application that checks each request, and the size of its body."""
    most = 8 * 2**20

    async def guarded(scope, receive, send):
        n_bytes = 0

        async def receive_counted():
            nonlocal n_bytes
            message = await receive()
            n_bytes += len(message.get("body", b""))
            if n_bytes > most:
                raise HTTPException(413, f"a body must have at most {most:,} bytes")
            return message

        answer = app
        if scope["type"] == "http":
            answer = _refusal(Request(scope), token) or app
        await answer(scope, receive_counted, send)

    return guarded


def _refusal(request, token):
    """Return the JSONResponse to a request that must not be answered, or None."""
    if token is None:
        is_allowed = is_loopback(request.url.hostname)
        status, detail = 403, "without a token, only this machine may send requests"
    else:
        sent = request.headers.get("authorization", "").encode()
        is_allowed = secrets.compare_digest(sent, f"Bearer {token}".encode())
        is_allowed |= request.url.path in ("/health", "/docs", "/openapi.json")
        status, detail = 401, "the token is missing or wrong"
    return None if is_allowed else JSONResponse({"detail": detail}, status)


async def _refuse(_, error):
    status = 400 if isinstance(error, UnicodeError) else 422
    return JSONResponse({"detail": _reason(error)}, status)


def _reason(error: Exception) -> str:
    """Return what is wrong with a request."""
    if isinstance(error, HTTPException):
        return error.detail
    if isinstance(error, ValidationError):
        [fault, *_] = error.errors()
        place = ".".join(map(str, fault["loc"]))
        return f"the request is invalid at {place!r}: {fault['msg']}"
    return str(error)


def _read(filter, sent):
    """Return the GraphBatch of the answer in a request. An answer given as text is split."""
    record = {
        key: value
        for key, value in sent.items()
        if value is not None and key != "alpha"
    }
    read = read_graph
    if "answer" in record:
        read = AnswerSplitter.from_filter(filter).split
    return GraphBatch.from_graphs([read(record)])


async def _replies(store, head, lines, decide_next):
    """Yield the decision on each claim, and then the filtered answer or an error."""
    claims: list[Any] = []
    try:
        async for line in lines:
            claim = Claim.model_validate(line).model_dump(exclude_none=True)
            keep = decide_next(claim)
            yield json.dumps({"claim": len(claims), "keep": keep}) + "\n"
            claims.append(claim if claims else {"parents": []} | claim)
        columns = {
            {"text": "claims"}.get(key, key): [claim.get(key) for claim in claims]
            for key in (claims or [{"text": ""}])[-1]
        }
        reply = store.decide(head | columns)
    except (HTTPException, *_BAD) as error:
        reply = {"detail": _reason(error)}
    yield json.dumps(reply) + "\n"


async def _lines(request):
    """Yield the object of each line of a body as soon as the line is complete."""
    rest = b""
    async for chunk in request.stream():
        # The last chunk is empty and ends the last line.
        *lines, rest = (rest + (chunk or b"\n")).split(b"\n")
        for line in filter(bytes.strip, lines):
            yield parse_line(line)


class _Lines(StreamingResponse):
    media_type = "application/x-ndjson"

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Send the reply while the route reads the body."""
        await self.stream_response(send)


class Store:
    """Store of the filtered answers of one filter, without their texts.

    Parameters
    ----------
    filter : fitted filter
        The filter.
    folder : path-like or None
        Folder of the database. If None, the database is temporary.
    """

    def __init__(self, filter: Any, folder: Any) -> None:
        path: Any = ""  # SQLite stores a database without a name in a temporary file.
        if folder is not None:
            os.makedirs(folder, exist_ok=True)
            path = Path(folder, "answers.sqlite")
            path.touch(0o600)
        self.filter = filter
        self._digest = hashlib.sha256(
            filter.describe().encode() + filter.nonconformity_scores_.tobytes()
        ).hexdigest()
        self._guarantee = filter.calibration_.guarantee
        self._monitor = CoverageMonitor()
        self._reason = None
        self._parts: list[Any] = []
        try:
            self._monitor.fit(filter)
            self._parts = filter.calibration_.names
        except ValueError as error:
            self._reason = str(error)
        self._earlier = guards.EarlierAnswers()
        self._n_judged = 0  # position of the last labelled answer that was read
        self._db = sqlite3.connect(
            path, timeout=10, check_same_thread=False, isolation_level=None
        )
        weakref.finalize(self, self._db.close)
        # The column part is the position of the answer's calibration group. It is NULL if the
        # monitor must not count the answer.
        self._db.executescript(
            """
            PRAGMA journal_mode=WAL;
            PRAGMA synchronous=NORMAL;
            CREATE TABLE IF NOT EXISTS answers (id TEXT PRIMARY KEY, filter TEXT, mask TEXT,
            question INTEGER, part INTEGER, labels TEXT, judged INTEGER);
            CREATE INDEX IF NOT EXISTS judged ON answers (judged);
            CREATE INDEX IF NOT EXISTS questions ON answers (question)
            """
        )
        self._db.row_factory = sqlite3.Row

    def decide(self, sent: dict[str, Any]) -> dict[str, Any]:
        """Filter an answer as ``predict`` does, store the decision, and return the reply."""
        batch = _read(self.filter, sent)
        hashes = hashes_of(batch)
        record = self.filter._record
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            [explained] = explain(self.filter, batch, alpha=sent.get("alpha"))
            self._earlier.warn(record, batch, self.filter._origin(batch))
        graph = explained.graph
        part = None
        if (
            explained.passes
            and explained.alpha == self._guarantee.level(None, self.filter.alpha)
            and explained.group in self._parts
            and not hashes.among(record.calibrated).any()
        ):
            part = self._parts.index(explained.group)
        name = secrets.token_hex(12)
        mask = explained.kept.tolist()
        self._db.execute(
            "INSERT INTO answers VALUES (?, ?, ?, ?, ?, NULL, NULL)",
            (name, self._digest, json.dumps(mask), int(hashes.question[0]), part),
        )
        return {
            "id": name,
            "alpha": explained.alpha,
            "mask": mask,
            "passes": bool(explained.passes),
            "text": None if graph.claims is None else kept_text(graph, explained.kept),
            "reasons": explained.reasons,
            "warnings": [*dict.fromkeys(str(warning.message) for warning in caught)],
        }

    def label(self, sent: Verdicts) -> None:
        """Store the labels of an answer, unless it has the same labels already."""
        text = json.dumps(sent.labels)
        self._db.execute(
            "UPDATE answers SET labels = ?, judged = (SELECT coalesce(max(judged), 0) + 1 "
            "FROM answers) WHERE id = ? AND labels IS NULL AND json_array_length(mask) = ?",
            (text, sent.id, len(sent.labels)),
        )
        query = "SELECT json_array_length(mask) AS n, labels FROM answers WHERE id = ?"
        row = self._db.execute(query, (sent.id,)).fetchone()
        if row is None:
            raise HTTPException(404, "no answer has this id")
        if row["labels"] != text:
            raise HTTPException(
                409,
                f"this answer has {row['n']} claims and the labels {row['labels']}, "
                f"got {text}",
            )

    def watch(self) -> CoverageMonitor:
        """Return the monitor, after it has read the new labels of all processes."""
        # Only the first labelled answer to each question counts.
        query = """
            SELECT judged, mask, labels, part FROM answers
            WHERE judged > ? AND filter = ? AND part IS NOT NULL AND (question < 0 OR judged =
            (SELECT min(judged) FROM answers AS same WHERE same.question = answers.question
            AND same.filter = answers.filter AND same.part IS NOT NULL)) ORDER BY judged
        """
        for row in self._db.execute(query, (self._n_judged, self._digest)):
            self._n_judged = row["judged"]
            kept = np.array(json.loads(row["mask"]), dtype=bool)
            labels = np.array(json.loads(row["labels"]), dtype=int)
            losses = self._guarantee.loss(labels, kept, np.array([0, len(kept)]))
            self._monitor.update_losses(losses, self._parts[row["part"]])
        return self._monitor

    def status(self) -> dict[str, Any]:
        """Return the guarantee, the numbers of answers and claims, and the monitor's state."""
        query = """
            SELECT count(*) AS answers, count(labels) AS labelled_answers,
            coalesce(sum(json_array_length(mask)), 0) AS claims, coalesce(sum(length(mask)
            - length(replace(mask, 'true', 'tru'))), 0) AS kept_claims
            FROM answers WHERE filter = ?
        """
        counts = self._db.execute(query, (self._digest,)).fetchone()
        monitor = self.watch()
        summary = None if self._reason else monitor.summary()
        shown = "alarm", "n_problems", "n_errors", "p_value"
        return {
            "guarantee": self.filter.describe(),
            **dict(counts),
            "monitor": summary and {name: summary[name] for name in shown},
            "not_monitored": self._reason,
        }
