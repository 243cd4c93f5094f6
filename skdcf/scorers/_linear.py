"""The linear model, and what a differentiable model is.

A differentiable model has two methods. ``init(n_features, rng)`` draws parameters: an
array, or lists, tuples and dicts of arrays. ``model(params, X)`` turns rows of
standardised features into confidences, without state and with operations that autograd
follows (operators, or functions of ``autograd.numpy``). A constant added to all
confidences changes nothing, so no intercept is needed. `ConformalScorer` makes a scorer
of a model.

A third method is optional and saves time: ``vjp(params, X, gradient)`` takes the
derivative of a loss in the confidences, shape (n_claims,), to that in the parameters.
Autograd then has nothing to follow.
"""

from numbers import Real
from typing import Any

from .._parameters import Number, Settings


class LinearScorer(Settings):
    """Confidence as a weighted sum of the standardised features: a model to train.

    Parameters
    ----------
    spread : float, default=1.0
        The random weights are uniform between plus and minus ``spread`` divided by the
        root of their number; 0 starts from zeros.

    Examples
    --------
    >>> import numpy as np
    >>> from skdcf.scorers import LinearScorer
    >>> LinearScorer()(np.array([0.5, -1.0]), np.array([[2.0, 1.0], [0.0, 1.0]]))
    array([ 0., -1.])
    """

    _parameter_constraints = {"spread": [Number(Real, 0, None, closed="left")]}

    def __init__(self, spread: float = 1.0) -> None:
        self.spread = spread

    def init(self, n_features: int, rng: Any) -> Any:
        """Random weights.

        Parameters
        ----------
        n_features : int
        rng : RandomState or Generator

        Returns
        -------
        ndarray of shape (n_features,)
        """
        self.validate()
        bound = self.spread * max(n_features, 1) ** -0.5
        return rng.uniform(-bound, bound, n_features)

    def __call__(self, params: Any, X: Any) -> Any:
        """Confidences, shape (n_claims,), of rows X, shape (n_claims, n_features)."""
        return X @ params

    def vjp(self, params: Any, X: Any, gradient: Any) -> Any:
        """Derivative of a loss in the weights, from that in the confidences.

        Parameters
        ----------
        params : ndarray of shape (n_features,)
        X : ndarray of shape (n_claims, n_features)
        gradient : ndarray of shape (n_claims,)

        Returns
        -------
        ndarray of shape (n_features,)
        """
        return X.T @ gradient
