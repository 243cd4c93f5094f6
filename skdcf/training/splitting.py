"""What training makes of its problems: splits by group, standardised columns, a weight."""

from dataclasses import dataclass

import numpy as np

from .._arrays import number_groups, offsets_of
from ..ops.hard import Array, below_true_claims, segment_sum


def holdout_count(name, size, n):
    """Return the number of problems, out of n, to hold out for a given proportion or number.

    Raises
    ------
    ValueError
        If no problem would be held out, or if no problem would remain.
    """
    count = size
    if 0 < float(size) < 1:
        count = max(1, round(float(size) * n))
    if count < 1:
        raise ValueError(
            f"{name} must be a fraction in (0, 1) or a positive number of problems, got "
            f"{size!r}"
        )
    if count >= n:
        raise ValueError(
            f"{name} must leave at least 1 sample for training, but it holds out "
            f"{count} of {n} questions. Pass answers to more questions, or groups=False if each "
            "answer is to be its own question"
        )
    return int(count)


def hold_out(n, count, groups, rng):
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
    is_held = np.isin(codes, rng.permutation(n_groups)[: min(count, n_groups - 1)])
    return np.flatnonzero(~is_held), np.flatnonzero(is_held)


# If the variation of a column is below NOISE times the largest variation, the column is
# considered pure rounding error. For example, a PCA with more components than the rank of the
# data produces columns of pure rounding error. If a column of rounding errors were standardised,
# the errors would determine the scores, which would then differ between batches.
NOISE = 1e-12

# Inverse regularisation strength C of logistic regressions on standardised columns. The penalty is
# strong, because only a few answers contain an error.
STRENGTH = 0.03


@dataclass(frozen=True)
class Columns:
    """Standardised and clipped columns, ``clip((X - mean) / scale, -bound, bound)``.

    The columns are the features and, with a price, their means over the problem and the log
    number of claims.

    Parameters
    ----------
    mean, scale : ndarray of shape (n_columns,)
        Mean and scale of each column on the training claims. If a column is constant or varies
        only by rounding errors, its scale is infinite, so the column has no effect.
    bound : ndarray of shape (n_columns,)
        Bound at which each standardised column is clipped. A linear score is linear in the
        columns only if none of them is clipped.

    Examples
    --------
    >>> from skdcf import GraphBatch
    >>> from skdcf.training.splitting import Columns
    >>> columns = Columns.fit(GraphBatch.from_arrays([[1.0], [3.0]], [0, 1, 2]))
    >>> columns(GraphBatch.from_arrays([[4.0], [9.0]], [0, 1, 2]))
    array([[2.],
           [3.]])
    """

    mean: Array
    scale: Array
    bound: Array

    @classmethod
    def fit(cls, batch, with_means=False):
        """Standardise the columns on the training claims.

        Parameters
        ----------
        batch : GraphBatch
            The training problems.
        with_means : bool, default=False
            Whether to add the columns of the whole problem. They are not added if no problem has
            two claims.

        Returns
        -------
        columns : Columns
            The standardised columns.
        """
        features = batch.features
        mean, scale, _ = _moments(features)
        # Columns are clipped at three standard deviations.
        own = cls(mean, scale, np.full(len(mean), 3.0))
        if not with_means or batch.sizes.max(initial=0) < 2:
            return own
        whole = own._of_whole(features, batch.sizes)
        mean_of_whole, scale_of_whole, _ = _moments(whole[batch.problem_of])
        # The ridge penalty of the logistic regression at which training starts weighs the columns
        # that describe the whole problem a third as much as the others.
        weight = 3**-0.5
        return cls(
            np.append(mean, mean_of_whole),
            np.append(scale, scale_of_whole / weight),
            np.append(own.bound, np.full(len(mean) + 1, 3.0 * weight)),
        )

    def __call__(self, batch):
        """Return the columns of each claim."""
        return np.concatenate([*self.blocks(batch)])

    def blocks(self, batch):
        """Yield the columns of 150 problems at a time, which fit into the processor cache."""
        for first in range(0, max(len(batch), 1), 150):
            sizes = batch.sizes[first : first + 150]
            start = batch.offsets[first]
            features = batch.features[start : start + sizes.sum()]
            X = self.raw(features, sizes) - self.mean
            X /= self.scale
            yield np.clip(X, -self.bound, self.bound, out=X)

    def raw(self, features, sizes):
        """Return the columns before standardisation and clipping, for problems of given sizes."""
        if features.shape[1] == len(self.mean):
            return features
        whole = self._of_whole(features, sizes)
        return np.hstack([features, np.repeat(whole, sizes, axis=0)])

    def _of_whole(self, features, sizes):
        """Return the means of the features and the log number of claims of each problem.

        Multiples of 2^-32 of the scale are summed, so the sums are exact in any order.
        """
        n = features.shape[1]
        mean = self.mean[:n]
        unit = np.where(np.isfinite(self.scale[:n]), self.scale[:n], 1.0) / 2**32
        steps = np.rint((features - mean) / unit)
        steps = np.clip(steps, -(2.0**42), 2.0**42)
        sums = segment_sum(steps, offsets_of(sizes))
        sizes = np.maximum(sizes, 1)[:, None]
        return np.hstack([mean + unit * (sums / sizes), np.log(sizes)])


def _moments(features):
    """Return the mean and the scale of each column, and whether it is pure rounding error.

    The scale of columns that are constant or pure rounding error is infinite.
    """
    mean = features.mean(axis=0)
    scale = features.std(axis=0)
    # With many rows, rounding of the mean can make the scale of a constant column larger.
    rounding = 10 * np.finfo(np.float64).eps * np.abs(mean)
    is_constant = (scale <= rounding) | (features == features[:1]).all(axis=0)
    is_noise = scale <= NOISE * scale.max(initial=0.0)
    scale = np.where(is_constant | is_noise, np.inf, scale)
    return mean, scale, is_noise & ~is_constant


def noise_columns(features):
    """Return the indices of columns that are not constant but vary only by rounding errors."""
    return np.flatnonzero(_moments(features)[2])


def smoothed_log_odds(target):
    """Return the smoothed log odds of booleans, which are finite even if all are equal."""
    return np.log((np.sum(target) + 0.5) / (np.sum(~target) + 0.5))


def weight_below_errors(labels, batch):
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
    # A true claim below a false one weighs half as much as others. With a weight of 1, fewer claims
    # are kept at small alpha, because the probability of such claims is poorly estimated. Five
    # false claims are added to the count, which makes the weight small if few claims were judged.
    return 0.5 * np.sum(below == 1) / (len(below) + 5)
