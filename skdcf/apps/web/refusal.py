"""Error responses."""

from __future__ import annotations

import logging
import sqlite3
from typing import Any

from fastapi import HTTPException
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException as FrameworkRefusal

from .._messages import reworded

_ALSO = {
    503: {"Retry-After": "1"},
}
_LOG = logging.getLogger("skdcf.apps.web")


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
