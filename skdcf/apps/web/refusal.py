"""What a client is told of a request that fails, and the strict reading of JSON."""

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
    429: {"Retry-After": "600"},
    503: {"Retry-After": "1"},
}
_LOG = logging.getLogger("skdcf.apps.service")


class RefusedError(HTTPException):
    """A refusal: a status and a sentence that are answered instead.

    Parameters
    ----------
    status : int
        Of HTTP.
    message : str
        For the client.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(status, message, headers=_ALSO.get(status))


def fault_of(path: str, error: Exception) -> tuple[int, str]:
    """Return the status and the sentence for an error.

    What is no fault of the request is logged.

    Parameters
    ----------
    path : str
        Of the request.
    error : Exception

    Returns
    -------
    status : int
    message : str
    """
    if isinstance(error, FrameworkRefusal):
        return error.status_code, error.detail
    if isinstance(error, RequestValidationError):
        return 400, _fault_of_value(error.errors()[0])
    if isinstance(error, ValueError):
        return 400, reworded(error, "client")
    # Its message may hold texts, unless it is of the operating system or the journal.
    told = getattr(error, "strerror", None) or type(error).__name__
    if isinstance(error, sqlite3.Error):
        told = str(error)
    _LOG.error("%s: %s", path, told)
    return 500, "the service failed; its log says where"


def _fault_of_value(fault: dict[str, Any]) -> str:
    """The sentence for a value that the model of a request does not allow."""
    _, *place = fault["loc"]
    if not place:
        return "the request must be a JSON object"
    # Of a union of types the place holds the name of one, too.
    name = ".".join(
        str(part) for k, part in enumerate(place) if not k or type(part) is int
    )
    if fault["type"] == "missing":
        return f'"{name}" is missing: send it'
    return f'"{name}" is {fault["input"]!r:.80}: {fault["msg"]}'


def read_object(content: bytes | bytearray) -> dict[str, Any]:
    """Read a JSON object. NaN, infinities and keys that are given twice are refused.

    Parameters
    ----------
    content : bytes or bytearray
        A request body, or a line of one.

    Returns
    -------
    dict

    Raises
    ------
    RefusedError
        If it is not a JSON object, or an object in it has two equal keys.
    """
    try:
        record = _decode(content.decode())
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict):
        raise RefusedError(400, "the request must be a JSON object")
    return record


def _without_copies(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these keys and values; two values of one key contradict each other."""
    record = dict(pairs)
    if len(record) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise RefusedError(400, f"the key {twice!r} is given twice: send it once")
    return record


_decode = json.JSONDecoder(
    parse_constant=int,  # which refuses NaN
    object_pairs_hook=_without_copies,
).decode
