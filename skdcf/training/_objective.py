"""What training minimises, and its gradient.

=====  ==========================================================================
z      scores that the model gives to n claims
u      scores of mean 0 and deviation 1: (z - mean z) / std z
L      loss of the relaxation at the risk -u, or -z without unit variance
f      -log(-L), or L itself
mu     weight of the shrinkage towards the scores c of the start
F      ``f(L) + mu (1 - corr(u, c))``, which is minimised
=====  ==========================================================================

With ``g = dF/du``, the standardised scores pass on ``(g - mean g - u mean(g u)) / std z``.
Only the model is traced by autograd, and the relaxation, unless they offer their
gradients by hand: `Relaxation.by_hand` and, of a model, ``pull_back(params, X, g)``.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from autograd import make_vjp, value_and_grad
from autograd.misc import flatten

# From minus the soft retention to what is minimised, and the derivative.
LOSSES = {
    "log-retention": (lambda value: -np.log(-value), lambda value: -1 / value),
    "retention": (lambda value: value, lambda value: 1.0),
}
PROCEDURE = ("state", "scores", "soft_threshold", "kept", "retention", "loss")


def own(thing, name, stands_for):
    """The method ``name``, or None where what it stands for was overridden since.

    A class that changes one of ``stands_for`` and inherits ``name`` would otherwise be
    trained for what its parent does.
    """
    kind = type(thing)
    writer = next((c for c in kind.__mro__ if name in vars(c)), None)
    if writer is None:
        return None
    same = all(
        getattr(kind, part) is getattr(writer, part, None) for part in stands_for
    )
    return getattr(thing, name) if same else None


def loss_step(relaxation, plan, alpha):
    """A function of risk and halves that gives loss and gradient."""
    by_hand = own(relaxation, "by_hand", PROCEDURE)
    step = by_hand and by_hand(plan, alpha)
    if step is None:
        traced = value_and_grad(relaxation.loss)
        return lambda risk, *halves: traced(risk, plan, alpha, *halves)
    return step


def forward(model, unflatten, X):
    """A function of flat parameters that gives scores and the way back.

    The way back takes the derivative in the scores to that in the flat parameters.
    """
    pull_back = own(model, "pull_back", ["__call__"])

    def traced(flat):
        return make_vjp(lambda flat: model(unflatten(flat), X))(flat)[::-1]

    def by_hand(flat):
        params = unflatten(flat)
        return model(params, X), lambda g: flatten_params(pull_back(params, X, g))[0]

    return by_hand if pull_back else traced


def flatten_params(params):
    """All numbers in one array, and the way back; an array needs no more than a shape."""
    if isinstance(params, np.ndarray):
        return params.ravel(), lambda flat: flat.reshape(params.shape)
    return flatten(params)


def standardised(scores):
    """Scores, shape (n,), moved to mean 0 and scaled to deviation 1, and that."""
    centred = scores - scores.mean()
    deviation = np.sqrt(centred @ centred / len(scores))
    return centred / deviation, deviation


@dataclass(frozen=True)
class Objective:
    """F and its gradient, as a function of flat parameters and halves of the problems.

    Attributes
    ----------
    forward : callable
        From `forward`.
    step : callable
        From `loss_step`.
    loss : pair of callables
        One of `LOSSES`.
    unit_variance : bool
        Whether scores are divided by their deviation over claims.
    mu : float
        Weight of the shrinkage.
    start : ndarray of shape (n_claims,)
        Scores to shrink to, of mean 0 and deviation 1.
    """

    forward: Any
    step: Any
    loss: Any
    unit_variance: bool
    mu: float
    start: np.ndarray

    def __call__(self, flat, calibration=None, prediction=None):
        """Value and gradient; problems as in ``Relaxation.retention``."""
        scores, back = self.forward(flat)
        unit, deviation = standardised(scores)
        f, slope = self.loss
        risk = -unit if self.unit_variance else -scores
        loss, g_risk = self.step(risk, calibration, prediction)
        value, g = f(loss), -slope(loss) * g_risk
        pull = self.mu / len(scores)
        value = value + self.mu - pull * (unit @ self.start)
        if self.unit_variance:
            g = _through_unit(g - pull * self.start, unit, deviation)
        elif self.mu:
            g = g - _through_unit(pull * self.start, unit, deviation)
        return value, back(g)


def _through_unit(g, unit, deviation):
    return (g - g.mean() - unit * (g @ unit / len(unit))) / deviation


@dataclass(frozen=True)
class Retention:
    """Soft retention of parameters when all problems calibrate and are predicted.

    Attributes
    ----------
    model, relaxation : object
    X : ndarray of shape (n_claims, n_features)
        Standardised features.
    plan : object
        Of the relaxation, for the same problems.
    alpha : float
    unit_variance : bool
    """

    model: Any
    relaxation: Any
    X: np.ndarray
    plan: Any
    alpha: float
    unit_variance: bool

    def __call__(self, params):
        """The retention."""
        scores = self.model(params, self.X)
        if self.unit_variance:
            scores, _ = standardised(scores)
        return float(self.relaxation.retention(-scores, self.plan, self.alpha))
