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

from dataclasses import KW_ONLY
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.utils import check_random_state

from .._parameters import SHARE, Settings, settings
from ..graphs import Problems, pack_graphs
from ..guards import compare_origin
from ..labels import Labels
from ..ops.mean_bound import largest_mean
from ..uses import check, flat_masks, largest_risks

# number of problems after which the uninvested part of the wealth has decreased to 63 %
PACE = 100.0
LARGEST = 700.0  # largest number whose exponential is finite
# maximum number of problems that are ranked against each other at the same time
BLOCK = 512
#: Each bet is a function of a p-value and has mean 1 over the interval [0, 1]. The bets favour
#: small p-values, large p-values, both extremes, or values in the middle.
SLOPES = np.array([-1.8, -0.9, 0.9, 1.8])
BENDS = np.array([0.8, -0.4])
#: Odds ratios of an error on which the monitor bets, relative to the rate under the null
#: hypothesis.
ODDS = np.array([1.25, 1.5, 2.0, 3.0, 5.0])


def waiting(t):
    """Return the fraction of the initial wealth that has not been bet after ``t`` problems."""
    return 1 / np.log2(2 + t / PACE)


@settings
class BettingMonitor(Settings):
    """Base class of monitors that bet against a null hypothesis."""

    _: KW_ONLY
    delta: float = 0.05

    _parameter_constraints = {
        "delta": [SHARE],
        "random_state": ["random_state"],
    }
    log_wealth_ = np.empty(0)
    #: Part of delta that is reserved for the event that the calibration set is unfavourable.
    calibration_delta_ = 0.0

    @property
    def wealth(self) -> float:
        """Return the current wealth. Values far above 1 are evidence against the null."""
        return float(np.exp(min(self._log_wealth[-1], LARGEST)))

    @property
    def p_value(self) -> float:
        """Return an anytime-valid p-value, which is computed from the largest wealth so far."""
        return min(
            self.calibration_delta_ + float(np.exp(-self._largest_log_wealth)), 1.0
        )

    @property
    def alarm(self) -> bool:
        """Return whether `p_value` has ever been at most ``delta``."""
        return self.alarm_at is not None

    @property
    def alarm_at(self) -> int | None:
        """Return the number of problems before the alarm, or None if there was no alarm."""
        reached = self._log_wealth >= -np.log(self.delta - self.calibration_delta_)
        return int(np.argmax(reached)) if reached.any() else None

    @property
    def _largest_log_wealth(self):
        return max(self._log_wealth.max(), 0.0)

    @property
    def _log_wealth(self):
        """Return the log wealth after 0, 1, 2, ... problems."""
        return np.append(0.0, self.log_wealth_)

    def summary(self) -> dict[str, Any]:
        """Return a summary of the current state.

        Returns
        -------
        summary : dict
            The keys are ``n_problems``, ``wealth``, ``largest_wealth``, ``p_value``, ``alarm``
            and ``alarm_at``. The values are plain numbers, booleans or None.
        """
        return {
            "n_problems": len(self._log_wealth) - 1,
            "wealth": self.wealth,
            "largest_wealth": float(np.exp(min(self._largest_log_wealth, LARGEST))),
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
    t = before + np.arange(n + 1)
    product = np.cumsum(np.vstack([state[0], log_factors]), axis=0)
    staked = np.log((waiting(t[:-1]) - waiting(t[1:])) / n_bets)
    stakes = np.vstack([state[1], staked[:, None] - product[:-1]])
    stakes = np.logaddexp.accumulate(stakes, axis=0)
    stakes_played = np.column_stack([np.log(waiting(t[1:])), product[1:] + stakes[1:]])
    return logsumexp(stakes_played, axis=1), np.stack([product[-1], stakes[-1]])


@settings
class ExchangeabilityTest(BettingMonitor):
    """Test whether new questions are exchangeable with earlier questions.

    The test is a conformal test martingale. Each problem is ranked among all earlier problems
    by its largest path risk. While the problems are exchangeable, the ranks are independent and
    uniform, so bets on the ranks do not increase the expected wealth. The test requires no
    labels. An alarm means that the assumption of the guarantee is violated. To test whether
    coverage is lost, use `CoverageMonitor`.

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
    random_state: int | np.random.RandomState | None = None

    filter_ = state_ = None
    n_repeated_ = 0

    def fit(self, path_risk: Any, y: Any = None) -> Self:
        """Set the reference problems, with which later problems are compared.

        If `fit` is not called, new problems are only compared with earlier problems that were
        passed to `update`.

        Parameters
        ----------
        path_risk : fitted filter, or sequence of 1-D arrays, one per problem
            A fitted filter, whose calibration problems become the reference problems, or the path
            risks of the reference problems. The filter's method ``path_risk`` computes path
            risks. The reference problems must not have been used to train the scorer, and must
            belong to different questions.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The monitor, without bets.
        """
        self.validate()
        is_filter = hasattr(path_risk, "max_path_risks_")
        values = path_risk.max_path_risks_ if is_filter else largest_of(path_risk)
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        self.filter_ = path_risk if is_filter else None
        self._start(np.sort(values))
        return self

    def update(
        self, X: Problems, groups: ArrayLike | Literal[False] | None = None
    ) -> Self:
        """Add new problems in chronological order.

        Parameters
        ----------
        X : sequence of ReasoningGraph, or GraphBatch
            The problems, in the format of the filter passed to `fit`, or their path risks as one
            array per problem. If path risks are passed, the caller must ensure that each question
            occurs only once.
        groups : array-like of shape (n_problems,), or False, optional
            The question that each answer belongs to, as in the filter's ``calibrate``.

        Returns
        -------
        self : object
            The updated monitor.

        Raises
        ------
        ValueError
            If a path risk is NaN, or if problems are passed but no filter was passed to `fit`.
        """
        self.validate()
        if not hasattr(self, "seen_"):
            self._start(np.empty(0))
        batch = pack_graphs(X)
        if batch is not None:
            values = self._first_answers(batch, groups)
        elif groups is None:
            values = largest_of(X)
        else:
            raise ValueError(
                "groups must be None if X contains path risks, because every path risk is "
                "counted. Pass the problems instead"
            )
        uniform = self.rng_.random_sample(len(values))
        for start in range(0, len(values), BLOCK):
            block = slice(start, start + BLOCK)
            factors = _log_factors(self._p_values(values[block], uniform[block]))
            log_wealth, self.state_ = play(len(self.log_wealth_), self.state_, factors)
            self.log_wealth_ = np.append(self.log_wealth_, log_wealth)
        return self

    def _first_answers(self, batch, groups):
        """Return the largest path risks of answers to new questions."""
        if self.filter_ is None:
            raise ValueError(
                "a filter is required to score the problems in X, but none was passed. Call "
                "fit(filter) first, or pass path risks"
            )
        risks, hashes = largest_risks(self.filter_, batch, groups)
        keys, is_old = _keys(self.filter_, hashes)
        rows = [
            i for i, key in enumerate(keys) if not is_old[i] and _take(key, self.taken_)
        ]
        self.n_repeated_ += len(risks) - len(rows)
        return risks[rows]

    def _start(self, risks):
        self.seen_ = risks
        self.taken_ = {}
        seed = check_random_state(self.random_state).randint(2**31)
        self.rng_ = check_random_state(seed)

    def _p_values(self, values, uniform):
        """Return the ranks of the values among all earlier problems, with ties broken at random."""
        earlier = np.tri(len(values), k=-1, dtype=bool)
        below = np.searchsorted(self.seen_, values, side="left")
        equal = np.searchsorted(self.seen_, values, side="right") - below
        below = below + (earlier & (values < values[:, None])).sum(axis=1)
        equal = equal + (earlier & (values == values[:, None])).sum(axis=1)
        n_before = len(self.seen_) + np.arange(len(values))
        places = np.searchsorted(self.seen_, np.sort(values))
        self.seen_ = np.insert(self.seen_, places, np.sort(values))
        return (below + uniform * (equal + 1)) / (n_before + 1)


def largest_of(path_risk) -> NDArray[Any]:
    """Return each problem's largest path risk, or -inf for a problem without claims."""
    values = np.array([np.max(row, initial=-np.inf) for row in path_risk], np.float64)
    if np.isnan(values).any():
        raise ValueError(
            f"the path risk of problem {np.isnan(values).argmax()} must be a number, got "
            "NaN"
        )
    return values


def _log_factors(p):
    centred = p[:, None] - 0.5
    bends = 1 + BENDS * (12 * centred**2 - 1)
    return np.log(np.hstack([1 + SLOPES * centred, bends]))


@settings
class CoverageMonitor(BettingMonitor):
    """Test whether the guarantee of a filter holds in production, based on judged answers.

    The monitor bets that errors are more frequent or that the mean loss is larger than the
    guarantee allows. While the guarantee holds, the probability of ever raising an alarm is at
    most ``delta``. The bound holds for any duration of the monitoring, any number of inspections
    and any number of recalibrations.

    Parameters
    ----------
    filter : fitted filter
        The filter, which is monitored at its own alpha. The filter may be recalibrated at any
        time.
    delta : float, default=0.05
        Upper bound, in (0, 1), on the probability of a false alarm.

    Attributes
    ----------
    n_errors_ : int
        Number of problems with a positive loss. For `~skdcf.guarantees.NoFalseClaim`, the
        number of problems with a kept false claim.
    lost_ : float
        Sum of the losses. If the guarantee bounds an error rate, the sum of the losses is the
        number of errors.
    n_calibrations_ : int
        Number of monitored calibrations of the filter.
    n_repeated_ : int
        Number of answers that were ignored because their question was already used for an earlier
        answer or for calibration.
    n_unwatched_ : int
        Number of answers that were ignored because they do not pass (``show=``), or because the
        filter keeps nothing or has no guarantee in their group.
    games_ : list of dict
        State of the bets on each group since the last calibration, with the name of the ``group``,
        which is None if there are no groups.
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
    mean over the groups. New urns are started after each calibration. The wealth of the j-th
    calibration has the weight ``1 / (j (j + 1))``, so the total probability of a false alarm is
    at most ``delta``.

    As in calibration, model verdicts are ignored once the filter or the monitored answers contain
    a human verdict. The wealth is reset after the first human verdict.

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
    >>> monitor = CoverageMonitor(cf).update(graphs[500:1000], y[500:1000])
    >>> monitor.alarm
    False
    >>> wrong = [np.where(np.arange(len(row)) % 4, row, 0) for row in y[1000:]]
    >>> monitor.update(graphs[1000:], wrong).alarm
    True
    """

    filter: Any

    n_errors_ = n_calibrations_ = n_repeated_ = n_unwatched_ = 0
    lost_ = 0.0

    def validate(self) -> None:
        """Raise ValueError if the filter cannot be monitored."""
        super().validate()
        if not hasattr(self.filter, "calibration_"):
            raise ValueError(f"filter must be a fitted filter, got {self.filter!r}")

    def update(
        self,
        X: Problems,
        y: Labels,
        groups: ArrayLike | Literal[False] | None = None,
    ) -> Self:
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
        self._restart()
        fitted = self.filter
        part = fitted.calibration_part(X, y, groups)
        compare_origin(fitted._record, part.origin)
        losses = self._losses(part, X, y)
        names = part.groups or [None] * len(part)
        keys, is_old = _keys(fitted, part.hashes)
        rows_of: dict[Any, list[int]] = {name: [] for name in self._games}
        for row in np.lexsort(part.hashes.orders(part.lowest, part.scores)).tolist():
            name = names[row]
            if (
                name not in rows_of
                or part.lowest[row] >= self._steps[name].cut < np.inf
            ):
                self.n_unwatched_ += 1
            elif is_old[row] or not _take(keys[row], self._games[name]["taken"]):
                self.n_repeated_ += 1
            else:
                rows_of[name].append(row)
        for name, rows in rows_of.items():
            self._bet(name, losses[rows])
        return self

    def _losses(self, part, X, y):
        """Return the loss of each problem of the part."""
        if self._is_urn:
            level = self._level
            limits = {name: s.threshold(level) for name, s in self._steps.items()}
            names = part.groups or [None] * len(part)
            return part.scores < [limits.get(name, -np.inf) for name in names]
        batch, labels = check(self.filter, X, y)
        [kept] = flat_masks(self.filter, batch, [None])
        return self.filter.calibration_.guarantee.loss(labels, kept, batch.offsets)

    def update_losses(
        self,
        losses: ArrayLike,
        group: Any = None,
    ) -> Self:
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
        losses = np.asarray(losses, dtype=np.float64)
        if not (np.isfinite(losses) & (losses >= 0)).all():
            raise ValueError(f"losses must be finite and nonnegative, got {losses}")
        self._restart()
        if group in self._games:
            self._bet(group, losses)
        else:
            self.n_unwatched_ += len(losses)
        return self

    def why_not_watched(self) -> str | None:
        """Return the reason why the guarantee cannot be monitored, or None if it can be.

        Returns
        -------
        reason : str or None
            The reason as a sentence, or None if the guarantee can be monitored.
        """
        self.validate()
        if self.filter.ties == "include":
            return 'there is no guarantee to monitor, because ties is "include"'
        if not self._steps:
            return "there is nothing to monitor, because the filter keeps nothing at its alpha"
        return None

    @property
    def _games(self):
        return {game["group"]: game for game in getattr(self, "games_", [])}

    @property
    def _level(self):
        return self.filter.calibration_.guarantee.level(None, self.filter.alpha)

    @property
    def _steps(self):
        """Step function of each group in which claims may be kept."""
        by_group = self.filter.calibration_.by_group()
        level = self._level
        return {
            n: steps for n, steps in by_group.items() if not steps.keeps_nothing(level)
        }

    @property
    def _is_urn(self):
        """Whether the threshold of each group is a score with a known rank."""
        return all(steps.is_count for steps in self.filter.calibration_.steps)

    def _restart(self):
        """Start new urns, with a new fraction of the wealth, if the filter was recalibrated."""
        if reason := self.why_not_watched():
            raise ValueError(reason)
        scores = np.append(self.filter.nonconformity_scores_, self._level)
        before: Any = getattr(self, "calibration_", None)
        if np.array_equal(before, scores):
            return
        self.calibration_ = scores
        self.n_calibrations_ += 1
        self.calibration_delta_ = 0.0 if self._is_urn else self.delta / 2
        games = self._games
        self.games_ = [
            {
                "group": name,
                "taken": games[name]["taken"] if name in games else {},
                "n_problems": 0,
                "n_errors": 0,
                "lost": 0.0,
                "log_wealth": 0.0,
                "state": None,
            }
            for name in self._steps
        ]

    def _chances(self, name, count, lost_before):
        """Return the largest mean loss that the null hypothesis allows for each new problem.

        If e of the first t - 1 new problems were errors, the next one is an error with
        probability (k + e) / (n + t). A mean loss has an upper bound instead, which holds for
        all but a share of the calibration sets.
        """
        steps = self._steps[name]
        level = self._level
        if self._is_urn:
            n_drawn = steps.n + count + 1 + np.arange(len(lost_before))
            return (steps.rank(level) + lost_before) / n_drawn
        j = self.n_calibrations_
        share = self.delta / (2 * j * (j + 1) * len(self.games_))
        # The loss of the new answer is at most 1. All other answers share the rest.
        total = max((steps.n + 1) * level - 1, 0.0)
        return np.full(len(lost_before), largest_mean(total, steps.n, share))

    def _bet(self, name, losses):
        """Bet on the problems of a group, given their losses."""
        game = self._games[name]
        losses = np.asarray(losses, np.float64)
        count = game["n_problems"]
        lost_before = game["lost"] + np.append(0.0, np.cumsum(losses))[:-1]
        chance = self._chances(name, count, lost_before)
        factors = np.log(1 + losses[:, None] * (ODDS - 1))
        factors -= np.log1p(chance[:, None] * (ODDS - 1))
        log_wealth, game["state"] = play(count, game["state"], factors)
        others = [each["log_wealth"] for each in self.games_ if each is not game]
        others_wealth = logsumexp([*others, -np.inf])
        j = self.n_calibrations_
        wealth = np.logaddexp(others_wealth, log_wealth)
        wealth -= np.log(len(self.games_) * j * (j + 1))
        self.log_wealth_ = np.append(self.log_wealth_, wealth)
        n_errors = int((losses > 0).sum())
        game["log_wealth"] = float([game["log_wealth"], *log_wealth][-1])
        game["n_problems"] += len(losses)
        game["n_errors"] += n_errors
        game["lost"] += float(losses.sum())
        self.n_errors_ += n_errors
        self.lost_ += float(losses.sum())

    def cannot_see(self) -> list[str]:
        """Return descriptions of the changes that this monitor cannot detect.

        Returns
        -------
        descriptions : list of str
            One description per change.
        """
        return [
            "errors in answers that were not judged, or that were judged because an error "
            "was suspected",
            "errors in further answers to a question, because only the first judged answer "
            "to each question is counted",
            "a coverage below a target of your own choice: the monitor only tests the "
            "guarantee of the filter",
            "a loss of coverage in some answers if the overall coverage, or that of their "
            "group, is unchanged",
            f"errors in {self.n_unwatched_} answers that did not pass, or whose group has "
            "no kept claims or no guarantee",
        ]

    def summary(self) -> dict[str, Any]:
        """Return a summary of the current state.

        Returns
        -------
        summary : dict
            The keys ``n_problems``, ``wealth``, ``largest_wealth``, ``p_value``, ``alarm`` and
            ``alarm_at`` are the same as for every monitor. The other keys are ``n_errors``,
            ``coverage`` and ``mean_loss`` (NaN before the first problem), ``alpha``,
            ``n_repeated``, ``n_calibrations`` and ``cannot_see``.
        """
        out = super().summary()
        n = out["n_problems"] or np.nan
        return out | {
            "n_errors": self.n_errors_,
            "coverage": 1 - self.n_errors_ / n,
            "mean_loss": self.lost_ / n,
            "alpha": self._level,
            "n_repeated": self.n_repeated_,
            "n_calibrations": self.n_calibrations_,
            "cannot_see": self.cannot_see(),
        }


def _take(key, taken):
    """Note the key of an answer, and return whether it is new or unknown."""
    if key in taken:
        return False
    if key is not None:
        taken[key] = True
    return True


def _keys(fitted, hashes) -> tuple[list, NDArray[np.bool_]]:
    """Return a key for each answer, and whether the answer was used for calibration.

    An answer without a question is identified by its content, unless some calibration answers
    have the same content.
    """
    calibrated = fitted._record.calibrated
    asked = hashes.question >= 0
    contents_differ = len(calibrated["content"]) >= fitted.n_calibration_
    calibrated_before = asked & np.isin(hashes.question, calibrated["question"])
    # During calibration, the question may have had an id, but only its text is known here.
    calibrated_before |= hashes.among(calibrated)
    if contents_differ:
        calibrated_before |= np.isin(hashes.content, calibrated["content"])
    pairs = zip(hashes.question.tolist(), hashes.content.tolist(), strict=True)
    keys = [
        f"q{q}" if q >= 0 else content if contents_differ else None
        for q, content in pairs
    ]
    return keys, calibrated_before
