"""Coverage and retention of kept sets, observed and predicted by theory."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from .._checks import check_weights
from ..graphs.ragged import flatten
from ..ops.hard import segment_sum


def coverage_score(
    y: Sequence[ArrayLike] | ArrayLike,
    kept: Sequence[ArrayLike] | ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Share of problems in which no false claim is kept.

    Parameters
    ----------
    y : sequence of 1-D arrays, one per problem
        1 for a true claim, 0 for a false one, -1 for one that nobody judged, which counts
        as false. A flat array has one claim per problem.
    kept : sequence of boolean masks
        The masks, as `predict` returns them.
    sample_weight : array-like of shape (n_problems,), optional
        How much each problem counts, for instance 1 over the number of answers to its
        question.

    Returns
    -------
    float
        A share, from 0 to 1.

    Raises
    ------
    ValueError
        On values that are no labels or masks, labels that are hidden by a mask of numpy,
        and weights that are negative, not finite, or all zero.

    Examples
    --------
    >>> from skdcf.metrics import coverage_score
    >>> coverage_score([[1, 0], [1, 1]], [[True, True], [True, False]])
    0.5
    """
    labels, kept, offsets = flatten(y, kept)
    right = segment_sum(kept & (labels != 1), offsets) == 0
    return float(np.average(right, weights=check_weights(sample_weight, len(right))))


def retention_score(
    y: Sequence[ArrayLike] | ArrayLike,
    kept: Sequence[ArrayLike] | ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Mean number of true claims that are kept per problem.

    Parameters
    ----------
    y : sequence of 1-D arrays, one per problem
        1 for a true claim, 0 for a false one, -1 for one that nobody judged, which is
        not counted as true.
    kept : sequence of boolean masks
        The masks, as `predict` returns them.
    sample_weight : array-like of shape (n_problems,), optional
        How much each problem counts.

    Returns
    -------
    float
        True claims kept per problem.

    Examples
    --------
    >>> from skdcf.metrics import retention_score
    >>> retention_score([[1, 0], [1, 1]], [[True, True], [True, False]])
    1.0
    """
    labels, kept, offsets = flatten(y, kept)
    found = segment_sum(kept & (labels == 1), offsets)
    return float(np.average(found, weights=check_weights(sample_weight, len(found))))
