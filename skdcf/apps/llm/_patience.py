"""How many calls are in flight at once, and how long they wait for a server that refuses.

A rate limit holds for all calls alike. After a refusal all of them wait, then one of them
alone asks whether the server takes calls again, and the others follow when it does.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

from ._calls import EndpointError, PassingError, RefusedError

#: Seconds that a server may ask for before a call is given up.
LONGEST_WAIT = 120.0
# The longest wait in seconds where a server only says when all is free.
_LONGEST_GUESS = 60.0
_PATIENCE = 600.0  # seconds without any success in which refusals are no attempts
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_TIME = re.compile(r"([\d.]+)\s*(ms|h|m|s)")
#: "Try again in 1m2.5s", "Please retry after 9 seconds", "retryDelay": "39s".
_IN_WORDS = re.compile(
    r"""(?ix) (?: (?:try\ again|retry|reset) \ (?:in|after) | retryDelay\W+ )
    \s* ( (?: [\d.]+ \s* (?:ms|h|m|s) \w* \s* )+ )"""
)

T = TypeVar("T")


class Slots:
    """Limit the calls in flight, and halve the limit after one of several took too long."""

    def __init__(self, most: int):
        self.most = most
        self._free = asyncio.Semaphore(most)
        self._n_busy = 0
        self._n_to_close = 0
        self._halved = -math.inf

    async def __aenter__(self):
        await self._free.acquire()
        self._n_busy += 1

    async def __aexit__(self, *error):
        self._n_busy -= 1
        if self._n_to_close:
            self._n_to_close -= 1
        else:
            self._free.release()

    def halve(self, begun: float) -> bool:
        """Let half as many calls through, for one that began at a time and had others beside it.

        Returns
        -------
        bool
            Whether that was done; once is enough for all calls that ran at that time.
        """
        if begun < self._halved or self._n_busy < 2 or self.most == 1:
            return False
        self._n_to_close += self.most - self.most // 2
        self.most //= 2
        self._halved = time.monotonic()
        return True

    async def give_way(self) -> None:
        """Let a call that waits for its place go first."""
        await self.__aexit__()
        try:
            await self.__aenter__()
        except BaseException:
            # The call is cancelled, and will give back a place that it does not have.
            self._n_busy += 1
            self._n_to_close += 1
            raise


class RateLimit:
    """Pauses that hold for all calls of an endpoint.

    Parameters
    ----------
    back_off : callable
        ``back_off(n)`` gives seconds, twice as many for the next ``n``.
    """

    def __init__(self, back_off: Callable[[int], float]):
        self._back_off = back_off
        self._resume = 0.0
        self._n_refused = 0  # refusals in a row
        self._refused_since = 0.0
        self._succeeded = -math.inf
        self._first = asyncio.Lock()

    @property
    def has_succeeded(self) -> bool:
        """Whether the endpoint has ever replied."""
        return self._succeeded > -math.inf

    def pause(self, seconds: float) -> None:
        """Let no call begin for some seconds."""
        self._resume = max(self._resume, time.monotonic() + seconds)

    async def attempt(self, send: Callable[[], Awaitable[T]]) -> T:
        """The result of ``send()``, which is tried again for as long as it is refused."""
        while True:
            with suppress(RefusedError):
                if not self._n_refused:
                    return await self._try(send)
                async with self._first:
                    if self._n_refused:
                        return await self._try(send)

    async def _try(self, send):
        while (wait := self._resume - time.monotonic()) > 0:
            await asyncio.sleep(wait)
        begun = time.monotonic()
        try:
            reply = await send()
        except RefusedError as error:
            self._refuse(error, begun)
            raise
        self._succeeded = time.monotonic()
        if begun >= self._resume:
            self._n_refused = 0
        return reply

    def _refuse(self, error, begun):
        """Pause, longer each time; an error where nothing has succeeded for too long."""
        problem, wait = error.args
        refused_at = time.monotonic()
        if wait is not None and wait > LONGEST_WAIT:
            raise PassingError(problem, wait) from error
        if not self._n_refused:
            self._refused_since = refused_at
        without = refused_at - max(self._refused_since, self._succeeded)
        if without > _PATIENCE:
            raise EndpointError(
                f"the endpoint has refused all calls for {without:.0f} s: {problem}"
            ) from error
        if begun < self._resume:  # another call that was refused with it has paused
            return
        self._n_refused += 1
        guess = self._back_off(self._n_refused + 1)
        if wait is None:
            wait = guess
        elif self._n_refused > 1:  # what the server said did not help
            wait = max(wait, guess)
        self.pause(wait)


def read_wait(headers: dict[str, str], message: str) -> float | None:
    """Seconds that a server asks to wait for, None where it does not say.

    Parameters
    ----------
    headers : dict
        With names in lower case.
    message : str
        What the server says of the error.

    Returns
    -------
    float or None
    """
    for name, per_second in (("retry-after-ms", 1000), ("retry-after", 1)):
        with suppress(ValueError):
            if 0 <= (wait := float(headers.get(name, "")) / per_second) < math.inf:
                return wait
    with suppress(ValueError, TypeError, OverflowError):
        date = parsedate_to_datetime(headers.get("retry-after", ""))
        return max(date.timestamp() - time.time(), 0.0)
    if match := _IN_WORDS.search(message):
        return _duration(match[1])

    resets = {
        name: wait
        for name, value in headers.items()
        if "ratelimit" in name
        and "reset" in name
        and (wait := _until(value)) is not None
    }
    spent = [
        wait
        for name, wait in resets.items()
        if headers.get(name.replace("reset", "remaining"), "").strip() == "0"
    ]
    waits = spent or list(resets.values())
    return min(max(waits), _LONGEST_GUESS) if waits else None


def _until(value):
    """Seconds until a limit is reset: a duration, seconds, a date, or a time since 1970."""
    with suppress(ValueError):
        number = float(value)
        if number > 1e9:
            number /= 1000 if number > 1e12 else 1
            number -= time.time()
        return max(number, 0.0) if math.isfinite(number) else None
    with suppress(ValueError):
        return max(datetime.fromisoformat(value).timestamp() - time.time(), 0.0)
    return _duration(value)


def _duration(text):
    """Seconds in a duration such as "1m2.5s" or "20 seconds"; None where it is none."""
    with suppress(ValueError):
        seconds = [float(n) * _SECONDS[unit] for n, unit in _TIME.findall(text)]
        return sum(seconds) if seconds else None
    return None
