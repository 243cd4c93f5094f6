"""Calls in flight: how many at once, each of them once, and what they cost."""

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any

from tqdm.auto import tqdm

from ._cache import ReplyCache
from ._calls import Call, CallError, EndpointError, NotCachedError, Reply

_PROBLEMS_PER_CALL = 2  # problems at work, for each call that may be in flight


class CallableTransport:
    """A function of the caller's in the place of an endpoint."""

    key = ""

    def __init__(self, function):
        self._function = function
        self.endpoint = f"{function.__module__}.{getattr(function, '__qualname__', '')}"
        try:
            parameters = inspect.signature(function).parameters.values()
        except ValueError:  # of a function that is not written in Python
            parameters = ()
        self._takes_options = any(p.kind is p.VAR_KEYWORD for p in parameters)

    async def complete(self, call: Call) -> Reply:
        """What the function returns: a text or a Reply, at once or to be awaited."""
        messages = [{"role": role, "content": text} for role, text in call.messages]
        names = "model", "schema", "temperature", "seed", "max_tokens", "logprobs"
        options = {n: getattr(call, n) for n in names} if self._takes_options else {}
        out = self._function(messages, **options)
        if inspect.isawaitable(out):
            out = await out
        if isinstance(out, str):
            return Reply(out)
        if isinstance(out, Reply):
            return out
        raise CallError(f"the client returned a {type(out).__name__}, no text")

    async def close(self):
        """Nothing to close."""


class Session:
    """An open client: it asks, remembers, counts and gives up in time."""

    def __init__(self, transport, cache: ReplyCache, in_flight: int, dry: bool, usage):
        self.transport, self.cache, self.usage = transport, cache, usage
        self.in_flight, self._dry = in_flight, dry
        self._free = asyncio.Semaphore(in_flight)
        self._asked: dict[str, asyncio.Task] = {}
        self._failed_in_a_row, self._last_error = 0, ""

    async def ask(self, call: Call) -> Reply:
        """The reply to a call, from the cache where it is known."""
        key = call.key(self.transport.endpoint)
        known = self.cache.get(key)
        if known is not None:
            self.usage.cached += 1
            return Reply.from_json(known)
        if self._dry:
            raise NotCachedError("the reply is not in the cache")
        if key not in self._asked:  # the same call twice at once is made once
            task = asyncio.create_task(self._fetch(key, call))
            self._asked[key] = task
            task.add_done_callback(lambda task: self._forget(key, task))
        return await asyncio.shield(self._asked[key])

    def _forget(self, key, task):
        self._asked.pop(key, None)
        if not task.cancelled():
            task.exception()  # looked at, so that Python does not complain

    async def _fetch(self, key, call):
        async with self._free:
            if self._failed_in_a_row >= self._patience:
                raise EndpointError(
                    f"the last {self._failed_in_a_row} calls have failed: no more are made. "
                    f"The last one: {self._last_error}"
                )
            try:
                reply = await self.transport.complete(call)
            except CallError as error:
                self._failed_in_a_row += 1
                self._last_error = str(error)
                raise
            self._failed_in_a_row = 0
            reply = self._without_key(reply)
            self.usage.add(reply)
            self.cache.put(key, reply.to_json(), call.prompt)
            return reply

    @property
    def _patience(self):
        return max(10, 2 * self.in_flight)

    def _without_key(self, reply):
        """A server may say the key back; it is neither stored nor shown."""
        key = self.transport.key
        if key and key in reply.to_json():
            return replace(reply, text=reply.text.replace(key, "***"), top_logprobs=[])
        return reply

    async def close(self):
        for task in list(self._asked.values()):
            task.cancel()
        await asyncio.gather(*self._asked.values(), return_exceptions=True)
        await self.transport.close()
        self.cache.close()


async def gather_all(
    session: Session,
    items: Sequence[Any],
    work: Callable[[Any], Awaitable[Any]],
    title: str | None = None,
) -> list[Any]:
    """``work`` for each item, several at once.

    Returns
    -------
    list
        A result per item, or the CallError that it ended with. An EndpointError ends
        all of them.
    """
    results: list[Any] = [None] * len(items)
    todo = iter(enumerate(items))
    bar = tqdm(total=len(items), desc=title, disable=title is None)

    async def worker():
        for i, item in todo:
            try:
                results[i] = await work(item)
            except EndpointError:
                raise
            except CallError as error:
                results[i] = error
            bar.update()

    n = min(len(items), _PROBLEMS_PER_CALL * session.in_flight)
    tasks = [asyncio.create_task(worker()) for _ in range(n)]
    try:
        await asyncio.gather(*tasks)
    finally:
        bar.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return results


def run_coroutine(make: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Run to the end, also where a loop runs already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(make())
    outcome: dict[str, Any] = {}

    def target():
        try:
            outcome["value"] = asyncio.run(make())
        except BaseException as error:
            outcome["error"] = error

    thread = threading.Thread(target=target, daemon=True)
    thread.start()
    thread.join()
    if "error" in outcome:
        raise outcome["error"]
    return outcome["value"]
