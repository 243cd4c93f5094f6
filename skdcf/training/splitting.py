"""Split problems at random, keeping the problems of each group together."""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import is_integer
from ..graphs import GraphBatch


def holdout_count(name: str, size: Any, n: int) -> int:
    """Return the number of problems, out of n, to hold out for a given proportion or number.

    Raises
    ------
    ValueError
        If no problem would be held out, or if no problem would remain.
    """
    count: Any = size
    is_share = isinstance(size, Real) and not isinstance(size, Integral)
    if is_share and 0 < float(size) < 1:
        count = max(1, round(float(size) * n))
    if not is_integer(count) or count < 1:
        raise ValueError(
            f"{name} must be a fraction in (0, 1) or a positive number of problems, got "
            f"{size!r}"
        )
    if int(count) >= n:
        raise ValueError(
            f"{name} must leave at least 1 sample for training, but it holds out "
            f"{count} of {n} problems. Pass more problems, or a smaller {name}"
        )
    return int(count)


def hold_out(
    n: int,
    count: int,
    groups: NDArray[Any] | None,
    rng: np.random.RandomState | np.random.Generator,
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Split n problems at random and return the indices of the remaining and held-out problems.

    Parameters
    ----------
    n : int
        Number of problems.
    count : int
        Number of problems to hold out. If ``groups`` is passed, the number of groups to hold out.
    groups : ndarray of shape (n,) or None
        Group of each problem.
    rng : RandomState or Generator
        Source of randomness.

    Returns
    -------
    rest, held : ndarrays of int, sorted
        The positions.
    """
    codes = np.arange(n) if groups is None else number_groups(groups)
    n_groups = codes.max() + 1
    refuse_one_group(n, n_groups)
    is_held = np.isin(codes, rng.permutation(n_groups)[: min(count, n_groups - 1)])
    return np.flatnonzero(~is_held), np.flatnonzero(is_held)


def refuse_one_group(n: int, n_groups: int) -> None:
    """Raise ValueError if no group can be held out of n problems."""
    if n_groups < 2:
        raise ValueError(
            "groups must contain at least 2 groups, because one group is held out, but "
            f"all {n} problems are in the same group. Use groups=None if each problem "
            "answers a different question"
        )


def number_groups(groups: Any) -> NDArray[np.intp]:
    """Return the group index of each problem, with groups numbered in order of appearance."""
    _, first, code = np.unique(groups, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[code]


def pick(batch: GraphBatch, labels: NDArray[Any], rows: NDArray[np.intp]) -> Any:
    """Return the problems at the sorted indices ``rows``, together with their flat labels."""
    return batch[rows], labels[np.isin(batch.problem_of, rows)]


# If the variation of a column is below NOISE times the largest variation, the column is
# considered pure rounding error. For example, a PCA with more components than the rank of the
# data produces columns of pure rounding error. If a column of rounding errors were standardised,
# the errors would determine the scores, which would then differ between batches.
NOISE = 1e-12


@dataclass(frozen=True)
class Standardizer:
    """Standardisation and clipping of features, ``clip((X - mean) / scale, -clip, clip)``.

    Parameters
    ----------
    mean, scale : ndarray of shape (n_features,)
        Mean and scale of each feature. If a feature is constant or varies only by rounding
        errors, its scale is infinite, so the feature has no effect.
    clip : float, default=3.0
        Bound in standard deviations. A linear score is linear in the raw features only if none of
        the features is clipped.

    Examples
    --------
    >>> import numpy as np
    >>> from skdcf.training.splitting import Standardizer
    >>> Standardizer.fit(np.array([[1.0], [3.0]]))(np.array([[4.0], [9.0]]))
    array([[2.],
           [3.]])
    """

    mean: np.ndarray
    scale: np.ndarray
    clip: float = 3.0

    @classmethod
    def fit(cls, features: np.ndarray, clip: float = 3.0) -> "Standardizer":
        """Compute the mean and standard deviation of the features of the training claims.

        Parameters
        ----------
        features : ndarray of shape (n_claims, n_features)
            Features of the training claims.
        clip : float, default=3.0
            Bound in standard deviations.

        Returns
        -------
        standardizer : Standardizer
            Means and standard deviations of the features.
        """
        mean = features.mean(axis=0)
        scale = features.std(axis=0)
        left_out = _is_constant(mean, scale) | _is_noise(scale)
        return cls(mean, np.where(left_out, np.inf, scale), clip)

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """Return the rows of ``features`` after standardisation and clipping."""
        return np.clip((features - self.mean) / self.scale, -self.clip, self.clip)


def noise_columns(features: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the indices of columns that are not constant but vary only by rounding errors."""
    mean = features.mean(axis=0)
    scale = features.std(axis=0)
    return np.flatnonzero(_is_noise(scale) & ~_is_constant(mean, scale))


def _is_constant(mean, scale):
    return scale <= 10 * np.finfo(np.float64).eps * np.abs(mean)


def _is_noise(scale):
    return scale <= NOISE * scale.max(initial=0.0)
