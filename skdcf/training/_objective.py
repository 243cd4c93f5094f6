"""What training minimises, as a function of the model's parameters."""

from dataclasses import dataclass

import autograd.numpy as anp
import numpy as np
from autograd.extend import defvjp, primitive

# From minus the soft retention to what is minimised.
LOSSES = {
    "log-retention": lambda value: -anp.log(-value),
    "retention": lambda value: value,
}


@dataclass(frozen=True)
class Objective:
    """``loss + mu (1 - corr(scores, start))``.

    Attributes
    ----------
    model, relaxation : object
    X : ndarray of shape (n_claims, n_features)
        Standardised features.
    plan : object
        Of the relaxation, for the same problems.
    alpha : float
    loss : callable
        One of `LOSSES`.
    unit_variance : bool
        Whether scores are divided by their deviation over claims.
    mu : float
        Weight of the shrinkage.
    start : ndarray of shape (n_claims,)
        Scores to shrink to, of mean 0 and deviation 1.
    """

    model: object
    relaxation: object
    X: np.ndarray
    plan: object
    alpha: float
    loss: object
    unit_variance: bool
    mu: float
    start: np.ndarray

    def __call__(self, params, calibration=None, prediction=None):
        """The value; problems as in ``Relaxation.retention``."""
        scores = self.model(params, self.X)
        unit = standardised(scores)
        value = self.relaxation.loss(
            -unit if self.unit_variance else -scores,
            self.plan,
            self.alpha,
            calibration,
            prediction,
        )
        value = self.loss(value)
        if self.mu:
            value = value + self.mu * (1 - anp.dot(unit, self.start) / len(self.X))
        return value

    def retention(self, params):
        """Soft retention when all problems calibrate and all are predicted."""
        scores = self.model(params, self.X)
        if self.unit_variance:
            scores = standardised(scores)
        return float(self.relaxation.retention(-scores, self.plan, self.alpha))


@primitive
def standardised(scores):
    """Scores, shape (n,), moved to mean 0 and scaled to deviation 1."""
    return (scores - scores.mean()) / scores.std()


def _standardised_vjp(ans, scores):
    scale = scores.std()
    return lambda g: (g - g.mean() - ans * np.mean(g * ans)) / scale


defvjp(standardised, _standardised_vjp)
