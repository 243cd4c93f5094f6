"""The client that calls models, and the base class of all steps."""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
import weakref
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import wait
from contextlib import closing
from dataclasses import KW_ONLY, dataclass
from datetime import timedelta
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar, cast
from urllib.parse import parse_qsl, urlsplit

import numpy as np

from ..._parameters import Number, Settings, positive
from . import _calls as calls
from ._cache import ReplyCache
from ._calls import Prompt, number_rows
from ._errors import CallError
from ._reply import Reply
from ._session import Engine, gather_all
from ._transport import Endpoint, FunctionTransport

_OPENAI = "https://api.openai.com/v1"
#: Number assigned to each verdict.
_VALUES = {"supports": 1, "contradicts": -1, "silent": 0}
_VALUES |= {"true": 1, "false": 0, "unsure": -1}
#: Valid types of the parameters shared by all steps.
COMMON: dict[str, list] = {"prompt": [str, Path, None], "model": [str, None]}
_LOCK = threading.Lock()  # The lock is held while an engine is created.
_SECRET_WORDS = ("key", "token", "secret", "password", "sig", "auth")
_OURS = {"model", "messages", "response_format", "seed", "stream", "n", "logprobs"}


@dataclass(eq=False, repr=False)
class ChatClient(Settings):
    """Client for a function, or for an endpoint that uses the chat-completions protocol.

    Parameters
    ----------
    base_url : str, optional
        URL of the endpoint, such as ``"http://127.0.0.1:8000/v1"``. The URL may contain a query
        string, such as ``?api-version=...``. The default is the value of the environment variable
        ``OPENAI_BASE_URL``, or OpenAI's endpoint if the variable is not set.
    complete : callable, optional
        Function ``complete(messages)`` to call instead of an endpoint. ``messages`` is a list of
        dictionaries with the keys ``role`` and ``content``. The function returns a string or a
        `Reply`, and may be asynchronous. If the function accepts ``**options``, it receives
        ``model``, ``schema``, ``temperature``, ``seed``, ``max_tokens`` and ``logprobs``. The
        module and function names identify the function in the cache, so different functions must
        have different names.
    key_variable : str or None, default="OPENAI_API_KEY"
        Name of the environment variable that contains the API key for the endpoint. The key is
        read when calls are made, and is never stored. If None, no key is sent.
    headers : dict, optional
        Mapping from the name of each additional header to the environment variable that
        contains its value. For example, ``api-key`` may be mapped to ``AZURE_KEY``. The values of
        other environment variables are not sent. For example, to send an organization, map
        ``OpenAI-Organization`` to ``OPENAI_ORG_ID``.
    extra : dict, optional
        Additional fields for each request body, such as ``{"top_k": 1}``. These fields are part
        of the cache key of a reply.
    cache : path-like, optional
        File that stores all usable replies, so no reply is requested twice and an interrupted
        run can be resumed. Other users of the machine cannot read the file. If None, replies are
        kept only for the duration of a run.
    in_flight : int, default=8
        Maximum number of concurrent calls, across all threads that use this client.
    timeout : float, default=600.0
        Time limit in seconds for each attempt, including the time that the server queues the
        request and the time to receive the whole reply.
    max_retries : int, default=5
        Maximum number of retries of a call after a status code 408, 409, 425 or 5xx, a lost
        connection, a timeout or a malformed response. A response with status code 429 (rate
        limit) is not counted as an attempt. After a rate limit, all calls pause for the time that
        the server requests. If the server does not specify a time, the first pause lasts one
        second, and each further pause is twice as long, up to 60 seconds. The run fails if the
        pauses would last more than ten minutes without a successful call.
    max_tokens : int, optional
        Maximum length of a reply in tokens. If None, the limit is about three times the expected
        length plus 300. A reply that reaches the limit is requested again, without a schema and
        with twice the limit. If the reasoning of a model alone reaches the default limit, the
        limit is removed for this model.
    max_calls : int, optional
        Maximum number of calls for one problem in a run. A problem that requires more calls
        fails. If None, there is no limit.

    Raises
    ------
    ValueError
        If a parameter is invalid.
    EndpointError
        If a call is made to an endpoint on another machine, but the API key is missing.
    ImportError
        If a call is made to an endpoint, but the package ``openai`` is not installed.

    Notes
    -----
    If an endpoint refuses an option, the request is sent in another form. A warning is issued, and
    the accepted form is remembered for each model. If a schema in ``response_format`` is refused,
    the client requests any JSON object, and then plain text, which is parsed leniently.
    ``max_tokens`` is sent as ``max_completion_tokens``. ``temperature``, ``seed`` and
    ``logprobs`` are omitted. A system message is moved to the beginning of the user's message.

    Connections remain open between runs, until `close` is called or the client is deleted. A
    client loaded by `skdcf.load` has no address, key or cache until these are set with
    ``set_params(base_url=..., key_variable=...)``.

    Examples
    --------
    >>> from skdcf.apps.llm import ChatClient, Decompose
    >>> client = ChatClient(complete=lambda messages: '{"claims": ["2 + 2 = 4"]}')
    >>> Decompose().apply(["It is 4."], ["What is 2 + 2?"], model="any", client=client)
    [['2 + 2 = 4']]
    """

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
    }
    # The engine is stored together with the settings that created it.
    _engine = cast(Any, None)

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

    def validate(self) -> None:
        """Raise ValueError if a parameter or a combination of parameters is invalid."""
        super().validate()
        if self.base_url is self.complete is self.key_variable is None:
            raise ValueError(
                "base_url is missing, because the client was loaded from a file. Set "
                "base_url with set_params(base_url=..., key_variable=...)"
            )
        if self.base_url is not None:
            _check_url(self.base_url)
            if self.complete is not None:
                raise ValueError(
                    "base_url and complete cannot both be set. Pass only one of them"
                )
        if taken := _OURS.intersection(self.extra or ()):
            raise ValueError(
                f"extra must not contain {sorted(taken)}, because skdcf sets these parameters"
            )
        pairs = (self.headers or {}).items()
        if not all(isinstance(name, str) for pair in pairs for name in pair):
            raise ValueError(
                f"headers must map header names to environment variables, got {self.headers!r}"
            )

    def _submit(self, items, work, model, **options):
        """Start ``work(chat, item)`` for each item, and return a future.

        The future returns the results of all items and the usage of the run. ``options`` are
        the options of `gather_all`.
        """
        engine = self._started()
        return engine.submit(gather_all(engine, items, work, model, **options))

    async def _later(self, *work, **options):
        """Run `_submit` without blocking the caller's event loop."""
        return await asyncio.wrap_future(self._submit(*work, **options))

    async def _now(self, *work, **options):
        """Run `_submit`, and block until the work is complete. `finish` returns the result."""
        future = self._submit(*work, **options)
        try:
            # On Windows, Ctrl-C only interrupts the loop between two waits.
            while not wait([future], 0.5).done:
                pass
            return future.result()
        finally:
            # The wait may have been interrupted, for example by Ctrl-C.
            future.cancel()

    def purge(self, older_than: timedelta | float = 0.0) -> int:
        """Delete replies from the cache.

        Parameters
        ----------
        older_than : timedelta or float, default=0.0
            Minimum age of the replies to delete, as a timedelta or in seconds. By default, all
            replies are deleted.

        Returns
        -------
        n_deleted : int
            Number of deleted replies.

        Raises
        ------
        ValueError
            If the client has no cache.
        """
        if self.cache is None:
            raise ValueError(
                "replies are not stored, because the cache of this client is None"
            )
        if isinstance(older_than, timedelta):
            older_than = older_than.total_seconds()
        with closing(ReplyCache(self.cache)) as cache:
            return cache.purge(older_than)

    def close(self) -> None:
        """Close the connections, which are opened again by the next run."""
        with _LOCK:
            opened = self._engine
            self._engine = None
        if opened is not None:
            opened[2]()

    def _started(self):
        """Return the engine for the current settings, and start it if necessary."""
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
    """Return the result of a coroutine that never suspends."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value


def as_client(client: Any) -> ChatClient:
    """Convert a client, a function or None to a `ChatClient`.

    Parameters
    ----------
    client : ChatClient, callable or None
        A client, a function to call instead of an endpoint, or None for the default endpoint.

    Returns
    -------
    client : ChatClient
        The given client, or a new client if a function or None was given.

    Raises
    ------
    ValueError
        If the value is not a client, a function or None. Clients of the package ``openai`` are
        rejected, because they store the API key.
    """
    if client is None or isinstance(client, ChatClient):
        return client or ChatClient()
    if callable(client) and not isinstance(client, type):
        return ChatClient(complete=client)
    raise ValueError(
        f"client must be a ChatClient or a function, got {type(client)}. An openai "
        "client stores its key, so pass ChatClient(..., key_variable=...) instead"
    )


def _check_url(url):
    split_url = urlsplit(url)
    if split_url.scheme not in ("http", "https") or not split_url.hostname:
        raise ValueError(f"base_url must begin with http:// or https://, got {url!r}")
    named = [
        name.lower() for name, _ in parse_qsl(split_url.query, keep_blank_values=True)
    ]
    secret = any(word in name for name in named for word in _SECRET_WORDS)
    if split_url.username or split_url.password or secret:
        raise ValueError(
            "base_url must not contain a user name, a password or a key. Store keys "
            "in environment variables, and pass the names of these variables"
        )


@dataclass(eq=False, repr=False)
class Step(Settings):
    """Base class of the steps that convert a model's answers to input for a filter.

    A subclass defines its prompt and the type of the reply. If some problems require no call, the
    reply type must contain a list. The method ``_question`` returns the model input for one
    problem, and the method ``_read`` interprets the reply. The default implementations ask for a
    verdict on each claim of a graph. A step that makes several calls overrides ``_run``.
    """

    _prompt_name: ClassVar[str] = ""
    _reply: ClassVar[Any]
    _written: ClassVar[int] = 37  # expected number of completion tokens per claim
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
        """Return the result of the step for one problem, in an open session."""
        question = self._question(*item)
        rows = question.get("claims")
        text = question.get("answer", "")
        if not (rows or text.strip()):  # There are no claims to verify.
            return self._read(self._reply([]), *item)

        def read(reply):
            return self._read(calls.read_object(reply.text, self._reply), *item)

        n_rows = count_claims(text) if rows is None else len(rows)
        return await chat.ask(
            self.wording(),
            question,
            read,
            schema=calls.schema_of(self._reply),
            limit=self._limit(n_rows),
        )

    def _limit(self, n_rows):
        """Return the token limit of a reply. Longer replies are probably repetitive."""
        return 3 * self._written * n_rows + 300

    def wording(self) -> Prompt:
        """Return the prompt of this step.

        Returns
        -------
        prompt : Prompt
            The built-in prompt, or the prompt passed by the caller.
        """
        return calls.load_prompt(self._prompt_name, self.prompt)

    def apply(self, *columns: Sequence[Any], model: str, client: Any = None) -> list:
        """Apply this step alone to a list of problems.

        Parameters
        ----------
        *columns : sequences of equal length
            Inputs of the step, as described in the documentation of the class.
        model : str
            Model name, which is used unless the step sets another model.
        client : ChatClient or callable, optional
            Client for the model. The default is ``ChatClient()``.

        Returns
        -------
        results : list
            One result per problem.

        Raises
        ------
        CallError
            If a call failed. The replies to the other calls are in the cache.
        """
        self.validate()

        items = list(zip(*columns, strict=True))
        return run_all(client, items, lambda c, x: call_step(self, c, *x), model)[0]


def check_step(name: str, step: Any, model: str | None) -> None:
    """Raise ValueError if a step is invalid or has no model.

    Values that are not steps, such as functions, are accepted.
    """
    if isinstance(step, Step):
        step.validate()
        if model is step.model is None:
            raise ValueError(
                f"{name} calls a model, so model must be set, got None. Set model, or replace "
                "this step with a function"
            )


def run_all(client: Any, items: Sequence[Any], *work: Any, **options: Any) -> Any:
    """Return the results and the usage of a run, or raise CallError if a call failed."""
    results, usage = finish(as_client(client)._now(items, *work, **options))
    raise_first(results)
    return results, usage


def raise_first(results: Sequence[Any]) -> None:
    """Raise the first CallError among the results, if any."""
    failed = [(i, r) for i, r in enumerate(results) if isinstance(r, CallError)]
    for i, error in failed[:1]:
        raise CallError(
            f"{len(failed)} of {len(results)} problems failed. The first failed problem "
            f"is problem {i}: {error}. If replies are cached, running the same call again "
            "only repeats the failed problems"
        ) from error


def count_claims(answer: str) -> int:
    """Return the estimated number of claims in an answer, assuming 160 bytes per claim."""
    return len(answer.encode()) // 160 + 1


async def call_step(step: Any, chat: Any, *item: Any) -> Any:
    """Return the result of a step, or of a callable that replaces the step."""
    if isinstance(step, Step):
        return await step._run(chat.of(step.model), *item)
    out = step(*item)
    return await out if inspect.isawaitable(out) else out


def number_texts(texts: Sequence[str]) -> list[dict[str, Any]]:
    """Return numbered rows for the input of a model, with one row per text."""
    return [{"claim": v, "text": text} for v, text in enumerate(texts, 1)]


def tabled(graph: Any) -> dict[str, Any]:
    """Return the question and the claims with their premises, as model input."""
    rows = number_texts(graph.claims)
    for v, row in enumerate(rows):
        row["builds_on"] = (graph.edges[graph.edges[:, 1] == v, 0] + 1).tolist()
    return {"question": graph.problem, "claims": rows, **context_of(graph)}


def context_of(graph: Any) -> dict[str, Any]:
    """Return the passages that must support the answer, as model input."""
    return {"context": list(graph.context)} if graph.context else {}
