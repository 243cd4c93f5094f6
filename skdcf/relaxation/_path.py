"""Base class for relaxations, and the closed-form path relaxation.

=====  ==========================================================================
r_v    risk of claim v
R_v    maximum of r over v and its ancestors
s_i    minimum of R over the relevant false claims of problem i
t      root of ``sum_i sigmoid((t - s_i) / T_s) = count``
q_v    ``sigmoid((t - R_v) / T_q)``
=====  ==========================================================================

The gradient of a maximum or minimum is assigned to the claim that attains it, or divided equally
among tied claims. For large problems, path risks are computed in a single pass along the edges,
and the gradient is assigned to the last of several tied claims.
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any

import autograd.numpy as anp
import numpy as np
from autograd.tracer import getval

from .._checks import check_alpha
from .._parameters import Settings, at_least, positive, settings
from ..graphs import GraphBatch
from ..graphs.ragged import offsets_of
from ..ops import soft
from ..ops.ancestors import find_highest
from ..ops.hard import Array, below_true_claims
from ..ops.segments import scatter_sum, take


class Relaxation(Settings, metaclass=ABCMeta):
    """Base class for differentiable versions of calibration and prediction.

    The method `plan` is called once, and computes all values that depend only on the graph
    structure and the labels. Every plan must have the attributes ``n_problems``, ``problem_of``
    and ``labels``.
    """

    @abstractmethod
    def plan(self, batch: GraphBatch, labels: Array) -> Any:
        """Compute all values that depend only on the graph structure and the labels.

        Parameters
        ----------
        batch : GraphBatch
            The training problems.
        labels : ndarray of shape (n_claims,)
            Claim labels (1 true, 0 false, -1 unknown). Unknown claims are ignored.
        """

    @abstractmethod
    def soft_threshold(self, scores: Array, alpha: float) -> float:
        """Compute the soft conformal threshold.

        Parameters
        ----------
        scores : ndarray of shape (n_problems,)
            Result of `soft_scores`.
        alpha : float
            Training level, between 0 and 1.

        Returns
        -------
        threshold : float
            Soft conformal threshold.
        """

    @abstractmethod
    def state(self, risk: Array, plan: Any) -> Any:
        """Compute the intermediate values used by both `scores` and `kept`.

        Parameters
        ----------
        risk : ndarray of shape (n_claims,)
            Risk of each claim.
        plan : object
            Result of `plan`.

        Returns
        -------
        state : object
            The intermediate values, which are passed as ``state`` to `scores` and `kept`.
        """

    @abstractmethod
    def scores(self, state: Any, plan: Any) -> Array:
        """Compute the soft nonconformity scores.

        Parameters
        ----------
        state : object
            Result of `state`.
        plan : object
            Result of `plan`.

        Returns
        -------
        scores : ndarray of shape (n_problems,)
            The soft nonconformity score of each problem.
        """

    @abstractmethod
    def kept(self, state: Any, threshold: float, plan: Any) -> Array:
        """Compute the degree, between 0 and 1, to which each claim is kept.

        Parameters
        ----------
        state : object
            Result of `state`.
        threshold : float
            The soft threshold.
        plan : object
            Result of `plan`.

        Returns
        -------
        degrees : ndarray of shape (n_claims,)
            The degree to which each claim is kept.
        """

    def soft_scores(self, risk: Array, plan: Any) -> Array:
        """Compute the soft nonconformity scores.

        Parameters
        ----------
        risk : ndarray of shape (n_claims,)
            Risk of each claim.
        plan : object
            Result of `plan`.

        Returns
        -------
        scores : ndarray of shape (n_problems,)
            The soft nonconformity score of each problem.
        """
        return self.scores(self.state(risk, plan), plan)

    def true_claims(
        self,
        risk: Array,
        plan: Any,
        alpha: float,
        calibration: Array | None = None,
        prediction: Array | None = None,
    ) -> Array:
        """Compute the soft number of kept true claims in each problem.

        Parameters
        ----------
        risk : ndarray of shape (n_claims,)
            Risk of each claim.
        plan : object
            Result of `plan`.
        alpha : float
            Training level, between 0 and 1.
        calibration, prediction : ndarray of int, optional
            Indices of the problems used for calibration and for prediction. If None, all problems
            are used.

        Returns
        -------
        counts : ndarray of shape (n_problems,) or (n_prediction,)
            The soft number of kept true claims.
        """
        state = self.state(risk, plan)
        scores = self.scores(state, plan)
        if calibration is not None:
            scores = take(scores, calibration)
        kept = self.kept(state, self.soft_threshold(scores, alpha), plan)
        counts = scatter_sum(kept, plan.problem_of, plan.n_problems, plan.labels)
        return counts if prediction is None else take(counts, prediction)

    def retention(self, risk: Array, plan: Any, alpha: float) -> float:
        """Compute the mean soft number of kept true claims per problem.

        In the paper, the training objective is the negative mean (section 3.5).

        Parameters
        ----------
        risk : ndarray of shape (n_claims,)
            Risk of each claim.
        plan : object
            Result of `plan`.
        alpha : float
            Training level, between 0 and 1.

        Returns
        -------
        retention : float
            The mean soft number of kept true claims.
        """
        return anp.mean(self.true_claims(risk, plan, alpha))


@dataclass(frozen=True)
class PathPlan:
    """Training problems, together with the false claims that determine their scores.

    Attributes
    ----------
    n_problems : int
        Number of problems.
    problem_of : ndarray of shape (n_claims,)
        Problem index of each claim.
    labels : ndarray of float of shape (n_claims,)
        Claim labels (1 true, 0 false, -1 unknown).
    false_claims : ndarray of int
        Indices of the false claims without a false ancestor, in the order of the problems.
    false_offsets : ndarray of shape (n_problems + 1,)
        Offsets of the problems in ``false_claims``.
    batch : GraphBatch
        The problems.
    """

    n_problems: int
    problem_of: Array
    labels: Array
    false_claims: Array
    false_offsets: Array
    batch: GraphBatch

    @cached_property
    def _large(self) -> tuple[Array, GraphBatch]:
        """Claims of problems that are too large for a list of all ancestors, and the problems."""
        large = self.batch.large
        return np.flatnonzero(np.isin(self.problem_of, large)), self.batch[large]

    def candidates(self, risk: Array) -> tuple[Array, Array]:
        """Return the claims that may determine each claim's path risk, as (indptr, indices).

        The candidates are the claim and all its ancestors. In large problems, the only candidate
        is the last of the claims with the largest risk.
        """
        indptr, indices = self.batch.small_closure
        if not len(self.batch.large):
            return indptr, indices
        claims, problems = self._large
        indices = indices.copy()
        indices[indptr[claims]] = claims[find_highest(risk[claims], problems)]
        return indptr, indices


@settings
class PathRelaxation(Relaxation):
    """Relaxation of closed-form calibration, with one soft maximum per claim instead of a grid.

    The path risk R of a claim is the maximum risk over the claim and its ancestors. The score of
    a problem is the minimum of R over its false claims. The threshold t is a smooth order
    statistic of the scores. The degree to which a claim is kept is ``sigmoid((t - R) /
    keep_temperature)``.

    Parameters
    ----------
    keep_temperature : float, default=0.3
        Temperature of the sigmoid that determines the degree to which a claim is kept, in units
        of the risk. The default values assume risks with unit standard deviation, as in training.
    quantile_temperature : float, default=0.3
        Temperature of the smooth distribution function whose quantile is the threshold.
    max_temperature : float, default=0.0
        Temperature of the soft maximum and the soft minimum. If the temperature is 0, the hard
        maximum and minimum are used, and the subgradient is divided equally among tied values.
        Unless the temperature is 0, all ancestors must be listed even for large problems. At
        temperature 0, the gradient in large problems is assigned to the last of several tied
        ancestors.

    Notes
    -----
    The minimum is taken only over false claims without a false ancestor. The hard minimum is the
    same over all false claims, because the path risk of a claim is at least that of its
    ancestors.

    The score of a problem without false claims is +inf, so the problem only increases the number
    n of problems. The threshold t solves ``sum of sigmoid((t - s) / quantile_temperature) = alpha
    (n + 1) - 1/2``, where the sum is over the m problems with false claims. The right-hand side
    of the equation is clipped to the range from 0.4 to m - 0.4. If no problem has a false claim,
    the threshold is +inf.

    Examples
    --------
    >>> import numpy as np
    >>> from skdcf import GraphBatch
    >>> from skdcf.relaxation import PathRelaxation
    >>> batch = GraphBatch.from_arrays(np.zeros((3, 1)), [0, 2, 3], [(0, 1)])
    >>> relaxation = PathRelaxation()
    >>> plan = relaxation.plan(batch, np.array([True, False, True]))
    >>> scores = relaxation.soft_scores(np.array([0.5, 0.2, 0.1]), plan)
    >>> scores
    array([0.5, inf])
    >>> round(float(relaxation.soft_threshold(scores, 0.3)), 3)
    0.378
    """

    _parameter_constraints = {
        "keep_temperature": [positive()],
        "quantile_temperature": [positive()],
        "max_temperature": [at_least(0)],
    }

    _: KW_ONLY
    keep_temperature: float = 0.3
    quantile_temperature: float = 0.3
    max_temperature: float = 0.0

    def plan(self, batch: GraphBatch, labels: Array) -> PathPlan:
        # An unlabelled claim does not count as an error, but errors among its descendants count.
        decides = (labels == 0) & below_true_claims(labels != 0, batch)
        count = np.bincount(batch.problem_of[decides], minlength=len(batch))
        return PathPlan(
            n_problems=len(batch),
            problem_of=batch.problem_of,
            labels=(labels == 1).astype(np.float64),
            false_claims=np.flatnonzero(decides),
            false_offsets=offsets_of(count),
            batch=batch,
        )

    def soft_threshold(self, scores: Array, alpha: float) -> float:
        check_alpha(alpha)
        n_errors = np.isfinite(getval(scores)).sum()
        if not n_errors:
            return np.inf
        count = min(max(alpha * (len(scores) + 1) - 0.5, 0.4), n_errors - 0.4)
        return soft.smooth_quantile(scores, count, self.quantile_temperature)

    def state(self, risk: Array, plan: PathPlan) -> Array:
        """Compute the soft path risk of each claim."""
        if self.max_temperature:
            indptr, indices = plan.batch.closure
        else:
            indptr, indices = plan.candidates(getval(risk))
        return soft.soft_maximum(risk, indptr, indices, self.max_temperature)

    def scores(self, state: Array, plan: PathPlan) -> Array:
        """Compute the soft minimum of path risks over the false claims of each problem."""
        return soft.soft_minimum(
            state, plan.false_offsets, plan.false_claims, self.max_temperature
        )

    def kept(self, state: Array, threshold: float, plan: PathPlan) -> Array:
        """Compute the degree to which the path risk of each claim is below the threshold."""
        return soft.path_retention(state, threshold, self.keep_temperature)
