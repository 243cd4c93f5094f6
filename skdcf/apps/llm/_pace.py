"""Schedule the start of calls, with limited concurrency and pauses after rate limits.

A rate limit applies to all calls. After a refusal, no call starts for the time that the server
requests. Then, calls start at the rate of the last successes. After two consecutive refusals, a
single call tests whether the server accepts calls again. The retries of the openai client and
of tenacity are not suitable, because they delay only a single call. aiolimiter requires a known
rate.
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

#: Longest wait in seconds that a server may request. If it requests a longer wait, the
#: call fails.
LONGEST_WAIT = 120.0
# maximum number of seconds without a successful call before the run fails
_PATIENCE = 600.0
_MANY = 10  # number of consecutive refusals after which the pause doubles
_RECOVERY = 20  # number of successes that double the rate
# The shortest pause in seconds. At least two calls may start in each pause.
_SHORTEST = 0.01

T = TypeVar("T")


def back_off(n: int) -> float:
    """Return the seconds to wait after n consecutive failures, if the server requests no time."""
    return min(0.5 * 2**n, 60) * (1 - 0.25 * random.random())


class Pace:
    """Scheduler that starts calls at the rate that an endpoint accepts.

    Parameters
    ----------
    in_flight : int
        Maximum number of concurrent calls.
    """

    def __init__(self, in_flight: int):
        self.in_flight = in_flight
        self._slots = asyncio.Semaphore(in_flight)
        self._n_busy = 0
        self._n_to_close = 0  # number of slots to remove when their calls end
        self._halved = -math.inf

        self._resume = -math.inf  # earliest start time of the next call
        self._seconds = 0.0  # duration of the last pause
        self._rate = math.inf  # calls per second
        self._gain = 0.0  # increase of the rate with each success
        self._next = -math.inf  # earliest start of the next call at the current rate
        self._n_taken = 0  # number of successes since the last pause
        self._round = 0.0  # start time of the first success since the last pause
        self._n_before = 0  # number of successes before the last refusals
        self._n_refused = 0  # number of consecutive refusals
        self._refused_since = -math.inf
        self._succeeded = -math.inf
        # The call that tests the server after a refusal holds the lock.
        self._first = asyncio.Lock()

    @property
    def has_succeeded(self) -> bool:
        """Return whether the endpoint has ever replied."""
        return self._succeeded > -math.inf

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Context manager that occupies a slot for a concurrent call."""
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
        """Halve the number of concurrent calls after a call that started at ``begun`` timed out.

        Returns
        -------
        bool
            Whether the number was halved. The number is halved once for all calls that ran at
            that time.
        """
        if begun < self._halved or self._n_busy < 2 or self.in_flight == 1:
            return False
        self._n_to_close += self.in_flight - self.in_flight // 2
        self.in_flight //= 2
        self._halved = time.monotonic()
        return True

    async def attempt(self, send: Callable[[], Awaitable[T]]) -> T:
        """Return the result of ``send()``, which is repeated while the server refuses it."""
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
        # Calls that were delayed by a pause may start together after the pause.
        self._next = max(self._next, begun - self._seconds) + 1 / self._rate
        try:
            reply = await send()
        except RefusedError as error:
            self._refuse(error, begun)
            raise
        self._succeeded = time.monotonic()
        if begun >= self._resume:
            # The time spent on refusals is also counted.
            if self._n_refused and self._n_before:
                pace = self._n_before / (begun - self._round)
                self._go_at(min(max(pace, self._rate / 2), self._rate))
            self._round = self._round if self._n_taken else begun
            self._n_before = self._n_refused = 0
            self._n_taken += 1
            self._rate += self._gain
        return reply

    def _refuse(self, error, begun):
        """Pause and lower the rate, or raise an error if no call has succeeded for too long."""
        now = time.monotonic()
        wait = error.wait
        if wait is not None and wait > LONGEST_WAIT:
            raise PassingError(str(error), wait) from error
        if not self._n_refused:
            self._refused_since = now
        without = now - max(self._refused_since, self._succeeded)
        if without > _PATIENCE:
            raise EndpointError(
                f"the endpoint has refused all calls for {without:.0f} s. The last "
                f"error is: {error}"
            ) from error
        # Another call was refused at the same time and has already started a pause.
        if begun < self._resume:
            return
        self._n_refused += 1
        if wait is None:
            wait = back_off(self._n_refused)
        elif self._n_refused > _MANY:
            # The server still refused after the wait that it had requested.
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
        """Delay all new calls for this number of seconds."""
        self._resume = max(self._resume, time.monotonic() + seconds)
        self._seconds = seconds
        self._n_taken = 0
