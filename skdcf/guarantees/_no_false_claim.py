"""The two promises: few false claims with a probability, and few false claims in the mean.

The second one is conformal risk control.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import ceil
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .._checks import check_alpha
from .._parameters import Fraction, Number, StrOptions, positive
from ..graphs.ragged import segment_ids
from ..ops.conformal import fewest_of_rank, leave_one_out_alpha
from ..ops.conformal import problems_needed as needed_in_one
from ..ops.hard import allowing_scores, segment_sum
from ..ops.risk_control import Steps, count_steps, count_up_to, share_steps
from ._calibration import (
    Calibration,
    OneThreshold,
    Overlapping,
    PathRisks,
    rows_of_groups,
)
from ._protocol import Guarantee


class NoFalseClaim(Guarantee):
    """With probability at least ``1 - alpha``, at most ``max_false`` kept claims are false.

    ``NoFalseClaim()`` is what filters promise without a guarantee of their own.

    Parameters
    ----------
    max_false : int, default=0
        Number of false claims per problem that are tolerated.
    delta : float in (0, 1), optional
        None promises ``1 - alpha`` on average over calibration sets. With ``delta``, a
        share ``1 - delta`` of all calibration sets has a coverage of at least
        ``1 - alpha`` on future problems, where scores are independent draws.
    by : str, callable or list, optional
        Promise this within every group of problems: a key of their metadata, the name of
        a feature that is the same for all claims of a problem, or a function that gives
        the group of each problem of a GraphBatch. Groups overlap where a problem has a
        list of them, where the function gives a 2-D array of booleans (one column per
        group), or with a list of keys: then a quantile regression finds the thresholds,
        one alpha at a time, and kept sets need not be nested in alpha.
    weight : callable, optional
        Likelihood ratio of the problems that are going to be filtered against those
        that calibrate, as a function of a GraphBatch that gives one number per problem.
        The promise is then about the former. See `estimate_ratio`.
    unseen : {"error", "pool", "empty"}, default="error"
        What is done with problems of a group that calibration has not seen: an error,
        the threshold of all problems together (nothing is promised for the group), or
        keep nothing.

    References
    ----------
    V. Vovk. Conditional validity of inductive conformal predictors. ACML 2012.
    R. Tibshirani, R. Foygel Barber, E. Candès, A. Ramdas. Conformal Prediction Under
    Covariate Shift. NeurIPS 2019.
    I. Gibbs, J. Cherian, E. Candès. Conformal prediction with conditional guarantees.
    JRSS-B 2025.

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
        "max_false": [Number(Integral, 0, None, closed="left")],
        "delta": [None, Number(Fraction, 0, 1, closed="neither")],
    }

    def __init__(
        self,
        max_false: int = 0,
        delta: float | None = None,
        by: str | Callable | Sequence[Any] | None = None,
        weight: Callable | None = None,
        unseen: Literal["error", "pool", "empty"] = "error",
    ) -> None:
        self.max_false = max_false
        self.delta = delta
        self.by = by
        self.weight = weight
        self.unseen = unseen

    def validate(self) -> None:
        super().validate()
        if self.delta is not None and self.weight is not None:
            raise ValueError(
                f"delta is {self.delta!r} and weight is set: a promise about most "
                "calibration sets is not known under a shift. Leave one of them at None"
            )

    @property
    def combines_folds(self) -> bool:
        return self.delta is None and self.by is None and self.weight is None

    def scores(
        self, path_risk: NDArray, labels: NDArray, offsets: NDArray
    ) -> NDArray[np.float64]:
        """The (max_false + 1)-th smallest path risk of a claim not known to be true.

        Parameters
        ----------
        path_risk, labels : ndarray of shape (n_claims,)
        offsets : ndarray of shape (n_problems + 1,)

        Returns
        -------
        ndarray of shape (n_problems,)
        """
        return allowing_scores(path_risk, labels, offsets, self.max_false)

    def loss(self, labels: NDArray, kept: NDArray, offsets: NDArray) -> NDArray:
        """Whether more than max_false claims were kept that are not known to be true.

        Parameters
        ----------
        labels, kept : ndarray of shape (n_claims,)
        offsets : ndarray of shape (n_problems + 1,)

        Returns
        -------
        ndarray of bool, shape (n_problems,)
        """
        return segment_sum(kept & (labels != 1), offsets) > self.max_false

    def leave_one_out(self, steps: Steps, risks: PathRisks) -> NDArray[np.float64]:
        """Level of each claim when all other problems calibrate it.

        Parameters
        ----------
        steps : Steps
        risks : PathRisks
            Of the same problems, without weights, and in groups that do not overlap.

        Returns
        -------
        ndarray of shape (n_claims,)

        Raises
        ------
        ValueError
            With weights, or groups that overlap.
        """
        if risks.weights is not None:
            return super().leave_one_out(steps, risks)
        if risks.groups is not None:
            return self._within_groups(steps, risks)
        problem = segment_ids(risks.offsets)
        return leave_one_out_alpha(steps.position, risks.path_risk, problem, self.delta)

    def _within_groups(self, steps, risks):
        if any(isinstance(group, frozenset) for group in risks.groups):
            return super().leave_one_out(steps, risks)
        out = np.empty(len(risks.path_risk))
        for rows in rows_of_groups(risks.groups).values():
            part = risks.take(rows)
            out[risks.rows(rows)] = self.leave_one_out(steps[rows], part)
        return out

    def calibrate_one(self, steps: Steps, weights: NDArray | None) -> Calibration:
        if weights is not None:
            return super().calibrate_one(steps, weights)
        return OneThreshold(steps.position, self)

    def _overlapping(self, steps, risks):
        if self.delta is not None or risks.weights is not None:
            raise ValueError(
                f"by={self.by!r} gives groups that overlap, where neither delta nor "
                "weight is known to hold: let each problem be in one group, or leave "
                "both at None"
            )
        return Overlapping(self, steps, risks)

    def describe(self, level: float) -> str:
        what = f"at most {self.max_false} of the kept claims are false"
        what = what if self.max_false else "nothing false is kept"
        sets = (
            f" (for {1 - self.delta:g} of all calibration sets)" if self.delta else ""
        )
        sure = f"{1 - level:.6g}"
        return f"with a probability of at least {sure}{sets}, {what}{self.scope}"

    def needed(self, n: int, level: float) -> str:
        if self.delta is None:
            return super().needed(n, level)
        least = 1 - self.delta ** (1 / n) if n else 1.0
        return (
            f"{n} calibration problems are too few for alpha = {level:g} and delta = "
            f"{self.delta:g}: nothing can be kept. At least "
            f"{self.problems_needed(level)} are needed, of those that "
            f"calibration_size holds out, or alpha >= {least:.4g}."
        )

    def fewest(self, n: int, level: float) -> int:
        return n if self.weight is not None else fewest_of_rank(n, level, self.delta)

    def problems_needed(self, level: float) -> int:
        return needed_in_one(level, self.delta)


def problems_needed(
    alpha: float,
    delta: float | None = None,
    by: Mapping[Any, float] | Iterable[Any] | None = None,
) -> int:
    """The number of calibration questions from which on anything can be kept.

    Several answers to one question count as one (see `~skdcf.graphs.question_groups`).

    Parameters
    ----------
    alpha : float in (0, 1)
    delta : float in (0, 1), optional
        As in `NoFalseClaim`.
    by : mapping from group to share, or iterable with a group per problem, optional
        How questions are distributed over the groups that the promise is made in. The
        result is then what it takes until the smallest group has enough, on average.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If alpha, delta or a share is not between 0 and 1.

    Examples
    --------
    >>> from skdcf.guarantees import problems_needed
    >>> problems_needed(0.1), problems_needed(0.1, delta=0.05)
    (9, 29)
    >>> problems_needed(0.1, by={"short": 0.9, "long": 0.1})
    90
    """
    if delta is not None and not 0 < delta < 1:
        raise ValueError(f"delta is {delta!r}, but must be between 0 and 1")
    needed = needed_in_one(check_alpha(alpha), delta)
    return needed if by is None else ceil(needed / _smallest_share(by) - 1e-9)


def _smallest_share(by):
    if not isinstance(by, Mapping):
        groups = list(by)
        by = {group: groups.count(group) for group in set(groups)}
    shares = {group: share / sum(by.values()) for group, share in by.items()}
    if not shares or not all(share > 0 for share in shares.values()):
        raise ValueError(f"by is {by!r}: every group needs a share above 0")
    return min(shares.values())


class _Count:
    """Number of false claims that are kept."""

    steps = staticmethod(count_steps)
    largest = staticmethod(count_up_to)

    @staticmethod
    def loss(false, kept):
        return false


class _Share:
    """Share of the kept claims that is false; 0 where nothing is kept."""

    steps = staticmethod(share_steps)

    @staticmethod
    def largest(path_risk, offsets):
        return 1.0

    @staticmethod
    def loss(false, kept):
        return false / np.maximum(kept, 1)


LOSSES: dict[str, Any] = {"count": _Count, "share": _Share}


class ExpectedFalse(Guarantee):
    """The expected number, or share, of false claims among those kept is bounded.

    Parameters
    ----------
    of : {"share", "count"}, default="share"
        "count" is the number of false claims kept per problem, "share" that number
        divided by the number of kept claims, 0 where nothing is kept. The share is not
        monotone in the threshold: its running maximum is controlled, which is larger.
    bound : float, optional
        What the expectation is not to exceed. None takes the filter's ``alpha`` for the
        bound. Levels asked for afterwards, as in ``predict(X, alpha=...)``, are bounds.
    by, weight, unseen
        As in `NoFalseClaim`; groups may not overlap.

    Notes
    -----
    A new problem might lose as many claims as it keeps. With "count" this bound is its own
    number of kept claims, so that no largest number of claims has to be known beforehand,
    and thresholds differ between problems.

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
    >>> cf = HardCF(guarantee=ExpectedFalse("share", 0.05)).fit(graphs[:200], y[:200])
    >>> cf.thresholds(graphs[200:]).shape
    (100,)
    """

    is_probability = False
    _parameter_constraints = Guarantee._parameter_constraints | {
        "of": [StrOptions(set(LOSSES))],
        "bound": [None, positive()],
    }

    def __init__(
        self,
        of: Literal["share", "count"] = "share",
        bound: float | None = None,
        by: str | Callable | Sequence[Any] | None = None,
        weight: Callable | None = None,
        unseen: Literal["error", "pool", "empty"] = "error",
    ) -> None:
        self.of = of
        self.bound = bound
        self.by = by
        self.weight = weight
        self.unseen = unseen

    def describe(self, level: float) -> str:
        return (
            f"the mean {self.of} of false claims among those kept is at most "
            f"{level:g}{self.scope}"
        )

    def scores(
        self, path_risk: NDArray, labels: NDArray, offsets: NDArray
    ) -> NDArray[np.float64]:
        """The threshold up to which nothing is lost.

        Parameters
        ----------
        path_risk, labels : ndarray of shape (n_claims,)
        offsets : ndarray of shape (n_problems + 1,)

        Returns
        -------
        ndarray of shape (n_problems,)
        """
        return self.steps(path_risk, labels, offsets).first()

    def steps(self, path_risk: NDArray, labels: NDArray, offsets: NDArray) -> Steps:
        """Where the count, or the running maximum of the share, grows.

        Parameters
        ----------
        path_risk, labels : ndarray of shape (n_claims,)
        offsets : ndarray of shape (n_problems + 1,)

        Returns
        -------
        Steps
        """
        return LOSSES[self.of].steps(path_risk, labels, offsets)

    def loss(self, labels: NDArray, kept: NDArray, offsets: NDArray) -> NDArray:
        """Number, or share, of the kept claims that are not known to be true.

        Parameters
        ----------
        labels, kept : ndarray of shape (n_claims,)
        offsets : ndarray of shape (n_problems + 1,)

        Returns
        -------
        ndarray of shape (n_problems,)
        """
        false = segment_sum(kept & (labels != 1), offsets)
        return LOSSES[self.of].loss(false, segment_sum(kept, offsets))

    def level(self, alpha: float | None, own: float) -> float:
        """The bound that is meant: what was asked for, else ``bound``, else alpha.

        Parameters
        ----------
        alpha : float or None
        own : float

        Returns
        -------
        float
        """
        if alpha is not None:
            return level_above_zero(alpha, "the level")
        return level_above_zero(own if self.bound is None else self.bound, "bound")

    def for_level(self, alpha: float) -> "ExpectedFalse":
        """The same promise with alpha for the bound.

        Parameters
        ----------
        alpha : float

        Returns
        -------
        ExpectedFalse
        """
        return ExpectedFalse(self.of, None, self.by, self.weight, self.unseen)

    def largest_loss(self, path_risk: NDArray, offsets: NDArray) -> NDArray | float:
        """The number of claims kept; 1 for the share.

        Parameters
        ----------
        path_risk : ndarray of shape (n_claims,)
        offsets : ndarray of shape (n_problems + 1,)

        Returns
        -------
        float, or ndarray of shape (n_claims,)
        """
        return LOSSES[self.of].largest(path_risk, offsets)

    def needed(self, n: int, level: float) -> str:
        return (
            f"{n} calibration problems are too few for a bound of {level:g}: nothing can "
            f"be kept. At least {self.problems_needed(level)} are needed, or a bound of "
            f"{1 / (n + 1):.4g}."
        )

    def problems_needed(self, level: float) -> int:
        return needed_in_one(level) if level < 1 else 0


def level_above_zero(value, name):
    """``value`` as a float, or ValueError unless it is a finite number above 0."""
    good = isinstance(value, Real) and not isinstance(value, bool)
    if not good or not 0 < value < np.inf:
        raise ValueError(f"{name} is {value!r}, but must be a finite number above 0")
    return float(value)
