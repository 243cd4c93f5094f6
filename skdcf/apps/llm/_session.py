"""Make concurrent calls, retry after temporary failures, and count the calls and their tokens.

With a cache, each reply is written to disk immediately, so a restarted program does not request
the reply again. Replies that cannot be parsed are not stored and are therefore requested again.

Each client has one `Engine`, which runs an event loop in a separate thread. All threads that use
the client share the engine's open connections, its limit on concurrent calls and its cache. A
`Chat` makes the calls of one problem in a run of the engine.
"""

from __future__ import annotations

import asyncio
import functools
import json
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import count, islice
from typing import Any
from weakref import WeakValueDictionary

from tqdm.auto import tqdm

from ..._checks import warn
from ...exceptions import ParameterWarning
from . import _pace as pacing
from ._calls import Call
from ._decoding import repair_json, texts_in
from ._errors import (
    CallError,
    EndpointError,
    PassingError,
    RefusedError,
    UnreadableError,
)
from ._pace import Pace
from ._reply import Reply, Usage

#: Maximum number of requests to obtain a usable reply.
MOST_ASKS = 3
_WARMER = 0.3  # temperature increase per retry
_WARMEST = 1.0  # maximum temperature, unless the first call used a higher temperature
_MOST_CHARACTERS = 6  # maximum plausible number of characters per prompt token
# A smaller token count may exclude the tokens that the server had cached.
_FEWEST_TOKENS = 256
CUT_PROMPT = (
    "the endpoint counted far fewer tokens than the prompt has, so the server may "
    "have truncated the prompt. Increase the context length of the server"
)
# number of characters of an unusable reply to send back to the model
_SHOWN_BACK = 4000
_LOG = logging.getLogger("skdcf.apps.llm")


class Engine:
    """State of a client that persists between its runs."""

    def __init__(self, transport, settings, cache):
        self.settings = settings
        self.opened = AsyncExitStack()  # what is closed together with the engine
        self.transport = transport(self)
        self.pace = Pace(settings["in_flight"])
        self.cache = cache
        # Models whose reasoning requires more tokens than the limit of a reply
        self.thinking = set()
        # Locks of the calls in progress, keyed by the digest of the call.
        self.locks = WeakValueDictionary[str, asyncio.Lock]()
        # Issue a warning only once if it applies to all calls.
        self.warn_once = functools.cache(partial(warn, category=ParameterWarning))
        self.process = os.getpid()
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._loop = self._runner.get_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        with self._runner:
            self._loop.run_forever()
            with suppress(Exception):
                self._runner.run(self.opened.aclose())
        if self.cache is not None:
            self.cache.close()

    def submit(self, work):
        """Start work in the event loop, and return a `concurrent.futures.Future`."""
        if threading.current_thread() is self._thread:
            work.close()
            raise ValueError(
                "a function called by a client must not call the same client, because this "
                "would cause a deadlock"
            )
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        """Stop the event loop and its tasks. In a forked process, the method does nothing."""
        if self.process != os.getpid():
            return
        with suppress(RuntimeError):  # another thread has closed the loop
            self._loop.call_soon_threadsafe(self._loop.stop)
        if threading.current_thread() is not self._thread:
            self._thread.join(5)


@dataclass
class Chat:
    """Calls of a model for one problem in a run of the engine.

    The problems of a run share ``known``, which contains the stored replies, ``unreadable``, which
    contains the errors of calls without a usable reply, and ``errors``, which lists the errors
    since the last successful call. ``allowance`` is an iterator with one item per permitted call.
    ``usage`` contains the numbers of calls and tokens for the problem. ``flags`` describes
    anomalies, and ``left_out`` names the options that the endpoint did not accept.
    """

    engine: Engine
    known: Any
    unreadable: dict[str, UnreadableError]
    errors: list[str]
    model: str | None
    allowance: Iterator[int]
    usage: Usage = field(default_factory=Usage)
    flags: list[str] = field(default_factory=list)
    left_out: set[str] = field(default_factory=set)

    def of(self, model: str | None) -> Chat:
        """Return a copy of the chat with another model, or the same model if ``model`` is None."""
        return replace(self, model=self.model if model is None else model)

    def flag(self, text: str | None) -> None:
        """Add a flag unless the flag is None or already present."""
        if text is not None and text not in self.flags:
            self.flags.append(text)

    async def ask(
        self, prompt, content, read, *, schema=None, limit=None, stride=1, **options
    ):
        """Return the result of ``read`` for the reply of the model.

        ``content`` is the input of the model, given as a string or as an object. If ``read``
        raises ValueError, the request is repeated with another seed. ``stride`` is the difference
        between the seeds of two requests. ``limit`` is the length limit of the reply in tokens,
        unless the client has its own limit. If JSON is expected, the backslashes of the reply are
        repaired.
        """
        engine = self.engine
        shown = "\n".join(texts_in(content))
        if isinstance(content, dict):
            content = json.dumps(content, ensure_ascii=False)
        n_characters = len(prompt.text) + len(content)

        def read_repaired(reply):
            self.left_out.update(reply.left_out)
            if _FEWEST_TOKENS <= reply.prompt_tokens < n_characters / _MOST_CHARACTERS:
                self.flag(CUT_PROMPT)
                engine.warn_once(CUT_PROMPT)
            if schema is not None:
                reply = replace(reply, text=repair_json(reply.text, shown))
            return read(reply)

        messages = (("system", prompt.text), ("user", content))
        options["schema"] = json.dumps(schema) if schema else None
        options["max_tokens"] = engine.settings["max_tokens"] or limit
        call = Call(self.model or "", messages, prompt=prompt.name, **options)
        return await self._ask_once(call, read_repaired, stride)

    async def _ask_once(self, call, read, stride):
        """Return the result of ``read`` for the reply to a call, which may be stored.

        The first readable reply is stored under the digest of the first call. If an equal call
        is in progress, its end is awaited, and the stored reply is read. A call without a usable
        reply is not repeated in the same run.
        """
        engine = self.engine
        key = call.key(engine.transport.identity)
        async with engine.locks.setdefault(key, asyncio.Lock()):
            stored = self.known.get(key)
            if stored is not None:
                # If a stored reply cannot be parsed, the request is sent again.
                with suppress(ValueError, TypeError):
                    reply = Reply(**json.loads(stored[0]))
                    value = read(reply)
                    self.usage.add(reply, cached=True)
                    return value
            if key in self.unreadable:
                raise self.unreadable[key]
            try:
                reply, value = await self._converse(call, read, stride)
            except UnreadableError as error:
                self.unreadable[key] = error
                raise
            self._store(key, reply, call.prompt)
            return value

    async def _converse(self, first, read, stride):
        """Return the first usable reply and its value, within the maximum number of requests."""
        engine = self.engine
        call = first
        for number in range(MOST_ASKS):
            limit = first.max_tokens
            # A limit set by the user always applies. The default limit does not apply to models
            # that use more tokens for reasoning than for the reply.
            if limit is not None and engine.settings["max_tokens"] is None:
                is_thinking = call.model in engine.thinking
                limit = None if is_thinking else limit * 2**number
            reply = await self._fetch(replace(call, max_tokens=limit))
            try:
                return reply, read(reply)
            except ValueError as error:
                fault = str(error)
            call = _ask_again(first, reply, fault, number + 1, stride)
        raise UnreadableError(
            f"{call.prompt}: the reply from {call.model!r} cannot be used: {fault}",
            reply.text,
        )

    def _store(self, key, reply, prompt):
        """Store a reply. After a disk error, the reply is used without being stored."""
        try:
            self.known[key] = json.dumps(asdict(reply)), prompt
        except sqlite3.OperationalError as error:
            self.engine.warn_once(
                f"a reply cannot be stored in the cache ({error}), so another run "
                "would request it again. Free some disk space"
            )

    async def _fetch(self, call):
        """Send a call, and count and log it."""
        engine = self.engine
        if (n := len(self.errors)) >= max(10, 2 * engine.settings["in_flight"]):
            raise EndpointError(
                f"no more calls are made, because the last {n} calls have failed. The last "
                f"error was: {self.errors[-1]}"
            )
        if next(self.allowance, None) is None:
            raise CallError(
                f"at most max_calls={engine.settings['max_calls']} calls are allowed per "
                "problem, and all of these calls were made. Shorten the answer, or increase "
                "max_calls"
            )
        begin = time.monotonic()
        reply = Reply("", "failed")
        try:
            reply = await self._complete(call)
            self.errors.clear()
        except CallError as error:
            self.errors.append(str(error))
            raise
        finally:
            _LOG.info(
                "call model=%s prompt=%s outcome=%s seconds=%.2f tokens=%d+%d",
                call.model,
                call.prompt,
                reply.finish_reason,
                time.monotonic() - begin,
                reply.prompt_tokens,
                reply.completion_tokens,
            )
        self.usage.add(reply)
        if reply.finish_reason == "length" and _is_thought(reply.text):
            engine.thinking.add(call.model)
        return reply

    async def _complete(self, call):
        """Return the reply to a call, or raise CallError if all attempts fail."""
        engine = self.engine
        n_failed = 0
        while True:
            try:
                async with engine.pace.turn():
                    return await engine.transport.attempt(call)
            except RefusedError:
                pass  # All calls have already been paused.
            except PassingError as error:
                n_failed += 1
                if n_failed > engine.settings["max_retries"]:
                    raise CallError(
                        f"the endpoint did not reply after {n_failed} attempts: {error}"
                    ) from error
                if error.wait is None:
                    await asyncio.sleep(pacing.back_off(n_failed - 1))
            self.usage.retries += 1


def _is_thought(text):
    """Return whether a truncated reply contains only reasoning."""
    return not text or ("<think>" in text and "</think>" not in text)


def _ask_again(first, reply, fault, number, stride):
    """Return the next call after an unusable reply, derived from the first call.

    The call has another seed. If JSON is expected, the call also contains a description of the
    fault, and has a higher temperature, so the reply is likely to differ.
    """
    call = replace(first, seed=first.seed + number * stride)
    if first.schema is None:
        return call
    warmest = max(first.temperature, _WARMEST)
    warmer = min(first.temperature + _WARMER * number, warmest)
    if reply.finish_reason == "length":
        fault += "; it was cut off, so be brief"
    complaint = f"This reply cannot be used: {fault}. Reply again, as you were told."
    system, (_, content) = first.messages
    messages = (system, ("user", f"{content}\n\n{complaint}"))
    if reply.text.strip():
        shown = ("assistant", reply.text[:_SHOWN_BACK])
        messages = (*first.messages, shown, ("user", complaint))
    is_whole = reply.finish_reason not in ("length", "malformed")
    return replace(call, messages=messages, temperature=warmer, structured=is_whole)


async def gather_all(engine, items, work, model, *, show=False):
    """Run ``work(chat, item)`` concurrently for all items.

    If ``show`` is True, a progress bar is shown.

    Returns
    -------
    results : list
        The result or the CallError of each item. An EndpointError, or any other exception that
        is not a CallError, stops all items.
    usage : Usage
        The numbers of calls and tokens of the run.
    """
    chat_of = partial(
        Chat, engine=engine, known=engine.cache or {}, unreadable={}, errors=[]
    )
    usage = Usage()
    # The number of items in progress is sufficient to use all slots.
    places = asyncio.Semaphore(2 * engine.settings["in_flight"])

    async def complete(item):
        nonlocal usage
        async with places:
            chat = chat_of(
                model=model, allowance=islice(count(), engine.settings["max_calls"])
            )
            try:
                return await work(chat, item)
            except EndpointError:
                raise
            except CallError as error:
                return error
            finally:
                usage += chat.usage
                bar.update()

    with tqdm(total=len(items), desc="extract", disable=not show) as bar:
        results = await gather_coroutines(*map(complete, items))
    return results, usage


async def gather_coroutines(*work):
    """Run coroutines concurrently. The first error cancels the others."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in work]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]
