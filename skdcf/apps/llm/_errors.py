"""Errors raised by model calls."""

from __future__ import annotations


class CallError(RuntimeError):
    """Raised if a model call does not return a usable reply after all retries."""


class EndpointError(CallError):
    """Raised if no call can succeed, for example if the key is wrong or the server is down."""


class UnreadableError(CallError):
    """Raised if the endpoint replies, but the reply cannot be used.

    The attribute ``text`` contains the last reply.
    """

    def __init__(self, message: str, text: str = ""):
        super().__init__(message)
        self.text = text


class PassingError(Exception):
    """Raised for a temporary failure, after which a retry may succeed.

    Parameters
    ----------
    problem : str
        Description of the failure.
    wait : float, optional
        Seconds to wait, as requested by the server, or None if the server does not specify a
        time.
    """

    def __init__(self, problem: str, wait: float | None = None):
        super().__init__(problem)
        self.wait = wait


class RefusedError(PassingError):
    """Raised if the server reports a rate limit, which applies to all calls."""
