"""Features in units of their deviation on the training problems."""

from dataclasses import dataclass

import numpy as np

# A column that varies by less than this share of the widest one holds nothing but the
# rounding errors of whatever made it, such as a PCA with more components than the data
# have. In unit deviation these errors would decide, and they differ from batch to batch.
NOISE = 1e-12


@dataclass(frozen=True)
class Standardizer:
    """Centre, scale and clip: ``clip((X - mean) / scale, -clip, clip)``.

    Parameters
    ----------
    mean, scale : ndarray of shape (n_features,)
        Scale is infinite, so that nothing is left of the feature, where it was constant
        or varied by rounding errors only.
    clip : float, default=3.0
        In deviations. A linear score is linear in the raw features only where none of
        them is clipped.

    Examples
    --------
    >>> import numpy as np
    >>> from skdcf.training.standardize import Standardizer
    >>> Standardizer.fit(np.array([[1.0], [3.0]]))(np.array([[4.0], [9.0]]))
    array([[2.],
           [3.]])
    """

    mean: np.ndarray
    scale: np.ndarray
    clip: float = 3.0

    @classmethod
    def fit(cls, features: np.ndarray, clip: float = 3.0) -> "Standardizer":
        """Take mean and deviation from training rows.

        Parameters
        ----------
        features : ndarray of shape (n_claims, n_features)
        clip : float, default=3.0

        Returns
        -------
        Standardizer
        """
        mean, scale = features.mean(axis=0), features.std(axis=0)
        left_out = _is_constant(mean, scale) | _is_noise(scale)
        return cls(mean, np.where(left_out, np.inf, scale), clip)

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """Standardised rows, in the shape of ``features``."""
        return np.clip((features - self.mean) / self.scale, -self.clip, self.clip)

    def raw_weights(self, weights: np.ndarray) -> np.ndarray:
        """Weights of standardised features as weights of the raw ones, per unit.

        Parameters
        ----------
        weights : ndarray of shape (n_features,)

        Returns
        -------
        ndarray of shape (n_features,)
        """
        return weights / self.scale


def noise_columns(features):
    """Numbers of the columns that hold rounding errors only; constants are none."""
    mean, scale = features.mean(axis=0), features.std(axis=0)
    return np.flatnonzero(_is_noise(scale) & ~_is_constant(mean, scale))


def _is_constant(mean, scale):
    return scale <= 10 * np.finfo(np.float64).eps * np.abs(mean)


def _is_noise(scale):
    return scale <= NOISE * scale.max(initial=0.0)
