"""What training makes of its problems: splits by group, standardised columns, a weight."""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from .._checks import is_integer
from ..graphs import GraphBatch
from ..ops.hard import Array, below_true_claims


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
    groups: Array | None,
    rng: np.random.RandomState | np.random.Generator,
) -> tuple[Array, Array]:
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


def number_groups(groups: Any) -> Array:
    """Return the group index of each problem, with groups numbered in order of appearance."""
    _, first, code = np.unique(groups, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[code]


def pick(batch: GraphBatch, labels: Array, rows: Array) -> Any:
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

    mean: Array
    scale: Array
    clip: float = 3.0

    @classmethod
    def fit(cls, features: Array, clip: float = 3.0) -> "Standardizer":
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
        left_out = _is_constant(features, mean, scale) | _is_noise(scale)
        return cls(mean, np.where(left_out, np.inf, scale), clip)

    def __call__(self, features: Array) -> Array:
        """Return the rows of ``features`` after standardisation and clipping."""
        return np.clip(self.unclipped(features), -self.clip, self.clip)

    def unclipped(self, features: Array) -> Array:
        """Return the rows of ``features`` after standardisation."""
        return (features - self.mean) / self.scale


BLOCK = 2_000  # number of claims processed at a time

# Scale of the columns that describe the whole problem. The ridge penalty of the logistic
# regression at which training starts then weighs these columns a third as much as the others.
SCALE_OF_MEANS = 3**-0.5


@dataclass(frozen=True)
class Columns:
    """Standardised columns of a model: the features and, with a price, those of the whole problem.

    Parameters
    ----------
    own : Standardizer
        Standardisation of the features.
    whole : Standardizer or None
        Standardisation of the feature means over the problem and the log number of claims. None if
        the model does not use them.
    """

    own: Standardizer
    whole: Standardizer | None

    @classmethod
    def fit(cls, batch: GraphBatch, clip: float, with_means: bool) -> "Columns":
        """Standardise the columns on the training claims.

        Parameters
        ----------
        batch : GraphBatch
            The training problems.
        clip : float
            Bound in standard deviations.
        with_means : bool
            Whether to add the columns of the whole problem. They are not added if no problem has
            two claims.

        Returns
        -------
        columns : Columns
            The standardised columns.
        """
        features: Any = batch.features
        own = Standardizer.fit(features, clip)
        if not with_means or batch.sizes.max(initial=0) < 2:
            return cls(own, None)
        means = _means(own.unclipped(features), batch.sizes)
        return cls(own, Standardizer.fit(means[batch.problem_of], clip))

    @property
    def _units(self):
        """Units of the feature means and the log number of claims that `whole` reads.

        The means of a constant feature, whose scale is infinite, are 0.
        """
        scale = self.own.scale
        return np.append(np.where(np.isfinite(scale), scale, 1.0), 1.0)

    @property
    def scale(self) -> Array:
        """Scale of each column, by which its weight is divided."""
        if self.whole is None:
            return self.own.scale
        of_whole = self.whole.scale * self._units / SCALE_OF_MEANS
        return np.append(self.own.scale, of_whole)

    @property
    def mean(self) -> Array:
        """Mean of each column over the training claims."""
        if self.whole is None:
            return self.own.mean
        of_whole = np.append(self.own.mean, 0.0) + self.whole.mean * self._units
        return np.append(self.own.mean, of_whole)

    @property
    def reach(self) -> Array:
        """Distance from the mean at which each column is clipped."""
        if self.whole is None:
            return self.own.clip * self.own.scale
        of_whole = self.whole.clip * self.whole.scale * self._units
        return np.append(self.own.clip * self.own.scale, of_whole)

    def raw(self, batch: GraphBatch) -> Array:
        """Return the columns of each claim before standardisation and clipping."""
        features: Any = batch.features
        if self.whole is None:
            return features
        return np.hstack([features, _means(features, batch.sizes)[batch.problem_of]])

    def weighted_sum(self, batch: GraphBatch, weights: Array) -> Array:
        """Return the sum of the weighted columns of each claim, as row-wise sums.

        In contrast to a matrix product, the last bits of a row-wise sum do not depend on the
        other rows.
        """
        n = batch.n_features
        sums = np.empty(batch.n_claims)
        for rows, X, whole, size in self._blocks(batch):
            X *= weights[:n]
            X.sum(axis=1, out=sums[rows])
            if whole is not None:
                sums[rows] += np.repeat((whole * weights[n:]).sum(axis=1), size)
        return sums

    def __call__(self, batch: GraphBatch) -> Array:
        """Return the columns of each claim."""
        parts = [
            X if whole is None else np.hstack([X, np.repeat(whole, size, axis=0)])
            for _, X, whole, size in self._blocks(batch)
        ]
        return np.concatenate(parts)

    def _blocks(self, batch):
        """Yield the columns of about 2,000 claims at a time, which fit into the processor cache.

        Each block consists of the rows of its claims, their features, the columns of their
        problems, and the number of claims of each of these problems.
        """
        offsets = batch.offsets
        first = 0
        while first < len(batch) or first == 0:
            last = np.searchsorted(offsets, offsets[first] + BLOCK, side="right") - 1
            last = min(max(last, first + 1), len(batch))
            rows = slice(offsets[first], offsets[last])
            size = np.diff(offsets[first : last + 1])
            X = self.own.unclipped(batch.features[rows])
            whole = None
            if self.whole is not None:
                # Multiples of 2^-32 are summed, so the sums are exact in any order.
                on_grid = np.rint(np.clip(X, -1024, 1024) * 2.0**32)
                whole = _means(on_grid, size)
                whole[:, :-1] /= 2.0**32
                whole = SCALE_OF_MEANS * self.whole(whole)
            np.clip(X, -self.own.clip, self.own.clip, out=X)
            yield rows, X, whole, size
            first = max(last, 1)


def _means(X, size):
    """Return the column means and the log number of claims of each problem."""
    filled = size > 0
    first = np.cumsum(size) - size
    means = np.zeros((len(size), X.shape[1]))
    means[filled] = np.add.reduceat(X, first[filled], axis=0)
    size = np.maximum(size, 1)
    return np.column_stack([means / size[:, None], np.log(size)])


def noise_columns(features: Array) -> Array:
    """Return the indices of columns that are not constant but vary only by rounding errors."""
    mean = features.mean(axis=0)
    scale = features.std(axis=0)
    return np.flatnonzero(_is_noise(scale) & ~_is_constant(features, mean, scale))


def _is_constant(features, mean, scale):
    # With many rows, rounding of the mean can make the scale of a constant column larger.
    rounding = 10 * np.finfo(np.float64).eps * np.abs(mean)
    return (scale <= rounding) | (features == features[:1]).all(axis=0)


def _is_noise(scale):
    return scale <= NOISE * scale.max(initial=0.0)


# Weight of a true claim below a false one, relative to other true claims. With a weight of 1,
# fewer claims are kept at small alpha, because the chance of such claims is estimated badly.
WEIGHT_AFTER_ERROR = 0.5
# Number of false claims that are added to the judged claims below errors. If few of them were
# judged, most of them are taken for false.
DOUBTED = 5


def weight_below_errors(labels: Array, batch: GraphBatch) -> float:
    """Estimate the weight q of true claims below a false one, from the labels.

    Parameters
    ----------
    labels : ndarray of shape (n_claims,)
        Claim labels (1 true, 0 false, -1 unknown).
    batch : GraphBatch
        The training problems.

    Returns
    -------
    q : float
        The weight, between 0 and 0.5.
    """
    below = labels[(labels >= 0) & ~below_true_claims(labels != 0, batch)]
    return WEIGHT_AFTER_ERROR * np.sum(below == 1) / (len(below) + DOUBTED)
