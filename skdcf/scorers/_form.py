"""Linear scores, written out: so much per unit of each feature."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class LinearForm:
    """A confidence that is linear in the features, within their bounds.

    ``confidence = offset + clip(features, low, high) @ weights``

    Parameters
    ----------
    weights : ndarray of shape (n_features,)
        Per unit of the features as passed.
    offset : float
    low, high : ndarray of shape (n_features,)
        Values beyond count as if they stood there; infinite where there is no bound.
    """

    weights: np.ndarray
    offset: float
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def unbounded(cls, weights, offset=0.0):
        """A form that takes every value as it is.

        Parameters
        ----------
        weights : array-like of shape (n_features,)
        offset : float, default=0.0

        Returns
        -------
        LinearForm
        """
        weights = np.asarray(weights, dtype=np.float64)
        bound = np.full(len(weights), np.inf)
        return cls(weights, float(offset), -bound, bound)

    def values(self, features: NDArray) -> NDArray[np.float64]:
        """The features as they count.

        Parameters
        ----------
        features : ndarray of shape (..., n_features)

        Returns
        -------
        ndarray of the same shape, clipped
        """
        return np.clip(features, self.low, self.high)

    def __call__(self, features: NDArray) -> NDArray[np.float64]:
        """Confidences of rows of features, shape (n_claims,)."""
        return self.offset + self.values(features) @ self.weights


def probed_form(decide, n_features):
    """The form of an affine function, from its values at 0 and at each unit vector.

    Parameters
    ----------
    decide : callable
        From rows of features to one number each.
    n_features : int

    Returns
    -------
    LinearForm
        Right if the function is affine, which is for the caller to know.
    """
    found = decide(np.vstack([np.zeros(n_features), np.eye(n_features)]))
    return LinearForm.unbounded(found[1:] - found[0], found[0])
