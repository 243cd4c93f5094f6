"""Differentiable relaxations of calibration and prediction, which are used to train scorers.

`PathRelaxation` relaxes the closed-form calibration of `skdcf.ops.hard`. `GridRelaxation`
implements the relaxation of Hittesdorf, Salzetta and Cheng (arXiv:2604.20098). The relaxations
are used only during training.

=====  ==========================================================================
r_v    risk of claim v
R_v    maximum of r over v and its ancestors
s_i    minimum of R over the relevant false claims of problem i
t      root of ``sum_i sigmoid((t - s_i) / T_s) = count``
q_v    ``sigmoid((t - R_v) / T_q)``
=====  ==========================================================================

The gradient of a maximum over ancestors is assigned to the last of several tied claims. The
gradient of a minimum is divided equally among tied claims.
"""

from __future__ import annotations

import json
from abc import ABCMeta, abstractmethod
from dataclasses import KW_ONLY, dataclass
from importlib.resources import files
from typing import Any, Self, TypeAlias

import numpy as np
from autograd.scipy.special import expit
from autograd.tracer import getval

from ._checks import check_alpha, check_choice
from ._parameters import Settings, at_least, positive, settings
from .graphs import GraphBatch
from .ops import soft, soft_grid
from .ops.conformal import conformal_rank
from .ops.hard import Array, below_true_claims
from .ops.segments import segment_min, segment_sum, take
from .ops.soft_grid import GridPlan

__all__ = ["GridRelaxation", "PathRelaxation", "Relaxation"]

# Thresholds of all problems, and log q of all grid cells.
GridState: TypeAlias = tuple[Array, Array]


class Relaxation(Settings, metaclass=ABCMeta):
    """Base class for differentiable versions of calibration and prediction.

    The method `plan` is called once, and computes all values that depend only on the graph
    structure and the labels. Every plan must have the attributes ``offsets`` and ``labels``.
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

        In the paper, the training objective is the negative mean of these numbers (section 3.5).

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
        counts = segment_sum(kept * plan.labels, plan.offsets)
        return counts if prediction is None else take(counts, prediction)


@dataclass(frozen=True)
class PathPlan:
    """Training problems, together with the false claims that determine their scores.

    Attributes
    ----------
    labels : ndarray of bool of shape (n_claims,)
        Whether each claim is known to be true.
    offsets : ndarray of shape (n_problems + 1,)
        Offsets of the claims of each problem.
    false_claims : ndarray of int
        Indices of the false claims without a false ancestor, in the order of the problems.
    false_offsets : ndarray of shape (n_problems + 1,)
        Offsets of the problems in ``false_claims``.
    batch : GraphBatch
        The problems.
    """

    labels: Array
    offsets: Array
    false_claims: Array
    false_offsets: Array
    batch: GraphBatch


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
    }

    _: KW_ONLY
    keep_temperature: float = 0.3
    quantile_temperature: float = 0.3

    def plan(self, batch: GraphBatch, labels: Array) -> PathPlan:
        # An unlabelled claim does not count as an error, but errors among its descendants count.
        decides = (labels == 0) & below_true_claims(labels != 0, batch)
        false_claims = np.flatnonzero(decides)
        return PathPlan(
            labels=labels == 1,
            offsets=batch.offsets,
            false_claims=false_claims,
            false_offsets=np.searchsorted(false_claims, batch.offsets),
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
        """Compute the path risk of each claim."""
        return soft.path_risk(risk, plan.batch)

    def scores(self, state: Array, plan: PathPlan) -> Array:
        """Compute the minimum of the path risks over the false claims of each problem."""
        return segment_min(take(state, plan.false_claims), plan.false_offsets)

    def kept(self, state: Array, threshold: float, plan: PathPlan) -> Array:
        """Compute the degree to which the path risk of each claim is below the threshold."""
        return expit((threshold - state) / self.keep_temperature)


@settings
class GridRelaxation(Relaxation):
    """Relaxation of Hittesdorf, Salzetta and Cheng, with a grid of thresholds for each problem.

    The grid of each problem is {min risk - margin, all risks, max risk + margin}. The default
    settings are suitable for training from a warm start. `from_paper` returns the published
    settings, which result in a much softer relaxation.

    Parameters
    ----------
    keep_temperature : float, default=0.1
        Temperature T_p of the sigmoid that approximates "the risk is below the threshold". All
        temperatures except ``violation_temperature`` are in units of the risk.
    ancestor_weight : float, default=1.0
        Weight gamma of each ancestor relative to the weight of the claim itself.
    violation_weight : float, default=1.5
        Weight lambda of violations in the soft supremum. The theorem requires a weight above 1,
        because the lowest and highest thresholds can be tied if the weight is 1.
    violation_temperature : float, default=0.3
        Temperature tau_s of the sigmoid that approximates "a false claim is kept".
    sharpness : float, default=20.0
        Sharpness beta of both softmax functions over thresholds.
    gate_temperature : float, default=0.02
        Temperature tau_z of the sigmoid that approximates "the threshold is below the conformal
        threshold". The product of ``gate_temperature`` and ``sharpness`` must be below 1.
    quantile_strength : float, default=10.0
        Strength rho of the soft order statistic (NeuralSort).
    margin : float, default=1.0
        Distance m by which the grid extends beyond the smallest and largest risks.
    keep_shift, gate_shift : float, default=0.0
        Shifts of the first and the last sigmoid. Only the theorems require nonzero shifts.

    Notes
    -----
    The paper leaves some details open or describes them in two ways. The following choices were
    made here:

    * ``violation_weight`` multiplies the violation after the violation is scaled to [0, 1] over
      the grid, as in algorithm 1 of the paper. The main text multiplies the threshold instead.
    * A problem without a false claim has the violation 0 at every threshold.
    * The gradient includes the minimum and the maximum that are used for scaling. Ties share it.
    * Nothing is added inside logarithms, because the theorems would not hold otherwise.
    * Training uses no shifts. Theorem 1 requires ``keep_shift`` = sqrt(``keep_temperature``), and
      theorem 2 requires ``gate_shift`` = sqrt(``gate_temperature``).
    * Soft scores approximate the largest safe threshold of the grid. Filters are calibrated with
      the smallest unsafe path risk, which is never smaller. Both are valid.
    * In a half of the training problems, the rank is often 0. It is then raised to 1.

    References
    ----------
    N. Hittesdorf, M. Salzetta, L. Cheng. Differentiable Conformal Training for LLM
    Reasoning Factuality. arXiv:2604.20098.

    Examples
    --------
    >>> import numpy as np
    >>> from skdcf import GraphBatch
    >>> from skdcf.relaxation import GridRelaxation
    >>> batch = GraphBatch.from_arrays(np.zeros((3, 1)), [0, 2, 3], [(0, 1)])
    >>> relaxation = GridRelaxation(
    ...     keep_temperature=1e-6,
    ...     keep_shift=1e-3,
    ...     violation_temperature=1e-3,
    ...     sharpness=1e6,
    ...     gate_temperature=1e-18,
    ... )
    >>> plan = relaxation.plan(batch, np.array([True, False, True]))
    >>> relaxation.soft_scores(np.array([0.5, 0.2, 0.1]), plan).round(6)
    array([0.2, 1.1])
    """

    _parameter_constraints = {
        name: [positive()]
        for name in (
            "keep_temperature",
            "ancestor_weight",
            "violation_weight",
            "violation_temperature",
            "sharpness",
            "gate_temperature",
            "quantile_strength",
        )
    } | {name: [at_least(0)] for name in ("margin", "keep_shift", "gate_shift")}

    _: KW_ONLY
    keep_temperature: float = 0.1
    ancestor_weight: float = 1.0
    violation_weight: float = 1.5
    violation_temperature: float = 0.3
    sharpness: float = 20.0
    gate_temperature: float = 0.02
    quantile_strength: float = 10.0
    margin: float = 1.0
    keep_shift: float = 0.0
    gate_shift: float = 0.0

    @classmethod
    def from_paper(cls, dataset: str, alpha: float | None = None) -> Self:
        """Return a grid relaxation with the published settings.

        Parameters
        ----------
        dataset : {"math", "felm", "validation"}
            Data set for which the settings were published. "validation" selects the settings that
            the paper uses to compare soft and hard procedures.
        alpha : float, optional
            Level for which the settings were published. Omit it for "validation".

        Returns
        -------
        relaxation : GridRelaxation
            A grid relaxation with the published settings.

        Raises
        ------
        ValueError
            If no settings were published for this data set and level.

        Notes
        -----
        The paper does not report the quantile strength, so the default is used. The paper also
        does not report the sharpness for MATH or the margin for either table, so the values of
        the validation settings are used.
        """
        source = files("skdcf.training").joinpath("paper.json")
        tables = json.loads(source.read_text("utf-8"))
        check_choice("dataset", dataset, tables)
        rows = {row.pop("alpha"): row for row in tables[dataset]}
        if alpha not in rows:
            raise ValueError(
                f"alpha must be one of the paper's levels, {list(rows)}, got {alpha!r}"
            )
        return cls(**rows[alpha], sharpness=1.0, margin=20.0)

    def validate(self) -> None:
        """Raise ValueError if a parameter is invalid or if the parameters are incompatible."""
        super().validate()
        product = self.sharpness * self.gate_temperature
        if product >= 1:
            raise ValueError(
                f"sharpness * gate_temperature must be less than 1, got {self.sharpness:g} * "
                f"{self.gate_temperature:g} = {product:g}. Otherwise, every claim is kept and "
                "the gradient is 0, because exp(sharpness * t) grows faster than the gate "
                "closes. Decrease sharpness or gate_temperature"
            )

    def plan(self, batch: GraphBatch, labels: Array) -> GridPlan:
        return GridPlan.of(batch, labels, self.ancestor_weight)

    def soft_threshold(self, scores: Array, alpha: float) -> float:
        # In a small training set, the rank can be 0. The rank is raised to 1 for training only.
        # In prediction, nothing is kept if the rank is 0.
        k = max(conformal_rank(len(scores), check_alpha(alpha)), 1)
        return soft.neural_sort(scores, k, self.quantile_strength)

    def state(self, risk: Array, plan: GridPlan) -> GridState:
        """Compute all threshold grids, and the log of the degree q to which each claim is kept."""
        thresholds = soft_grid.threshold_grid(risk, plan, self.margin)
        log_p = soft_grid.log_keep(
            risk, thresholds, plan, self.keep_temperature, shift=self.keep_shift
        )
        return thresholds, soft_grid.log_coherence(log_p, plan.blocks)

    def scores(self, state: GridState, plan: GridPlan) -> Array:
        """Compute the soft supremum of the safe thresholds of each problem."""
        thresholds, log_q = state
        unsafe = soft_grid.violation(log_q, plan, self.violation_temperature)
        return soft_grid.soft_supremum(
            thresholds, unsafe, plan, self.sharpness, weight=self.violation_weight
        )

    def kept(self, state: GridState, threshold: float, plan: GridPlan) -> Array:
        """Compute the degree to which each claim is kept at the soft threshold.

        The degree is evaluated at a soft version of the largest grid threshold below
        ``threshold``.
        """
        thresholds, log_q = state
        weights = soft_grid.gated_weights(
            thresholds,
            threshold,
            plan,
            sharpness=self.sharpness,
            temperature=self.gate_temperature,
            shift=self.gate_shift,
        )
        return soft_grid.grid_retention(log_q, weights, plan)
