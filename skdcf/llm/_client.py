"""Where models are, and how they are called: a value that holds no key."""

import os
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from numbers import Integral, Real
from typing import Any, ClassVar
from urllib.parse import urlsplit

from .._parameters import Number, Settings, positive
from ._cache import ReplyCache
from ._calls import Reply, Usage
from ._session import CallableTransport, Session, run_coroutine
from ._transport import OpenAITransport


class ChatClient(Settings):
    """An endpoint that speaks the chat-completions protocol, or a function.

    Parameters
    ----------
    base_url : str, optional
        Address of the endpoint, such as ``"http://127.0.0.1:8000/v1"``. None: what the
        environment variable ``OPENAI_BASE_URL`` says, and else OpenAI's.
    complete : callable, optional
        In the place of an endpoint: ``complete(messages)`` gets a list of dictionaries
        with ``role`` and ``content``, and returns a text or a `Reply`; it may be async.
        If it takes ``**options``, these are ``model``, ``schema``, ``temperature``,
        ``seed``, ``max_tokens`` and ``logprobs``. In a cache, replies are kept under the
        function's module and name: another function needs another name.
    key_variable : str, default="OPENAI_API_KEY"
        Name of the environment variable that holds the key. The key itself is read when
        calls are made, and is never stored.
    cache : path-like, optional
        A file that keeps all replies, so that none is asked for twice and an interrupted
        run goes on where it was. Only its owner may read it. None remembers them for
        the time of a run.
    in_flight : int, default=8
        Most calls at once.
    timeout : float, default=60.0
        Seconds for each attempt, the whole reply included.
    max_retries : int, default=5
        How often a call is made again after status 408, 409, 425, 429 or 5xx, a lost
        connection, a timeout or a broken response. Servers' ``Retry-After`` holds for
        all calls, up to two minutes.
    prices : (float, float), optional
        Of a million tokens of prompts and of replies, in whatever currency.
    confirm_above : float, optional
        Before a run whose estimate is above it, a person is asked. In the currency of
        ``prices``, and without prices in tokens. By default 1,000,000 tokens, or 1.

    Raises
    ------
    ValueError
        If a parameter has a wrong value.
    EndpointError
        When calls are made: if there is no key for an endpoint on another machine.
    ImportError
        When calls are made: if the openai client is not installed.

    Notes
    -----
    An endpoint that refuses ``response_format`` with a schema is asked for any JSON
    object, then for text, which is read tolerantly. ``temperature`` and ``seed`` are
    left out, with a warning, where a model refuses them.

    Examples
    --------
    >>> from skdcf.llm import ChatClient, Decompose
    >>> client = ChatClient(complete=lambda messages: '{"claims": ["2 + 2 = 4"]}')
    >>> Decompose().apply(["It is 4."], ["What is 2 + 2?"], model="any", client=client)
    [['2 + 2 = 4']]
    """

    _opens = ("base_url", "complete", "key_variable", "cache")  # not taken from a file
    _parameter_constraints: ClassVar[dict[str, list]] = {
        "base_url": [str, None],
        "complete": [callable, None],
        "key_variable": [str],
        "cache": [str, os.PathLike, None],
        "in_flight": [positive(Integral)],
        "timeout": [positive()],
        "max_retries": [Number(Integral, 0, None, closed="left")],
        "prices": [tuple, list, None],
        "confirm_above": [Number(Real, 0, None, closed="left"), None],
    }

    def __init__(
        self,
        base_url: str | None = None,
        *,
        complete: Callable[..., str | Reply | Awaitable[str | Reply]] | None = None,
        key_variable: str = "OPENAI_API_KEY",
        cache: str | os.PathLike | None = None,
        in_flight: int = 8,
        timeout: float = 60.0,
        max_retries: int = 5,
        prices: tuple[float, float] | None = None,
        confirm_above: float | None = None,
    ):
        self.base_url = base_url
        self.complete = complete
        self.key_variable = key_variable
        self.cache = cache
        self.in_flight = in_flight
        self.timeout = timeout
        self.max_retries = max_retries
        self.prices = prices
        self.confirm_above = confirm_above

    def validate(self) -> None:
        """Raise ValueError unless all parameters are as declared, and of use."""
        if self.key_variable is None:
            raise ValueError(
                "the client comes from a file, so its address, the variable of its key "
                "and its cache were taken out: set base_url and key_variable"
            )
        super().validate()
        if self.base_url is not None:
            _check_url(self.base_url)
        if self.base_url is not None and self.complete is not None:
            raise ValueError(
                "base_url and complete are both given: a call goes to an endpoint or to "
                "a function"
            )
        if self.prices is not None:
            _check_prices(self.prices)

    def limit(self) -> tuple[float, str]:
        """The estimate above which a person is asked, and its unit.

        Returns
        -------
        (float, {"tokens", "cost"})
        """
        unit = "tokens" if self.prices is None else "cost"
        standard = 1e6 if self.prices is None else 1.0
        return standard if self.confirm_above is None else self.confirm_above, unit

    @asynccontextmanager
    async def open(self, *, dry: bool = False) -> Any:
        """A session in which calls are made.

        Parameters
        ----------
        dry : bool, default=False
            Whether to answer from the cache alone.

        Returns
        -------
        async context manager of the session
        """
        self.validate()
        usage = Usage()
        session = Session(
            self._transport(usage), ReplyCache(self.cache), self.in_flight, dry, usage
        )
        try:
            yield session
        finally:
            await session.close()

    def run(self, work: Callable[[Any], Awaitable[Any]], *, dry: bool = False) -> Any:
        """Open a session, do the work in it, and close it.

        Parameters
        ----------
        work : callable
            An async function of the session.
        dry : bool, default=False
            Whether to answer from the cache alone.

        Returns
        -------
        What the work returns.
        """

        async def main():
            async with self.open(dry=dry) as session:
                return await work(session)

        return run_coroutine(main)

    def _transport(self, usage):
        if self.complete is not None:
            return CallableTransport(self.complete)
        return OpenAITransport(
            self.base_url, self.key_variable, self.timeout, self.max_retries, usage
        )


def as_client(client: Any) -> ChatClient:
    """What the caller gave for a client, as a ChatClient.

    Parameters
    ----------
    client : ChatClient, callable or None

    Returns
    -------
    ChatClient

    Raises
    ------
    ValueError
        If it is something else, such as a client of openai, which would hold a key.
    """
    if client is None:
        return ChatClient()
    if isinstance(client, ChatClient):
        return client
    if callable(client) and not isinstance(client, type):
        return ChatClient(complete=client)
    raise ValueError(
        f"client is a {type(client).__name__}, but must be a ChatClient, or a function "
        "of the messages. A client of openai holds its key, which is then stored with "
        "it: pass ChatClient(base_url=..., key_variable=...) instead"
    )


def _check_url(url):
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(
            f"base_url is {url!r}, but must begin with http:// or https://"
        )
    if parts.username or parts.password or parts.query:
        raise ValueError(
            "base_url holds a user name, a password or a query: keys belong into the "
            "environment, see key_variable"
        )


def _check_prices(prices):
    good = len(prices) == 2 and all(
        isinstance(p, Real) and not isinstance(p, bool) and 0 <= p < float("inf")
        for p in prices
    )
    if not good:
        raise ValueError(
            f"prices is {prices!r}, but must be two: of a million tokens of prompts and "
            "of a million tokens of replies"
        )
