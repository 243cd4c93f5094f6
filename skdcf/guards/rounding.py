"""Scores that differ in their last bits from one batch, machine or dtype to the next.

The guarantee needs a score that is a function of the problem. In another batch, in float32, or
in a matrix product that groups its sums by the size of the batch, the score of the same problem
may differ in its last bits. An exact copy of a false claim then slips below its own score:
coverage was .74 instead of .90. This guard measures how closely the scores, with the columns that
the filter computes, repeat themselves. Filters lower their threshold by more than that, and refuse
differences above a bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..graphs.ragged import ranges

LARGEST = 512  # problems that are scored again
# Problems in each batch; after these come a third of the problems, and the rest.
SIZES = (*8 * (1,), 7, 60)
# Relative to the largest confidence, or to 1; float32 differs by some 1e-6.
TOLERATED = 1e-5
MARGIN = 10.0  # factor by which other machines may exceed the measured difference
SINGLE = 1e-5  # the resolution of scores that were computed in float32, or from such features
COPIED = 1e-6  # the resolution of scores that several problems share


def measured_rounding(confidence_alone, batch, confidence):
    """How far confidences of the same claim may differ: ten times the largest difference seen.

    Parameters
    ----------
    confidence_alone : callable
        From a batch to its confidences, columns computed again.
    batch : GraphBatch
        Problems as they were passed.
    confidence : ndarray of shape (n_claims,)
        What the scorer says about all of ``batch`` at once.

    Returns
    -------
    float
        In units of the confidence.

    Raises
    ------
    ValueError
        If columns or scorer look at other problems of the batch too.
    """
    bound = TOLERATED * max(np.abs(confidence).max(initial=0.0), 1.0)
    worst = 0.0
    for rows in _list_batches(len(batch)):
        part = batch[rows]
        confidence_before = confidence[ranges(batch.offsets[rows], batch.sizes[rows])]
        difference = np.abs(confidence_alone(part) - confidence_before)
        if difference.max(initial=0.0) > bound:
            claim = int(np.argmax(difference))
            raise ValueError(
                f"{batch.name_of(rows[part.problem_of[claim]])}: the scorer, or the columns "
                "that it sees, give other confidences alone than among other problems. They "
                f"differ by {difference[claim]:.3g}, and rounding explains {bound:.3g}. The "
                "guarantee needs a score that looks at one problem at a time: do not "
                "rank, scale or clip over the batch, and compute in float32 or float64"
            )
        worst = max(worst, difference.max(initial=0.0))
    return MARGIN * worst


def _list_batches(n):
    """Problems in batches of several sizes, since a network may group its sums by the size."""
    rows = np.unique(np.linspace(0, n - 1, min(n, LARGEST)).astype(int))
    bounds = np.cumsum([0, *SIZES, len(rows) // 3])
    parts = np.split(rows, bounds[1:])
    return [part for part in parts if 0 < len(part) < n]


def resolution_of(scorer, batches, confidence):
    """How closely scores repeat themselves at best, relative to 1 + abs(score).

    Whatever made the features of the problems is not seen here. A column of float32 numbers
    that are not all round ones, such as 3 or 0.25, was computed in float32 and repeats
    itself no better than that; so does a confidence.

    Parameters
    ----------
    scorer : Scorer
        Its ``resolution`` says how closely confidences repeat themselves.
    batches : sequence of GraphBatch
        The problems as passed, and as the scorer sees them.
    confidence : ndarray of shape (n_claims,)
    """
    tables = {id(b.features): b.features for b in batches if b.features is not None}
    for table in (*tables.values(), confidence[:, None]):
        if table.size and single_columns(table).any():
            return max(scorer.resolution, SINGLE)
    return scorer.resolution


@dataclass(frozen=True)
class Precision:
    """How closely scores repeat themselves.

    Attributes
    ----------
    resolution : float
        From `resolution_of`, relative to 1 + abs(score).
    rounding : float
        From `measured_rounding`, in units of the score.
    """

    resolution: float
    rounding: float

    def lower(self, scores):
        """Scores, each lowered by as much as it may differ elsewhere."""
        scores = scores.copy()
        finite = np.isfinite(scores)
        size = 1 + np.abs(scores[finite])
        scores[finite] -= np.maximum(self.resolution * size, self.rounding)
        return scores


def raised(risk, table):
    """Risks in use, higher where a row holds a float32 number that is not round.

    The same problem may have calibrated in float64: 0.6 is 6e-8 less there, and copies of
    a false claim would slip below their own score.
    """
    broken = _compare_single(table)[1].any(axis=1)
    return risk + SINGLE * (1 + np.abs(risk)) * broken if broken.any() else risk


def single_columns(table):
    """Tell which columns hold float32 numbers, unless all are round, such as 3 or 0.25."""
    single, broken = _compare_single(table[:100_000])
    return single.all(axis=0) & broken.any(axis=0)


def _compare_single(table):
    """Tell which numbers float32 can hold, and which of these are not round."""
    with np.errstate(over="ignore"):
        single = table == table.astype(np.float32)
        scaled = table * 1024
        return single, single & (scaled != np.floor(scaled))


def below_copies(scores):
    """Lower the scores that several problems share by a millionth.

    Equal scores that are no round numbers come from copies, of which one may be computed
    elsewhere once more. How closely a column that was made before the filter repeats itself
    is seen nowhere: a product of numbers near 1e7 that cancels is off by 1e-8.
    """
    size = 1 + np.abs(scores)
    with np.errstate(invalid="ignore"):  # scores that are infinite
        broken = np.abs(scores - np.round(scores, 3)) > 1e-9 * size
    if not broken.any():  # which spares whole numbers the search for equal ones
        return scores
    _, code, count = np.unique(scores, return_inverse=True, return_counts=True)
    copied = broken & (count[code] > 1)
    scores = scores.copy()
    scores[copied] -= COPIED * size[copied]
    return scores


def nearly_equal(now, before):
    """Whether two arrays are the same but for rounding; two that are missing are the same."""
    if now is None or before is None:
        return now is before
    finite = np.abs(before[np.isfinite(before)])
    bound = TOLERATED * max(finite.max(initial=0.0), 1.0)
    return np.allclose(now, before, rtol=0, atol=bound)
