"""The guard before all routes: who is answered, and how slow and large a request may be.

It is one ASGI middleware, of the service and of the labelling page. What is refused here
was not read any further. Bodies are read here as a whole, so that routes wait for nobody.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from fastapi.responses import JSONResponse
from starlette.requests import Request

from .refusal import RefusedError

LINES = "application/x-ndjson"
GONE = 499  # the usual status of a request whose client went away
_JSON = "application/json"
_LONGEST = 8 * 2**20  # bytes of one request
_BODY = 30.0  # seconds for a whole body, and for the first line of a stream
_IDLE = 600.0  # seconds that may pass between two lines
# Bodies that may be on their way at a time, and below it the bytes of all together.
_MOST_BODIES = 4000
_MOST_BYTES = 2**28
_MOST_WAITING = 4000  # requests at a time; one more is asked to come again later
_MOST_STREAMS = 1000
_REQUEST_ID = re.compile(r"[\w.-]{1,64}")


class Guard:
    """Middleware that admits requests, reads their bodies, and reports how they ended.

    Parameters
    ----------
    app : ASGI application
        What answers.
    routes : dict
        For each path the content type of its requests, or None if they have no body.
    admit : callable
        Takes a request and its path, and raises RefusedError if it is not answered.
    report : callable, optional
        Takes route, status, seconds and id of a request that has ended.
    headers : mapping, optional
        Headers of every reply.
    """

    def __init__(
        self,
        app: Any,
        routes: dict[str, str | None],
        admit: Callable[[Request, str], None],
        report: Callable[[str, int, float, str], None] = lambda *_: None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._app = app
        self._routes = routes
        self._admit = admit
        self._report = report
        self._headers = [
            (name.lower().encode(), value.encode())
            for name, value in (headers or {}).items()
        ]
        self._bodies = _Bodies()
        self.n_waiting = 0
        self.n_streams = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request, as any ASGI server asks for it.

        Parameters
        ----------
        scope : dict
            As ASGI has it.
        receive, send : callable
            Likewise.
        """
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begin = perf_counter()
        request = Request(scope, receive)
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        request_id = request.headers.get("x-request-id", "")
        if not _REQUEST_ID.fullmatch(request_id):
            request_id = secrets.token_hex(8)
        status = GONE

        async def send_on(message: Any) -> None:
            nonlocal send, status
            if message["type"] == "http.response.start":
                status = message["status"]
                named = (b"x-request-id", request_id.encode())
                message["headers"] += [named, *self._headers]
            try:
                await send(message)
            except OSError:  # the client went away; there is nobody to tell the rest
                status = GONE
                send = _drop

        try:
            await self._pass_on(request, path, send_on)
        except RefusedError as error:
            refusal = JSONResponse(
                {"error": error.detail}, error.status_code, error.headers
            )
            await refusal(scope, receive, send_on)
        except Exception:
            pass
        route = path if path in self._routes else "other"
        self._report(route, status, perf_counter() - begin, request_id)

    async def _pass_on(self, request: Request, path: str, send: Any) -> None:
        """Refuse the request, or hand it to its route together with its body."""
        self._admit(request, path)
        scope = request.scope
        kind = self._routes.get(path)
        if scope["method"] == "HEAD":  # the server leaves out the body of the reply
            scope = {**scope, "method": "GET"}
        if scope["method"] != "POST" or kind is None:
            await self._app(scope, request.receive, send)
            return
        sent = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if sent != kind:
            raise RefusedError(415, f"the content type must be {kind}, got {sent!r}")
        length = request.headers.get("content-length", "")
        if length.isdecimal() and int(length) > _LONGEST:
            raise _too_long()
        coding = request.headers.get("content-encoding", "identity")
        if coding != "identity":
            raise RefusedError(
                415, f"the content encoding is {coding!r}: send the body as it is"
            )
        if kind == LINES:
            with self._one_more("n_streams", _MOST_STREAMS):
                await self._app(scope, _by_line(request.receive), send)
            return
        body = await self._bodies.read(request.receive)
        if body is not None:
            with self._one_more("n_waiting", _MOST_WAITING):
                await self._app(scope, _replay(body, request.receive), send)

    def check_room(self) -> None:
        """RefusedError if one more request would be refused now."""
        if self.n_waiting >= _MOST_WAITING:
            raise RefusedError(503, "too many requests wait: come again later")

    @contextmanager
    def _one_more(self, name: str, most: int) -> Iterator[None]:
        """Count a request while it is answered; one too many is refused."""
        if getattr(self, name) >= most:
            raise RefusedError(503, "too many requests wait: come again later")
        setattr(self, name, getattr(self, name) + 1)
        try:
            yield
        finally:
            setattr(self, name, getattr(self, name) - 1)


class _Bodies:
    """Bodies that are on their way: where they become too many, the oldest is given up.

    So clients that send slowly, in whatever number, keep no other from being read.
    """

    def __init__(self) -> None:
        self._n_bytes: dict[asyncio.Timeout, int] = {}  # the oldest stands first
        self._total = 0

    async def read(self, receive: Any) -> bytes | None:
        """Read a whole body; None if the client went away before its end."""
        body = bytearray()
        try:
            async with asyncio.timeout(_BODY) as deadline:
                self._n_bytes[deadline] = 0
                self._count(deadline, 0)
                try:
                    async for chunk in _chunks(receive):
                        body += chunk
                        self._count(deadline, len(chunk))
                    return bytes(body)
                except ConnectionError:
                    return None
                finally:
                    is_given_up = deadline not in self._n_bytes
                    self._total -= self._n_bytes.pop(deadline, 0)
        except TimeoutError as error:
            if is_given_up:
                raise RefusedError(
                    503, "too many requests are on their way: come again later"
                ) from error
            raise RefusedError(
                408, f"the whole request has to arrive within {_BODY:g} seconds"
            ) from error

    def _count(self, deadline: asyncio.Timeout, n_bytes: int) -> None:
        """Add what came in, and give up the oldest bodies until the others fit."""
        if deadline in self._n_bytes:
            self._n_bytes[deadline] += n_bytes
            self._total += n_bytes
        while len(self._n_bytes) > _MOST_BODIES or self._total > _MOST_BYTES:
            oldest = next(iter(self._n_bytes))
            self._total -= self._n_bytes.pop(oldest)
            if not oldest.expired():
                oldest.reschedule(0)


def _too_long() -> RefusedError:
    return RefusedError(413, f"a request has at most {_LONGEST:,} bytes")


async def _chunks(receive: Any) -> AsyncIterator[bytes]:
    """The parts of a body; ConnectionError if the client goes away before its end."""
    n_bytes = 0
    is_over = False
    while not is_over:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionError("the client went away")
        chunk = message.get("body", b"")
        n_bytes += len(chunk)
        if n_bytes > _LONGEST:
            raise _too_long()
        yield chunk
        is_over = not message.get("more_body", False)


def _replay(body: bytes, receive: Any) -> Callable[[], Any]:
    """What gives a body that was read, and after it what comes from the client."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_body() -> Any:
        return waiting.pop() if waiting else await receive()

    return receive_body


def _by_line(receive: Any) -> Callable[[], Any]:
    """What gives the parts of a body, of which each line has a time to arrive in."""
    n_bytes = 0
    patience = _BODY
    deadline = asyncio.get_running_loop().time() + patience

    async def receive_part() -> Any:
        nonlocal n_bytes, patience, deadline
        try:
            async with asyncio.timeout_at(deadline):
                message = await receive()
        except TimeoutError as error:
            raise RefusedError(408, f"no line came for {patience:g} seconds") from error
        part = message.get("body", b"")
        n_bytes += len(part)
        if n_bytes > _LONGEST:
            raise _too_long()
        if b"\n" in part:
            patience = _IDLE
            deadline = asyncio.get_running_loop().time() + patience
        return message

    return receive_part


async def _drop(_: Any) -> None:
    """Take what nobody waits for any more."""
