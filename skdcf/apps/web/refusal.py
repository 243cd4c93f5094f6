"""Error responses, and strict parsing of JSON."""

from __future__ import annotations

import json
import logging
import sqlite3
from typing import Any

from fastapi import HTTPException
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException as FrameworkRefusal

from .._messages import reworded

_ALSO = {
    401: {"WWW-Authenticate": "Bearer"},
    503: {"Retry-After": "1"},
}
_LOG = logging.getLogger("skdcf.apps.service")


class RefusedError(HTTPException):
    """Error that rejects a request with an HTTP status and a message.

    Parameters
    ----------
    status : int
        HTTP status code.
    message : str
        Message for the client.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(status, message, headers=_ALSO.get(status))


def fault_of(path: str, error: Exception) -> tuple[int, str]:
    """Return the HTTP status and the message for an error.

    Errors that are not caused by the request are logged.

    Parameters
    ----------
    path : str
        Path of the request.
    error : Exception
        The error that was raised while the request was handled.

    Returns
    -------
    status : int
        HTTP status code.
    message : str
        Message for the client.
    """
    if isinstance(error, FrameworkRefusal):
        return error.status_code, error.detail
    if isinstance(error, RequestValidationError):
        return 400, _fault_of_value(error.errors()[0])
    if isinstance(error, ValueError):
        return 400, reworded(error, "client")
    # The message may contain text from the request. This text must not be logged. Error messages
    # from the operating system and the journal are safe to show, because they do not contain any
    # text from the request.
    detail = getattr(error, "strerror", None) or type(error).__name__
    if isinstance(error, sqlite3.Error):
        detail = str(error)
    _LOG.error("%s: %s", path, detail)
    return 500, "internal error. The log of the service contains the reason"


def _fault_of_value(fault: dict[str, Any]) -> str:
    """Return the message for an invalid value in a request."""
    _, *place = fault["loc"]
    if not place:
        return "the request must be a JSON object"
    # For a union type, the location also contains a type name, which is skipped.
    name = ".".join(
        str(part) for k, part in enumerate(place) if not k or type(part) is int
    )
    if fault["type"] == "missing":
        return f'"{name}" is missing. Send this key'
    return f'"{name}" is {fault["input"]!r:.80}: {fault["msg"]}'


def read_object(content: bytes | bytearray) -> dict[str, Any]:
    """Parse a JSON object, and reject NaN, infinities and duplicate keys.

    Parameters
    ----------
    content : bytes or bytearray
        A request body, or a line of a request body.

    Returns
    -------
    record : dict
        The parsed object.

    Raises
    ------
    RefusedError
        If the content is not a JSON object or contains an object with duplicate keys.
    """
    try:
        record = _decode(content.decode())
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict):
        raise RefusedError(400, "the request must be a JSON object")
    return record


def _without_copies(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a dict of the keys and values, or raise RefusedError if a key is repeated."""
    record = dict(pairs)
    if len(record) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise RefusedError(400, f"the key {twice!r} must not occur twice. Send it once")
    return record


_decode = json.JSONDecoder(
    parse_constant=int,  # int raises ValueError for NaN and infinities.
    object_pairs_hook=_without_copies,
).decode
