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
from numbers import Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.utils import check_random_state

from .._parameters import Number, Settings, settings
from ..graphs import Problems, pack_graphs
from ..guards import compare_origin
from ..labels import Labels
from ..ops.hard import segment_sum
from ..uses import check, flat_masks, largest_risks
from ._nulls import Urn, is_urn, level_of, nulls_of, why_not_watched

# number of problems after which the uninvested part of the wealth has decreased to 63 %
PACE = 100.0


LARGEST = 700.0  # largest number whose exponential is finite


def waiting(t):
    """Return the fraction of the initial wealth that has not been bet after ``t`` problems."""
    return 1 / np.log2(2 + t / PACE)


@settings
class BettingMonitor(Settings):
    """Base class of monitors that bet against a null hypothesis."""

    _: KW_ONLY
    delta: float = 0.05

    _parameter_constraints = {
        "delta": [Number(Real, 0, 1, closed="neither")],
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


# maximum number of problems that are ranked against each other at the same time
_BLOCK = 512

#: Each bet is a function of a p-value and has mean 1 over the interval [0, 1]. The bets favour
#: small p-values, large p-values, both extremes, or values in the middle.
_SLOPES = np.array([-1.8, -0.9, 0.9, 1.8])
_BENDS = np.array([0.8, -0.4])


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
        is_filter = getattr(path_risk, "max_path_risks_", None) is not None
        values = path_risk.max_path_risks_ if is_filter else largest_of(path_risk)
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        if is_filter:
            self.filter_ = path_risk
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
                "groups has no effect if X contains path risks, because every path risk is "
                "counted. Pass the problems instead"
            )
        uniform = self.rng_.random_sample(len(values))
        for start in range(0, len(values), _BLOCK):
            block = slice(start, start + _BLOCK)
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
        keys, calibrated_before = _keys(self.filter_, hashes)
        counted = []
        for row, key in enumerate(keys):
            if calibrated_before[row] or key in self.taken_:
                continue
            counted.append(row)
            if key is not None:
                self.taken_[key] = True
        self.n_repeated_ += len(risks) - len(counted)
        return risks[counted]

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
    bends = 1 + _BENDS * (12 * centred**2 - 1)
    return np.log(np.hstack([1 + _SLOPES * centred, bends]))


#: Odds ratios of an error on which the monitor bets, relative to the rate under the null
#: hypothesis.
ODDS = np.array([1.25, 1.5, 2.0, 3.0, 5.0])


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
    groups_ : list
        The groups that are monitored separately, or [None] if there are no groups.
    counts_ : ndarray of int of shape (n_groups, 2)
        Numbers of problems and errors in each group since the last calibration.
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
    n_shown_ = lost_ = 0.0
    groups_, taken_ = [], []
    counts_ = np.zeros((0, 2), dtype=np.int64)

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
        X : {problems}
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
        self.validate()
        fitted = self.filter
        self._restart(fitted)
        part = fitted.calibration_part(X, y, groups)
        compare_origin(fitted._record, part.origin)
        names = part.groups or [None] * len(part)
        passes, lost, shown = self._outcomes(fitted, part, X, y, names=names)
        places = {name: g for g, name in enumerate(self.groups_)}
        rows_of = [[] for _ in places]
        keys, calibrated_before = _keys(fitted, part.hashes)
        order = np.lexsort(part.hashes.orders())
        for row in order.tolist():
            g = places.get(names[row])
            key = keys[row]
            if g is None or not passes[row]:
                self.n_unwatched_ += 1
            elif calibrated_before[row] or key in self.taken_[g]:
                self.n_repeated_ += 1
            else:
                rows_of[g].append(row)
                if key is not None:
                    self.taken_[g][key] = True
        for g, rows in enumerate(rows_of):
            self._take(g, lost[rows])
            self.n_shown_ += float(shown[rows].sum())
        return self

    def _outcomes(self, fitted, part, X, y, *, names):
        """Return whether each problem passes, its loss, and whether any of its claims is kept."""
        nulls = self._nulls(self.n_calibrations_)
        cut = np.array([nulls[n].cut if n in nulls else -np.inf for n in names])
        passes = (part.lowest < cut) | np.isposinf(cut)
        if all(isinstance(null, Urn) for null in nulls.values()):
            thresholds = [nulls[n].threshold if n in nulls else -np.inf for n in names]
            return passes, part.scores < thresholds, part.lowest < thresholds
        batch, labels = check(fitted, X, y)
        [kept] = flat_masks(fitted, batch, [None])
        guarantee = fitted.calibration_.guarantee
        losses = guarantee.loss(labels, kept, batch.offsets)
        lost = np.asarray(losses, np.float64)
        shown = segment_sum(kept, batch.offsets) > 0
        return passes, lost, shown

    def update_losses(
        self,
        losses: ArrayLike,
        group: Any = None,
        *,
        shown: ArrayLike | None = None,
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
        shown : array-like of bool, shape (n_problems,), optional
            Whether at least one claim of each answer was kept. If ``shown`` is missing, `summary`
            cannot report the proportion of shown answers.

        Returns
        -------
        self : object
            The updated monitor.

        Raises
        ------
        ValueError
            If a loss is negative or not finite.
        """
        self.validate()
        losses = np.asarray(losses, dtype=np.float64)
        if not (np.isfinite(losses) & (losses >= 0)).all():
            raise ValueError("losses must be finite and nonnegative")
        self._restart(self.filter)
        if group in self.groups_:
            self._take(self.groups_.index(group), losses)
            self.n_shown_ += np.nan if shown is None else float(np.sum(shown))
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
        return why_not_watched(self.filter)

    def _restart(self, fitted):
        """Start new urns if the filter was recalibrated."""
        level = level_of(fitted)
        scores_now = np.append(fitted.nonconformity_scores_, level)
        scores_before: Any = getattr(self, "calibration_", None)
        if not np.array_equal(scores_before, scores_now):
            self._begin_urns(fitted)
            self.calibration_ = scores_now

    def _begin_urns(self, fitted):
        """Start new urns, with a new fraction of the wealth."""
        nulls = self._nulls(self.n_calibrations_ + 1)
        self.n_calibrations_ += 1
        self.calibration_delta_ = 0.0 if is_urn(fitted) else self.delta / 2
        taken = dict(zip(self.groups_, self.taken_, strict=True))
        self.taken_ = [taken.get(name, {}) for name in nulls]
        self.groups_ = list(nulls)
        n = len(nulls)
        self.counts_ = np.zeros((n, 2), dtype=np.int64)
        self.sums_ = np.zeros(n)  # sums of losses since the last calibration
        self.group_wealth_ = np.zeros(n)
        self.states_ = [None] * n  # logarithm of the wealth

    def _nulls(self, number):
        """Return each group's null hypothesis after calibration ``number``."""
        return nulls_of(
            self.filter, level_of(self.filter), self.delta / (2 * number * (number + 1))
        )

    def _take(self, g, losses):
        """Bet on the problems of group ``g``, given their losses."""
        j = self.n_calibrations_
        null = self._nulls(j)[self.groups_[g]]
        (count, _), lost = self.counts_[g], self.sums_[g]
        losses = losses.astype(np.float64)
        lost_before = lost + np.append(0.0, np.cumsum(losses))[:-1]
        chance = null.chances(int(count), lost_before)
        factors = np.log(1 + losses[:, None] * (ODDS - 1)) - np.log1p(
            chance[:, None] * (ODDS - 1)
        )
        log_wealth, self.states_[g] = play(int(count), self.states_[g], factors)
        others_wealth = logsumexp(np.append(np.delete(self.group_wealth_, g), -np.inf))
        share = np.log(len(self.groups_) * j * (j + 1))
        self.log_wealth_ = np.append(
            self.log_wealth_, np.logaddexp(others_wealth, log_wealth) - share
        )
        self.group_wealth_[g] = [self.group_wealth_[g], *log_wealth][-1]
        n_errors = int((losses > 0).sum())
        self.counts_[g] += [len(losses), n_errors]
        self.sums_[g] += losses.sum()
        self.n_errors_ += n_errors
        self.lost_ += float(losses.sum())

    def cannot_see(self) -> list[str]:
        """Return descriptions of the changes that this monitor cannot detect.

        Returns
        -------
        descriptions : list of str
            One description per change.
        """
        out = [
            "errors in answers that were not judged, or that were judged because an error "
            "was suspected",
            "errors in further answers to a question, because only the first judged answer "
            "to each question is counted",
            "a coverage below a target of your own choice: the monitor only tests the "
            "guarantee of the filter",
        ]
        if self.calibration_delta_:
            out.append(
                "a mean loss that exceeds the bound by no more than the variation between "
                "calibration sets can explain"
            )
        if self.groups_ in ([], [None]):
            out.append(
                "a loss of coverage in one group if the overall coverage is unchanged"
            )
        if n := self.n_unwatched_:
            out.append(
                f"errors in {n} answers that did not pass, or whose group has no kept claims "
                "or no guarantee"
            )
        return out

    def summary(self) -> dict[str, Any]:
        """Return a summary of the current state.

        Returns
        -------
        summary : dict
            The keys ``n_problems``, ``wealth``, ``largest_wealth``, ``p_value``, ``alarm`` and
            ``alarm_at`` are the same as for every monitor. The other keys are ``n_errors``,
            ``coverage`` and ``mean_loss`` (NaN before the first problem), ``shown`` (proportion
            of answers with a kept claim) and ``false_among_shown`` with their standard errors,
            ``alpha``, ``n_repeated``, ``n_calibrations``, ``groups`` (numbers of problems and
            errors in each group since the last calibration), and ``cannot_see``.
        """
        out = super().summary()
        n = out["n_problems"]
        shown, shown_error = _share(self.n_shown_, n)
        wrong, wrong_error = _share(self.n_errors_, self.n_shown_)
        counts = map(tuple, self.counts_.tolist())
        return out | {
            "n_errors": self.n_errors_,
            "coverage": 1 - self.n_errors_ / n if n else float("nan"),
            "mean_loss": self.lost_ / n if n else float("nan"),
            "shown": shown,
            "shown_error": shown_error,
            "false_among_shown": wrong,
            "false_among_shown_error": wrong_error,
            "alpha": level_of(self.filter),
            "n_repeated": self.n_repeated_,
            "n_calibrations": self.n_calibrations_,
            "groups": dict(zip(self.groups_, counts, strict=True)),
            "cannot_see": self.cannot_see(),
        }


def _share(count, n):
    """Return a proportion and its standard error, or NaN if ``n`` is 0."""
    if not n > 0:
        return float("nan"), float("nan")
    share = count / n
    return share, float(np.sqrt(max(share * (1 - share), 0.0) / n))


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
    calibrated_before |= hashes.among(calibrated)[0]
    if contents_differ:
        calibrated_before |= np.isin(hashes.content, calibrated["content"])
    pairs = zip(hashes.question.tolist(), hashes.content.tolist(), strict=True)
    keys = [
        f"q{q}" if q >= 0 else content if contents_differ else None
        for q, content in pairs
    ]
    return keys, calibrated_before
