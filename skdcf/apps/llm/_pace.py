"""Schedule the start of calls, with limited concurrency and pauses after rate limits.

A rate limit applies to all calls. After a refusal, no call starts until the time requested by the
server has passed. If the server requests no time, each pause is twice as long as the previous one.
After the pause, calls start at intervals of half the pause, until a call succeeds. Then calls
start at the measured rate of successful calls, and each further success increases this rate.

The retries of the openai client and of tenacity are not suitable, because they delay only a
single call. The package aiolimiter requires a known rate.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ._errors import EndpointError, PassingError, RefusedError

# maximum total duration in seconds of the pauses without a successful call
_PATIENCE = 600.0
_MANY = 10  # number of consecutive refusals after which the requested pause doubles
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
        self.slots = asyncio.Semaphore(in_flight)

        self._n_refused = 0  # number of consecutive refusals
        self._waited = 0.0  # total duration of the pauses after these refusals
        self._pause = 0.0  # duration of the last pause
        self._resume = -math.inf  # end of the last pause
        self._n_taken = 0  # number of successful calls since the last refusals
        self._first = time.monotonic()  # start of the first of these calls
        self._next = -math.inf  # earliest start of the next call
        # seconds between the starts of two calls, unless calls are refused
        self._gap = 0.0
        self._gain = 0.0  # increase in calls per second after each success

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait until a call may start, and adapt the rate to the result of the call."""
        async with self.slots:
            while (wait := max(self._resume, self._next) - time.monotonic()) > 0:
                await asyncio.sleep(wait)
            begun = time.monotonic()
            gap = self._pause / 2 if self._n_refused else self._gap
            # Calls that were delayed by a pause may start together after the pause.
            self._next = max(self._next, begun - self._pause) + gap
            try:
                yield
            except PassingError as error:
                is_limit = isinstance(error, RefusedError) or error.wait is not None
                # Calls that started before the last pause ended do not start another pause.
                if is_limit and begun >= self._resume:
                    self._slow_down(error)
                raise
            self._waited = 0.0
            if begun >= self._resume:
                if self._n_refused:
                    self._n_refused = self._n_taken = 0
                    self._first = begun
                self._n_taken += 1
                self._gap /= 1 + self._gain * self._gap

    def _slow_down(self, error):
        """Pause all calls, and reduce the rate at which they start after the pause."""
        pause = back_off(self._n_refused + 1)
        if error.wait is not None:
            # The server may still refuse calls after the wait that it requests.
            pause = max(error.wait, _SHORTEST) * 2 ** (self._n_refused // _MANY)
        if self._waited + pause > _PATIENCE:
            raise EndpointError(
                f"the endpoint has refused all calls for {self._waited:.0f} s, and the next "
                f"pause would last {pause:.0f} s. The maximum is {_PATIENCE:.0f} s without a "
                f"successful call. Try again later: {error}"
            ) from error
        resume = time.monotonic() + pause
        if self._n_taken:
            # The measured time per success includes the pause.
            measured = (resume - self._first) / self._n_taken
            self._gap = min(measured, 2 * self._gap or measured, pause / 2)
            self._gain = 1 / (_RECOVERY * self._gap)
        self._n_refused += 1
        self._waited += pause
        self._pause, self._resume = pause, resume
