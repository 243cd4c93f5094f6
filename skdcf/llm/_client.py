"""Where models are, and how they are called: a value that holds no key."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from datetime import timedelta
from numbers import Integral, Real
from typing import Any, ClassVar
from urllib.parse import parse_qsl, urlsplit

from .._parameters import Number, Settings, positive
from ._calls import Reply
from ._session import Engine, ReplyCache, Session
from ._transport import Endpoint, FunctionTransport, find_url

_LOCK = threading.Lock()  # while an engine is made
_SECRET_WORDS = ("key", "token", "secret", "password", "sig", "auth")
_OURS = {"model", "messages", "response_format", "seed", "stream", "n", "logprobs"}


class ChatClient(Settings):
    """An endpoint that speaks the chat-completions protocol, or a function.

    Parameters
    ----------
    base_url : str, optional
        Address of the endpoint, such as ``"http://127.0.0.1:8000/v1"``; it may have a
        query (``?api-version=...``). None: what the environment variable
        ``OPENAI_BASE_URL`` says, and else OpenAI's.
    complete : callable, optional
        In the place of an endpoint: ``complete(messages)`` gets a list of dictionaries
        with ``role`` and ``content``, and returns a text or a `Reply`; it may be async.
        If it takes ``**options``, these are ``model``, ``schema``, ``temperature``,
        ``seed``, ``max_tokens`` and ``logprobs``. In a cache, replies are kept under the
        function's module and name: another function needs another name.
    key_variable : str or None, default="OPENAI_API_KEY"
        Name of the environment variable that holds the key for this address. The key
        itself is read when calls are made, and is never stored. None sends no key.
    headers : dict, optional
        Further headers: name of the header to name of the environment variable that
        holds its value, as in ``{"api-key": "AZURE_KEY"}``. Nothing else that the
        environment holds is sent.
    extra : dict, optional
        What the body of each call holds beside what this package puts there, such as
        ``{"top_k": 1}``. It is part of the name under which a reply is kept.
    cache : path-like, optional
        A file that keeps all replies that could be read, so that none is asked for twice
        and an interrupted run goes on where it was. Only its owner may read it. None
        remembers them for the time of a run.
    in_flight : int, default=8
        Most calls at once, over all threads that use this client.
    timeout : float, default=60.0
        Seconds for each attempt, the whole reply included.
    max_retries : int, default=5
        How often a call is made again after status 408, 409, 425, 429 or 5xx, a lost
        connection, a timeout or a broken response. Servers' ``Retry-After`` holds for
        all calls, up to two minutes.
    max_tokens : int, optional
        Of a reply. None leaves it to the endpoint.
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
    What an endpoint refuses is sent in another way, and learnt once for each model:
    ``response_format`` with a schema becomes any JSON object, then text, which is read
    tolerantly; ``max_tokens``, ``temperature``, ``seed`` and ``logprobs`` are left out;
    a system message becomes the beginning of the user's.

    Connections stay open between runs. They end with `close`, or with the client itself.
    A client that `skdcf.load` read from a file knows no address, key or cache until
    ``set_params(base_url=..., key_variable=...)``.

    Examples
    --------
    >>> from skdcf.llm import ChatClient, Decompose
    >>> client = ChatClient(complete=lambda messages: '{"claims": ["2 + 2 = 4"]}')
    >>> Decompose().apply(["It is 4."], ["What is 2 + 2?"], model="any", client=client)
    [['2 + 2 = 4']]
    """

    # Not taken from a file: `skdcf.load` makes them None.
    _opens = ("base_url", "complete", "key_variable", "headers", "cache")
    _parameter_constraints: ClassVar[dict[str, list]] = {
        "base_url": [str, None],
        "complete": [callable, None],
        "key_variable": [str, None],
        "headers": [dict, None],
        "extra": [dict, None],
        "cache": [str, os.PathLike, None],
        "in_flight": [positive(Integral)],
        "timeout": [positive()],
        "max_retries": [Number(Integral, 0, None, closed="left")],
        "max_tokens": [positive(Integral), None],
        "prices": [tuple, list, None],
        "confirm_above": [Number(Real, 0, None, closed="left"), None],
    }
    _engine: Any = None  # and the settings that it was made with

    def __init__(
        self,
        base_url: str | None = None,
        *,
        complete: Callable[..., str | Reply | Awaitable[str | Reply]] | None = None,
        key_variable: str | None = "OPENAI_API_KEY",
        headers: Mapping[str, str] | None = None,
        extra: Mapping[str, Any] | None = None,
        cache: str | os.PathLike | None = None,
        in_flight: int = 8,
        timeout: float = 60.0,
        max_retries: int = 5,
        max_tokens: int | None = None,
        prices: tuple[float, float] | None = None,
        confirm_above: float | None = None,
    ):
        self.base_url = base_url
        self.complete = complete
        self.key_variable = key_variable
        self.headers = headers
        self.extra = extra
        self.cache = cache
        self.in_flight = in_flight
        self.timeout = timeout
        self.max_retries = max_retries
        self.max_tokens = max_tokens
        self.prices = prices
        self.confirm_above = confirm_above

    def validate(self) -> None:
        """Raise ValueError unless all parameters are as declared, and of use."""
        super().validate()
        if self.base_url is self.complete is self.key_variable is None:
            raise ValueError(
                "the client knows no address: one that comes from a file has to be told "
                "anew where its model is. Set base_url and key_variable, with set_params"
            )
        if self.base_url is not None:
            _check_url(self.base_url)
        if self.base_url is not None and self.complete is not None:
            raise ValueError(
                "base_url and complete are both given: a call goes to an endpoint or to "
                "a function"
            )
        if taken := _OURS.intersection(self.extra or ()):
            raise ValueError(f"extra holds {sorted(taken)}, which this package sets")
        for name, variable in (self.headers or {}).items():
            if not (isinstance(name, str) and isinstance(variable, str)):
                raise ValueError(
                    f"headers has {name!r}: give the name of a header, and that of the "
                    "environment variable that holds its value"
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

    def run(self, work: Callable[[Session], Coroutine], *, dry: bool = False) -> Any:
        """Do work in a session, and wait for it.

        Parameters
        ----------
        work : callable
            An async function of the session.
        dry : bool, default=False
            Whether to answer from the cache alone.

        Returns
        -------
        object
            What the work returns.
        """
        engine = self._started()
        return engine.run(work(Session(engine, self.max_tokens, dry)))

    async def arun(
        self, work: Callable[[Session], Coroutine], *, dry: bool = False
    ) -> Any:
        """Do work in a session, from a loop of the caller's; as `run`.

        Parameters
        ----------
        work : callable
            An async function of the session.
        dry : bool, default=False
            Whether to answer from the cache alone.

        Returns
        -------
        object
            What the work returns.
        """
        engine = self._started()
        future = engine.submit(work(Session(engine, self.max_tokens, dry)))
        return await asyncio.wrap_future(future)

    def purge(self, older_than: timedelta | float = 0.0) -> int:
        """Remove replies from the cache.

        Parameters
        ----------
        older_than : timedelta or float, default=0.0
            Age from which replies are removed; a number is in seconds. 0 removes all.

        Returns
        -------
        int
            How many were removed.

        Raises
        ------
        ValueError
            If the client has no cache.
        """
        if self.cache is None:
            raise ValueError("this client keeps no replies: its cache is None")
        age = older_than
        seconds = age.total_seconds() if isinstance(age, timedelta) else float(age)
        cache = ReplyCache(self.cache)
        try:
            return cache.purge(seconds)
        finally:
            cache.close()

    def close(self) -> None:
        """End connections; the next run opens them again."""
        with _LOCK:
            opened, self._engine = self._engine, None
        if opened is not None:
            opened[2]()

    def _started(self) -> Engine:
        """The engine for these settings: the one that runs, or a new one."""
        self.validate()
        settings = self.get_params(deep=False) | {"base_url": self._address()}
        with _LOCK:
            if self._engine is not None:
                engine, made_with, end = self._engine
                if made_with == settings and engine.process == os.getpid():
                    return engine
                end()
            cache = None if self.cache is None else ReplyCache(self.cache)
            engine = Engine(self._transport(settings), cache, self.in_flight)
            self._engine = engine, settings, weakref.finalize(self, engine.close)
            return engine

    def _address(self):
        return find_url(self.base_url) if self.complete is None else None

    def _transport(self, settings):
        if self.complete is not None:
            return FunctionTransport(self.complete)
        return Endpoint(settings)

    def __getstate__(self):
        state = dict(super().__getstate__())
        state.pop("_engine", None)
        return state


def drive(client: ChatClient, work: Generator) -> Any:
    """Run what a generator yields, pairs (work, dry), and give it the results."""
    result = None
    try:
        while True:
            main, dry = work.send(result)
            result = client.run(main, dry=dry)
    except StopIteration as end:
        return end.value


async def adrive(client: ChatClient, work: Generator) -> Any:
    """As `drive`, from a loop of the caller's."""
    result = None
    try:
        while True:
            main, dry = work.send(result)
            result = await client.arun(main, dry=dry)
    except StopIteration as end:
        return end.value


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
    named = [name.lower() for name, _ in parse_qsl(parts.query, keep_blank_values=True)]
    secret = any(word in name for name in named for word in _SECRET_WORDS)
    if parts.username or parts.password or secret:
        raise ValueError(
            "base_url holds a user name, a password or a key: keys belong into the "
            "environment, see key_variable and headers"
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
