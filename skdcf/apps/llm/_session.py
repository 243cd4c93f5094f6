"""Calls in flight: how many at once, each of them once, and what they cost.

With a cache, replies are on disk as soon as they could be read: what a killed program had
is not asked for again. Unreadable replies are not stored, so they are asked for again.

Each client has one `Engine`: one loop in a thread of its own, with warm
connections, one bound of calls and one cache for whoever calls, from whatever thread. A
`Session` is one run in it, and a `Chat` what one problem of the run asks.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sqlite3
import sys
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from tqdm.auto import tqdm

from ..._checks import warn
from ...exceptions import ParameterWarning
from ._calls import Call
from ._decoding import mend_json, texts_in
from ._errors import CallError, EndpointError, UnreadableError
from ._pace import Pace
from ._reply import Reply, Usage

#: How often a reply is asked for that cannot be used.
MOST_ASKS = 3
#: All askings together may have as many times the tokens of the first.
MOST_PER_LIMIT = sum(2**number for number in range(MOST_ASKS))
_WARMER = 0.3  # the temperature rises by this with each asking, up to 1
_WARMEST = 1.0  # the highest temperature, unless the first call was warmer
_MOST_CHARACTERS = 6  # characters of a prompt for each token that its server counts
# A smaller count may be only of the tokens that the server had not cached.
_FEWEST_TOKENS = 256
CUT_PROMPT = (
    "the endpoint counted far fewer tokens than a prompt has, and may have cut it: raise "
    "the length of its context"
)
_SILENCE = 60.0  # seconds without a reply after which it is said
_SHOWN_BACK = 4000  # characters that are shown of a reply that could not be read
_LOG = logging.getLogger("skdcf.apps.llm")


@dataclass
class _Conversation:
    """A call that is on its way, with what it takes to get a readable reply to it.

    ``usage`` is what it has cost, without what one of those who wait for it has counted.
    """

    task: asyncio.Task[Reply]
    usage: Usage
    n_waiting: int = 0


class Engine:
    """What a client keeps between its runs."""

    def __init__(self, transport, settings, cache):
        self.in_flight = settings["in_flight"]
        self.transport = transport(settings, Pace(self.in_flight))
        self.cache = cache
        self.replied = time.monotonic()  # when the last call ended
        self.thinking = set()  # models whose thoughts take more tokens than a reply
        # Each by the digest of its call.
        self.conversations: dict[str, _Conversation] = {}
        self.usage = Usage()  # sum over all runs
        self._warned = set()
        self.process = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._turn, daemon=True)
        self._thread.start()

    def _turn(self):
        self._loop.run_forever()
        self._loop.close()

    def warn_once(self, text):
        """Warn of something that holds for all calls."""
        if text not in self._warned:
            self._warned.add(text)
            warn(text, ParameterWarning)

    def submit(self, work):
        """Start work in the loop, and return a future of `concurrent.futures`."""
        if threading.current_thread() is self._thread:
            work.close()
            raise ValueError(
                "a function that a client calls cannot wait for this client"
            )
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        """End the loop and what runs in it; a copy in a forked process has none."""
        if self.process != os.getpid() or not self._thread.is_alive():
            return
        asyncio.run_coroutine_threadsafe(self._end(), self._loop)
        if threading.current_thread() is not self._thread:
            self._thread.join(5)

    async def _end(self):
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        with suppress(Exception):
            await self.transport.close()
        if self.cache is not None:
            self.cache.close()
        self._loop.call_soon(self._loop.stop)


class Session:
    """One run: its replies, what they cost, and when to give up."""

    def __init__(self, engine, settings, dry):
        self.engine = engine
        self.max_tokens = settings.max_tokens
        self.max_calls = settings.max_calls
        self._dry = dry
        self._known = {} if engine.cache is None else engine.cache
        self.usage = Usage()
        self._errors = []  # errors since the last call that succeeded

    async def ask(self, call, read, again, *, usage, allowance):
        """What ``read`` makes of the reply to a call, from the cache where it is known.

        Where ``read`` raises ValueError, ``again(call, reply, fault)`` gives the next call,
        always made from the first one; the reply that is read at last is kept under the
        digest of the first call. An equal call that is on its way is not made again: all who
        wait for it read its reply, and the first of them to hear of it counts what it cost.
        """
        engine = self.engine
        key = call.key(engine.transport.identity)
        stored = self._known.get(key)
        if stored is not None:
            # A reply that cannot be read is asked for again.
            with suppress(ValueError, TypeError):
                reply = Reply(**json.loads(stored[0]))
                value = read(reply)
                usage.add(reply, cached=True)
                return value
        if self._dry:
            raise CallError("there is no readable reply in the cache")

        # A task of its own, so that the call goes on for others where who began it gives up.
        if key not in engine.conversations:
            cost = Usage()
            work = self._converse(
                key, call, read, again=again, usage=cost, allowance=allowance
            )
            engine.conversations[key] = _Conversation(asyncio.create_task(work), cost)
        conversation = engine.conversations[key]
        conversation.n_waiting += 1
        try:
            reply = await asyncio.shield(conversation.task)
        finally:
            conversation.n_waiting -= 1
            if not conversation.n_waiting:
                del engine.conversations[key]
                conversation.task.cancel()  # which does nothing to a task that has ended
            if conversation.task.done() or not conversation.n_waiting:
                usage += conversation.usage
                conversation.usage = Usage()
        return read(reply)

    async def _converse(self, key, call, read, again, usage, allowance):
        """The first reply to a call that can be read, of as many as may be asked for."""
        first = call
        reply: Any = None
        fault = ""
        for number in range(MOST_ASKS):
            if number:
                call = _vary(again(first, reply, fault), first, number)
                if reply.finish_reason in ("length", "malformed"):
                    call = replace(call, structured=False)
            reply = await self._fetch(self._limited(call, number), usage, allowance)
            if reply.finish_reason == "length" and _is_thought(reply.text):
                self.engine.thinking.add(call.model)
            try:
                read(reply)
            except ValueError as error:
                fault = str(error)
            else:
                self._store(key, reply, call.prompt)
                return reply
        raise UnreadableError(
            f"{call.prompt}: the reply of {call.model!r} cannot be used: {fault}",
            reply.text,
        )

    def _limited(self, call, number):
        """The call with the length that its reply may have at this asking.

        A limit of the caller's holds. Ours grows with each asking, and does not hold for
        models that need more tokens to think than to reply.
        """
        if self.max_tokens is not None or call.max_tokens is None:
            return call
        if call.model in self.engine.thinking:
            return replace(call, max_tokens=None)
        return replace(call, max_tokens=call.max_tokens * 2**number)

    def _store(self, key, reply, prompt):
        """Keep a reply, which was paid for: a full disk does not take it from the run."""
        try:
            self._known[key] = json.dumps(asdict(reply)), prompt
        except sqlite3.OperationalError as error:
            self.engine.warn_once(
                f"a reply cannot be kept in the cache ({error}), so that another run would ask "
                "for it again. See that there is space on the disk"
            )

    async def _fetch(self, call, usage, allowance):
        if (n := len(self._errors)) >= max(10, 2 * self.engine.in_flight):
            raise EndpointError(
                f"the last {n} calls have failed: no more are made. The last one: "
                f"{self._errors[-1]}"
            )
        allowance.take()
        begin = time.monotonic()
        reply = Reply("", "failed")
        try:
            reply = await self.engine.transport.complete(call, usage)
            self._errors.clear()
        except CallError as error:
            self._errors.append(str(error))
            raise
        finally:
            self.engine.replied = time.monotonic()
            _LOG.info(
                "call model=%s prompt=%s outcome=%s seconds=%.2f tokens=%d+%d",
                call.model,
                call.prompt,
                reply.finish_reason,
                self.engine.replied - begin,
                reply.prompt_tokens,
                reply.completion_tokens,
            )
        usage.add(reply)
        self.engine.usage.add(reply)
        return reply


@dataclass
class Allowance:
    """How many calls may be begun for one problem, and how many were."""

    most: int | None
    n_begun: int = 0

    def take(self) -> None:
        """Count a call; CallError if no more are allowed."""
        if self.most is not None and self.n_begun >= self.most:
            raise CallError(
                f"{self.n_begun} calls were made for this problem, and no more are allowed "
                "(max_calls): shorten the answer, or allow more"
            )
        self.n_begun += 1


@dataclass
class Chat:
    """A session together with the model that is asked in it for one problem.

    ``usage`` counts what the problem cost, ``flags`` says what was not as it should be, and
    ``left_out`` names the parameters that the endpoint did not take.
    """

    session: Session
    model: str | None
    allowance: Allowance
    usage: Usage = field(default_factory=Usage)
    flags: list[str] = field(default_factory=list)
    left_out: set[str] = field(default_factory=set)

    def of(self, model: str | None) -> Chat:
        """The same problem with another model; None is this one."""
        return replace(self, model=self.model if model is None else model)

    def flag(self, text: str | None) -> None:
        """Note something that is not as it should be, once; None is nothing."""
        if text is not None and text not in self.flags:
            self.flags.append(text)

    async def ask(
        self, prompt, content, read, *, again=None, schema=None, limit=None, **options
    ):
        """What ``read`` makes of the reply to a text, or to an object.

        ``limit`` is how many tokens the reply may have if the caller of the client does
        not say. Backslashes are mended in a reply that is to be JSON.
        """
        shown = "\n".join(texts_in(content))
        if isinstance(content, dict):
            content = json.dumps(content, ensure_ascii=False)
        n_characters = len(prompt.text) + len(content)

        def read_mended(reply):
            self.left_out.update(reply.left_out)
            if _FEWEST_TOKENS <= reply.prompt_tokens < n_characters / _MOST_CHARACTERS:
                self.flag(CUT_PROMPT)
                self.session.engine.warn_once(CUT_PROMPT)
            if schema is not None:
                reply = replace(reply, text=mend_json(reply.text, shown))
            return read(reply)

        messages = (("system", prompt.text), ("user", content))
        options["schema"] = json.dumps(schema) if schema else None
        asked = options.get("max_tokens") or self.session.max_tokens
        options["max_tokens"] = asked or limit
        call = Call(self.model or "", messages, prompt=prompt.name, **options)
        again = again or _complain
        return await self.session.ask(
            call, read_mended, again, usage=self.usage, allowance=self.allowance
        )


def _is_thought(text):
    """Whether a text that was cut off holds nothing but what the model thought."""
    return not text.strip() or ("<think>" in text and "</think>" not in text)


def _vary(call, first, number):
    """The call once more, with another seed and warmer, as some models ignore a complaint."""
    if call.seed != first.seed:  # as who made the call has varied it
        return call
    seed = None if call.seed is None else call.seed + number
    warmest = max(call.temperature, _WARMEST)
    warmer = min(call.temperature + _WARMER * number, warmest)
    return replace(call, seed=seed, temperature=warmer)


def _complain(call, reply, fault):
    """The call with a complaint about its reply; an empty reply is not shown back."""
    if reply.finish_reason == "length":
        fault += "; it was cut off, so be brief"
    complaint = f"This reply cannot be used: {fault}. Reply again, as you were told."
    system, (_, content) = call.messages
    if not reply.text.strip():
        return replace(call, messages=(system, ("user", f"{content}\n\n{complaint}")))
    shown = ("assistant", reply.text[:_SHOWN_BACK])
    return replace(call, messages=(*call.messages, shown, ("user", complaint)))


async def gather_all(session, items, work, model, show=False):
    """``work(chat, item)`` for each item, several at once.

    Returns
    -------
    results : list
        A result per item, or the CallError that it ended with. An EndpointError, and any
        error that is no CallError, ends all of them.
    usage : Usage
        What they cost.
    """
    results: list[Any] = [None] * len(items)
    todo = iter(enumerate(items))  # shared: each worker takes the next one that is left

    async def worker():
        for i, item in todo:
            chat = Chat(session, model, Allowance(session.max_calls))
            try:
                results[i] = await work(chat, item)
            except EndpointError:
                raise
            except CallError as error:
                results[i] = error
            finally:
                session.usage += chat.usage
            bar.update()

    # So many that no slot waits for work.
    n_workers = min(len(items), 2 * session.engine.in_flight)
    with tqdm(total=len(items), desc="extract", disable=not show) as bar:
        waiting = asyncio.create_task(_say_what_is_waited_for(session.engine, bar))
        try:
            await gather_coroutines(*(worker() for _ in range(n_workers)))
        finally:
            waiting.cancel()
    return results, session.usage


async def _say_what_is_waited_for(engine, bar):
    """Say after each minute without a reply that calls wait for one, and whose."""
    said = time.monotonic()
    while True:
        await asyncio.sleep(max(said + _SILENCE - time.monotonic(), 0.0))
        last = max(said, engine.replied)
        if time.monotonic() - last >= _SILENCE:
            text = (
                f"{len(engine.conversations)} calls wait for {engine.transport.name}, and "
                f"none has ended for {time.monotonic() - engine.replied:.0f} s: the server is "
                "slow, or refuses them for now. The log of skdcf.apps.llm has each call"
            )
            _LOG.warning(text)
            if not bar.disable:
                bar.write(text, file=sys.stderr)
            last = time.monotonic()
        said = last


async def gather_coroutines(*work):
    """Results of several coroutines at once; the first error ends the others."""
    tasks = [asyncio.ensure_future(w) for w in work]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
