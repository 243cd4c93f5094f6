"""When calls may begin: how many are in flight, and how long they wait after a refusal.

A rate limit holds for all calls alike. After a refusal no call begins for as long as the
server asks, and then calls go at the pace of the last successes. After two refusals in a row
one call alone asks whether the server takes calls again. The retries of the openai client
and tenacity wait for one call at a time, and aiolimiter needs a rate that is known.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

from ._errors import EndpointError, PassingError, RefusedError

#: Seconds that a server may ask for before a call is given up.
LONGEST_WAIT = 120.0
_PATIENCE = 600.0  # seconds without any success after which a run ends
_MANY = 10  # refusals in a row after which the pause doubles
_RECOVERY = 20  # successes that double the pace
_SHORTEST = 0.01  # seconds of a pause, where two calls are the least for each pause

T = TypeVar("T")


def back_off(n: int) -> float:
    """Seconds to wait after the n-th failure in a row, if the server does not say."""
    return min(0.5 * 2**n, 60) * (1 - 0.25 * random.random())


class Pace:
    """Let calls begin as an endpoint takes them.

    Parameters
    ----------
    in_flight : int
        Most calls at once.
    """

    def __init__(self, in_flight: int):
        self.in_flight = in_flight
        self._slots = asyncio.Semaphore(in_flight)
        self._n_busy = 0
        self._n_to_close = 0  # slots that close when their calls end
        self._halved = -math.inf

        self._resume = -math.inf  # no call begins before
        self._seconds = 0.0  # of the last pause
        self._rate = math.inf  # calls per second
        self._gain = 0.0  # what a success adds to the rate
        self._next = -math.inf  # when the rate lets the next call begin
        self._n_taken = 0  # successes since the last pause,
        self._round = 0.0  # of which the first began then
        self._n_before = 0  # those before the last refusals
        self._n_refused = 0  # refusals in a row
        self._refused_since = -math.inf
        self._succeeded = -math.inf
        self._first = asyncio.Lock()  # held by the call that asks after a refusal

    @property
    def has_succeeded(self) -> bool:
        """Whether the endpoint has ever replied."""
        return self._succeeded > -math.inf

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Hold one of the places for calls in flight."""
        await self._slots.acquire()
        self._n_busy += 1
        try:
            yield
        finally:
            self._n_busy -= 1
            if self._n_to_close:
                self._n_to_close -= 1
            else:
                self._slots.release()

    def halve(self, begun: float) -> bool:
        """Let half as many calls be in flight, after one that began then took too long.

        Returns
        -------
        bool
            Whether that was done. Once is enough for all calls that ran at that time.
        """
        if begun < self._halved or self._n_busy < 2 or self.in_flight == 1:
            return False
        self._n_to_close += self.in_flight - self.in_flight // 2
        self.in_flight //= 2
        self._halved = time.monotonic()
        return True

    async def attempt(self, send: Callable[[], Awaitable[T]]) -> T:
        """The result of ``send()``, which is repeated for as long as it is refused."""
        async with self.slot():
            while True:
                with suppress(RefusedError):
                    await self._wait()
                    if self._n_refused < 2:
                        return await self._begin(send)
                    async with self._first:
                        if self._n_refused >= 2:
                            return await self._begin(send)

    async def _wait(self):
        while (wait := max(self._resume, self._next) - time.monotonic()) > 0:
            await asyncio.sleep(wait)

    async def _begin(self, send):
        await self._wait()
        begun = time.monotonic()
        # Calls that could not begin during a pause may begin together after it.
        self._next = max(self._next, begun - self._seconds) + 1 / self._rate
        try:
            reply = await send()
        except RefusedError as error:
            self._refuse(error, begun)
            raise
        self._succeeded = time.monotonic()
        if begun >= self._resume:
            if self._n_refused and self._n_before:  # the refusals took time as well
                pace = self._n_before / (begun - self._round)
                self._go_at(min(max(pace, self._rate / 2), self._rate))
            self._round = self._round if self._n_taken else begun
            self._n_before = self._n_refused = 0
            self._n_taken += 1
            self._rate += self._gain
        return reply

    def _refuse(self, error, begun):
        """Pause and slow down; an error if nothing has succeeded for too long."""
        now = time.monotonic()
        wait = error.wait
        if wait is not None and wait > LONGEST_WAIT:
            raise PassingError(str(error), wait) from error
        if not self._n_refused:
            self._refused_since = now
        without = now - max(self._refused_since, self._succeeded)
        if without > _PATIENCE:
            raise EndpointError(
                f"the endpoint has refused all calls for {without:.0f} s: {error}"
            ) from error
        if begun < self._resume:  # another call that was refused with it has paused
            return
        self._n_refused += 1
        if wait is None:
            wait = back_off(self._n_refused)
        elif self._n_refused > _MANY:  # what the server said did not help
            wait = min(wait * 2 ** (self._n_refused // _MANY), max(wait, 60.0))
        if self._n_taken:
            pace = self._n_taken / (now + wait - self._round)
            slower = 0.0 if math.isinf(self._rate) else self._rate / 2
            self._go_at(max(pace, slower, 2 / max(wait, _SHORTEST)))
            self._n_before = self._n_taken
        self.pause(wait)

    def _go_at(self, rate):
        self._rate = rate
        self._gain = self._rate / _RECOVERY

    def pause(self, seconds: float) -> None:
        """Let no call begin for some seconds."""
        self._resume = max(self._resume, time.monotonic() + seconds)
        self._seconds = seconds
        self._n_taken = 0
