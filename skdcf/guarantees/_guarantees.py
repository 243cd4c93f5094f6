"""Base class for guarantees, a guarantee on a probability, and a guarantee on an expectation.

The guarantee on an expectation uses conformal risk control. Groups that depend on other problems in
the batch are rejected.
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import KW_ONLY
from math import ceil
from numbers import Integral
from types import FunctionType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from .._checks import check_alpha
from .._parameters import (
    SHARE,
    SHARE_OR_ALL,
    Settings,
    StrOptions,
    at_least,
    settings,
)
from ..graphs import GraphBatch
from ..graphs.problems import read_groups
from ..graphs.ragged import segment_ids
from ..ops import conformal
from ..ops.conformal import Jumps
from ..ops.hard import allowing_scores, segment_sum
from . import _calibration as kinds
from ._calibration import Calibration, PathRisks, rows_of_groups
from ._passing import Passing


@settings
class Guarantee(Settings, metaclass=ABCMeta):
    """Base class for guarantees.

    A user-defined guarantee must implement two methods. The method `scores` returns the largest
    safe threshold of each problem, and the method `loss` returns 1 for each problem in which the
    guarantee is violated. If the two methods are consistent with each other, the mean loss on new
    problems is at most alpha. Guarantees are scikit-learn estimators, so ``__init__`` must only
    store parameters.

    Parameters
    ----------
    by : str, callable or list of them, optional
        Definition of problem groups. The guarantee holds in each group, as in `NoFalseClaim`.
    show : float in (0, 1], default=1
        Proportion of answers that may pass, as in `NoFalseClaim`.

    Attributes
    ----------
    is_probability : bool
        Whether all losses are 0 or 1, in which case the level is a probability.
    allows_show : bool
        Whether ``show`` can be below 1. Set this attribute to True in a subclass if the loss is
        non-decreasing in the threshold.

    Examples
    --------
    >>> import numpy as np
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.guarantees import Guarantee
    >>> class TrueConclusion(Guarantee):
    ...     def scores(self, path_risk, labels, offsets):
    ...         last = offsets[1:] - 1
    ...         return np.where(labels[last] == 1, np.inf, path_risk[last])
    ...
    ...     def loss(self, labels, kept, offsets):
    ...         return (kept & (labels != 1))[offsets[1:] - 1]
    >>> graphs, y = make_reasoning_graphs(200, random_state=0, return_X_y=True)
    >>> cf = HardCF(guarantee=TrueConclusion()).fit(graphs, y)
    >>> cf.threshold_ >= HardCF().fit(graphs, y).threshold_
    True
    """

    _parameter_constraints = {
        "by": [None, str, list, tuple, callable],
        "show": [SHARE_OR_ALL, StrOptions({"auto"})],
    }
    _: KW_ONLY
    by: str | Callable[..., Any] | Sequence[Any] | None = None
    show: float | Literal["auto"] = 1
    is_probability = True
    allows_show = False

    def validate(self) -> None:
        """Raise ValueError if a parameter is invalid or would have no effect."""
        super().validate()
        if self.show != 1:
            self._check_show()
        if hasattr(self, "steps"):
            raise ValueError(
                f"{type(self).__name__} must define jumps() instead of steps(), because "
                "filters only call jumps(). Rename the method"
            )

    def _check_show(self):
        """Raise ValueError if ``show`` is below 1 without a proven guarantee."""
        if not self.allows_show:
            raise ValueError(
                f"show must be 1, got {self.show!r}. {type(self).__name__} does not allow "
                "smaller values. If its loss never decreases when the threshold increases, "
                "set its class attribute allows_show to True"
            )

    def with_share(self, share: float) -> Guarantee:
        """Return a copy of the guarantee with the proportion chosen for ``show="auto"``.

        Parameters
        ----------
        share : float in (0, 1]
            The chosen share.

        Returns
        -------
        copy : Guarantee
            A copy of the guarantee, with the chosen proportion.
        """
        chosen = copy(self)
        chosen.show = share
        return chosen

    def _share(self):
        """Return ``show`` for computing required sample sizes, with 0.25 in place of "auto"."""
        return 0.25 if self.show == "auto" else self.show

    @abstractmethod
    def scores(
        self,
        path_risk: NDArray[np.float64],
        labels: NDArray[Any],
        offsets: NDArray[np.intp],
    ) -> NDArray[np.float64]:
        """Compute the nonconformity score of each problem, which is its largest safe threshold.

        Parameters
        ----------
        path_risk : ndarray of shape (n_claims,)
            Path risk of each claim.
        labels : ndarray of shape (n_claims,)
            Claim labels (1 true, 0 false, -1 unknown). Unknown labels must be treated as the
            worst case.
        offsets : ndarray of shape (n_problems + 1,)
            Claims ``offsets[i]:offsets[i + 1]`` belong to problem i.

        Returns
        -------
        scores : ndarray of shape (n_problems,)
            The scores, which are +inf if every threshold is safe.
        """

    @abstractmethod
    def loss(
        self, labels: NDArray[Any], kept: NDArray[np.bool_], offsets: NDArray[np.intp]
    ) -> NDArray[Any]:
        """Compute the loss of each problem: 1 if the guarantee is violated and 0 otherwise.

        Parameters
        ----------
        labels : ndarray of shape (n_claims,)
            Claim labels (1 true, 0 false, -1 unknown). Unknown labels count as false.
        kept : ndarray of bool of shape (n_claims,)
            Whether each claim is kept.
        offsets : ndarray of shape (n_problems + 1,)
            Claims ``offsets[i]:offsets[i + 1]`` belong to problem i.

        Returns
        -------
        losses : ndarray of shape (n_problems,)
            The loss of each problem.
        """

    def jumps(
        self,
        path_risk: NDArray[np.float64],
        labels: NDArray[Any],
        offsets: NDArray[np.intp],
    ) -> Jumps:
        """Compute the positions and heights of the jumps in the loss of each problem.

        Parameters
        ----------
        path_risk : ndarray of shape (n_claims,)
            Path risk of each claim.
        labels : ndarray of shape (n_claims,)
            Claim labels (1 true, 0 false, -1 unknown). Unknown labels count as false.
        offsets : ndarray of shape (n_problems + 1,)
            Claims ``offsets[i]:offsets[i + 1]`` belong to problem i.

        Returns
        -------
        jumps : Jumps
            The jumps in the losses of all problems.
        """
        return Jumps.of_scores(self.scores(path_risk, labels, offsets))

    def level(self, alpha: float | None, own: float) -> float:
        """Return the level that the guarantee uses for the requested ``alpha``.

        Parameters
        ----------
        alpha : float or None
            The requested level. If None, the filter's alpha is used.
        own : float
            The filter's alpha.

        Returns
        -------
        level : float
            The level that the guarantee uses.

        Raises
        ------
        ValueError
            If the value is not a valid level for this guarantee.
        """
        return check_alpha(own if alpha is None else alpha)

    def for_level(self, alpha: float) -> Guarantee:
        """Return the guarantee for a different level.

        Parameters
        ----------
        alpha : float
            The requested level.

        Returns
        -------
        guarantee : Guarantee
            The guarantee for the requested level.
        """
        return self

    def path_risks(
        self, path_risk: NDArray[np.float64], batch: GraphBatch
    ) -> PathRisks:
        """Collect the path risks and groups for calibration and prediction.

        Parameters
        ----------
        path_risk : ndarray of shape (n_claims,)
            Path risk of each claim.
        batch : GraphBatch
            The problems.

        Returns
        -------
        risks : PathRisks
            The path risks, together with the groups of the problems.

        Raises
        ------
        ValueError
            If a problem has no group.
        """
        groups = None if self.by is None else read_groups(self.by, batch)
        return PathRisks(
            path_risk,
            offsets=batch.offsets,
            groups=groups,
            names=batch.name_of,
        )

    @property
    def entries(self) -> list[Any]:
        """The entries of ``by`` as a list."""
        return list(self.by) if isinstance(self.by, (list, tuple)) else [self.by]

    @property
    def functions(self) -> list[Any]:
        """The Python functions among the values of ``by``."""
        return [entry for entry in self.entries if isinstance(entry, FunctionType)]

    def calibrate(self, jumps: Jumps, risks: PathRisks) -> Calibration:
        """Calibrate the guarantee on calibration problems.

        Parameters
        ----------
        jumps : Jumps
            Jumps in the losses of the calibration problems.
        risks : PathRisks
            Path risks and groups of the calibration problems.

        Returns
        -------
        calibration : Calibration
            The calibration, which computes thresholds and levels for new problems.
        """
        if risks.groups is None:
            return self.calibrate_group(jumps, risks)
        return kinds.PerGroup(self, jumps, risks)

    def calibrate_group(self, jumps: Jumps, risks: PathRisks) -> Calibration:
        """Calibrate on one group's problems, or on those that pass if ``show`` is below 1.

        Parameters
        ----------
        jumps : Jumps
            Positions and sizes of the jumps in the loss of each calibration problem.
        risks : PathRisks
            Smallest path risks of the calibration problems.

        Returns
        -------
        calibration : Calibration
            The calibration, which computes thresholds and levels for new problems of this group.
        """
        if self.show == 1:
            return self.calibrate_one(jumps, risks)
        return Passing(self, jumps, risks)

    def calibrate_one(self, jumps: Jumps, risks: PathRisks) -> Calibration:
        """Calibrate on problems that belong to a single group.

        Parameters
        ----------
        jumps : Jumps
            Positions and sizes of the jumps in the loss of each calibration problem.
        risks : PathRisks
            Smallest path risks of the calibration problems.

        Returns
        -------
        calibration : Calibration
            The calibration, which computes thresholds and levels for new problems of this group.
        """
        return kinds.Controlled(jumps, risks, self)

    def leave_one_out(self, jumps: Jumps, risks: PathRisks) -> NDArray[np.float64]:
        """Compute the level of each claim after calibration on all other problems.

        Parameters
        ----------
        jumps : Jumps
            Positions and heights of the jumps in the loss of each problem.
        risks : PathRisks
            Path risks of the problems, in the order of the jumps.

        Returns
        -------
        levels : ndarray of shape (n_claims,)
            The smallest level at which each claim is kept.

        Raises
        ------
        ValueError
            If no closed form is available for the guarantee.
        """
        raise ValueError(
            f"leave-one-out evaluation does not support guarantee={self!r}, because there "
            "is no closed form. Use evaluate_filter or compare_filters with folds"
        )

    def describe(self, level: float) -> str:
        """Return a sentence that describes the guarantee.

        Parameters
        ----------
        level : float
            The requested level.

        Returns
        -------
        sentence : str
            A sentence that describes the guarantee.
        """
        return f"the mean loss of {self!r} is at most {level:g}{self.scope}"

    def describe_after_removal(self, level: float) -> str:
        """Describe the guarantee for answers from which a person removed kept false claims.

        Parameters
        ----------
        level : float
            The requested level.

        Returns
        -------
        sentence : str
            The sentence. This method returns the same sentence as `describe` if removing claims
            never increases the loss.
        """
        return self.describe(level)

    @property
    def scope(self) -> str:
        """Clause that names the population of new answers, for sentences about the guarantee."""
        if self.by is not None:
            return f", in every group by {self.by!r}"
        return ", for new answers that are sampled like the calibration answers"

    def describe_passing(self, level: float) -> str:
        """Return the clause that states the guarantee for passing answers.

        Parameters
        ----------
        level : float
            The requested level.

        Returns
        -------
        clause : str
            A clause that states the guarantee for passing answers.
        """
        return self.describe(level)

    def needed(self, n: int, level: float) -> str:
        """Return a sentence that states how many problems are needed if n problems are too few.

        Parameters
        ----------
        n : int
            Number of problems.
        level : float
            The requested level.

        Returns
        -------
        sentence : str
            A sentence that states how many problems are needed.
        """
        asked, least = self._asked(n, level)
        if self.show != 1:
            asked += f" and show = {self.show:g}"
            passing = self.with_share(1).problems_needed(level)
            if passing <= n:
                least += f", or show >= {conformal.least_share(passing, n):g}"
        return (
            f"{n} calibration problems are too few for {asked}, so nothing can be "
            f"kept. At least {self.problems_needed(level)} are needed for "
            f"calibration, or {least}. All problems can be used for calibration with "
            "a scorer that needs no training, such as a column."
        )

    def _asked(self, n, level):
        """Return the level for which n problems are too few, and the smallest feasible level."""
        passing = conformal.passing_count(n, self._share())
        return f"alpha = {level:g}", f"alpha >= {1 / (passing + 1):.4g}"

    def problems_needed(self, level: float) -> int:
        """Return the number of calibration problems required in each group to keep any claim.

        Parameters
        ----------
        level : float
            The requested level.

        Returns
        -------
        n_problems : int
            The smallest number of problems.
        """
        return conformal.problems_needed(level, share=self._share())

    def fewest(self, n: int, level: float) -> int:
        """Return the smallest number of calibration problems with the same effect as n problems.

        If the threshold is the score at some rank, the result is the smallest number of problems
        with the same rank.

        Parameters
        ----------
        n : int
            Number of calibration problems.
        level : float
            The requested level.

        Returns
        -------
        fewest : int
            The smallest number of problems, or n if no smaller number has the same effect.
        """
        return n

    def calibration_count(self, n: int, level: float) -> int:
        """Return the number of problems, out of n, to hold out for calibration.

        Parameters
        ----------
        n : int
            Number of problems.
        level : float
            The requested level.

        Returns
        -------
        n_calibration : int
            Number of problems to hold out.
        """
        if self.show == "auto":
            return conformal.whole_count(n, level, self._share(), at_most=0.6)
        count = conformal.whole_count(n, level, self._share())
        needed = self.problems_needed(level)
        return count if needed > 0.6 * n else max(count, needed)


LARGEST = 512  # maximum number of problems whose groups are computed again


def refuse_dependence(guarantee, batch, risks):
    """Raise ValueError if the group of a problem depends on other problems.

    Parameters
    ----------
    guarantee : Guarantee
        The guarantee.
    batch : GraphBatch
        The problems.
    risks : PathRisks
        Path risks of all problems in the batch.
    """
    if guarantee.by is None:
        return
    last = len(batch) - 1
    rows = np.unique(np.linspace(0, last, min(last + 1, LARGEST)).astype(int))
    for part_rows in (rows[:1], rows[1:2], rows[2 : 2 + len(rows) // 3]):
        if 0 < len(part_rows) < len(batch):
            part = batch[part_rows]
            for i, alone in zip(
                part_rows, read_groups(guarantee.by, part), strict=True
            ):
                if alone != risks.groups[i]:
                    raise ValueError(
                        f"the group of {batch.name_of(int(i))} must not depend on other "
                        f"problems, got {risks.groups[i]} in the whole batch and {alone} in a "
                        "smaller batch. Do not compute ranks or sums over the batch"
                    )


@settings
class NoFalseClaim(Guarantee):
    """Guarantee of at most ``max_false`` false claims with probability at least ``1 - alpha``.

    The probability refers to the kept claims of a single new problem. A filter with
    ``guarantee=None`` uses `NoFalseClaim` with its default parameters.

    Parameters
    ----------
    max_false : int, default=0
        Maximum number of kept false claims per problem.
    delta : float in (0, 1), optional
        Maximum probability, over random calibration sets, that the coverage on future problems is
        below ``1 - alpha``. If ``delta`` is set, the problems must be drawn independently. If
        None, the coverage is at least ``1 - alpha`` on average over calibration sets.
    by : str, callable or list of them, optional
        Definition of problem groups. The guarantee holds in every group of problems. Groups can
        be defined by a metadata key, by the name of a feature, or by a function that accepts a
        GraphBatch and returns the group of each problem. A feature that defines groups must have
        the same value for all claims of a problem. If ``by`` is a list, such as ``["model",
        "kind"]``, the group of a problem is the tuple of the values. In a problem whose group has
        no calibration problems, no claim is kept, with a warning.
    show : float in (0, 1], or "auto", default=1
        Proportion of answers that may pass, or "auto". An answer passes if its smallest path risk
        is below a cut, which is the ``show``-quantile of the smallest path risks of the
        calibration answers. If an answer does not pass, none of its claims are kept, and the
        guarantee holds for each answer *given that it passes*. If ``show`` is 1, every answer
        passes, and the guarantee is an average over all answers, including empty ones. If
        ``show`` is "auto", the proportion is chosen on training problems. It is the largest for
        which at most about ``alpha`` of the passing answers contain a false claim below the cut,
        or the one with the fewest such answers. If that is more than ``alpha``, fewer answers are
        shown than pass. With "auto", problems are held out for calibration even if nothing learns.
        The default of every estimator is 1, as in the paper. The command ``skdcf fit`` uses
        "auto", because people read what it writes.

    References
    ----------
    V. Vovk. Conditional validity of inductive conformal predictors. ACML 2012.
    Y. Jin, Z. Ren. Confidence on the focal: conformal prediction with selection-conditional
    coverage. arXiv:2403.03868.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.guarantees import NoFalseClaim
    >>> graphs, y = make_reasoning_graphs(300, random_state=0, return_X_y=True)
    >>> for guarantee in NoFalseClaim(), NoFalseClaim(1), NoFalseClaim(delta=0.05):
    ...     cf = HardCF(alpha=0.1, guarantee=guarantee).fit(graphs[:200], y[:200])
    ...     print(guarantee, round(cf.score(graphs[200:], y[200:]), 2))
    NoFalseClaim() 1.26
    NoFalseClaim(max_false=1) 2.5
    NoFalseClaim(delta=0.05) 1.26
    """

    _parameter_constraints = Guarantee._parameter_constraints | {
        "max_false": [at_least(0, Integral)],
        "delta": [None, SHARE],
    }

    max_false: int = 0
    delta: float | None = None
    allows_show = True

    def scores(
        self,
        path_risk: NDArray[np.float64],
        labels: NDArray[Any],
        offsets: NDArray[np.intp],
    ) -> NDArray[np.float64]:
        return allowing_scores(path_risk, labels, offsets, self.max_false)

    def loss(
        self, labels: NDArray[Any], kept: NDArray[np.bool_], offsets: NDArray[np.intp]
    ) -> NDArray[np.bool_]:
        return segment_sum(kept & (labels != 1), offsets) > self.max_false

    def leave_one_out(self, jumps: Jumps, risks: PathRisks) -> NDArray[np.float64]:
        if risks.groups is not None:
            return self._within_groups(jumps, risks)
        if self.show != 1:
            return self._among_passing(jumps, risks)
        problem = segment_ids(risks.offsets)
        return conformal.leave_one_out_alpha(
            jumps.position, risks.path_risk, problem, self.delta
        )

    def _among_passing(self, jumps, risks):
        """Return the leave-one-out level of each claim in a passing answer.

        An answer passes if the smallest path risks of fewer than k0 = ceil(show n) other answers
        are at most as large as that of the answer. The levels of an answer's claims are computed
        after calibration on all other passing answers.
        """
        out = np.full(len(risks.path_risk), np.inf)
        if self.show == 0:
            return out
        n = len(risks)
        rank = conformal.passing_count(n - 1, self._share()) + 1
        at_or_below = np.searchsorted(np.sort(risks.lowest), risks.lowest, "right") - 1
        passing = np.flatnonzero((at_or_below < rank) | (rank == n))
        among = clone(self).set_params(show=1)
        part = risks.take(passing)
        out[risks.rows(passing)] = among.leave_one_out(jumps[passing], part)
        return out

    def _within_groups(self, jumps, risks):
        out = np.empty(len(risks.path_risk))
        for rows in rows_of_groups(risks.groups).values():
            part = risks.take(rows)
            out[risks.rows(rows)] = self.leave_one_out(jumps[rows], part)
        return out

    def calibrate_one(self, jumps: Jumps, risks: PathRisks) -> Calibration:
        return kinds.OneThreshold(jumps.position, risks.lowest, self)

    def describe(self, level: float) -> str:
        verb = "is" if self.max_false == 1 else "are"
        what = f"at most {self.max_false} of the kept claims {verb} false"
        what = what if self.max_false else "no false claim is kept"
        sure = f"with a probability of at least {1 - level:.6g}"
        if self.delta is None:
            return f"{sure}, {what}{self.scope}"
        share = f"for {100 - 100 * self.delta:g} % of all calibration sets"
        if self.by is None:
            return f"{sure} ({share}), {what}{self.scope}"
        # The coverage varies between groups. If there are many groups, some are usually below the
        # target.
        return f"{sure}, {what}, in each group by {self.by!r}, {share} of that group"

    def describe_passing(self, level: float) -> str:
        most = "a false claim"
        if self.max_false:
            most = f"more than {self.max_false} false claim{'s' * (self.max_false > 1)}"
        sentence = f"at most {100 * level:.4g} % contain {most}"
        if self.delta is not None:
            sentence += f", for {100 - 100 * self.delta:g} % of all calibration sets"
        return f"{sentence}{self.scope}"

    def _asked(self, n, level):
        if self.delta is None:
            return super()._asked(n, level)
        passing = conformal.passing_count(n, self._share())
        least = 1 - self.delta ** (1 / passing) if passing else 1.0
        return f"alpha = {level:g} and delta = {self.delta:g}", f"alpha >= {least:.4g}"

    def fewest(self, n: int, level: float) -> int:
        return conformal.fewest_of_rank(n, level, self.delta, self._share())

    def problems_needed(self, level: float) -> int:
        return conformal.problems_needed(level, self.delta, self._share())


def problems_needed(
    alpha: float,
    delta: float | None = None,
    by: Mapping[Any, float] | Iterable[Any] | None = None,
    show: float = 1,
) -> int:
    """Return the smallest number of calibration questions required to keep any claim.

    Several answers to the same question count as one (see `~skdcf.graphs.question_groups`).

    Parameters
    ----------
    alpha : float in (0, 1)
        The requested level.
    delta : float in (0, 1), optional
        As in `NoFalseClaim`.
    by : mapping from group to share, or iterable with a group per problem, optional
        Proportion of questions in each group, or the group of each problem. If ``by`` is passed,
        the result is the total number of questions for which the smallest group is large enough
        on average.
    show : float in (0, 1], default=1
        Proportion of answers that may pass, as in `NoFalseClaim`. More questions are needed if
        the smallest path risks of several answers are tied.

    Returns
    -------
    n_questions : int
        The smallest number of questions.

    Raises
    ------
    ValueError
        If alpha, delta or a proportion is not between 0 and 1.

    Examples
    --------
    >>> from skdcf.guarantees import problems_needed
    >>> problems_needed(0.1), problems_needed(0.1, delta=0.05)
    (9, 29)
    >>> problems_needed(0.1, by={"short": 0.9, "long": 0.1}), problems_needed(0.1, show=0.5)
    (90, 18)
    """
    if not 0 < show <= 1:
        raise ValueError(f"show must be greater than 0 and at most 1, got {show!r}")
    if delta is not None and not 0 < delta < 1:
        raise ValueError(f"delta must be strictly between 0 and 1, got {delta!r}")
    needed = conformal.problems_needed(check_alpha(alpha), delta, show)
    return needed if by is None else ceil(needed / _smallest_share(by) - 1e-9)


def _smallest_share(by):
    shares = (by if isinstance(by, Mapping) else Counter(by)).values()
    if not shares or not all(share > 0 for share in shares):
        raise ValueError(f"by must assign a positive share to every group, got {by!r}")
    return min(shares) / sum(shares)


@settings
class ExpectedFalse(Guarantee):
    """Upper bound on the expected proportion of false claims among the kept claims.

    The proportion is 0 if no claims are kept. It is not monotone in the threshold, so the guarantee
    controls the running maximum of the proportion.

    Parameters
    ----------
    by : str, callable or list of these, optional
        Definition of the problem groups, as in `NoFalseClaim`. The guarantee holds in every group
        of problems.
    show : float in (0, 1], default=1
        Proportion of answers that may pass, as in `NoFalseClaim`. If ``show`` is below 1, the
        expectation is taken over the passing answers.
    bound : float in (0, 1), optional
        Upper bound on the expected proportion of false claims. If None, the filter's ``alpha`` is
        used. The bound determines how many problems `fit` holds out for calibration, and is used
        as the training level. The levels passed as ``predict(X, alpha=...)`` are also interpreted
        as bounds.

    References
    ----------
    A. Angelopoulos, S. Bates, A. Fisch, L. Lei, T. Schuster. Conformal Risk Control.
    ICLR 2024.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.guarantees import ExpectedFalse
    >>> graphs, y = make_reasoning_graphs(300, random_state=0, return_X_y=True)
    >>> cf = HardCF(guarantee=ExpectedFalse(bound=0.05)).fit(graphs[:200], y[:200])
    >>> cf.predict(graphs[200:]).shape
    (100,)
    """

    is_probability = False
    _parameter_constraints = Guarantee._parameter_constraints | {
        "bound": [None, SHARE],
    }

    _: KW_ONLY
    bound: float | None = None
    allows_show = True

    def describe(self, level: float) -> str:
        return (
            "the mean share of false claims among the kept claims is at most "
            f"{level:g}{self.scope}"
        )

    def describe_after_removal(self, level: float) -> str:
        # A person may also remove true claims. For example, removing true claims can raise the
        # share of false claims from 0.12 to 0.261.
        return (
            "the mean ratio of the remaining false claims to the claims kept before the "
            f"review is at most {level:g}{self.scope}"
        )

    def scores(
        self,
        path_risk: NDArray[np.float64],
        labels: NDArray[Any],
        offsets: NDArray[np.intp],
    ) -> NDArray[np.float64]:
        return self.jumps(path_risk, labels, offsets).first()

    def jumps(
        self,
        path_risk: NDArray[np.float64],
        labels: NDArray[Any],
        offsets: NDArray[np.intp],
    ) -> Jumps:
        return conformal.share_jumps(path_risk, labels, offsets)

    def loss(
        self, labels: NDArray[Any], kept: NDArray[np.bool_], offsets: NDArray[np.intp]
    ) -> NDArray[np.float64]:
        false = segment_sum(kept & (labels != 1), offsets)
        # If no claim is kept, the proportion is 0.
        return false / np.maximum(segment_sum(kept, offsets), 1)

    def level(self, alpha: float | None, own: float) -> float:
        # The parameter ``alpha`` of this method takes precedence over ``bound``, and ``bound``
        # takes precedence over the filter's alpha.
        return super().level(alpha, own if self.bound is None else self.bound)

    def for_level(self, alpha: float) -> ExpectedFalse:
        return clone(self).set_params(bound=None)

    def _asked(self, n, level):
        return f"a bound of {level:g}", f"a bound of {1 / (n + 1):.4g}"
