"""Schedule the start of calls, with limited concurrency and pauses after rate limits.

A rate limit applies to all calls. After a refusal, no call starts until the time requested by the
server has passed. Then two calls start in each interval of this length, until a call succeeds. If
the server requests no time, each pause is twice as long as the previous one, and a single call
tests the server after it. After a success, calls start at the rate of the last successes, which
increases with each success.

The retries of the openai client and of tenacity are not suitable, because they delay only a
single call. aiolimiter requires a known rate.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cached_property
from typing import Any

from ..._checks import import_extra
from ._errors import CallError, EndpointError, PassingError, RefusedError

# Maximum wait in seconds that a server may request. If the server requests a longer wait, the
# call fails.
_LONGEST_WAIT = 120.0
# maximum number of seconds without a successful call before the run fails
_PATIENCE = 600.0
_MANY = 10  # number of consecutive refusals after which the pause doubles
_RECOVERY = 20  # number of successful calls after which the rate doubles
_SHORTEST = 0.01  # shortest pause in seconds


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
        self._in_flight = in_flight
        self.has_succeeded = False  # whether the endpoint has ever replied
        self._halved = -math.inf

        self._resume = -math.inf  # end of the last pause
        self._seconds = 0.0  # duration of the last pause
        self._next = -math.inf  # start of the next call
        self._gap = 0.0  # seconds between the starts of two calls
        self._rate = math.inf  # calls per second, unless calls are refused
        self._gain = 0.0  # increase of the rate with each success
        self._n_taken = 0  # number of successes at the current rate
        self._round = 0.0  # start of the first of these successes
        self._n_refused = 0  # number of consecutive refusals
        # time of the last success, or of the first refusal after it
        self._waiting = 0.0

    @cached_property
    def slots(self) -> Any:
        """Return the limiter of concurrent calls, which is created in the event loop."""
        return import_extra("anyio", "apps").CapacityLimiter(self._in_flight)

    def halve(self, begun: float) -> bool:
        """Halve the number of slots after the timeout of a call that started at ``begun``.

        Returns
        -------
        bool
            Whether the number was halved for the first time. Timeouts of calls that ran at the
            same time halve the number only once.
        """
        if begun < self._halved or self.slots.borrowed_tokens < 2:
            return False
        is_first = math.isinf(self._halved)
        self.slots.total_tokens = max(self.slots.total_tokens // 2, 1)
        self._halved = time.monotonic()
        return is_first

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Context manager that waits until a call may start, and learns from its result."""
        async with self.slots:
            while (wait := max(self._resume, self._next) - time.monotonic()) > 0:
                await asyncio.sleep(wait)
            begun = time.monotonic()
            # Calls that were delayed by a pause may start together after the pause.
            self._next = max(self._next, begun - self._seconds) + self._gap
            try:
                yield
            except PassingError as error:
                self._fail(error, begun)
                raise
            self._succeed(begun)

    def _fail(self, error, begun):
        """Pause for the time that the server requests, or longer after many refusals."""
        wait = error.wait
        if wait is not None and wait > _LONGEST_WAIT:
            raise CallError(
                f"the server requests a wait of {wait:.0f} s, but the maximum wait is "
                f"{_LONGEST_WAIT:.0f} s. Try again later: {error}"
            ) from error
        if isinstance(error, RefusedError):
            now = time.monotonic()
            if not self._n_refused:
                self._waiting = now
            if now - self._waiting > _PATIENCE:
                raise EndpointError(
                    f"the endpoint has rejected all calls for {now - self._waiting:.0f} s. The "
                    f"last error was: {error}"
                ) from error
            # Calls that started before the last pause ended do not start another pause.
            if begun < self._resume:
                return
            self._n_refused += 1
            if wait is None:
                wait = back_off(self._n_refused)
                self._gap = 2 * wait  # one call per pause, because the pause counts
            else:
                # The server may still refuse after the wait that it requests.
                n_doubled = (self._n_refused - 1) // _MANY
                longer = max(wait, _SHORTEST) * 2**n_doubled
                wait = min(longer, max(wait, 60.0))
                self._gap = wait / 2  # two calls per pause
        if wait is not None:
            self._seconds = max(wait, _SHORTEST)
            self._resume = max(self._resume, time.monotonic() + self._seconds)

    def _succeed(self, begun):
        """Increase the rate after a success, or measure the rate after a pause."""
        self.has_succeeded = True
        self._waiting = time.monotonic()
        if begun < self._resume:
            return
        if self._n_refused and self._n_taken:
            # The measured time includes the time spent on refusals.
            pace = self._n_taken / (begun - self._round)
            half = 0.0 if math.isinf(self._rate) else self._rate / 2
            self._rate = max(pace, half, 2 / self._seconds)
            self._gain = self._rate / _RECOVERY
        if self._n_refused or not self._n_taken:
            self._round = begun
            self._n_taken = self._n_refused = 0
        self._n_taken += 1
        self._rate += self._gain
        self._gap = 1 / self._rate
