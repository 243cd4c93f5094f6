"""Grid relaxation from arXiv:2604.20098, with the published settings."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, Self, TypeAlias

from .._checks import check_alpha
from .._parameters import at_least, positive, settings
from ..graphs import GraphBatch
from ..ops import soft_grid
from ..ops.conformal import conformal_rank
from ..ops.hard import Array
from ..ops.segments import take
from ..ops.soft import neural_sort
from ..ops.soft_grid import GridPlan
from ._path import Relaxation

# Thresholds of all problems, and log q of all grid cells.
GridState: TypeAlias = tuple[Array, Array]

# Columns of the settings tables in the paper.
_TABLED = (
    "ancestor_weight",
    "violation_weight",
    "violation_temperature",
    "keep_temperature",
    "gate_temperature",
)


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
        **{name: [positive()] for name in (*_TABLED, "sharpness", "quantile_strength")},
        **{name: [at_least(0)] for name in ("margin", "keep_shift", "gate_shift")},
    }

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
        felm = {k: (g, w, 0.8, T, 0.01) for k, (g, w, T) in _FELM.items()}
        tables: dict[Any, Any] = {
            "math": _MATH,
            "felm": felm,
            "validation": {None: _VALIDATION},
        }
        if dataset not in tables:
            raise ValueError(f"dataset must be one of {list(tables)}, got {dataset!r}")
        rows = tables[dataset]
        if alpha not in rows:
            raise ValueError(
                f"alpha must be one of the paper's levels, {list(rows)}, got {alpha!r}"
            )
        return cls(**dict(zip(_TABLED, rows[alpha], strict=True)) | _SHARED)

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
        return neural_sort(scores, k, self.quantile_strength)

    def state(self, risk: Array, plan: GridPlan) -> GridState:
        """Compute all threshold grids, and the log of the degree q to which each claim is kept."""
        risk = take(risk, plan.claims)
        thresholds = soft_grid.threshold_grid(risk, plan, self.margin)
        keep = self.keep_temperature, self.keep_shift
        log_p = soft_grid.log_keep(risk, thresholds, plan, *keep)
        if plan.blocks is None:
            return thresholds, log_p
        return thresholds, soft_grid.log_coherence(log_p, plan.blocks)

    def scores(self, state: GridState, plan: GridPlan) -> Array:
        """Compute the soft supremum of the safe thresholds of each problem."""
        thresholds, log_q = state
        unsafe = soft_grid.violation(log_q, plan, self.violation_temperature)
        scores = soft_grid.soft_supremum(
            thresholds, unsafe, plan, self.sharpness, weight=self.violation_weight
        )
        return take(scores, plan.problems_back)

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
        kept = soft_grid.grid_retention(log_q, weights, plan)
        return take(kept, plan.claims_back)


# Values of gamma, lambda, tau_s, T_p and tau_z, keyed by alpha.
_MATH = {
    0.03: (4.0, 1.35, 1.0, 1.0, 0.5),
    0.04: (5.0, 1.3, 2.0, 0.1, 0.1),
    0.05: (6.0, 1.6, 2.0, 0.1, 0.1),
    0.06: (6.0, 1.6, 0.4, 0.1, 0.1),
    0.07: (1.5, 1.7, 0.4, 0.1, 0.1),
    0.08: (6.0, 1.75, 1.0, 0.1, 0.1),
    0.09: (2.0, 1.7, 0.4, 0.1, 0.01),
    0.10: (5.0, 1.9, 2.0, 0.1, 0.5),
}
# Values of gamma, lambda and T_p, keyed by alpha. All rows have the same values of tau_s and
# tau_z.
_FELM = {
    0.01: (1.5, 1.2, 1.0),
    0.02: (1.0, 1.5, 1.0),
    0.03: (1.25, 1.3, 1.0),
    0.04: (1.5, 1.45, 0.5),
    0.05: (1.25, 1.45, 0.5),
    0.06: (1.0, 1.0, 1.0),
    0.07: (1.25, 0.9, 1.0),
    0.08: (1.25, 1.5, 1.0),
    0.09: (1.0, 1.65, 1.0),
    0.10: (1.25, 1.9, 0.5),
}
_VALIDATION = (1.0, 1.0, 0.001, 0.01, 0.001)
_SHARED = {"sharpness": 1.0, "margin": 20.0}
