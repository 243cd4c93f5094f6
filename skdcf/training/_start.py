"""Where training starts: the model as a classifier of claims, or at random."""

import numpy as np
from scipy.special import expit

from ..ops.hard import coherent_labels
from ._objective import forward
from ._optimizers import lbfgs

C = 0.3


def keep_random(model, X, batch, labels, x, unflatten):
    """The random parameters as they are."""
    return x


def start_coherent(model, X, batch, labels, x, unflatten):
    """Parameters that tell whether a claim and all its ancestors are true.

    A claim of which that is not known is left out: it has an unknown label among itself
    and its ancestors, and no false one.
    """
    target = coherent_labels(labels, batch)
    known = target | ~coherent_labels(labels != 0, batch)
    if not known.all():
        X, target = X[known], target[known]
    return fit_logistic(model, X, target, x, unflatten)


STARTS = {"coherent": start_coherent, "random": keep_random}


def fit_logistic(model, X, target, x, unflatten, C=C):
    """Parameters that minimise ``|params|^2 / 2 + C sum of log losses``.

    With `LinearScorer` this is logistic regression; the intercept is free.

    Parameters
    ----------
    model : differentiable model
    X : ndarray of shape (n_claims, n_features)
        Standardised features.
    target : ndarray of bool, shape (n_claims,)
    x : ndarray of shape (n_params,)
        Flat parameters to start from.
    unflatten : callable
    C : float
        Inverse strength of the penalty.

    Returns
    -------
    ndarray of shape (n_params,)
    """
    if target.all() or not target.any():
        return np.zeros_like(x)
    sign = np.where(target, 1.0, -1.0)

    confidence = forward(model, unflatten, X)

    def penalised(flat):
        scores, back = confidence(flat[:-1])
        x = -sign * (scores + flat[-1])
        slope = -sign * expit(x)
        weights = np.append(flat[:-1], 0.0)
        value = C * np.logaddexp(0, x).sum() + weights @ weights / 2
        return value, C * np.append(back(slope), slope.sum()) + weights

    start = np.append(x, np.log(target.mean() / (1 - target.mean())))
    best, _ = lbfgs(penalised, start, 200, lambda *_: False, tolerance=1e-5)
    return best[:-1]
