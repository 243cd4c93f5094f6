"""What a scorer says, and how closely it repeats itself.

The guarantee needs a score that is a function of the problem. In another batch, in
float32, or behind a product whose sums are grouped by the size of the batch, the same
problem may get a score that differs in its last bits: an exact copy of a false claim
then slips below its own score. How far the scores differ is measured here. Filters lower
their threshold by more than that, and what differs by more than rounding is refused.
"""

from itertools import pairwise

import numpy as np

from ..graphs.ragged import ranges
from ._threads import few_threads

LARGEST = 512  # problems that are looked at
TOLERATED = 1e-5  # of the largest confidence, or of 1: float32 comes out near 1e-6
MARGIN = 10.0  # by which the measured difference may be exceeded elsewhere
SINGLE = 1e-5  # resolution of scores from features that were computed in float32


def confidence_of(scorer, batch):
    """Confidences as a float array of shape (n_claims,), or ValueError."""
    with few_threads(batch):
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


def measured_rounding(scorer, batch, confidence):
    """How far confidences of the same claim may differ: the largest seen, ten times.

    Parameters
    ----------
    scorer : fitted Scorer
    batch : GraphBatch
    confidence : ndarray of shape (n_claims,)
        What the scorer says about all of ``batch`` at once.

    Returns
    -------
    float
        In units of the confidence.

    Raises
    ------
    ValueError
        If the scorer looks at other problems of the batch too.
    """
    if not len(confidence):
        return 0.0
    bound = TOLERATED * max(np.abs(confidence).max(), 1.0)
    worst = 0.0
    for rows in _companies(len(batch)):
        part = batch[rows]
        before = confidence[ranges(batch.offsets[rows], batch.sizes[rows])]
        difference = np.abs(confidence_of(scorer, part) - before)
        if difference.max(initial=0.0) > bound:
            claim = int(np.argmax(difference))
            raise ValueError(
                f"{batch.name_of(rows[part.problem_of[claim]])}: the scorer gives other "
                "confidences alone than among other problems. They differ by "
                f"{difference[claim]:.3g}, and rounding explains {bound:.3g}. The "
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


def resolution_of(scorer, batch):
    """How closely confidences repeat themselves, relative to 1 + abs(confidence).

    Whatever made the features is not seen here. If all of them are float32 numbers, and
    not all are round ones such as 3 or 0.25, it was computed in float32 and repeats itself
    no better than that.
    """
    if batch.features is None or not batch.n_features:
        return scorer.resolution
    some = batch.features[:100_000]
    with np.errstate(over="ignore"):
        single = (some == some.astype(np.float32)).all() and (
            some * 1024 % 1 != 0
        ).any()
    return max(scorer.resolution, SINGLE) if single else scorer.resolution


def _companies(n):
    """Problems in batches of other sizes: two alone, a third together, and the rest."""
    rows = np.unique(np.linspace(0, n - 1, min(n, LARGEST)).astype(int))
    bounds = [0, 1, 2, 2 + len(rows) // 3, len(rows)]
    parts = [rows[a:b] for a, b in pairwise(bounds)]
    return [part for part in parts if 0 < len(part) < n]
