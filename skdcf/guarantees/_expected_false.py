"""Few false claims in the mean: conformal risk control."""

from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .._parameters import StrOptions, positive
from ..ops.conformal import problems_needed
from ..ops.hard import segment_sum
from ..ops.risk_control import Steps, count_steps, count_up_to, share_steps
from ._protocol import Guarantee


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
        return problems_needed(level) if level < 1 else 0


def level_above_zero(value, name):
    """``value`` as a float, or ValueError unless it is a finite number above 0."""
    good = isinstance(value, Real) and not isinstance(value, bool)
    if not good or not 0 < value < np.inf:
        raise ValueError(f"{name} is {value!r}, but must be a finite number above 0")
    return float(value)
