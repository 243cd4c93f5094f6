"""ASGI middleware that controls access and limits the duration and size of requests.

The body of a rejected request is not read. The body of an admitted request is read completely
before the route is called, so routes do not wait for slow clients.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from fastapi.responses import JSONResponse
from starlette.requests import Request

from .refusal import RefusedError

_JSON = "application/json"
_LONGEST = 8 * 2**20  # maximum size of a request in bytes
_BODY = 30.0  # time limit in seconds for a whole body
# maximum number of request bodies that are received at the same time
_MOST_BODIES = 4000
# maximum total size of the request bodies that are received at the same time
_MOST_BYTES = 2**28
# maximum number of concurrent requests; further requests are rejected
_MOST_WAITING = 4000


class Guard:
    """Middleware that admits requests and reads their bodies.

    Parameters
    ----------
    app : ASGI application
        The application that handles the admitted requests.
    routes : dict
        Request content type for each path, or None for paths without a request body.
    admit : callable
        Function that is called with a request and its path, and raises RefusedError to reject
        the request.
    headers : mapping, optional
        Headers to add to every response.
    """

    def __init__(
        self,
        app: Any,
        routes: dict[str, str | None],
        admit: Callable[[Request, str], None],
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._app = app
        self._routes = routes
        self._admit = admit
        self._headers = [
            (name.lower().encode(), value.encode())
            for name, value in (headers or {}).items()
        ]
        self._bodies = _Bodies()
        self._n_waiting = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle one request according to the ASGI protocol.

        Parameters
        ----------
        scope : dict
            ASGI connection scope.
        receive, send : callable
            ASGI channels.
        """
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        path = scope["path"].removeprefix(scope.get("root_path", ""))

        async def send_on(message: Any) -> None:
            nonlocal send
            if message["type"] == "http.response.start":
                message["headers"] += self._headers
            try:
                await send(message)
            except OSError:  # The client has closed the connection.
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

    async def _pass_on(self, request: Request, path: str, send: Any) -> None:
        """Reject the request, or pass it with its body to the application."""
        self._admit(request, path)
        scope = request.scope
        kind = self._routes.get(path)
        # The server omits the response body of a HEAD request.
        if scope["method"] == "HEAD":
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
                415,
                f"the content encoding {coding!r} is not supported. Send the body "
                "without an encoding",
            )
        body = await self._bodies.read(request.receive)
        if body is not None:
            if self._n_waiting >= _MOST_WAITING:
                raise RefusedError(
                    503, "too many requests are waiting. Try again later"
                )
            self._n_waiting += 1
            try:
                await self._app(scope, _replay(body, request.receive), send)
            finally:
                self._n_waiting -= 1


class _Bodies:
    """Request bodies that are being received.

    If there are too many bodies, the oldest body is dropped, so slow clients cannot block other
    clients.
    """

    def __init__(self) -> None:
        # Number of bytes in each request body, in order of arrival.
        self._n_bytes: dict[asyncio.Timeout, int] = {}
        self._total = 0

    async def read(self, receive: Any) -> bytes | None:
        """Return a whole body, or None if the client disconnects before its end."""
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
                    503, "too many requests are being received. Try again later"
                ) from error
            raise RefusedError(
                408, f"the whole request must arrive within {_BODY:g} seconds"
            ) from error

    def _count(self, deadline: asyncio.Timeout, n_bytes: int) -> None:
        """Count received bytes, and drop the oldest bodies until the remaining bodies fit."""
        if deadline in self._n_bytes:
            self._n_bytes[deadline] += n_bytes
            self._total += n_bytes
        while len(self._n_bytes) > _MOST_BODIES or self._total > _MOST_BYTES:
            oldest = next(iter(self._n_bytes))
            self._total -= self._n_bytes.pop(oldest)
            if not oldest.expired():
                oldest.reschedule(0)


def _too_long() -> RefusedError:
    return RefusedError(413, f"a request must have at most {_LONGEST:,} bytes")


async def _chunks(receive: Any) -> AsyncIterator[bytes]:
    """Yield the chunks of a body, or raise ConnectionError if the client disconnects early."""
    n_bytes = 0
    is_over = False
    while not is_over:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionError("the client closed the connection")
        chunk = message.get("body", b"")
        n_bytes += len(chunk)
        if n_bytes > _LONGEST:
            raise _too_long()
        yield chunk
        is_over = not message.get("more_body", False)


def _replay(body: bytes, receive: Any) -> Callable[[], Any]:
    """Return an ASGI receive channel that first returns a body that was already received."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_body() -> Any:
        return waiting.pop() if waiting else await receive()

    return receive_body


async def _drop(_: Any) -> None:
    """Discard a message for a client that has disconnected."""
