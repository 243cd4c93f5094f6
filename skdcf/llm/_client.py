"""Where models are, as a value that holds no key, and what all steps that ask them share."""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import KW_ONLY, dataclass
from datetime import timedelta
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, cast
from urllib.parse import parse_qsl, urlsplit

import numpy as np

from .._parameters import Number, Settings, positive
from ..graphs import ReasoningGraph
from ._calls import CallError, Prompt, Reply, resolve_prompt
from ._session import Chat, Engine, ReplyCache, Session, gather_all
from ._transport import Endpoint, FunctionTransport, find_url

_LOCK = threading.Lock()  # while an engine is made
_SECRET_WORDS = ("key", "token", "secret", "password", "sig", "auth")
_OURS = {"model", "messages", "response_format", "seed", "stream", "n", "logprobs"}


@dataclass(eq=False, repr=False)
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
        environment holds is sent, so an organisation has to be named here as well:
        ``{"OpenAI-Organization": "OPENAI_ORG_ID"}``.
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
    _engine = cast(Any, None)  # and the settings that it was made with

    base_url: str | None = None
    _: KW_ONLY
    complete: Callable[..., str | Reply | Awaitable[str | Reply]] | None = None
    key_variable: str | None = "OPENAI_API_KEY"
    headers: Mapping[str, str] | None = None
    extra: Mapping[str, Any] | None = None
    cache: str | os.PathLike | None = None
    in_flight: int = 8
    timeout: float = 60.0
    max_retries: int = 5
    max_tokens: int | None = None
    prices: tuple[float, float] | None = None
    confirm_above: float | None = None

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
            if self.complete is not None:
                raise ValueError("base_url and complete are both given: choose one")
        if taken := _OURS.intersection(self.extra or ()):
            raise ValueError(f"extra holds {sorted(taken)}, which this package sets")
        if not all(
            isinstance(v, str) for pair in (self.headers or {}).items() for v in pair
        ):
            raise ValueError(
                f"headers is {self.headers!r}: give the name of each header, and that of "
                "the environment variable that holds its value"
            )
        if self.prices is not None:
            _check_prices(self.prices)

    def limit(self) -> tuple[float, str]:
        """The estimate above which a person is asked, and its unit.

        Returns
        -------
        (float, {"tokens", "cost"})
            The amount, and what it counts.
        """
        unit = "tokens" if self.prices is None else "cost"
        standard = 1e6 if self.prices is None else 1.0
        return standard if self.confirm_above is None else self.confirm_above, unit

    def submit(
        self, work: Callable[[Session], Coroutine], *, dry: bool = False
    ) -> Future:
        """Begin work in a session.

        Parameters
        ----------
        work : callable
            An async function of the session.
        dry : bool, default=False
            Whether to answer from the cache alone.

        Returns
        -------
        concurrent.futures.Future
            Which holds what the work returns.
        """
        engine = self._started()
        return engine.submit(work(Session(engine, self.max_tokens, dry)))

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
        future = self.submit(work, dry=dry)
        try:
            return future.result()
        finally:
            future.cancel()  # where the wait was interrupted, as by Ctrl-C

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
        with closing(ReplyCache(self.cache)) as cache:
            return cache.purge(seconds)

    def close(self) -> None:
        """End connections; the next run opens them again."""
        with _LOCK:
            opened, self._engine = self._engine, None
        if opened is not None:
            opened[2]()

    def _started(self) -> Engine:
        """The engine for these settings: the one that runs, or a new one."""
        self.validate()
        settings = self.get_params(deep=False) | {"base_url": find_url(self.base_url)}
        with _LOCK:
            if self._engine is not None:
                engine, made_with, end = self._engine
                if made_with == settings and engine.process == os.getpid():
                    return engine
                end()
            cache = None if self.cache is None else ReplyCache(self.cache)
            made = Endpoint(settings)
            if self.complete is not None:
                made = FunctionTransport(self.complete)
            engine = Engine(made, cache, self.in_flight)
            self._engine = engine, settings, weakref.finalize(self, engine.close)
            return engine

    def __getstate__(self):
        return super().__getstate__() | {"_engine": None}


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
            result = await asyncio.wrap_future(client.submit(main, dry=dry))
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
    real = all(isinstance(p, Real) and not isinstance(p, bool) for p in prices)
    if len(prices) != 2 or not real or not all(0 <= p < float("inf") for p in prices):
        raise ValueError(
            f"prices is {prices!r}, but must be two: of a million tokens of prompts and "
            "of a million tokens of replies"
        )


_LETTERS_PER_TOKEN = 4


class Size(NamedTuple):
    """How large a problem is, in tokens and numbers, known or guessed."""

    problem: int
    answer: int
    context: int
    n_claims: int
    n_alternatives: int


@dataclass(frozen=True)
class Estimate:
    """Calls and tokens that a run will need, about.

    Parameters
    ----------
    n_problems : int
        Problems of the run.
    n_done : int
        Those of them whose replies are all in the cache; they cost nothing.
    calls : int
    prompt_tokens, completion_tokens : int
        Guessed from the lengths of the texts, four characters to a token, and corrected
        by what answers in the cache needed. Models that think before they answer write
        several times as much.
    cost : float or None
        By the prices of the client, None where these are not known.
    """

    n_problems: int
    n_done: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None

    @property
    def tokens(self) -> int:
        """Tokens of prompts and replies together."""
        return self.prompt_tokens + self.completion_tokens

    @classmethod
    def of(cls, n_problems: int, n_done: int, total: Any, prices: Any) -> Estimate:
        """From calls, tokens of prompts and tokens of replies of what is to be done.

        Parameters
        ----------
        n_problems, n_done : int
        total : array of float, shape (3,)
        prices : (float, float) or None

        Returns
        -------
        Estimate
        """
        cost = None if prices is None else float(np.dot(total[1:], prices)) / 1e6
        calls, asked, said = (round(float(value)) for value in total)
        return cls(n_problems, n_done, calls, asked, said, cost)

    def __str__(self):
        price = "" if self.cost is None else f", costing about {self.cost:.4g}"
        return (
            f"{self.n_problems} problems, of which {self.n_done} are in the cache: about "
            f"{self.calls:,} calls with {self.prompt_tokens:,} tokens of prompts and "
            f"{self.completion_tokens:,} of replies{price}"
        )


@dataclass(eq=False, repr=False)
class Step(Settings):
    """One step between a model's answer and what a filter takes.

    Subclasses name their prompt and the type of its reply, and define ``_question``, what
    a model is asked about one problem (None: nothing), and ``_read``, what its reply
    means (None: nothing was asked). Those that ask more than once define ``_run``.
    """

    _prompt_name: ClassVar[str] = ""
    _reply: ClassVar[type]
    _per: ClassVar[str] = (
        "answer"  # what has a call of its own: answer, claim, alternative or draw
    )
    _written: ClassVar[int] = 37  # tokens that a reply has for each claim
    _parameter_constraints: ClassVar[dict[str, list]] = {
        "prompt": [str, Path, None],
        "model": [str, None],
    }

    prompt: str | Path | None = None
    _: KW_ONLY
    model: str | None = None

    def _question(self, *item: Any) -> dict[str, Any] | None:
        raise NotImplementedError

    def _read(self, reply: Any, *item: Any) -> Any:
        raise NotImplementedError

    def _rows(self, *item: Any) -> int | None:
        """How many rows a reply has to have, where that is known."""
        return None

    async def _run(self, chat: Chat, *item: Any) -> Any:
        """Do the step for one problem, in a session that is open."""
        question = self._question(*item)
        if question is None:
            return self._read(None, *item)

        def read(reply):
            return self._read(reply, *item)

        rows = self._rows(*item)
        return await chat.ask_object(self.told(), question, self._reply, read, rows)

    def _expect(self, size: Size) -> np.ndarray:
        """About the calls, tokens of prompts and of replies on a problem of that size."""
        single = self._per == "claim"
        n = {"claim": size.n_claims, "alternative": size.n_alternatives}
        n_calls = n.get(self._per, getattr(self, "n", 1))
        shown = size.answer // max(size.n_claims, 1) if single else size.answer
        told = count_tokens(self.told().text) + size.problem + size.context
        rows = 1 if single else size.n_claims
        return n_calls * np.array([1, told + shown + 12 * rows, self._row() * rows])

    def _row(self) -> int:
        return self._written

    def told(self) -> Prompt:
        """The prompt that is used.

        Returns
        -------
        Prompt
        """
        return resolve_prompt(self._prompt_name, self.prompt)

    def apply(
        self, *columns: Sequence[Any], model: str, client: Any = None
    ) -> list[Any]:
        """Do the step alone, for many problems.

        Parameters
        ----------
        *columns : sequences of equal length
            What the step takes of each problem; the class says what.
        model : str
            Name of the model, where the step has none of its own.
        client : ChatClient or callable, optional
            None is ``ChatClient()``.

        Returns
        -------
        list
            A result per problem.

        Raises
        ------
        CallError
            If a call failed; the replies to the others are in the cache.
        """
        self.validate()
        items = list(zip(*columns, strict=True))

        async def work(chat, item):
            return await call_step(self, chat, *item)

        return run_all(client, items, model, work)


def check_model(name: str, step: Step, model: str | None) -> None:
    """ValueError where a step asks a model, but none is named."""
    if model is None and step.model is None:
        raise ValueError(
            f"model is None, but {name} asks one: name it, or put a function in the place "
            "of that step"
        )


def run_all(client: Any, items: Sequence[Any], model: str | None, work: Any) -> list:
    """``work(chat, item)`` for each item; CallError if one of them failed."""

    async def main(session):
        return await gather_all(session, items, work, model)

    results = as_client(client).run(main)
    raise_first(results)
    return results


def raise_first(results: Sequence[Any]) -> None:
    """CallError if there is one among the results."""
    failed = [(i, r) for i, r in enumerate(results) if isinstance(r, CallError)]
    if failed:
        i, error = failed[0]
        raise CallError(
            f"{len(failed)} of {len(results)} problems failed, the first is problem {i}: "
            f"{error}. With a cache nothing else is asked for again"
        ) from error


def count_tokens(text: str | None) -> int:
    """About how many tokens a text has: one in four characters."""
    return len(text or "") // _LETTERS_PER_TOKEN + 1


async def call_step(step: Any, chat: Chat, *item: Any) -> Any:
    """The result of a step, or of the callable that replaces it."""
    if isinstance(step, Step):
        return await step._run(chat.of(step.model), *item)
    out = step(*item)
    return await out if inspect.isawaitable(out) else out


def tabled(graph: ReasoningGraph) -> dict[str, Any]:
    """Question, claims and what they build on, as a model is shown them."""
    rows = []
    for v, text in enumerate(graph.claims):
        parents = graph.edges[graph.edges[:, 1] == v, 0] + 1
        rows.append({"claim": v + 1, "text": text, "builds_on": parents.tolist()})
    return {"question": graph.problem, "claims": rows, **context_of(graph)}


def context_of(graph: ReasoningGraph) -> dict[str, Any]:
    """The passages that an answer has to be supported by, where there are some."""
    return {"context": list(graph.context)} if graph.context else {}
