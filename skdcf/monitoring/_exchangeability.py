"""Do problems still look like those of before? Asked without labels.

The bets against a null hypothesis, problem by problem, are those of Shafer and Vovk
(2019):

====  =========================================================================
f     factor of a bet on a problem: its mean is at most 1 under the null
W     wealth, which starts at 1: what is not bet yet plus what the bets have made
====  =========================================================================

W is a test supermartingale, so under the null the chance that it ever reaches 1 / delta
is at most delta (Ville 1939). What goes wrong may do so at any time, hence only a part
of the wealth is put into each bet at each problem, and the rest waits. What waits shrinks
so slowly that a change is found after months, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.utils import check_random_state

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


_BLOCK = 512  # problems that are ranked among each other at a time

#: The bets, functions of a p-value: it is small, it is large, it is at the sides, it is
#: in the middle. Each has the mean 1 over [0, 1].
_SLOPES = np.array([-1.8, -0.9, 0.9, 1.8])
_BENDS = np.array([0.8, -0.4])


class ExchangeabilityTest(BettingMonitor):
    """Test whether new problems are exchangeable with those of before.

    A conformal test martingale. Each problem is ranked among all before it by its
    largest path risk; while problems are exchangeable, these ranks are independent and
    uniform, and nobody can win by betting on them. No label is needed. An alarm says that
    the guarantee has lost its ground, not that coverage is lost: `CoverageMonitor` says
    that.

    Parameters
    ----------
    delta : float, default=0.05
        Chance, in (0, 1), of an alarm ever, although problems are exchangeable.
    random_state : int, RandomState or None, default=None
        Breaks ties between problems.

    Attributes
    ----------
    seen_ : ndarray of shape (n_seen,)
        The largest path risk of each problem so far, sorted.
    log_wealth_ : ndarray of shape (n_problems,)
        After each problem of `update`.

    References
    ----------
    V. Vovk, A. Gammerman, G. Shafer. Algorithmic Learning in a Random World, second
    edition, 2022, part III. V. Fedorova, A. Gammerman, I. Nouretdinov, V. Vovk. Plug-in
    martingales for testing exchangeability on-line. ICML 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from skdcf.monitoring import ExchangeabilityTest
    >>> rng = np.random.default_rng(0)
    >>> test = ExchangeabilityTest(random_state=0).fit(rng.normal(size=(200, 3)))
    >>> test.update(rng.normal(size=(300, 3))).alarm
    False
    >>> test.update(rng.normal(0.5, size=(300, 3))).alarm
    True
    """

    _parameter_constraints = BettingMonitor._parameter_constraints | {
        "random_state": ["random_state"]
    }

    def __init__(
        self,
        *,
        delta: float = 0.05,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.delta = delta
        self.random_state = random_state

    def fit(self, path_risk: Any, y: Any = None) -> Self:
        """Start from problems of before, on which nothing is bet.

        Without it, the first problems of `update` are all there is to compare with.

        Parameters
        ----------
        path_risk : fitted filter, or sequence of 1-D arrays, one per problem
            A filter, loaded from a file or not, stands for the problems that calibrated
            it. Else as ``path_risk`` of the filter returns
            them, of problems that its scorer was not trained on.
        y : None
            Ignored.

        Returns
        -------
        self
            This object, without bets.
        """
        self.validate()
        values = getattr(path_risk, "largest_risks_", None)
        if values is None and hasattr(path_risk, "calibration_"):
            raise ValueError(
                "a filter that was calibrated over folds has no path risks of its "
                "calibration problems: pass filter.path_risk(X) of problems of before"
            )
        values = _largest(path_risk) if values is None else values
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        self._start(np.sort(values))
        return self

    def update(self, path_risk: Sequence[ArrayLike]) -> Self:
        """Take in new problems, in the order of time.

        Parameters
        ----------
        path_risk : sequence of 1-D arrays, one per problem
            As ``path_risk`` of the filter returns them.

        Returns
        -------
        self
            This object.

        Raises
        ------
        ValueError
            If a path risk is NaN.
        """
        self.validate()
        values = _largest(path_risk)
        if not hasattr(self, "seen_"):
            self._start(np.empty(0))
        uniform = self.rng_.random_sample(len(values))
        for start in range(0, len(values), _BLOCK):
            block = slice(start, start + _BLOCK)
            self._bet(_log_factors(self._p_values(values[block], uniform[block])))
        return self

    def _start(self, seen):
        self.seen_ = seen
        self.rng_ = check_random_state(
            check_random_state(self.random_state).randint(2**31)
        )

    def _p_values(self, values, uniform):
        """Ranks among all problems before, ties broken at random."""
        earlier = np.tri(len(values), k=-1, dtype=bool)
        below = np.searchsorted(self.seen_, values, side="left")
        equal = np.searchsorted(self.seen_, values, side="right") - below
        below = below + (earlier & (values < values[:, None])).sum(axis=1)
        equal = equal + (earlier & (values == values[:, None])).sum(axis=1)
        n_before = len(self.seen_) + np.arange(len(values))
        places = np.searchsorted(self.seen_, np.sort(values))
        self.seen_ = np.insert(self.seen_, places, np.sort(values))
        return (below + uniform * (equal + 1)) / (n_before + 1)


def _largest(path_risk) -> NDArray:
    """The largest path risk of each problem; one without claims has no risk at all."""
    values = np.array([np.max(row, initial=-np.inf) for row in path_risk], np.float64)
    if np.isnan(values).any():
        raise ValueError(f"problem {np.isnan(values).argmax()}: a path risk is NaN")
    return values


def _log_factors(p):
    centred = p[:, None] - 0.5
    bends = 1 + _BENDS * (12 * centred**2 - 1)
    return np.log(np.hstack([1 + _SLOPES * centred, bends]))
