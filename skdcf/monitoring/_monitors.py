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
from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .. import full
from .._parameters import SHARE, Settings, settings
from ..graphs import Problems, pack_graphs
from ..guards import compare_origin
from ..identity import Groups, hashes_of
from ..labels import Labels
from ..ops.hard import segment_max
from ..ops.mean_bound import largest_mean
from ..uses import check, flat_masks


def waiting(t):
    """Return the fraction of the initial wealth that has not been bet after ``t`` problems.

    After 100 problems, 63 % has not been bet.
    """
    return 1 / np.log2(2 + t / 100)


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
        # The exponential of a larger number is infinite.
        return float(np.exp(min([0.0, *self.log_wealth_[-1:]][-1], 700.0)))

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
            The keys are ``n_problems``, ``wealth``, ``p_value``, ``alarm`` and ``alarm_at``. The
            values are plain numbers, booleans or None.
        """
        names = "wealth", "p_value", "alarm", "alarm_at"
        values = {name: getattr(self, name) for name in names}
        return {"n_problems": len(self.log_wealth_)} | values


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

    def fit(self, path_risk: Any, y: Any = None) -> Self:
        """Set the reference problems, with which later problems are compared.

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
        is_filter = hasattr(path_risk, "calibration_")
        if is_filter:
            full.refuse(path_risk, "a test of exchangeability")
        values = path_risk.max_path_risks_ if is_filter else largest_of(path_risk)
        self.filter_ = path_risk if is_filter else None
        self.seen_ = np.sort(values)
        self.taken_ = {}
        self.state_ = None
        self.log_wealth_ = np.empty(0)
        self.n_repeated_ = 0
        seed = check_random_state(self.random_state).randint(2**31)
        self.rng_ = check_random_state(seed)
        return self

    def update(self, X: Problems, groups: Groups = None) -> Self:
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
        check_is_fitted(self)
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
        p = self._p_values(values)[:, None] - 0.5
        # Each bet is a function of a p-value and has mean 1 over the interval [0, 1]. The bets
        # favour small p-values, large p-values, both extremes, or values in the middle.
        slopes = 1 + np.array([-1.8, -0.9, 0.9, 1.8]) * p
        bends = 1 + np.array([0.8, -0.4]) * (12 * p**2 - 1)
        factors = np.log(np.hstack([slopes, bends]))
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
        problems = self.filter_._look(batch)
        confidence = self.filter_._confidence(problems)
        # As in calibration, the risks are not raised.
        risk = self.filter_._risk(confidence, problems.batch, steady=True)
        risks = segment_max(risk, problems.batch.offsets)
        keys = _keys(self.filter_, hashes_of(problems.batch, groups))
        rows = [i for i, key in enumerate(keys) if _take(key, self.taken_)]
        self.n_repeated_ += len(risks) - len(rows)
        return risks[rows]

    def _p_values(self, values):
        """Return the ranks of the values among all earlier problems, with ties broken at random."""
        earlier = self.seen_.tolist()
        ranks = []
        uniform = self.rng_.random_sample(len(values))
        for value, share in zip(values.tolist(), uniform.tolist(), strict=True):
            below = bisect_left(earlier, value)
            equal = bisect_right(earlier, value) - below
            ranks.append((below + share * (equal + 1)) / (len(earlier) + 1))
            earlier.insert(below, value)
        self.seen_ = np.array(earlier)
        return np.array(ranks)


def largest_of(path_risk):
    """Return each problem's largest path risk, or -inf for a problem without claims."""
    values = np.array([np.max(row, initial=-np.inf) for row in path_risk], np.float64)
    if np.isnan(values).any():
        raise ValueError(
            f"the path risk of problem {np.isnan(values).argmax()} must be a number, got "
            "NaN"
        )
    return values


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
        self._restart()
        fitted = self.filter
        part = fitted.calibration_part(X, y, groups)
        compare_origin(fitted._record, part.origin)
        batch, labels = check(fitted, X, y)
        [kept] = flat_masks(fitted, batch, [None])
        losses = fitted.calibration_.guarantee.loss(labels, kept, batch.offsets)
        names = part.groups or [None] * len(part)
        keys = _keys(fitted, part.hashes)
        steps = self._steps
        rows_of: dict[Any, list[int]] = {name: [] for name in steps}
        for row in np.lexsort(part.orders()).tolist():
            name, key = names[row], keys[row]
            if name not in steps or part.lowest[row] >= steps[name].cut < np.inf:
                self.n_unwatched_ += 1
            elif _take(key and f"{key} {name!r}", self.taken_):
                rows_of[name].append(row)
            else:
                self.n_repeated_ += 1
        for name, rows in rows_of.items():
            self._bet(name, losses[rows])
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
        self.filter.check_calibrated()
        if self.filter._labelled is not None:
            return 'there is no monitor for filters with calibration_size="all"'
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
        if np.array_equal(getattr(self, "calibration_", []), scores):
            return
        self.calibration_ = scores
        self.n_calibrations_ += 1
        self.calibration_delta_ = 0.0 if self._is_urn else self.delta / 2
        self.taken_ = getattr(self, "taken_", {})
        self.games_ = [
            {
                "group": name,
                "n_problems": 0,
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
        lost_before = game["lost"] + np.append(0.0, np.cumsum(losses))[:-1]
        chance = self._chances(name, game["n_problems"], lost_before)
        # Each bet is on an odds ratio of an error, relative to the rate under the null.
        gains = np.array([0.25, 0.5, 1.0, 2.0, 4.0])
        factors = np.log(1 + losses[:, None] * gains)
        factors -= np.log1p(chance[:, None] * gains)
        log_wealth, game["state"] = play(game["n_problems"], game["state"], factors)
        others = [each["log_wealth"] for each in self.games_ if each is not game]
        j = self.n_calibrations_
        wealth = np.logaddexp(logsumexp([*others, -np.inf]), log_wealth)
        wealth -= np.log(len(self.games_) * j * (j + 1))
        self.log_wealth_ = np.append(self.log_wealth_, wealth)
        game["log_wealth"] = float([game["log_wealth"], *log_wealth][-1])
        game["n_problems"] += len(losses)
        game["lost"] += float(losses.sum())
        self.n_errors_ += int((losses > 0).sum())
        self.lost_ += float(losses.sum())

    def summary(self) -> dict[str, Any]:
        """Return a summary of the current state.

        Returns
        -------
        summary : dict
            The keys ``n_problems``, ``wealth``, ``p_value``, ``alarm`` and ``alarm_at`` are the
            same as for every monitor. The other keys are ``n_errors``, ``coverage`` and
            ``mean_loss`` (NaN before the first problem), ``alpha``, ``n_repeated``,
            ``n_calibrations`` and ``cannot_see``, a list of the changes that this monitor cannot
            detect.
        """
        n = len(self.log_wealth_) or np.nan
        return super().summary() | {
            "n_errors": self.n_errors_,
            "coverage": 1 - self.n_errors_ / n,
            "mean_loss": self.lost_ / n,
            "alpha": self._level,
            "n_repeated": self.n_repeated_,
            "n_calibrations": self.n_calibrations_,
            "cannot_see": [
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
            ],
        }


def _take(key, taken):
    """Note the key of an answer, and return whether it is new.

    The key is None if the answer cannot be recognised, and "" if it was used for calibration.
    """
    if key is None:
        return True
    is_new = key != "" and key not in taken
    taken[key] = True
    return is_new


def _keys(fitted, hashes):
    """Return a key for each answer, as in `_take`.

    An answer without a question is identified by its content, unless some calibration answers
    have the same content.
    """
    calibrated = fitted._record.calibrated
    contents_differ = len(calibrated["content"]) >= fitted.n_calibration_
    # During calibration, the question may have had an id, but only its text is known here.
    is_old = hashes.among(calibrated)
    if contents_differ:
        is_old |= np.isin(hashes.content, calibrated["content"])
    contents = [f"c{c}" if contents_differ else None for c in hashes.content.tolist()]
    asked = [f"q{q}" if q >= 0 else None for q in hashes.question.tolist()]
    return [
        "" if old else question or content
        for old, question, content in zip(is_old, asked, contents, strict=True)
    ]
