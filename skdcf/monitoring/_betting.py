"""Bets against a null hypothesis, problem by problem (Shafer and Vovk 2019).

====  =========================================================================
f     factor of a bet on a problem: its mean is at most 1 under the null
W     wealth, which starts at 1: what is not bet yet plus what the bets have made
====  =========================================================================

W is a test supermartingale, so under the null the chance that it ever reaches 1 / delta
is at most delta (Ville 1939). What goes wrong may do so at any time, hence only a part
of the wealth is put into each bet at each problem, and the rest waits. What waits shrinks
so slowly that a change is found after months, too.
"""

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from .._parameters import Number, Settings

PACE = 100.0  # problems until the waiting wealth has fallen to 63 %
LARGEST = 700.0  # exp of it is still a number


def waiting(t):
    """Share of the first wealth that has not been bet once ``t`` problems are seen."""
    return 1 / np.log2(2 + t / PACE)


class BettingMonitor(Settings):
    """What monitors share that bet: the wealth, its history and the alarm."""

    delta: float
    n_problems_: int
    log_wealth_: NDArray[np.float64]

    _parameter_constraints = {"delta": [Number(Real, 0, 1, closed="neither")]}

    @property
    def wealth(self) -> float:
        """What a wealth of 1 has become; large values speak against the null."""
        return float(np.exp(min(self._log_wealth[-1], LARGEST)))

    @property
    def p_value(self) -> float:
        """One over the largest wealth so far: valid whenever it is looked at."""
        return float(np.exp(-max(self._log_wealth.max(), 0.0)))

    @property
    def alarm(self) -> bool:
        """Whether the wealth has ever reached ``1 / delta``."""
        return self.alarm_at is not None

    @property
    def alarm_at(self) -> int | None:
        """Number of problems after which the alarm was given, None without one."""
        reached = self._log_wealth >= -np.log(self.delta)
        return int(np.argmax(reached)) if reached.any() else None

    @property
    def _log_wealth(self):
        """Of 0, 1, 2, ... problems."""
        return np.append(0.0, getattr(self, "log_wealth_", ()))

    def summary(self) -> dict[str, Any]:
        """How things stand.

        Returns
        -------
        dict
            ``n_problems``, ``wealth``, ``largest_wealth``, ``p_value``, ``alarm`` and
            ``alarm_at``, in plain values.
        """
        return {
            "n_problems": len(self._log_wealth) - 1,
            "wealth": self.wealth,
            "largest_wealth": 1 / max(self.p_value, np.exp(-LARGEST)),
            "p_value": self.p_value,
            "alarm": self.alarm,
            "alarm_at": self.alarm_at,
        }

    def _bet(self, log_factors):
        """Play on problems; log factors of shape (n_problems, n_bets)."""
        if not hasattr(self, "log_wealth_"):
            self.log_wealth_, self.state_ = np.empty(0), new_state(log_factors.shape[1])
        made, self.state_ = play(len(self.log_wealth_), self.state_, log_factors)
        self.log_wealth_ = np.append(self.log_wealth_, made)


def new_state(n_bets):
    """Log products and log stakes of bets before the first problem."""
    return np.stack([np.zeros(n_bets), np.full(n_bets, -np.inf)])


def play(before, state, log_factors):
    """Log wealth after each problem, and the state after the last.

    The sums run from one problem to the next, so that a stream gives the same bits
    however it is cut into updates. ``before`` problems were played on.
    """
    n, n_bets = log_factors.shape
    if not n:
        return np.empty(0), state
    t = before + np.arange(n + 1)
    product = np.cumsum(np.vstack([state[0], log_factors]), axis=0)
    staked = np.log((waiting(t[:-1]) - waiting(t[1:])) / n_bets)
    stakes = np.vstack([state[1], staked[:, None] - product[:-1]])
    stakes = np.logaddexp.accumulate(stakes, axis=0)
    made = np.column_stack([np.log(waiting(t[1:])), product[1:] + stakes[1:]])
    return logsumexp(made, axis=1), np.stack([product[-1], stakes[-1]])
