"""Ranks and thresholds of split conformal prediction and conformal risk control.

A nonconformity score is the largest safe threshold of a problem, so a larger threshold means
a less cautious filter: t_alpha is the k-th *smallest* of n scores,
k = floor(alpha (n + 1)), which is the ceil((1 - alpha)(n + 1))-th largest.

The loss of a problem is a step function of the threshold: it starts at 0 and jumps up
when the threshold passes the path risk of certain claims. With the jumps of n
calibration problems, a claim with path risk R is kept at the level

    (w own + sum of the heights of all jumps at or below R) / (w + sum of weights),

where ``own`` bounds the loss of the new problem if the claim is kept, and w is its
weight. With one jump of height 1 per problem, no weights, and own = 1, this is split
conformal prediction. Other jumps give conformal risk control (Angelopoulos, Bates, Fisch,
Lei, Schuster, ICLR 2024), and weights give weighted conformal prediction (Tibshirani,
Barber, Candès, Ramdas, NeurIPS 2019).
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor, inf
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainccinv

from ..graphs.ragged import ranges, segment_ids
from .hard import segment_min

MOST = 2**53  # the largest number of problems that messages name
DIGITS = 12  # significant digits of a level that is not a ratio of integers


def claim_level(below: Any, n: int, delta: float | None = None) -> Any:
    """Compute the smallest alpha at which a claim is kept.

    ``below`` of the n calibration scores do not exceed its path risk.

    Without delta it is (1 + below) / (n + 1). With delta it is the smallest alpha such that
    P(Binomial(n, alpha) <= below) <= delta, rounded up in the twelfth digit. Coverage is
    then at least 1 - alpha for a share 1 - delta of all calibration sets.

    Parameters
    ----------
    below : ndarray of int
        Number of calibration scores at or below the path risk, from 0 to n.
    n : int
        Number of calibration problems.
    delta : float, optional

    Returns
    -------
    ndarray of float, in the shape of ``below``; 1 means never.

    References
    ----------
    V. Vovk. Conditional validity of inductive conformal predictors. ACML 2012.
    """
    below = np.asarray(below)
    if delta is None:
        return (1 + below) / (n + 1)
    inside = np.minimum(below, n - 1) if n else below
    level = betainccinv(inside + 1, np.maximum(n - inside, 1), float(delta))
    return np.where(below < n, np.minimum(_round_up(level), 1.0), 1.0)


def _round_up(x):
    """Round x up in its last digit, unless the excess is only a rounding error."""
    with np.errstate(divide="ignore"):
        scale = 10.0 ** (DIGITS - 1 - np.floor(np.log10(x)))
    return np.where(x > 0, np.ceil(x * scale - 1e-2) / scale, 0.0)


def conformal_rank(n: int, alpha: float, delta: float | None = None) -> int:
    """Compute the rank of the threshold among n sorted scores; 0 if there are too few.

    Without delta it is the largest k with k / (n + 1) <= alpha: floor(alpha (n + 1))
    in exact arithmetic. The product would be rounded twice (0.29 * 100 gives 28.999...).
    The quotient is rounded once, so it equals the decimal number that the user wrote
    whenever the two are equal.

    Parameters
    ----------
    n : int
        Number of calibration problems.
    alpha : float
        Miscoverage, in (0, 1).
    delta : float, optional
        Share of the calibration sets whose coverage may be below 1 - alpha. The rank k is
        then the largest with P(Beta(n + 1 - k, k) >= 1 - alpha) >= 1 - delta.

    Returns
    -------
    int between 0 and n; 0 means that there are too few problems for this alpha.

    Examples
    --------
    >>> from skdcf.ops.conformal import conformal_rank
    >>> conformal_rank(99, 0.29), conformal_rank(8, 0.1), conformal_rank(99, 0.1, 0.05)
    (29, 0, 5)
    """
    if delta is not None:
        return bisect_right(range(n), alpha, key=lambda b: claim_level(b, n, delta))
    k = floor(alpha * (n + 1))
    while (k + 1) / (n + 1) <= alpha:
        k += 1
    while k / (n + 1) > alpha:
        k -= 1
    return k


def passing_count(n: int, share: float) -> int:
    """Compute how many of n calibration problems pass a cut at a share, without ties.

    The cut is the k0-th smallest of their smallest path risks, k0 = ceil(share (n + 1)).
    The share is the decimal number that the user wrote: ceil(0.07 * 100) would be 8.

    Parameters
    ----------
    n : int
        Number of calibration problems.
    share : float in (0, 1]
        Share of the new problems that may pass.

    Returns
    -------
    int
        k0 - 1; all n if the share is 1.

    Examples
    --------
    >>> from skdcf.ops.conformal import passing_count
    >>> passing_count(99, 0.07), passing_count(50, 0.6), passing_count(50, 1)
    (6, 30, 50)
    """
    return ceil(Fraction(repr(float(share))) * (n + 1)) - 1


def least_share(n_passing: int, n: int) -> float:
    """Find the smallest share, in hundredths, at which n_passing of n problems pass.

    Parameters
    ----------
    n_passing : int
        At most n.
    n : int
        Number of calibration problems.

    Returns
    -------
    float
        The inverse of `passing_count`.

    Examples
    --------
    >>> from skdcf.ops.conformal import least_share, passing_count
    >>> least_share(9, 15), passing_count(15, 0.57), passing_count(15, 0.56)
    (0.57, 9, 8)
    """
    return (100 * n_passing // (n + 1) + 1) / 100


def passing_cut(lowest: NDArray[Any], share: float) -> float:
    """Find the cut below which a share of the problems passes; +inf if all of them do.

    Parameters
    ----------
    lowest : ndarray of shape (n,)
        Smallest path risk of each calibration problem.
    share : float in (0, 1]
        Share of the new problems that may pass.

    Returns
    -------
    float
        The k0-th smallest of ``lowest``, k0 = ceil(share (n + 1)); +inf if k0 > n, and -inf
        for a share of 0.
    """
    if share == 0:
        return -inf
    k = passing_count(len(lowest), share)
    return float(np.partition(lowest, k)[k]) if k < len(lowest) else inf


@lru_cache  # since a comparison asks for the same few levels in every split
def problems_needed(alpha, delta=None, share=1):
    """Compute the smallest number of calibration problems that can keep anything."""
    needed = bisect_left(range(MOST), -alpha, key=lambda n: -claim_level(0, n, delta))
    return floor(needed / Fraction(repr(float(share))))


def whole_count(
    n: int, alpha: float, share: float = 1, at_most: float | None = None
) -> int:
    """Compute how many of n problems to hold out for calibration without wasting any.

    With n_cal problems the rank is floor(alpha (n_cal + 1)), so rounding down wastes
    problems: at 0.05, 30 problems give the same rank as 19. The rank k is therefore chosen
    first, from about two fifths of the problems, and then the smallest n_cal that reaches
    it. The number depends only on n and alpha, so the guarantee still holds.

    Parameters
    ----------
    n : int
    alpha : float
    share : float in (0, 1]
        Share of the problems that may pass; the rank is that among those that do.
    at_most : float, optional
        Share of the problems to hold out if too few would reach rank 1, instead of 0.3.

    Returns
    -------
    int
        About 0.3 n if more than 0.6 n would be needed to reach rank 1.
    """
    otherwise = max(1, round(0.3 * n) if at_most is None else floor(at_most * n + 1e-9))
    if alpha * share * n < 1:  # a rank of 2 would need more problems than there are
        return otherwise
    count = _fewest(max(2, round(0.4 * alpha * share * n)), n, alpha, share=share)
    return count if count <= 0.6 * n else otherwise


@lru_cache
def fewest_of_rank(n, alpha, delta=None, share=1):
    """Compute the smallest number of problems with the same rank as n; n if that rank is 0."""
    k = conformal_rank(passing_count(n, share), alpha, delta)
    return _fewest(k, n, alpha, delta=delta, share=share) if k else n


def _fewest(k, n, alpha, delta=None, share=1):
    """Compute the smallest number of problems with the rank k; n if that is too few."""

    def rank(m):
        return conformal_rank(passing_count(m, share), alpha, delta)

    return bisect_left(range(n), k, key=rank)


def conformal_threshold(
    scores: NDArray[Any], alpha: float, delta: float | None = None
) -> float:
    """Compute t_alpha of sorted scores, shape (n,); -inf if there are too few."""
    k = conformal_rank(len(scores), alpha, delta)
    return float(scores[k - 1]) if k else -inf


def shown_rank(scores: NDArray[Any], lowest: NDArray[Any], alpha: float) -> int:
    """Compute the rank at which at most alpha of the shown texts contain an error.

    Benjamini and Hochberg's procedure on the smallest path risks: k answers are shown,
    the largest k for which the k-th smallest of ``(1 + #{i : s_i <= low_j}) m / ((n + 1) k)``
    is at most alpha. The rank is the largest r with ``r m / ((n + 1) k) <= alpha``; exactly
    these k answers have a claim below the r-th smallest score.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Nonconformity scores of the calibration problems, sorted.
    lowest : ndarray of shape (m,)
        Smallest path risk of each new answer, +inf for one without claims.
    alpha : float
        Largest expected share, in (0, 1), of the shown answers with a false claim.

    Returns
    -------
    int between 0 and n; 0 means that nothing is shown.
    """
    n = len(scores)
    m = len(lowest)
    counts = 1 + np.searchsorted(scores, np.sort(lowest), side="right")
    # A ratio of integers is rounded once, so it can equal the decimal alpha exactly.
    good = np.flatnonzero(counts * m / ((n + 1) * np.arange(1, m + 1)) <= alpha)
    if not len(good):
        return 0
    n_shown = int(good[-1]) + 1
    largest = (n + 1) * n_shown
    rank = floor(alpha * largest / m)
    while (rank + 1) * m / largest <= alpha:
        rank += 1
    while rank * m / largest > alpha:
        rank -= 1
    return rank


def claim_alpha(
    scores: NDArray[Any],
    path_risk: NDArray[Any],
    keep_equal: Any = False,
    delta: float | None = None,
) -> Any:
    """Compute the smallest alpha at which each claim is kept, shape (n_claims,).

    Parameters
    ----------
    scores : ndarray of shape (n,), sorted
        Nonconformity scores of the calibration problems.
    path_risk : ndarray of shape (n_claims,)
    keep_equal : bool
        Whether a claim is kept when its path risk equals the threshold.
    delta : float, optional
        As in `claim_level`.

    Returns
    -------
    ndarray of shape (n_claims,), multiples of 1 / (n + 1); 1 means never.
    """
    side: Literal["left", "right"] = "left" if keep_equal else "right"
    below = np.searchsorted(scores, path_risk, side=side)
    return claim_level(below, len(scores), delta)


def leave_one_out_alpha(
    scores: NDArray[Any],
    path_risk: NDArray[Any],
    problem_of: Any,
    delta: float | None = None,
) -> Any:
    """Compute `claim_alpha` of each claim with all *other* problems as calibration problems.

    This takes O(n log n) for all alphas and all problems together.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Nonconformity score of each problem, in the order of the problems.
    path_risk, problem_of : ndarray of shape (n_claims,)
    delta : float, optional
        As in `claim_level`.

    Returns
    -------
    ndarray of shape (n_claims,), multiples of 1 / n.
    """
    below = np.searchsorted(np.sort(scores), path_risk, side="right")
    below -= scores[problem_of] <= path_risk
    return claim_level(below, len(scores) - 1, delta)


@dataclass(frozen=True)
class Jumps:
    """Positions and heights of the jumps in the losses of n problems.

    Attributes
    ----------
    position : ndarray of shape (n_jumps,)
        The loss jumps when the threshold exceeds the position; +inf if it never does.
    problem : ndarray of int, shape (n_jumps,), not decreasing
    height : ndarray of shape (n_jumps,)
    n : int
        Number of problems; some may have no jump.
    """

    position: np.ndarray
    problem: np.ndarray
    height: np.ndarray
    n: int

    @classmethod
    def of_scores(cls, scores: NDArray[Any]) -> Self:
        """Return one jump of height 1 at the score of each problem."""
        return cls(scores, np.arange(len(scores)), np.ones(len(scores)), len(scores))

    def __getitem__(self, rows: NDArray[Any]) -> Any:
        """Take the jumps of some problems, numbered from 0."""
        rows = np.arange(self.n)[rows]
        bounds = self.offsets
        n_jumps = np.diff(bounds)[rows]
        chosen = ranges(bounds[:-1][rows], n_jumps)
        problem = np.repeat(np.arange(len(rows)), n_jumps)
        return Jumps(self.position[chosen], problem, self.height[chosen], len(rows))

    @property
    def offsets(self) -> NDArray[Any]:
        """Jumps of problem i are ``offsets[i]:offsets[i + 1]``."""
        return np.searchsorted(self.problem, np.arange(self.n + 1))

    @classmethod
    def join(cls, several: Any) -> Self:
        """Concatenate the jumps of several sets of problems."""
        starts = np.cumsum([0, *(jumps.n for jumps in several)])
        pairs = list(zip(several, starts[:-1], strict=True))
        return cls(
            np.concatenate([jumps.position for jumps in several]),
            np.concatenate([jumps.problem + start for jumps, start in pairs]),
            np.concatenate([jumps.height for jumps in several]),
            int(starts[-1]),
        )

    def first(self) -> Any:
        """Position of the first jump of each problem, shape (n,)."""
        if np.array_equal(self.problem, np.arange(self.n)):
            return self.position
        return segment_min(self.position, self.offsets)


def count_jumps(
    path_risk: NDArray[Any],
    labels: NDArray[Any],
    offsets: NDArray[np.int64],
    vaguest: NDArray[np.bool_] | None = None,
) -> Any:
    """Compute the jumps of the number of false claims that are kept.

    Of the wordings of a claim, the labels name one as false at most.
    """
    rows = np.flatnonzero(labels != 1)
    problem = segment_ids(offsets)[rows]
    return Jumps(path_risk[rows], problem, np.ones(len(rows)), len(offsets) - 1)


def share_jumps(
    path_risk: NDArray[Any],
    labels: NDArray[Any],
    offsets: NDArray[np.int64],
    vaguest: NDArray[np.bool_] | None = None,
) -> Any:
    """Compute the jumps of the largest share of false claims among the kept claims so far.

    The share itself may fall when a higher threshold keeps more true claims. Its running
    maximum never falls, and is at least the share. A claim with several wordings is kept as
    soon as its vaguest wording is.
    """
    order, risk, of, last = _sort_within(path_risk, offsets)
    kept = _count_kept(order, of, offsets, vaguest)
    wrong = np.cumsum(labels[order] != 1)
    wrong_before = np.append(0, wrong)[offsets[of]]
    risk = risk[last]
    of = of[last]
    share = ((wrong - wrong_before) / kept)[last]
    top = _running_maximum(share, of)
    lower = np.append(0.0, top[:-1])[: len(top)]
    lower[np.append(True, of[1:] > of[:-1])[: len(of)]] = 0.0
    rises = top > lower
    return Jumps(risk[rises], of[rises], (top - lower)[rises], len(offsets) - 1)


def _count_kept(order, of, offsets, vaguest):
    """Count the claims of each problem that are kept together with each one in the order."""
    if vaguest is None:
        return np.arange(1, len(order) + 1) - offsets[of]
    kept = np.cumsum(vaguest[order])
    # At equal risks a more specific wording may stand in front of the vaguest one.
    return np.maximum(kept - np.append(0, kept)[offsets[of]], 1)


def _sort_within(path_risk, offsets):
    """Sort the claims of each problem by risk, and mark the last of equal risks."""
    problem = segment_ids(offsets)
    order = np.lexsort((path_risk, problem))
    risk = path_risk[order]
    of = problem[order]
    last = np.append((risk[1:] > risk[:-1]) | (of[1:] > of[:-1]), True)[: len(risk)]
    return order, risk, of, last


def _running_maximum(values, problem):
    """Compute the largest value so far within each problem, without rounding."""
    distinct, rank = np.unique(values, return_inverse=True)
    raised = np.maximum.accumulate(rank + problem * len(distinct))
    return distinct[raised - problem * len(distinct)] if len(values) else values


def count_up_to(
    path_risk: NDArray[Any],
    offsets: NDArray[np.int64],
    vaguest: NDArray[np.bool_] | None = None,
) -> NDArray[Any]:
    """Count the claims of a problem whose path risk is at most that of each claim."""
    order, risk, of, last = _sort_within(path_risk, offsets)
    ends = np.flatnonzero(last)
    kept = _count_kept(order, of, offsets, vaguest)
    out = np.empty(len(path_risk), dtype=np.int64)
    out[order] = kept[ends[np.searchsorted(ends, np.arange(len(risk)))]]
    return out


def staircase(jumps: Jumps, weights: NDArray[Any] | None = None) -> Any:
    """Add up the jumps of all calibration problems.

    Parameters
    ----------
    jumps : Jumps
    weights : ndarray of shape (n,), optional
        Weights of the problems. None means 1 for each.

    Returns
    -------
    position : ndarray of shape (n_jumps,), sorted
    sums : ndarray of shape (n_jumps + 1,)
        ``sums[j]`` is the height after j jumps, rounded once.
    """
    order = np.argsort(jumps.position, kind="stable")
    height = jumps.height if weights is None else jumps.height * weights[jumps.problem]
    sums = np.append(0.0, np.cumsum(height[order], dtype=np.longdouble))
    return jumps.position[order], sums.astype(np.float64)
