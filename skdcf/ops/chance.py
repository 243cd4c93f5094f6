"""Error probabilities of filtered answers, computed from hazards with a frailty model.

======  ========================================================================
h_v     hazard: probability that claim v is false, given that all its ancestors are true
l_v     log(1 + exp(a + b logit h_v)); -log(1 - h_v) if a = 0 and b = 1
L       sum of l over the kept claims of an answer, which include all their ancestors
theta   frailty: variance between answers that the features do not explain
S(L)    (1 + theta L)^(-1 / theta), exp(-L) at theta = 0: probability of no kept error
======  ========================================================================

In the frailty model, the hazards of each answer are multiplied by an unobserved factor with mean
1 and variance theta. If the unobserved factor has a gamma distribution, S(L) is the expected
value of exp(-factor * L). The parameters (theta, a, b) are estimated by maximum likelihood from
out-of-fold hazards and the first errors in the training answers.

References
----------
J. W. Vaupel, K. G. Manton, E. Stallard. The impact of heterogeneity in individual frailty on
the dynamics of mortality. Demography 16, 1979.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from ..graphs import GraphBatch
from ..graphs.ragged import starts_run
from .hard import segment_sum

#: Centre and spread of the prior on (log theta, a, b). The prior matters only if there are few
#: errors.
CENTRE = np.array([np.log(0.3), 0.0, 1.0])
SPREAD = np.array([1.5, 0.3, 0.3])


def chance_of_error(
    log_odds: NDArray[Any],
    kept: NDArray[np.bool_],
    batch: GraphBatch,
    frailty: NDArray[Any] | None = None,
) -> NDArray[np.float64]:
    """Compute the probability that the kept claims of each answer contain a false claim.

    Parameters
    ----------
    log_odds : ndarray of shape (n_claims,)
        Log odds that each claim is false, given that all its ancestors are true.
    kept : ndarray of bool of shape (n_claims,)
        Whether each claim is kept. All ancestors of a kept claim must be kept as well.
    batch : GraphBatch
        The problems.
    frailty : ndarray of shape (3,), optional
        Result of `fit_frailty`. If None, the hazards are used unchanged.

    Returns
    -------
    chances : ndarray of shape (n_problems,)
        Error probability of each answer.
    """
    if frailty is None:
        cumulative_hazard = np.logaddexp(0, log_odds)
        return -np.expm1(-segment_sum(kept * cumulative_hazard, batch.offsets))
    theta, intercept, slope = frailty
    cumulative_hazard = np.logaddexp(0, intercept + slope * log_odds)
    total = segment_sum(kept * cumulative_hazard, batch.offsets)
    return -np.expm1(_log_survival(total, theta))


def _log_survival(total, theta):
    return -np.log1p(theta * total) / theta


def fit_frailty(
    log_odds: NDArray[Any],
    labels: NDArray[Any],
    batch: GraphBatch,
    confidence: NDArray[Any],
) -> NDArray[np.float64]:
    """Fit the frailty, the intercept and the slope to out-of-fold hazards.

    Parameters
    ----------
    log_odds : ndarray of shape (n_claims,)
        Log odds that each claim is false, given that all its ancestors are true.
    labels : ndarray of shape (n_claims,)
        Claim labels (1 for true, 0 for false, -1 for unknown). In each answer, claims after the
        first claim that is not known to be true are ignored.
    batch : GraphBatch
        The problems.
    confidence : ndarray of shape (n_claims,)
        Confidence in each claim, which must not increase along the edges. The claims of each
        answer are processed in decreasing order of confidence.

    Returns
    -------
    frailty : ndarray of shape (3,)
        The parameters (theta, a, b).
    """
    order = np.lexsort((batch.depth, -confidence, batch.problem_of))
    labels = labels[order]
    failures = np.append(0, np.cumsum(labels != 1))
    at_start = failures[batch.offsets[:-1]][batch.problem_of]
    followed = (failures[:-1] == at_start) & (labels >= 0)

    problem = batch.problem_of[followed]
    log_odds = log_odds[order][followed]
    ends = np.append(problem[1:] != problem[:-1], True)[: len(problem)]
    starts = np.flatnonzero(starts_run(problem))
    wrong = labels[followed][ends] == 0

    def loss(numbers):
        log_theta, intercept, slope = numbers
        theta = np.exp(log_theta)
        cumulative_hazard = np.logaddexp(0, intercept + slope * log_odds)
        total = np.add.reduceat(cumulative_hazard, starts)
        hazard_before = np.maximum(total - cumulative_hazard[ends], 0)
        survival = _log_survival(total, theta)
        survival_before = _log_survival(hazard_before, theta)
        # If the answer contains an error, the last visited claim is the first erroneous claim.
        fall = np.maximum(survival_before - survival, 1e-300)
        log_fall = survival_before + np.log(-np.expm1(-fall))
        away = (numbers - CENTRE) / SPREAD
        return away @ away / 2 - np.where(wrong, log_fall, survival).sum()

    if not len(starts):
        return np.array([np.exp(CENTRE[0]), *CENTRE[1:]])
    bounds = [(-7.0, 4.0), (-5.0, 5.0), (0.0, 5.0)]
    log_theta, intercept, slope = minimize(
        loss, CENTRE, method="L-BFGS-B", bounds=bounds
    ).x
    return np.array([np.exp(log_theta), intercept, slope])
