"""The client, which says where models are and holds no key, and what all steps share."""

from __future__ import annotations

import asyncio
import inspect
import math
import os
import sys
import threading
import weakref
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import wait
from contextlib import closing
from dataclasses import KW_ONLY, dataclass, replace
from datetime import timedelta
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, cast
from urllib.parse import parse_qsl, urlsplit

import numpy as np

from ..._messages import Advice, Message
from ..._parameters import Number, Settings, positive
from . import _calls as calls
from ._cache import ReplyCache
from ._calls import Prompt, number_rows
from ._errors import CallError
from ._reply import Reply, Usage
from ._session import MOST_PER_LIMIT, Engine, Session, gather_all
from ._transport import Endpoint, FunctionTransport

_OPENAI = "https://api.openai.com/v1"
_AMOUNT = Number(Real, 0, None, closed="left")
#: What each verdict counts as a number.
_VALUES = {"supports": 1, "contradicts": -1, "silent": 0}
_VALUES |= {"true": 1, "false": 0, "unsure": -1}
TOKENS_OF_CLAIM = 40  # a guess of the tokens of an answer for each claim
#: What the parameters that all steps have may be.
COMMON: dict[str, list] = {"prompt": [str, Path, None], "model": [str, None]}
_LOCK = threading.Lock()  # held while an engine is made
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
    timeout : float, default=600.0
        Seconds for each attempt, the whole reply and its place in the server's queue
        included. After a timeout half as many calls are in flight, with one warning.
    max_retries : int, default=5
        How often a call is made again after status 408, 409, 425 or 5xx, a lost
        connection, a timeout or a broken response. A rate limit (429) pauses all calls
        for as long as the server asks, up to two minutes, or for 2, 4, 8 up to 60
        seconds; it is no attempt, and ends the run after ten minutes without any success.
    max_tokens : int, optional
        Of a reply. None: about three times what a reply is expected to have, and 300. A
        reply that reaches this is asked for again, without a schema and with twice the
        tokens. For a model whose thoughts alone reach it, there is no such limit.
    max_calls : int, optional
        Most calls that are begun for one problem in a run; where it takes more, it fails.
        None is no bound.
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
    >>> from skdcf.apps.llm import ChatClient, Decompose
    >>> client = ChatClient(complete=lambda messages: '{"claims": ["2 + 2 = 4"]}')
    >>> Decompose().apply(["It is 4."], ["What is 2 + 2?"], model="any", client=client)
    [['2 + 2 = 4']]
    """

    # Not taken from a file: `skdcf.load` makes them None.
    _opens = ("base_url", "complete", "key_variable", "headers", "cache")
    _parameter_constraints = {
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
        "max_calls": [positive(Integral), None],
        "prices": [tuple, list, None],
        "confirm_above": [_AMOUNT, None],
    }
    _engine = cast(Any, None)  # with the settings that it was made with

    base_url: str | None = None
    _: KW_ONLY
    complete: Callable[..., str | Reply | Awaitable[str | Reply]] | None = None
    key_variable: str | None = "OPENAI_API_KEY"
    headers: Mapping[str, str] | None = None
    extra: Mapping[str, Any] | None = None
    cache: str | os.PathLike | None = None
    in_flight: int = 8
    timeout: float = 600.0
    max_retries: int = 5
    max_tokens: int | None = None
    max_calls: int | None = None
    prices: tuple[float, float] | None = None
    confirm_above: float | None = None

    def validate(self) -> None:
        """Raise ValueError unless all parameters are as declared, and of use."""
        super().validate()
        if self.base_url is self.complete is self.key_variable is None:
            raise ValueError(
                "the client is from a file and knows no address: set_params(base_url=..., "
                "key_variable=...) sets it"
            )
        if self.base_url is not None:
            _check_url(self.base_url)
            if self.complete is not None:
                raise ValueError("base_url and complete are both given: choose one")
        if taken := _OURS.intersection(self.extra or ()):
            raise ValueError(f"extra holds {sorted(taken)}, which this package sets")
        pairs = (self.headers or {}).items()
        if not all(isinstance(name, str) for pair in pairs for name in pair):
            raise ValueError(
                f"headers is {self.headers!r}, but must give the environment variable that "
                "holds the value of each header"
            )
        prices = (0, 0) if self.prices is None else self.prices
        if len(prices) != 2 or not all(map(_AMOUNT.is_satisfied_by, prices)):
            raise ValueError(
                f"prices is {prices!r}, but must be two: of a million tokens of prompts, and "
                "of a million tokens of replies"
            )

    def _limit(self):
        """What is limited without asking ("tokens" or "cost"), and how much of it is free."""
        unit, limit = ("tokens", 1e6) if self.prices is None else ("cost", 1.0)
        return unit, limit if self.confirm_above is None else self.confirm_above

    def _submit(self, items, work, model, *, show=False, dry=False):
        """Begin ``work(chat, item)`` for each item, and return a future of results and usage.

        With ``show`` the progress is shown, and with ``dry`` the cache alone answers.
        """
        session = Session(self._started(), self, dry)
        return session.engine.submit(gather_all(session, items, work, model, show=show))

    async def _later(self, *work, **options):
        """Do work, as `_submit`, while other tasks of the caller's loop go on."""
        return await asyncio.wrap_future(self._submit(*work, **options))

    async def _now(self, *work, **options):
        """Do work, as `_submit`, and wait for it, so that no loop is needed: `finish`."""
        future = self._submit(*work, **options)
        try:
            # On Windows a program sees Ctrl-C between waits only.
            while not wait([future], 0.5).done:
                pass
            return future.result()
        finally:
            future.cancel()  # if the wait was interrupted, as by Ctrl-C

    def spent(self) -> Usage:
        """What all runs have cost since the connections were opened.

        Runs that go on, and those that were ended before their result, are counted too.

        Returns
        -------
        Usage
            A copy, which does not change with later calls.
        """
        opened = self._engine
        return Usage() if opened is None else replace(opened[0].usage)

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
        if isinstance(older_than, timedelta):
            older_than = older_than.total_seconds()
        with closing(ReplyCache(self.cache)) as cache:
            return cache.purge(older_than)

    def close(self) -> None:
        """End connections; the next run opens them again."""
        with _LOCK:
            opened = self._engine
            self._engine = None
        if opened is not None:
            opened[2]()

    def _started(self):
        """The engine for these settings: the one that runs, or a new one."""
        self.validate()
        url = self.base_url or os.environ.get("OPENAI_BASE_URL") or _OPENAI
        settings = self.get_params(deep=False) | {"base_url": url.rstrip("/")}
        with _LOCK:
            if self._engine is not None:
                engine, made_with, end = self._engine
                if made_with == settings and engine.process == os.getpid():
                    return engine
                end()
            cache = None if self.cache is None else ReplyCache(self.cache)
            transport = Endpoint if self.complete is None else FunctionTransport
            engine = Engine(transport, settings, cache)
            self._engine = engine, settings, weakref.finalize(self, engine.close)
            return engine

    def __getstate__(self):
        return super().__getstate__() | {"_engine": None}


def finish(work: Any) -> Any:
    """The result of a coroutine that has nothing to wait for."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value


def as_client(client: Any) -> ChatClient:
    """A ChatClient of whatever the caller passed for a client.

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
    if client is None or isinstance(client, ChatClient):
        return client or ChatClient()
    if callable(client) and not isinstance(client, type):
        return ChatClient(complete=client)
    raise ValueError(
        f"client is of {type(client)}, no ChatClient or function; a client of openai "
        "stores its key: pass ChatClient(..., key_variable=...)"
    )


def _check_url(url):
    split_url = urlsplit(url)
    if split_url.scheme not in ("http", "https") or not split_url.hostname:
        raise ValueError(
            f"the base URL {url!r} does not begin with http:// or https://"
        )
    named = [
        name.lower() for name, _ in parse_qsl(split_url.query, keep_blank_values=True)
    ]
    secret = any(word in name for name in named for word in _SECRET_WORDS)
    if split_url.username or split_url.password or secret:
        raise ValueError(
            "the base URL holds a user name, a password or a key: put keys into "
            "environment variables, and name these"
        )


@dataclass(frozen=True)
class Estimate:
    """About how many calls and tokens a run will need.

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
    most_completion_tokens : int
        As many are written if each call is made as often as it may be, and each reply is
        as long as it may be.
    """

    n_problems: int
    n_done: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    most_completion_tokens: int = 0

    @property
    def tokens(self) -> int:
        """Tokens of prompts and replies together."""
        return self.prompt_tokens + self.completion_tokens

    def __str__(self):
        price = "" if self.cost is None else f", costing about {self.cost:.4g}"
        problems = (
            f"{self.n_problems} problems, of which {self.n_done} are in the cache"
        )
        sent = f"{self.prompt_tokens:,} tokens of prompts"
        replies = f"{self.completion_tokens:,} of replies"
        if self.most_completion_tokens:
            replies += f" (at most {self.most_completion_tokens:,})"
        return (
            f"{problems}: about {self.calls:,} calls with {sent} and {replies}{price}"
        )


def share_of_limit(client, estimate):
    """An estimate as a share of the amount above which somebody has to agree."""
    unit, limit = client._limit()
    return getattr(estimate, unit) / limit if limit else math.inf


def check_budget(client, estimate, confirm, n_done=0):
    """Whether somebody agreed to an estimate above the client's limit; ValueError if nobody did."""
    unit, limit = client._limit()
    is_above = getattr(estimate, unit) > limit
    if is_above and not (confirm or _ask)(estimate):
        message = Message(
            (f"{n_done} answers are done" if n_done else "nothing was called")
            + f": {estimate}. That is above the limit of {limit:g} {unit}, and nobody "
            "agreed to it. ",
            Advice(
                "agree",
                "Raise confirm_above of the ChatClient, or pass confirm=lambda estimate: True",
            ),
        )
        raise ValueError(message)
    return is_above


def _ask(estimate):
    """Ask whoever sits at the terminal; without one the answer is no."""
    if not (sys.stdin and sys.stdin.isatty()):
        return False
    return input(f"{estimate}. Go on? [y/N] ").strip().lower() in ("y", "yes")


@dataclass(eq=False, repr=False)
class Step(Settings):
    """One step between a model's answer and what a filter takes.

    Subclasses name their prompt and the type of its reply, which is a list where there
    may be nothing to ask. They define ``_question``, what a model is asked about one
    problem, and ``_read``, what its reply means; as they stand here, both are those of a
    verdict on each claim of a graph. Those that ask more than once define ``_run``.
    """

    _prompt_name: ClassVar[str] = ""
    _reply: ClassVar[Any]
    _written: ClassVar[int] = 37  # tokens of a reply for each claim
    per = "answer"  # each of these has a call of its own: answer, claim or alternative
    _parameter_constraints = COMMON

    prompt: str | Path | None = None
    _: KW_ONLY
    model: str | None = None

    def _question(self, *item: Any) -> dict[str, Any]:
        return tabled(*item)

    def _read(self, reply: Any, *item: Any) -> Any:
        rows = number_rows(reply.verdicts, item[0].n_claims)
        return np.array([_VALUES[row.verdict] for row in rows], dtype=np.int64)

    async def _run(self, chat: Any, *item: Any) -> Any:
        """Do the step for one problem, in a session that is open."""
        question = self._question(*item)
        rows = question.get("claims")
        text = question.get("answer", "")
        if not (rows or text.strip()):  # there is nothing to ask
            return self._read(self._reply([]), *item)

        def read(reply):
            return self._read(calls.read_object(reply.text, self._reply), *item)

        n_rows = count_claims(text) if rows is None else len(rows)
        return await chat.ask(
            self.wording(),
            question,
            read,
            schema=self._schema(question),
            limit=self._limit(n_rows),
        )

    def _schema(self, question):
        """JSON schema of the reply to a question."""
        return calls.schema_of(self._reply, n_rows=len(question.get("claims") or ()))

    def _limit(self, n_rows):
        """Most tokens of a reply: a model that writes as many repeats itself."""
        return 3 * self._written * n_rows + 300

    def _expect(self, shared, answer, n_claims, n_others):
        """Estimate calls, tokens of prompts and of replies, and their most, for a problem.

        Its sizes are the tokens of what all calls show and of the answer, and the numbers
        of claims and of other answers.
        """
        n_calls = {"claim": n_claims, "alternative": n_others}
        n_rows = 1 if self.per == "claim" else n_claims
        asked = count_tokens(self.wording().text) + shared + answer * n_rows // n_claims
        most = MOST_PER_LIMIT * self._limit(n_rows)
        tokens = np.array([1, asked + 12 * n_rows, self._written * n_rows, most])
        return n_calls.get(self.per, getattr(self, "n", 1)) * tokens

    def wording(self) -> Prompt:
        """The prompt that is used.

        Returns
        -------
        Prompt
            Its name and its text: the package's own, or that of the caller.
        """
        return calls.load_prompt(self._prompt_name, self.prompt)

    def apply(self, *columns: Sequence[Any], model: str, client: Any = None) -> list:
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
        return run_all(client, items, lambda c, x: call_step(self, c, *x), model)[0]


def check_step(name: str, step: Any, model: str | None) -> None:
    """ValueError for a step with a wrong setting, or one that lacks the name of a model.

    What is no step, such as a function, passes.
    """
    if isinstance(step, Step):
        step.validate()
        if model is step.model is None:
            raise ValueError(
                f"model is None, but {name} asks one: name it, or put a function in the "
                "place of that step"
            )


def run_all(client: Any, items: Sequence[Any], *work: Any, **options: Any) -> Any:
    """Results of `ChatClient._now` and their usage; CallError if one of them failed."""
    results, usage = finish(as_client(client)._now(items, *work, **options))
    raise_first(results)
    return results, usage


def raise_first(results: Sequence[Any]) -> None:
    """CallError if there is one among the results."""
    failed = [(i, r) for i, r in enumerate(results) if isinstance(r, CallError)]
    for i, error in failed[:1]:
        raise CallError(
            f"{len(failed)} of {len(results)} problems failed, the first is problem {i}: "
            f"{error}. With a cache only these are asked again"
        ) from error


def count_tokens(text: str | None) -> int:
    """About how many tokens a text has: one in four bytes."""
    return len((text or "").encode()) // 4 + 1


def count_claims(answer: str) -> int:
    """About how many claims an answer has: one in forty tokens."""
    return count_tokens(answer) // TOKENS_OF_CLAIM + 1


async def call_step(step: Any, chat: Any, *item: Any) -> Any:
    """The result of a step, or of the callable that replaces it."""
    if isinstance(step, Step):
        return await step._run(chat.of(step.model), *item)
    out = step(*item)
    return await out if inspect.isawaitable(out) else out


def number_texts(texts: Sequence[str]) -> list[dict[str, Any]]:
    """Texts as rows that a model is shown, numbered from 1."""
    return [{"claim": v, "text": text} for v, text in enumerate(texts, 1)]


def tabled(graph: Any) -> dict[str, Any]:
    """Question, claims and what they build on, as a model is shown them."""
    rows = number_texts(graph.claims)
    for v, row in enumerate(rows):
        row["builds_on"] = (graph.edges[graph.edges[:, 1] == v, 0] + 1).tolist()
    return {"question": graph.problem, "claims": rows, **context_of(graph)}


def context_of(graph: Any) -> dict[str, Any]:
    """The passages that an answer has to be supported by, where there are some."""
    return {"context": list(graph.context)} if graph.context else {}
