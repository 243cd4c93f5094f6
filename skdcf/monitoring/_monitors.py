"""Monitors: whether problems and coverage are still what they were.

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

from copy import copy
from dataclasses import KW_ONLY
from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.utils import check_random_state

from .._parameters import Number, Settings, positive, settings
from ..estimators import check, flat_masks, labels_of_people, largest_risks
from ..graphs import Labels, Problems
from ..graphs.problems import as_one, pack_graphs
from ..ops.hard import segment_sum
from ._nulls import Urn, is_urn, nulls_of, why_not_watched

PACE = 100.0  # problems after which the waiting wealth has fallen to 63 %


LARGEST = 700.0  # the exponential of it is still finite


def waiting(t):
    """Share of the first wealth that has not been bet once ``t`` problems are seen."""
    return 1 / np.log2(2 + t / PACE)


@settings
class BettingMonitor(Settings):
    """The wealth, its history and the alarm, which all monitors share that bet."""

    _: KW_ONLY
    delta: float = 0.05

    _parameter_constraints = {
        "delta": [Number(Real, 0, 1, closed="neither")],
        "random_state": ["random_state"],
    }
    log_wealth_ = np.empty(0)
    #: Part of delta for calibrations that are worse than the null says.
    luck_ = 0.0

    @property
    def wealth(self) -> float:
        """The wealth that 1 has become; large values speak against the null."""
        return float(np.exp(min(self._log_wealth[-1], LARGEST)))

    @property
    def p_value(self) -> float:
        """One over the largest wealth so far: valid whenever it is looked at."""
        return min(self.luck_ + float(np.exp(-self._largest_log_wealth)), 1.0)

    @property
    def alarm(self) -> bool:
        """Whether `p_value` has ever been at most ``delta``."""
        return self.alarm_at is not None

    @property
    def alarm_at(self) -> int | None:
        """Number of problems after which the alarm was given, None without one."""
        reached = self._log_wealth >= -np.log(self.delta - self.luck_)
        return int(np.argmax(reached)) if reached.any() else None

    @property
    def _largest_log_wealth(self):
        return max(self._log_wealth.max(), 0.0)

    @property
    def _log_wealth(self):
        """Log wealth after 0, 1, 2, ... problems."""
        return np.append(0.0, self.log_wealth_)

    def summary(self) -> dict[str, Any]:
        """Summarise how things stand.

        Returns
        -------
        dict
            ``n_problems``, ``wealth``, ``largest_wealth``, ``p_value``, ``alarm`` and
            ``alarm_at``, in plain values.
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
    """Log wealth after each problem, and the state after the last.

    The sums run from one problem to the next, so that a stream gives the same bits
    however it is cut into updates. ``before`` problems were played on. The state holds
    log products and log stakes of the bets; None is that before the first problem.
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


_BLOCK = 512  # problems that are ranked among each other at a time

#: The bets, functions of a p-value: it is small, it is large, it is at the sides, it is
#: in the middle. Each has the mean 1 over [0, 1].
_SLOPES = np.array([-1.8, -0.9, 0.9, 1.8])
_BENDS = np.array([0.8, -0.4])


@settings
class ExchangeabilityTest(BettingMonitor):
    """Test whether new questions are exchangeable with those of before.

    A conformal test martingale. Each problem is ranked among all before it by its
    largest path risk; while problems are exchangeable, these ranks are independent and
    uniform, and nobody can win by betting on them. No label is needed. An alarm says that
    the guarantee has lost its ground, not that coverage is lost: `CoverageMonitor` says
    that.

    Answers to one question are not independent of each other, and are no sign of change:
    of each question the first answer that arrives counts, and none of those that
    calibrated. For that the test needs the filter and the problems themselves.

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
        After each problem of `update` that was counted.
    n_repeated_ : int
        Answers that were not counted, since their question was taken in before, or
        calibrated the filter.

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
        """Start from problems of before, on which nothing is bet.

        Without it, the first problems of `update` are all there is to compare with.

        Parameters
        ----------
        path_risk : fitted filter, or sequence of 1-D arrays, one per problem
            A filter, loaded from a file or not, stands for the problems that calibrated
            it. Else as ``path_risk`` of the filter returns them, of problems that its
            scorer was not trained on, one for each question.
        y : None
            Ignored.

        Returns
        -------
        self
            This object, without bets.
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
        """Take in new problems, in the order of time.

        Parameters
        ----------
        X : sequence of ReasoningGraph, or GraphBatch
            The problems as the filter of `fit` got them. Sequences of path risks, one
            array per problem, are taken as they are: then the caller sees to it that each
            question counts once.
        groups : array-like of shape (n_problems,), or False, optional
            The question that each problem answers, as in ``calibrate`` of the filter.

        Returns
        -------
        self
            This object.

        Raises
        ------
        ValueError
            If a path risk is NaN, or problems come without a filter that scores them.
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
                "groups is set, but X holds path risks, of which each counts: pass the "
                "problems themselves"
            )
        uniform = self.rng_.random_sample(len(values))
        for start in range(0, len(values), _BLOCK):
            block = slice(start, start + _BLOCK)
            factors = _log_factors(self._p_values(values[block], uniform[block]))
            log_wealth, self.state_ = play(len(self.log_wealth_), self.state_, factors)
            self.log_wealth_ = np.append(self.log_wealth_, log_wealth)
        return self

    def _first_answers(self, batch, groups):
        """The largest risks of answers to questions that have not come before."""
        if self.filter_ is None:
            raise ValueError(
                "X holds problems, and no filter is known that scores them: call "
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
        """Rank the values among all problems before, with ties broken at random."""
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
    """The largest path risk of each problem; one without claims has no risk at all."""
    values = np.array([np.max(row, initial=-np.inf) for row in path_risk], np.float64)
    if np.isnan(values).any():
        raise ValueError(f"problem {np.isnan(values).argmax()}: a path risk is NaN")
    return values


def _log_factors(p):
    centred = p[:, None] - 0.5
    bends = 1 + _BENDS * (12 * centred**2 - 1)
    return np.log(np.hstack([1 + _SLOPES * centred, bends]))


#: The bets, as odds ratios of an error relative to the rate that the null allows.
ODDS = np.array([1.25, 1.5, 2.0, 3.0, 5.0])


@settings
class CoverageMonitor(BettingMonitor):
    """Watch over the guarantee of a filter in use, from answers that were judged.

    The monitor bets that the guarantee fails too often, or loses too much on average. While
    the guarantee holds, the chance that it ever gives an alarm, however long it runs,
    however often it is looked at and however often the filter is calibrated again, is at
    most ``delta``.

    Parameters
    ----------
    filter : fitted filter, or SlidingCalibration
        What is watched, at its own alpha. It may be calibrated again at any time.
    delta : float, default=0.05
        Chance of a false alarm, in (0, 1).

    Attributes
    ----------
    n_errors_ : int
        Problems that lost anything: for `~skdcf.guarantees.NoFalseClaim` those of which a
        false claim was kept.
    lost_ : float
        Sum of their losses, which is the number of errors for a guarantee that says how
        often it fails.
    n_calibrations_ : int
        Calibrations of the filter that were watched.
    n_repeated_ : int
        Answers that were not counted, since their question was taken in before, or
        calibrated the filter.
    n_unwatched_ : int
        Answers that were not counted, since they do not pass (``show=``), or are of groups
        in which the filter keeps nothing or promises nothing.
    groups_ : list
        The groups that are watched, each for itself; [None] without groups.
    counts_ : ndarray of int, shape (n_groups, 2)
        Problems and errors in each group since the last calibration.
    log_wealth_ : ndarray of shape (n_problems,)
        After each problem that was counted.

    Notes
    -----
    Exchangeable problems err like draws from an urn: if k is the conformal rank of n
    calibration problems, and e of the first t - 1 problems in use have erred, then the
    next one errs with probability ``(k + e) / (n + t)``. Each bet multiplies the odds of
    that, and its factor is the likelihood ratio. So alarms are false where the problems
    in use are like those of calibration, and the bad luck of one calibration is allowed
    for. Where scores are tied, the filter in use errs at most as often as it would if
    chance had broken the ties, and an alarm is the less likely the fewer problems err.

    If the guarantee bounds a mean (`~skdcf.guarantees.ExpectedFalse`, or one of your own),
    the errors follow no such law. Then half of ``delta`` is for the luck of calibration:
    the bets are against a mean that this calibration exceeds with that chance only (Bates
    et al. 2021), so it takes more to see a small loss. Counts above ``max(1, 4 bound)`` count
    as that. Filters with weights, and with groups that overlap, cannot be watched.

    With groups (``by=`` of the guarantee) each has its urn, and the wealth is their mean.
    Each calibration begins new urns. The wealth of the j-th counts ``1 / (j (j + 1))``,
    so the chances of all together stay below ``delta``.

    As in calibration, a model's verdicts do not count once a person's have, in the filter
    or in what was taken in. The wealth begins anew then.

    Of each question one answer counts, as in calibration. Answers that are taken in
    together are taken in an order of their own, so that errors may stand first.

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
    groups_, taken_, judged_by_ = [], [], list[str]()
    counts_ = np.zeros((0, 2), dtype=np.int64)

    def validate(self) -> None:
        """Raise ValueError unless the filter is one that can be watched."""
        super().validate()
        if not hasattr(self._current(), "calibration_"):
            raise ValueError(
                f"filter is {self.filter!r}, but must be a fitted filter, or a "
                "SlidingCalibration of one"
            )

    def update(
        self,
        X: Problems,
        y: Labels,
        groups: ArrayLike | Literal[False] | None = None,
    ) -> Self:
        """Take in answers that were judged.

        Parameters
        ----------
        X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
            The answers as the filter got them.
        y : labels, as in ``calibrate`` of the filter
            -1, for a claim that nobody judged, counts as false, as in calibration.
        groups : array-like of shape (n_problems,), or False, optional
            The question that each problem answers, as in ``calibrate`` of the filter.

        Returns
        -------
        self
            This object.

        Raises
        ------
        ValueError
            If problems or labels are bad, or nothing is known of the errors of a filter
            with such a guarantee.

        Notes
        -----
        Which answers are judged must not depend on what is wrong with them: those that
        users complain about say nothing of the others.
        """
        self.validate()
        self._restart(filter := self._current())
        part = self._by_people(filter.calibration_part(X, y, groups), filter)
        names = [*map(as_one, part.groups or [None] * len(part))]
        passes, lost, shown = self._outcomes(filter, part, X, y, names=names)
        places = {name: g for g, name in enumerate(self.groups_)}
        rows_of = [[] for _ in places]
        keys, calibrated_before = _keys(filter, part.hashes)
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

    def _by_people(self, part, filter):
        """The part, without what a model judged if a person's verdict has ever counted."""
        both = {"model", "person"}
        before = {*self.judged_by_, *filter.provenance_.get("judged_by", ())}
        part = part.judged_after(before)
        if "model" in self.judged_by_ and part.judged_by >= both and not before >= both:
            self._begin_urns(filter)
        self.judged_by_ = sorted(part.judged_by)
        return part.of_people_alone()

    def _outcomes(self, filter, part, X, y, *, names):
        """Which problems of a part pass, the loss of each, and whether something is kept."""
        nulls = self._nulls(self.n_calibrations_)
        cut = np.array([nulls[n].cut if n in nulls else -np.inf for n in names])
        passes = (part.lowest < cut) | np.isposinf(cut)
        if all(isinstance(null, Urn) for null in nulls.values()):
            thresholds = [nulls[n].threshold if n in nulls else -np.inf for n in names]
            return passes, part.scores < thresholds, part.lowest < thresholds
        batch, labels = check(filter, X, y)
        if part.judged_by >= {"model", "person"}:
            labels = labels_of_people(labels, batch)
        [kept] = flat_masks(filter, batch, [None])
        guarantee = filter.calibration_.guarantee
        lost = np.asarray(guarantee.loss(labels, kept, batch.offsets), np.float64)
        shown = segment_sum(kept, batch.offsets) > 0
        return passes, lost[part.rows], shown[part.rows]

    def update_losses(
        self,
        losses: ArrayLike,
        group: Any = None,
        *,
        shown: ArrayLike | None = None,
    ) -> Self:
        """Take in outcomes alone, if the answers themselves are not at hand.

        Parameters
        ----------
        losses : array-like of shape (n_problems,)
            What ``loss`` of the guarantee says of each: 1 or True if a false claim was
            kept, or the share or number of false claims. The caller sees to it that each
            question counts once, that errors do not come first, and with ``show=`` that
            all of these answers pass.
        group : str or number, optional
            The group of these answers, if the guarantee has groups.
        shown : array-like of bool, shape (n_problems,), optional
            Whether something was kept of each. Without it `summary` cannot say how many
            texts were shown.

        Returns
        -------
        self
            This object.

        Raises
        ------
        ValueError
            If a loss is negative or not finite.
        """
        self.validate()
        losses = np.asarray(losses, dtype=np.float64)
        if not (np.isfinite(losses) & (losses >= 0)).all():
            raise ValueError("losses must be numbers of at least 0")
        self._restart(self._current())
        if group in self.groups_:
            self._take(self.groups_.index(group), losses)
            self.n_shown_ += np.nan if shown is None else float(np.sum(shown))
        else:
            self.n_unwatched_ += len(losses)
        return self

    def why_not_watched(self) -> str | None:
        """Say why the guarantee of this filter cannot be watched.

        Returns
        -------
        str or None
            The reason, as a sentence; None if it is watched.
        """
        self.validate()
        return why_not_watched(self._current())

    def _current(self):
        if isinstance(self.filter, SlidingCalibration):
            return getattr(self.filter, "filter_", self.filter.filter)
        return self.filter

    def _restart(self, filter):
        """Begin new urns where the filter has another calibration than before."""
        level = filter.calibration_.guarantee.level(None, filter.alpha)
        scores_now = np.append(filter.nonconformity_scores_, level)
        scores_before: Any = getattr(self, "calibration_", None)
        if not np.array_equal(scores_before, scores_now):
            self._begin_urns(filter)
            self.calibration_ = scores_now

    def _begin_urns(self, filter):
        """Begin new urns, with a new share of the wealth."""
        nulls = self._nulls(self.n_calibrations_ + 1)
        self.n_calibrations_ += 1
        self.luck_ = 0.0 if is_urn(filter) else self.delta / 2
        taken = dict(zip(self.groups_, self.taken_, strict=True))
        self.taken_ = [taken.get(name, {}) for name in nulls]
        self.groups_ = list(nulls)
        n = len(nulls)
        self.counts_ = np.zeros((n, 2), dtype=np.int64)
        self.sums_ = np.zeros(n)  # of the losses since the last calibration
        self.group_wealth_ = np.zeros(n)
        self.states_ = [None] * n  # its logarithm

    def _nulls(self, number):
        """What is bet against in each group after calibration ``number``."""
        filter = self._current()
        level = filter.calibration_.guarantee.level(None, filter.alpha)
        return nulls_of(filter, level, self.delta / (2 * number * (number + 1)))

    def _take(self, g, losses):
        """Bet on problems of group ``g`` with these losses."""
        j = self.n_calibrations_
        null = self._nulls(j)[self.groups_[g]]
        (count, _), lost = self.counts_[g], self.sums_[g]
        losses = losses.astype(np.float64)
        scaled = np.minimum(losses / null.most, 1.0)
        lost_before = lost + np.append(0.0, np.cumsum(scaled))[:-1]
        chance = null.chances(int(count), lost_before)
        factors = np.log(1 + scaled[:, None] * (ODDS - 1)) - np.log1p(
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
        self.sums_[g] += scaled.sum()
        self.n_errors_ += n_errors
        self.lost_ += float(losses.sum())

    def cannot_see(self) -> list[str]:
        """Say, as sentences, what no alarm of this monitor can tell.

        Returns
        -------
        list of str
            One sentence for each.
        """
        out = [
            "errors in answers that nobody judged, or that were judged because something "
            "was wrong with them",
            "which answers of one question are worse than the first that was taken in",
            "a guarantee for other problems than those of the calibration: the monitor "
            "watches what they allow, not a coverage of your own choice",
        ]
        if self.luck_:
            out.append(
                "a mean loss that is above the bound by no more than the luck of one "
                "calibration may explain"
            )
        if self.groups_ in ([], [None]):
            out.append("a group that loses coverage while all together keep it")
        if n := self.n_unwatched_:
            out.append(
                f"{n} answers that do not pass, or of groups in which nothing is kept or "
                "promised"
            )
        return out

    def summary(self) -> dict[str, Any]:
        """Summarise how things stand.

        Returns
        -------
        dict
            That of every monitor (``n_problems``, ``wealth``, ``largest_wealth``,
            ``p_value``, ``alarm``, ``alarm_at``), and ``n_errors``, ``coverage`` and
            ``mean_loss`` (NaN before the first problem), ``shown`` (share of the answers of
            which something was kept) and ``false_among_shown`` with their errors, ``alpha``,
            ``n_repeated``, ``n_calibrations``, ``groups`` (problems and errors of each since
            the last calibration) and ``cannot_see``.
        """
        out = super().summary()
        filter = self._current()
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
            "alpha": filter.calibration_.guarantee.level(None, filter.alpha),
            "n_repeated": self.n_repeated_,
            "n_calibrations": self.n_calibrations_,
            "groups": dict(zip(self.groups_, counts, strict=True)),
            "cannot_see": self.cannot_see(),
        }


def _share(count, n):
    """A share and its standard error; NaN where there is nothing to count."""
    if not n > 0:
        return float("nan"), float("nan")
    share = count / n
    return share, float(np.sqrt(max(share * (1 - share), 0.0) / n))


def _keys(filter, hashes) -> tuple[list, NDArray[np.bool_]]:
    """Keys by which answers are known again, and whether each calibrated the filter.

    An answer without a question is known by its content, unless copies are usual: then
    some of those that calibrated are copies too.
    """
    calibrated = filter._calibrated
    asked = hashes.question >= 0
    contents_differ = len(calibrated["content"]) >= filter.n_calibration_
    calibrated_before = asked & np.isin(hashes.question, calibrated["question"])
    # The question may have had a name there, and have its text alone here.
    if "text" in calibrated:
        calibrated_before |= hashes.among(calibrated)[0]
    if contents_differ:
        calibrated_before |= np.isin(hashes.content, calibrated["content"])
    pairs = zip(hashes.question.tolist(), hashes.content.tolist(), strict=True)
    keys = [
        f"q{q}" if q >= 0 else content if contents_differ else None
        for q, content in pairs
    ]
    return keys, calibrated_before


class SlidingCalibration(Settings):
    """Keep a filter calibrated on the latest judged problems.

    Parameters
    ----------
    filter : fitted filter
        It stays as it is; a copy is calibrated. Its scorer is not trained again.
    window : int, default=1000
        Number of problems that calibrate.
    smallest : int, default=200
        Until so many new problems were judged, the calibration of ``filter`` is kept.

    Attributes
    ----------
    filter_ : fitted filter
        Calibrated on the window; use it as any other.
    n_seen_ : int
        Problems that were judged so far.

    Notes
    -----
    The promise holds where the problems of the window and the next one are exchangeable.
    Where problems change slowly, coverage is lost by no more than they differ, in total
    variation, on average over the window (Barber, Candès, Ramdas and Tibshirani 2023).
    Look at `filter_` as often as you like, but take the masks for a problem from the
    filter as it was before that problem was judged. When a label arrives must not depend on
    what it says: if labels of false answers arrived 400 answers later, miscoverage was .113
    at alpha .1.

    Once a person's verdict has counted, a model's never counts again, also after the last
    one of a person has left the window.

    References
    ----------
    R. F. Barber, E. Candès, A. Ramdas, R. Tibshirani. Conformal prediction beyond
    exchangeability. Annals of Statistics 51, 2023.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.monitoring import SlidingCalibration
    >>> graphs, y = make_reasoning_graphs(900, random_state=0, return_X_y=True)
    >>> cf = HardCF("frequency-score").fit(graphs[:300], y[:300])
    >>> sliding = SlidingCalibration(cf, window=400).update(graphs[300:], y[300:])
    >>> sliding.filter_.n_calibration_, cf.n_calibration_
    (399, 299)
    """

    _some = [positive(Integral)]
    _parameter_constraints = {"window": _some, "smallest": _some}

    def __init__(self, filter: Any, *, window: int = 1000, smallest: int = 200) -> None:
        self.filter = filter
        self.window = window
        self.smallest = smallest

    def validate(self) -> None:
        """Raise ValueError unless all parameters fit together."""
        super().validate()
        if not hasattr(self.filter, "calibrate_parts"):
            raise ValueError(f"filter is {self.filter!r}, but must be a fitted filter")
        if self.smallest > self.window:
            raise ValueError(
                f"smallest is {self.smallest}, but the window holds {self.window} problems"
            )

    def update(self, X: Problems, y: Labels) -> Self:
        """Calibrate on these problems as well, and drop the oldest.

        Parameters
        ----------
        X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
            Problems in the order of time, as in ``fit`` of the filter.
        y : sequence of 1-D arrays, one per problem
            Their labels.

        Returns
        -------
        self
            This object.

        Warns
        -----
        CalibrationWarning
            If the window is too small for the filter's alpha.
        """
        self.validate()
        current = copy(getattr(self, "filter_", self.filter))
        new = current.calibration_part(X, y)
        parts_before = [vars(self)["part_"]] if hasattr(self, "part_") else []
        new = new.judged_after(current.provenance_.get("judged_by", ()))
        part = type(new).join([*parts_before, new])[-self.window :]
        part.refuse_copies()
        if len(part) >= self.smallest:
            current.calibrate_parts([part])
        self.n_seen_ = getattr(self, "n_seen_", 0) + len(new)
        self.part_ = part
        self.filter_ = current
        return self
