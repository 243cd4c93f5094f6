"""A small neural network as a model to train."""

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator


class MLPScorer(BaseEstimator):
    """Confidence from a multi-layer perceptron with tanh units.

    Parameters
    ----------
    hidden_layer_sizes : tuple of int, default=(8,)
        Units of each hidden layer. Few: training sets of this kind are small.

    Examples
    --------
    >>> import numpy as np
    >>> from skdcf.scorers import MLPScorer
    >>> scorer = MLPScorer((4, 2))
    >>> params = scorer.init(3, np.random.RandomState(0))
    >>> [(w.shape, b.shape) for w, b in params]
    [((3, 4), (4,)), ((4, 2), (2,)), ((2, 1), (1,))]
    >>> scorer(params, np.zeros((5, 3))).shape
    (5,)
    """

    def __init__(self, hidden_layer_sizes: int | tuple[int, ...] = (8,)) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes

    def init(self, n_features: int, rng: Any) -> Any:
        """Random weights and biases.

        Parameters
        ----------
        n_features : int
        rng : RandomState or Generator

        Returns
        -------
        list of (weights, biases), one pair per layer

        Raises
        ------
        ValueError
            If a layer has no units.
        """
        hidden = self.hidden_layer_sizes
        hidden = (hidden,) if isinstance(hidden, (int, Integral)) else tuple(hidden)
        if not all(isinstance(n, Integral) and n > 0 for n in hidden):
            raise ValueError(
                f"hidden_layer_sizes is {self.hidden_layer_sizes!r}: whole numbers "
                "of at least 1 are needed"
            )
        params, n_in = [], n_features
        for n_out in (*hidden, 1):
            bound = max(n_in, 1) ** -0.5
            weights = rng.uniform(-bound, bound, (n_in, n_out))
            params.append((weights, rng.uniform(-bound, bound, n_out)))
            n_in = n_out
        return params

    def __call__(self, params: Any, X: Any) -> Any:
        """Confidences, shape (n_claims,), of rows X, shape (n_claims, n_features)."""
        *hidden, (weights, bias) = params
        for w, b in hidden:
            X = _tanh(X @ w + b)
        return (X @ weights + bias)[:, 0]


def _tanh(x):
    """Plain numpy outside of training, so that predicting does not load autograd."""
    if isinstance(x, np.ndarray):
        return np.tanh(x)
    import autograd.numpy as anp

    return anp.tanh(x)
