"""Features in units of their deviation on the training problems."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Standardizer:
    """Centre, scale and clip: ``clip((X - mean) / scale, -clip, clip)``.

    Attributes
    ----------
    mean, scale : ndarray of shape (n_features,)
        Scale is 1 where the feature was constant.
    clip : float
        In deviations. A linear score is linear in the raw features only where none of
        them is clipped.
    """

    mean: np.ndarray
    scale: np.ndarray
    clip: float = 3.0

    @classmethod
    def fit(cls, features, clip=3.0):
        """Mean and deviation of the rows of ``features``, shape (n_claims, d)."""
        mean, scale = features.mean(axis=0), features.std(axis=0)
        rounding = 10 * np.finfo(np.float64).eps * np.abs(mean)
        return cls(mean, np.where(scale > rounding, scale, 1.0), clip)

    def __call__(self, features):
        """Standardised rows, in the shape of ``features``."""
        return np.clip((features - self.mean) / self.scale, -self.clip, self.clip)

    def raw_weights(self, weights):
        """Weights of standardised features as weights of the raw ones, per unit."""
        return weights / self.scale
