"""Thresholds with a guarantee for each of several groups, which may overlap.

Gibbs, Cherian and Candès ("Conformal prediction with conditional guarantees", JRSS-B 2025) fit a
quantile regression on group indicators to the n calibration scores and the score S of the new
problem. The score S is rejected if it is below the fitted quantile. The rejected values of S form
an interval that is unbounded below. The threshold is the upper end of the interval of rejected
values.

Let alpha be the level, let Phi_i be the indicators of problem i preceded by a 1, and let x be the
indicators of the new problem. The dual of the regression on n + 1 scores has one variable in
[alpha - 1, alpha] for each score, and the variables of each group sum to zero. The score S is
rejected if its dual variable is alpha - 1 in every solution. The symmetry of a fixed solution in
the scores implies that at most a proportion alpha of each group is rejected. As S increases, the
dual variable of S first exceeds alpha - 1 at the following value t(x).

    t(x) = max x b  over the solutions b of  min sum of pinball(s_i - Phi_i b) + (1 - alpha) x b.

The value t(x) is computed by two linear programs, without a search or randomisation.

The scores are first mapped to s / (1 + abs(s)), which maps +inf to 1 and preserves their order.
The guarantee holds for any fixed increasing function of the scores.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Tolerance at a bound, which is much larger than the error of the solver and much smaller than
# any jump.
AT_BOUND = 1e-9
# Amount by which thresholds are lowered to compensate for rounding errors in the solver.
LOWERED = 1e-9
OPTIONS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def squash(scores: NDArray[Any]) -> NDArray[Any]:
    """Return ``s / (1 + abs(s))`` for each score, with the limits -1 and 1 for infinite scores."""
    scores = np.asarray(scores, dtype=np.float64)
    out = np.array(np.sign(scores))
    finite = np.isfinite(scores)
    return np.divide(scores, 1 + np.abs(scores), out=out, where=finite)


def unsquash(values: NDArray[Any]) -> NDArray[Any]:
    """Return the inverse of `squash`, which is infinite for values outside (-1, 1)."""
    values = np.asarray(values, dtype=np.float64)
    out = np.array(np.copysign(np.inf, values))
    inside = np.abs(values) < 1
    return np.divide(values, 1 - np.abs(values), out=out, where=inside)


def overlap_threshold(
    scores: NDArray[Any], indicators: Any, x: NDArray[Any], alpha: float
) -> float:
    """Compute the threshold t(x) for a new problem with the group indicators ``x``.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Nonconformity scores of the calibration problems. They may be +inf.
    indicators : ndarray of bool of shape (n, n_groups)
        Whether each calibration problem belongs to each group.
    x : ndarray of bool of shape (n_groups,)
        Whether the new problem belongs to each group.
    alpha : float
        The level.

    Returns
    -------
    threshold : float
        A value slightly below t(x), with a margin that exceeds the rounding error of the solver.
        The threshold is -inf if one of the groups is too small for alpha.

    Raises
    ------
    RuntimeError
        If the solver fails.
    """
    from scipy.optimize import linprog

    values = squash(scores)
    phi = np.column_stack([np.ones(len(values)), indicators]).astype(np.float64)
    new = np.append(1.0, x)
    bounds = (alpha - 1, alpha)
    dual = linprog(
        -values, A_eq=phi.T, b_eq=(1 - alpha) * new, bounds=bounds, options=OPTIONS
    )
    # The dual problem is infeasible, because no variables can balance the indicators of the new
    # problem.
    if dual.status == 2:
        return -np.inf
    if dual.status != 0:
        raise RuntimeError(f"the linear programming solver failed: {dual.message}")
    above = dual.x > alpha - AT_BOUND
    below = dual.x < alpha - 1 + AT_BOUND
    on = ~(above | below)
    face = linprog(
        -new,
        A_ub=np.concatenate([phi[above], -phi[below]]),
        b_ub=np.concatenate([values[above], -values[below]]) + AT_BOUND / 100,
        A_eq=phi[on],
        b_eq=values[on],
        bounds=(None, None),
        options=OPTIONS,
    )
    if face.status == 3:  # Every threshold is safe, no matter how large it is.
        return np.inf
    # If there are near-ties, the feasible face can be so thin that the solver considers the
    # problem infeasible. In this case, any solution of the regression is safe, because no
    # solution exceeds the largest one and no additional claims are kept.
    largest = -face.fun if face.status == 0 else -(new @ dual.eqlin.marginals)
    return float(unsquash(largest - LOWERED))
