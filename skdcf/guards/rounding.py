"""Guard against scores whose last bits depend on the batch, the machine or the dtype.

The guarantee requires that a score depends only on the problem to which it belongs. The last bits
of a score may change if it is computed in float32, or if the order of summation in a matrix
product depends on the batch size. The score of an exact copy of a false claim may then be lower
than the calibrated score. With such copies of false claims, the coverage was 0.74 instead of
0.90. The guard measures how reproducible the scores are, including the columns that the filter
computes. Filters lower their threshold by more than the measured difference, and raise an error
if the difference exceeds a bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..graphs.ragged import ranges

LARGEST = 512  # number of problems to score again
# Numbers of problems in the batches that are scored again. Another batch contains a third of the
# problems, and the last batch contains all remaining problems.
SIZES = (*8 * (1,), 7, 60)
# Tolerance relative to the largest confidence, or absolute if the largest confidence is below 1.
# Confidences computed in float32 differ by about 1e-6.
TOLERATED = 1e-5
# factor by which the difference on another machine may exceed the difference measured here
MARGIN = 10.0
FLOAT32 = 1e-7  # relative resolution of float32 numbers
SINGLE = 1e-5  # resolution of scores computed in float32, or from float32 features
BLOCK = 2_000  # number of claims compared at a time, which fit into the processor cache
# amount by which scores shared by several problems are lowered, relative to the score
COPIED = 1e-6


def measured_rounding(confidence_alone, batch, confidence):
    """Return ten times the largest measured difference between two confidences in the same claim.

    Parameters
    ----------
    confidence_alone : callable
        Function that accepts a batch, recomputes its columns, and returns the confidences.
    batch : GraphBatch
        The problems passed by the caller.
    confidence : ndarray of shape (n_claims,)
        Confidences computed for the whole ``batch`` in a single call.

    Returns
    -------
    rounding : float
        Ten times the largest difference, in the same units as the confidence.

    Raises
    ------
    ValueError
        If the columns or the scorer depend on other problems in the batch.
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
                f"{batch.name_of(rows[part.problem_of[claim]])}: the confidences must not "
                f"depend on other problems, but they differ by {difference[claim]:.3g} if the "
                f"problem is scored alone, and rounding explains only {bound:.3g}. Do not "
                "rank, scale or clip the confidences across the batch, and compute them in "
                "float32 or float64"
            )
        worst = max(worst, difference.max(initial=0.0))
    return MARGIN * worst


def _list_batches(n):
    """Return rows of batches of several sizes, because sums may depend on the batch size."""
    rows = np.unique(np.linspace(0, n - 1, min(n, LARGEST)).astype(int))
    bounds = np.cumsum([0, *SIZES, len(rows) // 3])
    parts = np.split(rows, bounds[1:])
    return [part for part in parts if 0 < len(part) < n]


def resolution_of(scorer, batches, confidence):
    """Return the expected reproducibility of the scores, relative to 1 + abs(score).

    The function has no information about how the features were computed. A column is assumed to
    be computed in float32 if float32 can represent all its numbers exactly and some of them are
    not round (3 and 0.25 are round). A float32 column is reproducible only up to the precision of
    float32. The confidences are checked for float32 numbers in the same way.

    Parameters
    ----------
    scorer : Scorer
        The scorer, whose ``resolution`` is the reproducibility of its confidences.
    batches : sequence of GraphBatch
        The problems passed by the caller, and the same problems with the columns that the scorer
        uses.
    confidence : ndarray of shape (n_claims,)
        Confidences in the claims.
    """
    tables = {id(b.features): b.features for b in batches if b.features is not None}
    for table in (*tables.values(), confidence[:, None]):
        if table.size and single_columns(table).any():
            if getattr(scorer, "gain", None) is not None:
                _refuse_split_prices(scorer, batches[-1], confidence)
            return max(scorer.resolution, SINGLE)
    return scorer.resolution


def _refuse_split_prices(scorer, batch, confidence):
    """Raise ValueError if prices change too much within the resolution of float32 columns.

    Claims of an answer with equal hazards share a price. If the hazards differ in their last
    digits, the prices differ.
    """
    signs = np.where(np.arange(batch.n_features) % 2, 1.0, -1.0)
    features = batch.features * (1 + FLOAT32 * signs)
    moved = scorer.confidence(batch.replace_features(features, batch.feature_names))
    difference = np.abs(moved - confidence)
    bound = TOLERATED * max(np.abs(confidence).max(initial=0.0), 1.0)
    claim = int(np.argmax(difference))
    if difference[claim] > bound:
        raise ValueError(
            f"{batch.locate(claim)}: the columns are float32 numbers, and the log price of the "
            f"claim changes by {difference[claim]:.3g} if they change by their resolution "
            f"({FLOAT32:g}), but at most {bound:.3g} is allowed. Pass the columns in float64, or "
            "use a scorer with gain=1 or gain=None"
        )


@dataclass(frozen=True)
class Precision:
    """Reproducibility of scores.

    Attributes
    ----------
    resolution : float
        Reproducibility returned by `resolution_of`, relative to 1 + abs(score).
    rounding : float
        Difference returned by `measured_rounding`, in the same units as the score.
    """

    resolution: float
    rounding: float

    def lower(self, scores):
        """Return the scores, lowered by the largest difference expected on another machine."""
        scores = scores.copy()
        finite = np.isfinite(scores)
        size = 1 + np.abs(scores[finite])
        scores[finite] -= np.maximum(self.resolution * size, self.rounding)
        return scores


def raised(risk, table):
    """Raise the prediction risks in rows that contain a float32 number that is not round.

    The same problem may have been scored in float64 during calibration, and 0.6 is smaller by
    about 2e-8 in float64 than in float32. If the risks were not raised, copies of a false claim
    could have risks below their calibrated score.
    """
    blocks = np.array_split(table, len(table) // BLOCK + 1)
    broken = np.concatenate([_compare_single(rows)[1].any(axis=1) for rows in blocks])
    return risk + SINGLE * (1 + np.abs(risk)) * broken if broken.any() else risk


def single_columns(table):
    """Return which columns contain only float32 numbers, of which at least one is not round."""
    single, broken = _compare_single(table[:100_000])
    return single.all(axis=0) & broken.any(axis=0)


def _compare_single(table):
    """Return which numbers are float32 numbers, and which of these are not round."""
    with np.errstate(over="ignore"):
        single = table == table.astype(np.float32)
        scaled = table * 1024
        return single, single & (scaled != np.floor(scaled))


def below_copies(scores):
    """Lower duplicate scores by about one millionth, unless they are round numbers.

    If equal scores are not round numbers, they probably belong to copies of a claim, and another
    copy may be scored on another machine. The reproducibility of columns that the filter did not
    compute is unknown. For example, the difference between products near 1e7 is accurate only to
    about 1e-8.
    """
    size = 1 + np.abs(scores)
    # The difference between two infinite scores is NaN.
    with np.errstate(invalid="ignore"):
        broken = np.abs(scores - np.round(scores, 3)) > 1e-9 * size
    # If all scores are rounded to three decimals, no search for equal scores is needed.
    if not broken.any():
        return scores
    _, code, count = np.unique(scores, return_inverse=True, return_counts=True)
    copied = broken & (count[code] > 1)
    scores = scores.copy()
    scores[copied] -= COPIED * size[copied]
    return scores


def nearly_equal(now, before):
    """Return whether two arrays are equal up to rounding errors, or both are None."""
    if now is None or before is None:
        return now is before
    finite = np.abs(before[np.isfinite(before)])
    bound = TOLERATED * max(finite.max(initial=0.0), 1.0)
    return np.allclose(now, before, rtol=0, atol=bound)
