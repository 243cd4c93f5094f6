"""Is a false claim kept more often than was promised? Asked after every answer."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from ..graphs import Labels, Problems
from ..graphs.grouping import as_one
from ..guarantees import PerGroup
from ._adapt import SlidingCalibration
from ._exchangeability import BettingMonitor, new_state, play

#: The bets: errors are so many times as likely (in odds) as promised.
ODDS = np.array([1.25, 1.5, 2.0, 3.0, 5.0])


class CoverageMonitor(BettingMonitor):
    """Watch over the coverage of a filter in use, from answers that were judged.

    The monitor bets that false claims are kept too often. While the promise holds, the
    chance that it ever gives an alarm, however long it runs, however often it is looked
    at and however often the filter is calibrated again, is at most ``delta``.

    Parameters
    ----------
    filter : fitted filter, or SlidingCalibration
        What is watched, at its own alpha. It may be calibrated again at any time.
    delta : float, default=0.05
        Chance of a false alarm, in (0, 1).

    Attributes
    ----------
    n_errors_ : int
        Problems of which a false claim was kept.
    n_calibrations_ : int
        Calibrations of the filter that were watched.
    n_repeated_ : int
        Answers that were not counted, since their question was taken in before, or
        calibrated the filter.
    n_unwatched_ : int
        Answers that were not counted, since they are of groups in which the filter keeps
        nothing or promises nothing.
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

    With groups (``by=`` of the guarantee) each has its urn, and the wealth is their mean.
    Each calibration begins new urns. The wealth of the j-th counts ``1 / (j (j + 1))``,
    so that the chances of all together stay below ``delta``.

    Of each question one answer counts, as in calibration. Answers that are taken in
    together are taken in an order of their own, so that errors may stand first.

    References
    ----------
    J. Ville. Étude critique de la notion de collectif, 1939. G. Shafer, V. Vovk.
    Game-Theoretic Foundations for Probability and Finance, 2019. A. Podkopaev,
    A. Ramdas. Tracking the risk of a deployed model and detecting harmful distribution
    shifts. ICLR 2022.

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

    def __init__(self, filter: Any, *, delta: float = 0.05) -> None:
        self.filter = filter
        self.delta = delta

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
        *,
        accept_origin: str | None = None,
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
        accept_origin : str, optional
            Why other origins are overlooked, as in ``calibrate`` of the filter.

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
        filter = self._current()
        urns = _urns(filter)
        part = filter.calibration_part(X, y, groups, accept_origin=accept_origin)
        self._restart(filter, urns)
        names = (
            [None] * len(part) if part.groups is None else [*map(as_one, part.groups)]
        )
        rows_of: dict = {name: [] for name in self.groups_}
        key, known = _keys(filter, part.seen)
        order = np.lexsort((part.seen.order(), part.seen.question_order()))
        for row in order.tolist():
            name = names[row]
            if name not in rows_of:
                self.n_unwatched_ += 1
            elif known[row] or key[row] in self.taken_[self.groups_.index(name)]:
                self.n_repeated_ += 1
            else:
                rows_of[name].append(row)
                if key[row] is not None:
                    self.taken_[self.groups_.index(name)].append(key[row])
        for g, (name, rows) in enumerate(rows_of.items()):
            self._take(g, urns[name], part.scores[rows] < urns[name][2])
        return self

    def update_errors(self, errors: ArrayLike, group: Any = None) -> Self:
        """Take in outcomes alone, where the answers themselves are not at hand.

        Parameters
        ----------
        errors : array-like of bool, shape (n_problems,)
            Whether the promise was broken: a false claim was kept. The caller sees to it
            that each question counts once, and that errors do not come first.
        group : str or number, optional
            The group of these answers, where the guarantee has groups.

        Returns
        -------
        self
            This object.
        """
        self.validate()
        urns = _urns(self._current())
        self._restart(self._current(), urns)
        errors = np.asarray(errors, dtype=bool)
        if group in self.groups_:
            self._take(self.groups_.index(group), urns[group], errors)
        else:
            self.n_unwatched_ += len(errors)
        return self

    def _current(self):
        if isinstance(self.filter, SlidingCalibration):
            return getattr(self.filter, "filter_", self.filter.filter)
        return self.filter

    def _restart(self, filter, urns):
        """Begin new urns where the filter has another calibration than before."""
        level = filter.calibration_.guarantee.level(None, filter.alpha)
        now = np.append(filter.nonconformity_scores_, level)
        if np.array_equal(getattr(self, "calibration_", None), now):
            return
        if not hasattr(self, "calibration_"):
            self.log_wealth_ = np.empty(0)
            self.n_errors_ = self.n_repeated_ = self.n_unwatched_ = 0
            self.n_calibrations_, self.groups_, self.taken_ = 0, [], []
        taken = dict(zip(self.groups_, self.taken_, strict=True))
        self.calibration_, self.groups_ = now, list(urns)
        self.taken_ = [taken.get(name, []) for name in self.groups_]
        self.n_calibrations_ += 1
        self.counts_ = np.zeros((len(urns), 2), dtype=np.int64)
        self.group_wealth_ = np.zeros(len(urns))  # logarithms
        self.states_ = np.stack([new_state(len(ODDS))] * len(urns))

    def _take(self, g, urn, errors):
        """Bet on problems of group ``g``, some of them errors."""
        (n, k, _), errors = urn, errors.astype(np.float64)
        count, wrong = self.counts_[g]
        before = wrong + np.append(0.0, np.cumsum(errors))[:-1]
        chance = (k + before) / (n + count + 1 + np.arange(len(errors)))
        log_factors = errors[:, None] * np.log(ODDS)
        log_factors = log_factors - np.log1p(chance[:, None] * (ODDS - 1))
        made, self.states_[g] = play(int(count), self.states_[g], log_factors)
        others = logsumexp(np.append(np.delete(self.group_wealth_, g), -np.inf))
        j = self.n_calibrations_
        all_wealth = np.logaddexp(others, made) - np.log(
            len(self.groups_) * j * (j + 1)
        )
        self.log_wealth_ = np.append(self.log_wealth_, all_wealth)
        if len(made):
            self.group_wealth_[g] = made[-1]
        self.counts_[g] += [len(errors), int(errors.sum())]
        self.n_errors_ += int(errors.sum())

    def cannot_see(self) -> list[str]:
        """What no alarm of this monitor can tell, as sentences.

        Returns
        -------
        list of str
            One sentence for each.
        """
        out = [
            "errors in answers that nobody judged, or that were judged because something "
            "was wrong with them",
            "which answers of one question are worse than the first that was taken in",
            "a promise on other problems than those that calibrated: it is the urn that "
            "is watched, not a coverage of your own choice",
        ]
        if getattr(self, "groups_", [None]) == [None]:
            out.append("a group that loses coverage while all together keep it")
        if getattr(self, "n_unwatched_", 0):
            out.append(
                f"the {self.n_unwatched_} answers of groups in which nothing is kept or "
                "promised"
            )
        return out

    def summary(self) -> dict[str, Any]:
        """How things stand.

        Returns
        -------
        dict
            That of every monitor (``n_problems``, ``wealth``, ``largest_wealth``,
            ``p_value``, ``alarm``, ``alarm_at``), and ``n_errors``, ``coverage`` (NaN
            before the first problem), ``alpha``, ``n_repeated``, ``n_calibrations``,
            ``groups`` (problems and errors of each since the last calibration) and
            ``cannot_see``.
        """
        out, n_errors = super().summary(), getattr(self, "n_errors_", 0)
        n, filter = out["n_problems"], self._current()
        groups, counts = getattr(self, "groups_", ()), getattr(self, "counts_", ())
        return out | {
            "n_errors": n_errors,
            "coverage": 1 - n_errors / n if n else float("nan"),
            "alpha": filter.calibration_.guarantee.level(None, filter.alpha),
            "n_repeated": getattr(self, "n_repeated_", 0),
            "n_calibrations": getattr(self, "n_calibrations_", 0),
            "groups": {
                g: tuple(c.tolist()) for g, c in zip(groups, counts, strict=True)
            },
            "cannot_see": self.cannot_see(),
        }


def _urns(filter) -> dict[Any, tuple[int, int, float]]:
    """Of each group that can err: number and rank of its scores, and the threshold."""
    calibration, urns = filter.calibration_, {}
    level = calibration.guarantee.level(None, filter.alpha)
    parts = {None: calibration}
    if isinstance(calibration, PerGroup):
        parts = dict(zip(calibration.names, calibration.parts, strict=True))
    for name, part in parts.items():
        law = part.coverage_law(level)
        if law is None or filter.ties == "include":
            raise ValueError(
                f"how often a filter with {calibration.guarantee!r}, ties="
                f"{filter.ties!r} and calibration_size={filter.calibration_size!r} errs "
                "is not known exactly, so that an alarm would mean nothing. Watch one "
                "that promises no false claim without weights, in groups that do not "
                "overlap, and that was calibrated on problems held out"
            )
        if law[1]:
            urns[name] = part.n, law[1], part.threshold(level)
    if not urns:
        raise ValueError(
            "the filter keeps nothing at its alpha: there is nothing to watch"
        )
    return urns


def _keys(filter, seen) -> tuple[list, NDArray[np.bool_]]:
    """By what each answer is known again, and whether it calibrated the filter.

    An answer without a question is known by its content, unless copies are usual: then
    some of those that calibrated are copies too.
    """
    calibrated = filter._calibrated
    asked, one = seen.question >= 0, len(calibrated["content"]) >= filter.n_calibration_
    known = asked & np.isin(seen.question, calibrated["question"])
    if one:
        known |= np.isin(seen.content, calibrated["content"])
    alone = [int(content) if one else None for content in seen.content]
    pairs = zip(asked, seen.question.tolist(), alone, strict=True)
    return [f"q{q}" if known else a for known, q, a in pairs], known
