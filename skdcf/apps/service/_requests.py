"""What comes in: bodies and lines, read within a bound of bytes and one of seconds."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

_LONGEST = 8 * 2**20  # bytes of one request
_BODY = 30.0  # seconds for a whole body, and for the first line of a stream
_IDLE = 600.0  # seconds that may pass between two lines
# Bodies that may be on their way at a time, and below it the bytes of all together.
_MOST_BODIES = 4000
_MOST_BYTES = 2**28
_decoded = json.JSONDecoder(parse_constant=int).decode  # since int refuses NaN


class RefusedError(ValueError):
    """A refusal: a status and a sentence that are answered instead.

    Parameters
    ----------
    status : int
        Of HTTP.
    message : str
        For the client.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Bodies:
    """Bodies that are on their way: where they become too many, the oldest is given up.

    So clients that send slowly, in whatever number, keep no other from being read.
    """

    def __init__(self) -> None:
        self._n_bytes: dict[asyncio.Timeout, int] = {}  # the oldest stands first
        self._total = 0

    async def read(self, request: Any) -> bytes:
        """Read the whole body of a request.

        Parameters
        ----------
        request : starlette.requests.Request
            Of which nothing has been read.

        Returns
        -------
        bytes
        """
        body = bytearray()
        try:
            async with asyncio.timeout(_BODY) as deadline:
                self._n_bytes[deadline] = 0
                self._count(deadline, 0)
                try:
                    async for chunk in _chunks(request):
                        body += chunk
                        self._count(deadline, len(chunk))
                    return bytes(body)
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


async def read_lines(request: Any) -> AsyncIterator[dict[str, Any]]:
    """Read the lines of a request, each as soon as its end has come in.

    Parameters
    ----------
    request : starlette.requests.Request
        Of which nothing has been read.

    Yields
    ------
    dict
        The object in the line.
    """
    chunks = _chunks(request)
    rest = bytearray()
    patience = _BODY
    is_over = False
    while not is_over:
        chunk = b""
        try:
            async with asyncio.timeout(patience):
                while not is_over and b"\n" not in chunk:
                    chunk = await anext(chunks, b"")
                    is_over = not chunk
                    # The end of the body ends the last line, too.
                    rest += chunk or b"\n"
        except TimeoutError as error:
            raise RefusedError(408, f"no line came for {patience:g} seconds") from error
        *lines, rest = rest.split(b"\n")
        for line in lines:
            if line.strip():
                patience = _IDLE
                yield read_object(line)


async def _chunks(request: Any) -> AsyncIterator[bytes]:
    """What comes in, read no further than the bound."""
    n_bytes = 0
    async for chunk in request.stream():
        n_bytes += len(chunk)
        if n_bytes > _LONGEST:
            raise RefusedError(413, f"a request has at most {_LONGEST:,} bytes")
        yield chunk


def read_object(content: bytes | bytearray) -> dict[str, Any]:
    """Read an object of JSON.

    Parameters
    ----------
    content : bytes or bytearray
        A body, or a line of one.

    Returns
    -------
    dict

    Raises
    ------
    ValueError
        If it is none.
    """
    with suppress(ValueError, RecursionError):
        record = _decoded(content.decode())
        if isinstance(record, dict):
            return record
    raise ValueError("the request must be an object of JSON")
