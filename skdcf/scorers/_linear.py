"""The linear scorer, and what a differentiable scorer is.

A differentiable scorer has two methods. ``init(n_features, rng)`` draws parameters: an
array, or lists, tuples and dicts of arrays. ``scorer(params, X)`` turns rows of
standardised features into confidences, without state and with operations that autograd
follows (operators, or functions of ``autograd.numpy``). A constant added to all
confidences changes nothing, so no intercept is needed.
"""

from sklearn.base import BaseEstimator


class LinearScorer(BaseEstimator):
    """Confidence as a weighted sum of the standardised features.

    Examples
    --------
    >>> import numpy as np
    >>> from skdcf.scorers import LinearScorer
    >>> LinearScorer()(np.array([0.5, -1.0]), np.array([[2.0, 1.0], [0.0, 1.0]]))
    array([ 0., -1.])
    """

    def init(self, n_features, rng):
        """Random weights.

        Parameters
        ----------
        n_features : int
        rng : RandomState or Generator

        Returns
        -------
        ndarray of shape (n_features,)
        """
        bound = max(n_features, 1) ** -0.5
        return rng.uniform(-bound, bound, n_features)

    def __call__(self, params, X):
        """Confidences, shape (n_claims,), of rows X, shape (n_claims, n_features)."""
        return X @ params
