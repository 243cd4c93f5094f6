"""Do problems still look like those of before? Asked without labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from .._parameters import StrOptions
from ._betting import BettingMonitor

_STATISTICS: dict[str, Callable[[NDArray], float]] = {
    "mean": np.mean,
    "max": np.max,
    "min": np.min,
}
_BLOCK = 512  # problems that are ranked among each other at a time

#: The bets, functions of a p-value: it is small, it is large, it is at the sides, it is
#: in the middle. Each has the mean 1 over [0, 1].
_SLOPES = np.array([-1.8, -0.9, 0.9, 1.8])
_BENDS = np.array([0.8, -0.4])


class ExchangeabilityTest(BettingMonitor):
    """Test whether new problems are exchangeable with those of before.

    A conformal test martingale. Each problem is ranked among all before it by what its
    path risks are like; while problems are exchangeable, these ranks are independent and
    uniform, and nobody can win by betting on them. No label is needed. An alarm says that
    the guarantee has lost its ground, not that coverage is lost: `CoverageMonitor` says
    that.

    Parameters
    ----------
    delta : float, default=0.05
        Chance, in (0, 1), of an alarm ever, although problems are exchangeable.
    statistic : {"mean", "max", "min"}, default="mean"
        Of the path risks of a problem: what problems are ranked by.
    random_state : int, RandomState or None, default=None
        Breaks ties between problems.

    Attributes
    ----------
    seen_ : ndarray of shape (n_seen,)
        The statistic of all problems so far, sorted.
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
        "statistic": [StrOptions(set(_STATISTICS))],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        delta: float = 0.05,
        statistic: Literal["mean", "max", "min"] = "mean",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.delta = delta
        self.statistic = statistic
        self.random_state = random_state

    def fit(self, path_risk: Any, y: Any = None) -> Self:
        """Start from problems of before, on which nothing is bet.

        Without it, the first problems of `update` are all there is to compare with.

        Parameters
        ----------
        path_risk : fitted filter, or sequence of 1-D arrays, one per problem
            A filter, loaded from a file or not, stands for the problems that calibrated
            it; it takes ``statistic="max"``. Else as ``path_risk`` of the filter returns
            them, of problems that its scorer was not trained on.
        y : None
            Ignored.

        Returns
        -------
        self
        """
        self.validate()
        values = self._values_before(path_risk)
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

        Raises
        ------
        ValueError
            If a path risk is NaN.
        """
        self.validate()
        values = self._values(path_risk)
        if not hasattr(self, "seen_"):
            self._start(np.empty(0))
        uniform = self.rng_.random_sample(len(values))
        for start in range(0, len(values), _BLOCK):
            block = slice(start, start + _BLOCK)
            self._bet(_log_factors(self._p_values(values[block], uniform[block])))
        return self

    def _values_before(self, path_risk):
        if not hasattr(path_risk, "calibration_"):
            return self._values(path_risk)
        values = getattr(path_risk, "largest_risks_", None)
        if values is None or self.statistic != "max":
            raise ValueError(
                f"statistic is {self.statistic!r}, but a filter knows the largest path risk "
                'of the problems that calibrated it, and no other: use statistic="max"'
                if values is not None
                else "a filter that was calibrated over folds has no path risks of its "
                "calibration problems: pass filter.path_risk(X) of problems of before"
            )
        return values

    def _start(self, seen):
        self.seen_ = seen
        self.rng_ = check_random_state(
            check_random_state(self.random_state).randint(2**31)
        )

    def _values(self, path_risk) -> NDArray:
        """The statistic of each problem; one without claims has no risk at all."""
        function = _STATISTICS[self.statistic]
        rows = [np.asarray(row, dtype=np.float64).ravel() for row in path_risk]
        values = np.array([function(row) if len(row) else -np.inf for row in rows])
        if np.isnan(values).any():
            row = int(np.isnan(values).argmax())
            raise ValueError(f"problem {row}: a path risk is NaN")
        return values

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


def _log_factors(p):
    centred = p[:, None] - 0.5
    bends = 1 + _BENDS * (12 * centred**2 - 1)
    return np.log(np.hstack([1 + _SLOPES * centred, bends]))
