"""Ranks and thresholds for split conformal prediction and conformal risk control.

The nonconformity score of a problem is its largest safe threshold. More claims are kept at larger
thresholds. The threshold t_alpha is the k-th *smallest* of n scores with k = floor(alpha (n +
1)), which equals the ceil((1 - alpha)(n + 1))-th largest score.

The loss of a problem is a step function of the threshold. The loss starts at 0 and jumps when the
threshold exceeds the path risk of certain claims. The smallest level at which a claim with path
risk R is kept is computed from the jumps of n calibration problems:

    (1 + sum(heights of the jumps at or below R)) / (n + 1)

The 1 in the numerator is the largest loss of the new problem. Split conformal prediction is the
special case in which each problem has a single jump of height 1. Losses with other jumps lead to
conformal risk control (Angelopoulos, Bates, Fisch, Lei, Schuster, ICLR 2024).
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor, inf
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainccinv

from .._arrays import offsets_of, ranges, segment_ids, starts_run
from .hard import Array


def claim_level(below, n, delta=None):
    """Compute the smallest alpha at which a claim is kept.

    If ``delta`` is None, the smallest alpha is (1 + below) / (n + 1). With ``delta``, the result
    is the smallest alpha for which P(Binomial(n, alpha) <= below) <= delta, rounded upwards to
    twelve significant digits. At the resulting alpha, the coverage is at least 1 - alpha with
    probability at least 1 - delta over calibration sets.

    Parameters
    ----------
    below : ndarray of int
        Number of calibration scores, from 0 to n, that do not exceed the path risk of the claim.
    n : int
        Number of calibration problems.
    delta : float, optional
        Maximum proportion of calibration sets for which the coverage is below 1 - alpha.

    Returns
    -------
    level : ndarray of float of the same shape as ``below``
        The smallest alpha, where 1 means that the claim is never kept.

    References
    ----------
    V. Vovk. Conditional validity of inductive conformal predictors. ACML 2012.
    """
    if delta is None:
        return (1 + below) / (n + 1)
    level = betainccinv(below + 1, n - below, float(delta))
    return np.where(below < n, np.minimum(_round_up(level), 1.0), 1.0)


def mean_level(totals, n):
    """Compute levels from sums of losses that are quotients, each of which was rounded.

    A level that differs from a decimal number by a few rounding errors is this number.

    Parameters
    ----------
    totals : ndarray of float
        1 plus the losses of the calibration problems.
    n : int
        Number of calibration problems.

    Returns
    -------
    levels : ndarray of float of the same shape as ``totals``
        The levels.
    """
    levels = totals / (n + 1)
    decimal = np.round(levels, 12)
    return np.where(np.abs(levels - decimal) < 2**-51, decimal, levels)


def _round_up(x):
    """Round x upwards to twelve significant digits, unless the excess is only a rounding error."""
    with np.errstate(divide="ignore"):
        scale = 10.0 ** (11 - np.floor(np.log10(x)))
    return np.where(x > 0, np.ceil(x * scale - 1e-2) / scale, 0.0)


def conformal_rank(n, alpha, delta=None):
    """Return the rank of the threshold among n sorted scores, or 0 if there are too few scores.

    If ``delta`` is None, the rank is the largest k with k / (n + 1) <= alpha, which is
    floor(alpha (n + 1)) in exact arithmetic. A floating-point product would be rounded twice, so
    0.29 * 100 would be 28.999... instead of 29. A quotient is rounded only once and therefore
    compares correctly with the user's decimal number.

    The rank counts from the smallest score. The paper's ceil((1 - alpha) (n + 1)) is the same rank
    counted from the largest score. Counted from the smallest, it would cover alpha.

    Parameters
    ----------
    n : int
        Number of calibration problems.
    alpha : float
        Miscoverage, in (0, 1).
    delta : float, optional
        Maximum proportion of calibration sets for which the coverage is below 1 - alpha. With
        ``delta``, the rank is the largest k with P(Beta(n + 1 - k, k) >= 1 - alpha) >= 1 - delta.

    Returns
    -------
    rank : int
        The rank, which is between 0 and n. The rank is 0 if there are too few calibration
        problems for alpha.

    Examples
    --------
    >>> from skdcf.ops.conformal import conformal_rank
    >>> conformal_rank(99, 0.29), conformal_rank(8, 0.1), conformal_rank(99, 0.1, 0.05)
    (29, 0, 5)
    """
    return bisect_right(range(n), alpha, key=lambda b: claim_level(b, n, delta))


def passing_count(n, share):
    """Compute the number of calibration problems that pass the cut if there are no ties.

    The cut is the k0-th smallest value among the minimum path risks of the n problems, where k0 =
    ceil(share (n + 1)). The share is converted to an exact decimal number, because ceil(0.07 *
    100) would be 8 in floating-point arithmetic.

    Parameters
    ----------
    n : int
        Number of calibration problems.
    share : float in (0, 1]
        Maximum proportion of new problems that pass the cut.

    Returns
    -------
    n_passing : int
        The number k0 - 1, or n if the share is 1.

    Examples
    --------
    >>> from skdcf.ops.conformal import passing_count
    >>> passing_count(99, 0.07), passing_count(50, 0.6), passing_count(50, 1)
    (6, 30, 50)
    """
    return ceil(Fraction(repr(float(share))) * (n + 1)) - 1


def passing_cut(lowest, share):
    """Compute the cut below which problems pass, or +inf if all problems pass.

    Parameters
    ----------
    lowest : ndarray of shape (n,)
        Minimum path risk of each calibration problem.
    share : float in (0, 1]
        Maximum proportion of new problems that pass the cut.

    Returns
    -------
    cut : float
        The k0-th smallest value of ``lowest``, where k0 = ceil(share (n + 1)). The cut is +inf if
        k0 > n.
    """
    k = passing_count(len(lowest), share)
    return float(np.partition(lowest, k)[k]) if k < len(lowest) else inf


@lru_cache  # The result is cached, because a comparison uses the same few levels in every split.
def problems_needed(alpha, delta=None, share=1):
    """Compute the smallest number of calibration problems with which a claim can be kept."""
    needed = bisect_left(range(2**53), -alpha, key=lambda n: -claim_level(0, n, delta))
    return floor(needed / Fraction(repr(float(share))))


@lru_cache
def fewest_of_rank(n, alpha, delta=None, share=1, rank=None):
    """Compute the smallest number of problems, up to n, with a rank, by default that of n."""

    def rank_of(m):
        return conformal_rank(passing_count(m, share), alpha, delta)

    rank = rank_of(n) if rank is None else rank
    return bisect_left(range(n), rank, key=rank_of) if rank else n


def conformal_threshold(scores, alpha, delta=None):
    """Compute the threshold t_alpha from n sorted scores, or -inf if there are too few scores."""
    k = conformal_rank(len(scores), alpha, delta)
    return float(scores[k - 1]) if k else -inf


def shown_rank(scores, lowest, alpha):
    """Compute the rank that limits the false discovery rate among shown answers to alpha.

    The Benjamini-Hochberg procedure is applied to the conformal p-values of the minimum path
    risks. The number of shown answers is the largest k for which the k-th smallest value of ``(1
    + #{i: s_i <= low_j}) m / ((n + 1) k)`` is at most alpha. The rank is the largest r with ``r m
    / ((n + 1) k) <= alpha``. Exactly k answers have a claim whose path risk is below the r-th
    smallest score.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Sorted nonconformity scores of the calibration problems.
    lowest : ndarray of shape (m,)
        Minimum path risk of each new answer, or +inf for an answer without claims.
    alpha : float
        Maximum expected proportion of shown answers with a false claim, between 0 and 1.

    Returns
    -------
    rank : int
        The rank, which is between 0 and n. If the rank is 0, no answer is shown.
    """
    n = len(scores)
    m = len(lowest)
    counts = 1 + np.searchsorted(scores, np.sort(lowest), side="right")
    # The ratio of two integers is rounded only once, so it can equal the decimal alpha exactly.
    good = np.flatnonzero(counts * m / ((n + 1) * np.arange(1, m + 1)) <= alpha)
    if not len(good):
        return 0
    n_shown = good[-1] + 1
    return int(np.sum(np.arange(1, n + 1) * m / ((n + 1) * n_shown) <= alpha))


@dataclass(frozen=True)
class Jumps:
    """Positions of the jumps in the losses of n problems, and the losses after them.

    Parameters
    ----------
    position : ndarray of shape (n_jumps,)
        Position of each jump, which is the threshold above which the loss increases. The position
        is +inf if the loss never jumps.
    loss : ndarray of shape (n_jumps,)
        Loss of the problem after each jump, which must not decrease within a problem.
    offsets : ndarray of int of shape (n_problems + 1,)
        Problem i has the jumps ``offsets[i]:offsets[i + 1]``. Problems may have no jumps.
    """

    position: Array
    loss: Array
    offsets: Array

    def __post_init__(self) -> None:
        """Raise ValueError if a loss is not in [0, 1] or decreases, or if a position is NaN."""
        sizes = np.diff(self.offsets, prepend=0, append=len(self.loss))
        if sizes[0] or sizes[-1] or sizes.min() < 0:
            raise ValueError(
                "offsets must start at 0, never decrease and end with the number of jumps, "
                f"{len(self.loss)}, but lie between {self.offsets[0]} and {self.offsets[-1]}"
            )
        grows = self.is_count or (self._heights(self.loss) >= 0).all()
        within = (self.loss >= 0) & (self.loss <= 1) & ~np.isnan(self.position)
        if not (grows and within.all()):
            raise ValueError(
                "losses must grow from 0 to at most 1 in each problem, but they lie between "
                f"{self.loss.min():g} and {self.loss.max():g}, decrease, or are at the position "
                "NaN. Divide the loss by its largest value, and take its running maximum"
            )

    @classmethod
    def of_scores(cls, scores: Array) -> Self:
        """Return a single jump, to the loss 1, at the score of each problem.

        Parameters
        ----------
        scores : ndarray of shape (n_problems,)
            The scores, which are +inf for problems without a loss.

        Returns
        -------
        jumps : Jumps
            One jump for each problem.
        """
        return cls(scores, np.ones(len(scores)), np.arange(len(scores) + 1))

    def __getitem__(self, rows: slice | NDArray[Any]) -> "Jumps":
        """Return the jumps of the given problems."""
        n_jumps = np.diff(self.offsets)[rows]
        chosen = ranges(self.offsets[:-1][rows], n_jumps)
        return Jumps(self.position[chosen], self.loss[chosen], offsets_of(n_jumps))

    @property
    def is_count(self) -> bool:
        """Whether each loss is 0 or 1, so sums of losses are counts."""
        return bool((self.loss == 1).all())

    def _heights(self, losses):
        """Return the heights of the jumps, given the losses after them."""
        is_first = starts_run(segment_ids(self.offsets))
        return np.where(is_first, losses, np.diff(losses, prepend=0))

    def totals(self) -> tuple[Array, Array]:
        """Compute 1 plus the losses of all problems, before and after each jump.

        Each loss is split into a multiple of 2**-30 and the rest. Both are added without
        rounding, so each total is rounded only once, as by `math.fsum`. Running sums of floats
        would decide many levels that equal alpha wrongly.

        Returns
        -------
        position : ndarray of shape (n_jumps,), sorted
            Positions of the jumps.
        totals : ndarray of shape (n_jumps + 1,)
            ``totals[j]`` is 1 plus the sum of the losses after j jumps.
        """
        order = np.argsort(self.position, kind="stable")
        position = self.position[order]
        if self.is_count and (np.diff(self.offsets) <= 1).all():
            return position, np.arange(1.0, 2 + len(position))
        scaled = np.ldexp(self.loss, 30)
        parts = np.stack([np.rint(scaled), scaled - np.rint(scaled)])
        whole, rest = np.cumsum(self._heights(parts)[:, order], axis=1)
        return position, np.append(1.0, np.ldexp(2.0**30 + whole + rest, -30))

    def losses(self, problem: Array, threshold: Any) -> Array:
        """Return the losses of problems if the claims below a threshold are kept.

        Parameters
        ----------
        problem : ndarray of int of shape (n,)
            Indices of the problems.
        threshold : ndarray of shape (n,), or float
            The thresholds.

        Returns
        -------
        losses : ndarray of shape (n,)
            The losses.
        """
        # A jump is below a threshold if fewer positions are below the jump than the threshold.
        positions = np.sort(self.position)
        size = len(positions) + 1
        problem_of = segment_ids(self.offsets)
        keys = problem_of * size + np.searchsorted(positions, self.position)
        n_below = np.searchsorted(positions, threshold)
        last = np.searchsorted(keys, problem * size + n_below) - 1
        is_own = np.append(problem_of, -1)[last] == problem
        return np.where(is_own, np.append(self.loss, 0.0)[last], 0.0)

    @classmethod
    def join(cls, several: Any) -> Self:
        """Concatenate the jumps of several sets of problems.

        Parameters
        ----------
        several : iterable of Jumps
            The jumps of each set.

        Returns
        -------
        jumps : Jumps
            The jumps of all problems, in the given order.
        """
        columns = [(j.position, j.loss, np.diff(j.offsets)) for j in several]
        position, loss, sizes = map(np.concatenate, zip(*columns, strict=True))
        return cls(position, loss, offsets_of(sizes))


def share_jumps(path_risk, labels, offsets):
    """Compute the jumps in the running maximum of the false proportion among kept claims.

    The proportion of false claims can decrease if a larger threshold keeps more true claims. The
    running maximum never decreases, and is never smaller than the proportion.
    """
    problem = segment_ids(offsets)
    order = np.lexsort((path_risk, problem))
    risk = path_risk[order]
    n_false = np.append(0, np.cumsum(labels[order] != 1))
    n_kept = np.arange(1, len(order) + 1) - offsets[problem]
    share = (n_false[1:] - n_false[offsets[problem]]) / n_kept
    # Claims with equal path risks are kept together.
    tied = (risk[1:] == risk[:-1]) & (problem[1:] == problem[:-1])
    share[:-1][tied] = 0
    # The ranks are larger in each later problem, so the running maximum starts again there.
    distinct, rank = np.unique(share, return_inverse=True)
    highest = np.maximum.accumulate(rank + problem * len(distinct))
    share = distinct[highest - problem * len(distinct)]
    rises = starts_run(highest) & (share > 0)
    n_rises = np.bincount(problem[rises], minlength=len(offsets) - 1)
    return Jumps(risk[rises], share[rises], offsets_of(n_rises))
