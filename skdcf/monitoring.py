"""Sequential tests of exchangeability and of the guarantee.

Each test bets against a null hypothesis, problem by problem (Shafer and Vovk 2019).

====  =========================================================================
f     factor of a bet on a problem: its mean is at most 1 under the null
W     wealth, which starts at 1: the amount not yet bet plus the proceeds of the bets
====  =========================================================================

The wealth W is a test supermartingale, so under the null, the probability that W ever reaches 1 /
delta is at most delta (Ville 1939). A change can occur at any time, so only part of the wealth is
bet on each problem, and the rest is reserved. The reserve shrinks so slowly that a change can be
detected even after months.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from copy import copy
from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from . import full
from ._checks import Seed
from ._parameters import Settings, fraction, settings
from .graphs import Problems
from .identity import Groups, hashes_of
from .labels import Labels
from .ops.hard import segment_max
from .ops.mean_bound import largest_mean

__all__ = ["CoverageMonitor", "ExchangeabilityTest"]


@settings
class BettingMonitor(Settings):
    """Base class of monitors that bet against a null hypothesis."""

    _: KW_ONLY
    delta: float = 0.05

    _parameter_constraints = {"delta": [fraction()], "random_state": ["random_state"]}
    #: Part of delta that is reserved for the event that the calibration set is unfavourable.
    calibration_delta_ = 0.0

    def fit(self, filter: Any, y: Any = None) -> Self:
        """Start to monitor a filter with its current calibration.

        Parameters
        ----------
        filter : fitted filter
            The filter. If it is calibrated again, fit a monitor again.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The monitor, without bets.

        Raises
        ------
        ValueError
            If a parameter is invalid, or if the filter cannot be monitored.
        """
        self.validate()
        filter.check_calibrated()
        full.refuse(filter, "a monitor")
        self._start(filter)  # type: ignore[attr-defined]
        # The calibration of the copy does not change.
        self.filter_ = copy(filter)
        self.log_wealth_ = np.empty(0)
        self.n_repeated_ = 0
        self.taken_ = {}
        return self

    def _first(self, hashes, name):
        """Return which answers are the first to a new question in the group."""
        calibrated = self.filter_._record.calibrated
        # During calibration, the question may have had an id, but only its text is known here.
        first = ~hashes.among(calibrated)
        contents_differ = len(calibrated["content"]) >= self.filter_.n_calibration_
        if contents_differ:
            first &= ~np.isin(hashes.content, calibrated["content"])
        for i, question in enumerate(hashes.question.tolist()):
            key = f"{question if question >= 0 else hashes.content[i]} {name!r}"
            if question >= 0 or contents_differ:
                first[i] &= key not in self.taken_
                self.taken_[key] = True
        self.n_repeated_ += int(np.sum(~first))
        return first

    @property
    def p_value(self) -> float:
        """Return an anytime-valid p-value, which is computed from the largest wealth so far."""
        smallest = float(np.exp(-self.log_wealth_.max(initial=0.0)))
        return min(self.calibration_delta_ + smallest, 1.0)

    @property
    def alarm(self) -> bool:
        """Return whether `p_value` has ever been at most ``delta``."""
        return self.alarm_at is not None

    @property
    def alarm_at(self) -> int | None:
        """Return the number of problems before the alarm, or None if there was no alarm."""
        reached = self.log_wealth_ >= -np.log(self.delta - self.calibration_delta_)
        return int(np.argmax(reached)) + 1 if reached.any() else None

    def summary(self) -> dict[str, Any]:
        """Return a summary of the current state.

        Returns
        -------
        summary : dict
            The keys are ``n_problems``, ``p_value``, ``alarm`` and ``alarm_at``. The
            values are plain numbers, booleans or None.
        """
        return {
            "n_problems": len(self.log_wealth_),
            "n_repeated": self.n_repeated_,
            "p_value": self.p_value,
            "alarm": self.alarm,
            "alarm_at": self.alarm_at,
        }


def play(before, state, log_factors):
    """Return the log wealth after each problem, and the state of the bets after the last problem.

    The log wealth is computed sequentially, so the result is bitwise identical for any division
    of a stream into updates. ``before`` is the number of earlier problems. The state consists of
    the log products and log stakes of the bets. The state is None if there were no earlier
    problems.
    """
    n, n_bets = log_factors.shape
    if state is None:
        state = np.stack([np.zeros(n_bets), np.full(n_bets, -np.inf)])
    # Fraction of the initial wealth that has not been bet: 63 % after 100 problems.
    waiting = 1 / np.log2(2 + (before + np.arange(n + 1)) / 100)
    product = np.cumsum(np.vstack([state[0], log_factors]), axis=0)
    staked = np.log(-np.diff(waiting) / n_bets)
    stakes = np.vstack([state[1], staked[:, None] - product[:-1]])
    stakes = np.logaddexp.accumulate(stakes, axis=0)
    stakes_played = np.column_stack([np.log(waiting[1:]), product[1:] + stakes[1:]])
    return logsumexp(stakes_played, axis=1), np.stack([product[-1], stakes[-1]])


@settings
class ExchangeabilityTest(BettingMonitor):
    """Test whether new questions are exchangeable with earlier questions.

    The test is a conformal test martingale. Each problem is ranked among all earlier problems
    by its largest path risk. While the problems are exchangeable, the ranks are independent and
    uniform, so bets on the ranks do not increase the expected wealth. The test requires no
    labels. An alarm is evidence that the assumption of the guarantee is violated. To test
    whether coverage is lost, use `CoverageMonitor`.

    The dependence between answers to the same question is not evidence of a change. Therefore,
    only the first answer to each question is used, and answers to calibration questions are
    ignored. To identify questions, the test requires the filter and the problems, not path risks.

    Parameters
    ----------
    delta : float, default=0.05
        Upper bound, in (0, 1), on the probability of ever raising an alarm if the problems are
        exchangeable.
    random_state : int, RandomState or None, default=None
        Seed for breaking ties between problems at random.

    Attributes
    ----------
    seen_ : ndarray of shape (n_seen,)
        Largest path risk of each problem so far, in increasing order.
    log_wealth_ : ndarray of shape (n_problems,)
        Log wealth after each monitored problem that was passed to `update`.
    n_repeated_ : int
        Number of answers that were ignored because their question was already used for an earlier
        answer or for calibration.

    References
    ----------
    V. Vovk, A. Gammerman, G. Shafer. Algorithmic Learning in a Random World, second
    edition, 2022, part III. V. Fedorova, A. Gammerman, I. Nouretdinov, V. Vovk. Plug-in
    martingales for testing exchangeability on-line. ICML 2012.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.monitoring import ExchangeabilityTest
    >>> graphs, y = make_reasoning_graphs(900, random_state=0, return_X_y=True)
    >>> cf = HardCF("frequency-score").fit(graphs[:300], y[:300])
    >>> test = ExchangeabilityTest(random_state=0).fit(cf)
    >>> test.update(graphs[300:600]).alarm
    False
    >>> other = graphs.replace_features(0.5 * graphs.features, graphs.feature_names)
    >>> test.update(other[600:]).alarm
    True
    """

    _: KW_ONLY
    random_state: Seed = None

    def _start(self, filter):
        self.seen_ = np.sort(filter.max_path_risks_)
        self.state_ = None
        seed = check_random_state(self.random_state).randint(2**31)
        self.rng_ = check_random_state(seed)

    def update(self, X: Problems, groups: Groups = None) -> Self:
        """Add new problems in chronological order.

        Parameters
        ----------
        X : problems, as in the filter's `predict`
            The answers.
        groups : array-like of shape (n_problems,), or False, optional
            The question that each answer belongs to, as in the filter's ``calibrate``.

        Returns
        -------
        self : object
            The updated monitor.

        Raises
        ------
        ValueError
            If the problems are invalid.
        """
        check_is_fitted(self)
        fitted = self.filter_
        problems = fitted._look(X)
        # As in calibration, the risks are not raised.
        risk = fitted._risk(fitted._confidence(problems), problems.batch, steady=True)
        is_first = self._first(hashes_of(problems.batch, groups), None)
        values = segment_max(risk, problems.batch.offsets)[is_first]
        p = self._p_values(values)[:, None] - 0.5
        # Each bet is a function of a p-value and has mean 1 over the interval [0, 1]. The bets
        # favour small p-values, large p-values, both extremes, or values in the middle.
        slopes = p * [-1.8, -0.9, 0.9, 1.8]
        bends = (12 * p**2 - 1) * [0.8, -0.4]
        factors = np.log(1 + np.hstack([slopes, bends]))
        log_wealth, self.state_ = play(len(self.log_wealth_), self.state_, factors)
        self.log_wealth_ = np.append(self.log_wealth_, log_wealth)
        return self

    def _p_values(self, values):
        """Return the ranks of the values among all earlier problems, with ties broken at random."""
        earlier = self.seen_.tolist()
        ranks = []
        uniform = self.rng_.random_sample(len(values))
        for value, share in zip(values, uniform, strict=True):
            below = bisect_left(earlier, value)
            equal = bisect_right(earlier, value) - below
            ranks.append((below + share * (equal + 1)) / (len(earlier) + 1))
            earlier.insert(below, value)
        self.seen_ = np.array(earlier)
        return np.array(ranks)


@settings
class CoverageMonitor(BettingMonitor):
    """Test whether the guarantee of a filter holds in production, based on judged answers.

    The monitor bets that errors are more frequent or that the mean loss is larger than the
    guarantee allows. While the guarantee holds, the probability of ever raising an alarm is at
    most ``delta``. The bound holds for any duration of the monitoring and any number of
    inspections. To monitor several calibrations, divide ``delta`` by their number.

    Parameters
    ----------
    delta : float, default=0.05
        Upper bound, in (0, 1), on the probability of a false alarm.

    Attributes
    ----------
    n_errors_ : int
        Number of problems with a positive loss. For `~skdcf.guarantees.NoFalseClaim`, the
        number of problems with a kept false claim.
    n_repeated_ : int
        Number of answers that were ignored because their question was already used for an earlier
        answer or for calibration.
    games_ : list of dict
        State of the bets on each group, with the name of the ``group``, which is None if there are
        no groups.
    log_wealth_ : ndarray of shape (n_problems,)
        Log wealth after each monitored problem.

    Notes
    -----
    Errors of exchangeable problems follow a Pólya urn. If k is the conformal rank among n
    calibration problems, and e of the first t - 1 new problems were errors, the next problem is
    an error with probability ``(k + e) / (n + t)``. Each bet multiplies the odds of this
    probability, and its factor is the likelihood ratio. The null therefore includes the
    variation between calibration sets. If scores are tied, the filter makes at most as many
    errors as with ties broken at random, which only makes an alarm less likely.

    If the guarantee bounds a mean (`~skdcf.guarantees.ExpectedFalse` or a user-defined
    guarantee), the errors do not follow a Pólya urn. For a guarantee on a mean, half of ``delta``
    is reserved for the variation between calibration sets. The null hypothesis is an upper bound
    that the mean loss of a calibrated filter exceeds with probability at most ``delta / 2``
    (Bates et al. 2021). Detecting a mean loss slightly above the bound therefore requires more
    answers.

    If the guarantee has groups (``by=``), each group has its own urn, and the wealth is the
    mean over the groups.

    As in calibration, only one answer to each question is used. The answers in an update are
    shuffled by a hash, so the order of errors within an update has no effect.

    References
    ----------
    J. Ville. Étude critique de la notion de collectif, 1939. G. Shafer, V. Vovk.
    Game-Theoretic Foundations for Probability and Finance, 2019. A. Podkopaev,
    A. Ramdas. Tracking the risk of a deployed model and detecting harmful distribution
    shifts. ICLR 2022. S. Bates, A. Angelopoulos, L. Lei, J. Malik, M. I. Jordan.
    Distribution-free, risk-controlling prediction sets. JACM 68, 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.monitoring import CoverageMonitor
    >>> graphs, y = make_reasoning_graphs(1500, random_state=0, return_X_y=True)
    >>> cf = HardCF("frequency-score").fit(graphs[:500], y[:500])
    >>> monitor = CoverageMonitor().fit(cf).update(graphs[500:1000], y[500:1000])
    >>> monitor.alarm
    False
    >>> wrong = [np.where(np.arange(len(row)) % 4, row, 0) for row in y[1000:]]
    >>> monitor.update(graphs[1000:], wrong).alarm
    True
    """

    def _start(self, filter):
        level = filter._level()
        calibration = filter.calibration_
        groups = [
            steps for steps in calibration.steps if not steps.keeps_nothing(level)
        ]
        if filter.ties == "include" or not groups:
            raise ValueError(
                "a monitor requires a filter with a guarantee that keeps something at its alpha, "
                f"got ties={filter.ties!r} and {len(groups)} groups with kept claims"
            )
        is_urn = all(steps.is_count for steps in calibration.steps)
        self.calibration_delta_ = 0.0 if is_urn else self.delta / 2
        self.games_ = []
        for steps in groups:
            mean = None
            if not is_urn:
                # The loss of the new answer is at most 1. All other answers share the rest.
                total = max((steps.n + 1) * level - 1, 0.0)
                delta = self.calibration_delta_ / len(groups)
                mean = largest_mean(total, steps.n, delta)
            self.games_.append(
                {
                    "group": steps.name,
                    "cut": steps.cut,
                    "n": steps.n,
                    "rank": steps.rank(level),
                    "mean": mean,
                    "n_problems": 0,
                    "lost": 0.0,
                    "log_wealth": 0.0,
                    "state": None,
                }
            )
        self.n_errors_ = 0

    def update(self, X: Problems, y: Labels, groups: Groups = None) -> Self:
        """Add judged answers to the monitor.

        Parameters
        ----------
        X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
            The judged answers, in the format of the filter.
        y : labels, as in the filter's ``calibrate``
            Claim labels. An unjudged claim (-1) is treated as false, as in calibration.
        groups : array-like of shape (n_problems,), or False, optional
            The question that each answer belongs to, as in the filter's ``calibrate``.

        Returns
        -------
        self : object
            The updated monitor.

        Raises
        ------
        ValueError
            If problems or labels are invalid, or if the filter's guarantee cannot be monitored.

        Notes
        -----
        The choice of the answers to judge must not depend on whether they are wrong. Answers
        that users complain about are not representative of other answers.
        """
        check_is_fitted(self)
        fitted = self.filter_
        part = fitted.calibration_part(X, y, groups)
        risks, problems = fitted._risks_of(X, y)
        kept = fitted._margin(risks, fitted._level()) > 0
        guarantee = fitted.calibration_.guarantee
        losses = guarantee.loss(problems.labels, kept, risks.offsets)
        rows = np.lexsort(part.orders())
        names = part.groups or [None] * len(part)
        for game in self.games_:
            is_own = np.array([names[row] == game["group"] for row in rows], bool)
            if game["cut"] < np.inf:
                is_own &= part.lowest[rows] < game["cut"]
            own = rows[is_own]
            first = self._first(part.hashes[own], game["group"])
            self._bet(game, losses[own[first]])
        return self

    def update_losses(self, losses: ArrayLike, group: Any = None) -> Self:
        """Add the losses of judged answers if the answers themselves are unavailable.

        Parameters
        ----------
        losses : array-like of shape (n_problems,)
            Loss of each answer, as defined by the guarantee's method ``loss``. Depending on the
            guarantee, the loss is 1 or True if a false claim was kept, or the proportion or
            number of false claims. The caller must ensure that each question occurs only once,
            and that the order of the answers does not depend on the losses. For a guarantee with
            ``show=``, all answers must pass.
        group : str or number, optional
            The group of the answers, if the guarantee has groups.

        Returns
        -------
        self : object
            The updated monitor.

        Raises
        ------
        ValueError
            If a loss is negative or not finite.
        """
        losses = np.asarray(losses, float)
        if not (np.isfinite(losses) & (losses >= 0)).all():
            raise ValueError(f"losses must be finite and nonnegative, got {losses}")
        check_is_fitted(self)
        for game in self.games_:
            if game["group"] == group:
                self._bet(game, losses)
        return self

    def _bet(self, game, losses):
        lost = np.cumsum([game["lost"], *losses])
        n_drawn = game["n"] + game["n_problems"] + 1 + np.arange(len(losses))
        chance = game["mean"]
        if chance is None:
            chance = ((game["rank"] + lost[:-1]) / n_drawn)[:, None]
        # Each bet is on an odds ratio of an error, relative to the rate under the null.
        gains = np.array([0.25, 0.5, 1.0, 2.0, 4.0])
        factors = np.log(1 + losses[:, None] * gains)
        factors -= np.log1p(chance * gains)
        log_wealth, game["state"] = play(game["n_problems"], game["state"], factors)
        others = [each["log_wealth"] for each in self.games_ if each is not game]
        wealth = np.logaddexp(logsumexp([*others, -np.inf]), log_wealth)
        wealth -= np.log(len(self.games_))
        self.log_wealth_ = np.append(self.log_wealth_, wealth)
        game["log_wealth"] = float([game["log_wealth"], *log_wealth][-1])
        game["n_problems"] += len(losses)
        game["lost"] = float(lost[-1])
        self.n_errors_ += int((losses > 0).sum())

    def summary(self) -> dict[str, Any]:
        """Return a summary of the current state.

        Returns
        -------
        summary : dict
            The keys ``n_problems``, ``p_value``, ``alarm`` and ``alarm_at`` are the same as for
            every monitor. The other keys are ``n_errors``, ``n_repeated``, and ``coverage`` and
            ``mean_loss``, which are NaN before the first problem.
        """
        n = len(self.log_wealth_) or np.nan
        return super().summary() | {
            "n_errors": self.n_errors_,
            "coverage": 1 - self.n_errors_ / n,
            "mean_loss": sum(game["lost"] for game in self.games_) / n,
        }
