"""What can go wrong with a call of a model."""

from __future__ import annotations


class CallError(RuntimeError):
    """Error: a call of a model brought no usable reply, however often it was tried."""


class EndpointError(CallError):
    """Error: no call can succeed, as with a wrong key or an endpoint that is down."""


class UnreadableError(CallError):
    """Error: the endpoint answers, but not with what was asked for.

    ``text`` is the last reply.
    """

    def __init__(self, message: str, text: str = ""):
        super().__init__(message)
        self.text = text


class PassingError(Exception):
    """A fault that may be gone next time.

    Parameters
    ----------
    problem : str
    wait : float, optional
        Seconds that the server asks for; None if it does not say.
    """

    def __init__(self, problem: str, wait: float | None = None):
        super().__init__(problem)
        self.wait = wait


class RefusedError(PassingError):
    """A rate limit, which holds for all calls."""
