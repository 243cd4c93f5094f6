"""What a scorer says, and how closely it repeats itself.

The guarantee needs a score that is a function of the problem. In another batch, in
float32, or behind a product whose sums are grouped by the size of the batch, the same
problem may get a score that differs in its last bits: an exact copy of a false claim
then slips below its own score. How far the scores differ, with the columns that the filter
computes, is measured here. Filters lower their threshold by more than that, and what
differs by more than rounding is refused.
"""

import numpy as np

from ..graphs.ragged import ranges
from ._ties import single_columns

LARGEST = 512  # problems that are looked at
SIZES = (1, 1, 7, 60)  # of batches, before a third of the problems and the rest
TOLERATED = 1e-5  # of the largest confidence, or of 1: float32 comes out near 1e-6
MARGIN = 10.0  # by which the measured difference may be exceeded elsewhere
SINGLE = (
    1e-5  # resolution of scores that were computed in float32, or from such features
)


def confidence_of(scorer, batch):
    """Confidences as a float array of shape (n_claims,), or ValueError."""
    confidence = np.asarray(scorer.confidence(batch), dtype=np.float64)
    if confidence.shape != (batch.n_claims,):
        raise ValueError(
            f"the scorer returned shape {confidence.shape} for {batch.n_claims} claims"
        )
    if not np.isfinite(confidence).all():
        row = int(np.argmin(np.isfinite(confidence)))
        raise ValueError(
            f"the scorer's confidence of {batch.locate(row)} is {confidence[row]}: "
            "confidences must be finite"
        )
    return confidence


def measured_rounding(confidence_alone, batch, confidence):
    """How far confidences of the same claim may differ: the largest seen, ten times.

    Parameters
    ----------
    confidence_alone : callable or None
        From a batch to its confidences, columns computed anew; None where these are the
        same in every batch.
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
    if confidence_alone is None or not len(confidence):
        return 0.0
    bound = TOLERATED * max(np.abs(confidence).max(), 1.0)
    worst = 0.0
    for rows in _list_batches(len(batch)):
        part = batch[rows]
        before = confidence[ranges(batch.offsets[rows], batch.sizes[rows])]
        difference = np.abs(confidence_alone(part) - before)
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


def lowered(scores, resolution, rounding):
    """Scores less what they may differ by in another batch."""
    finite = np.isfinite(scores)
    out = scores.copy()
    least = resolution * (1 + np.abs(scores[finite]))
    out[finite] -= np.maximum(least, rounding)
    return out


def resolution_of(scorer, batches, confidence):
    """How closely confidences repeat themselves, relative to 1 + abs(confidence).

    Whatever made the features is not seen here. A column of float32 numbers that are not
    all round ones, such as 3 or 0.25, was computed in float32 and repeats itself no better
    than that; so does a confidence.
    """
    tables = {id(b.features): b.features for b in batches if b.features is not None}
    if any(
        single_columns(t).any()
        for t in [*tables.values(), confidence[:, None]]
        if t.size
    ):
        return max(scorer.resolution, SINGLE)
    return scorer.resolution


def _list_batches(n):
    """Problems in batches of several sizes: a network may group its sums by the size."""
    rows = np.unique(np.linspace(0, n - 1, min(n, LARGEST)).astype(int))
    bounds = np.cumsum([0, *SIZES, len(rows) // 3])
    parts = np.split(rows, bounds[1:])
    return [part for part in parts if 0 < len(part) < n]
