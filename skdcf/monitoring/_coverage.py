"""Is a false claim kept more often than was promised? Asked after every answer."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import check_alpha
from .._parameters import positive
from ..metrics import problem_errors
from ..ops.conformal import conformal_rank
from ._betting import BettingMonitor

#: The bets: errors are so many times as likely (in odds) as promised.
ODDS = np.array([1.25, 1.5, 2.0, 3.0, 5.0])


def errors_of(y: Any, kept: Any) -> NDArray[np.bool_]:
    """Of which problems a false claim was kept; there may be no problems."""
    return problem_errors(y, kept) if len(y) or len(kept) else np.zeros(0, dtype=bool)


class CoverageMonitor(BettingMonitor):
    """Watch over the coverage of a filter in use, from answers that were judged.

    The monitor bets that false claims are kept too often. While the promise holds, its
    wealth is expected not to grow, and the chance that it ever gives an alarm, however
    long it runs and however often it is looked at, is at most ``delta``.

    Parameters
    ----------
    alpha : float, default=0.1
        Share of problems, in (0, 1), that may keep a false claim: that of the filter, or
        twice that for ``calibration_size="cross"``, where no more is proven.
    n_calibration : int or None, default=None
        Number of problems that the filter was calibrated on. The promise is an average
        over what might have calibrated it, so the coverage of the one filter in use may
        well lie below ``1 - alpha``. With this number, alarms are false where the
        problems in use are like those of calibration, and such bad luck is allowed for.
        None asks for ``1 - alpha`` of the one filter itself: right for a filter that was
        calibrated on very many problems, and too much to ask of any other.
    delta : float, default=0.05
        Chance of a false alarm, in (0, 1).

    Attributes
    ----------
    n_errors_ : int
        Problems of which a false claim was kept.
    log_wealth_ : ndarray of shape (n_problems,)
        After each problem.

    Notes
    -----
    Exchangeable problems err like draws from an urn: if k is the conformal rank of n
    calibration problems, and e of the first t - 1 problems in use have erred, then the
    next one errs with probability ``(k + e) / (n + t)``. Each bet multiplies the odds of
    that, and its factor is the likelihood ratio. Where scores are tied, the filter in use
    errs at most as often as it would if chance had broken the ties, and an alarm is the
    less likely the fewer problems err.

    References
    ----------
    J. Ville. Étude critique de la notion de collectif, 1939. G. Shafer, V. Vovk.
    Game-Theoretic Foundations for Probability and Finance, 2019. A. Podkopaev,
    A. Ramdas. Tracking the risk of a deployed model and detecting harmful distribution
    shifts. ICLR 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from skdcf.monitoring import CoverageMonitor
    >>> kept = [np.array([True])] * 300
    >>> good = [[int(i % 12 > 0)] for i in range(300)]
    >>> monitor = CoverageMonitor(alpha=0.1, delta=0.01).update(good, kept)
    >>> monitor.alarm
    False
    >>> bad = [[int(i % 3 > 0)] for i in range(300)]
    >>> monitor.update(bad, kept).alarm, monitor.alarm_at
    (True, 352)
    """

    _parameter_constraints = BettingMonitor._parameter_constraints | {
        "n_calibration": [None, positive(Integral)],
    }

    def __init__(
        self,
        alpha: float = 0.1,
        *,
        n_calibration: int | None = None,
        delta: float = 0.05,
    ) -> None:
        self.alpha = alpha
        self.n_calibration = n_calibration
        self.delta = delta

    def validate(self) -> None:
        """Raise ValueError unless all parameters are as declared."""
        check_alpha(self.alpha)
        super().validate()

    def update(
        self, y: Sequence[ArrayLike] | ArrayLike, kept: Sequence[ArrayLike] | ArrayLike
    ) -> Self:
        """Take in answers that were judged, in the order of time.

        Parameters
        ----------
        y : sequence of 1-D arrays, one per problem
            1 for a true claim, 0 for a false one, -1 for one that nobody judged, which
            counts as false, as in calibration. A flat array has one claim per problem.
        kept : sequence of boolean masks, as ``predict`` of the filter returned them

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If labels and masks do not fit together.

        Notes
        -----
        Which answers are judged must not depend on what is wrong with them: those that
        users complain about say nothing of the others.
        """
        self.validate()
        self._take(errors_of(y, kept))
        return self

    def _take(self, errors):
        errors = errors.astype(np.float64)
        before = getattr(self, "n_errors_", 0) + np.append(0.0, np.cumsum(errors))
        chance = self._chance(before[:-1])
        log_factors = errors[:, None] * np.log(ODDS)
        log_factors = log_factors - np.log1p(chance[:, None] * (ODDS - 1))
        self.n_errors_ = int(before[-1])
        self._bet(log_factors)

    def _chance(self, before) -> NDArray:
        """Of an error, after so many errors in the problems before."""
        if self.n_calibration is None:
            return np.full(len(before), float(self.alpha))
        t = len(self._log_wealth) + np.arange(len(before))  # counted from 1
        k = conformal_rank(self.n_calibration, self.alpha)
        return (k + before) / (self.n_calibration + t)

    def summary(self) -> dict[str, Any]:
        """How things stand.

        Returns
        -------
        dict
            That of every monitor (``n_problems``, ``wealth``, ``largest_wealth``,
            ``p_value``, ``alarm``, ``alarm_at``), and ``n_errors``, ``coverage`` (NaN
            before the first problem) and ``alpha``.
        """
        out, n_errors = super().summary(), getattr(self, "n_errors_", 0)
        n = out["n_problems"]
        coverage = 1 - n_errors / n if n else float("nan")
        return out | {"n_errors": n_errors, "coverage": coverage, "alpha": self.alpha}
