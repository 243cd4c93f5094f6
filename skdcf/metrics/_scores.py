"""Coverage and retention of kept sets, observed and predicted by theory."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import check_choice, check_weights
from ..graphs.ragged import flatten
from ..ops.hard import segment_min, segment_sum


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
    kept : sequence of boolean masks, as `predict` returns them
    sample_weight : array-like of shape (n_problems,), optional
        How much each problem counts, for instance 1 over the number of answers to its
        question.

    Returns
    -------
    float in [0, 1]

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
    errors = problem_errors(y, kept)
    return float(np.average(~errors, weights=check_weights(sample_weight, len(errors))))


def problem_errors(
    y: Sequence[ArrayLike] | ArrayLike, kept: Sequence[ArrayLike] | ArrayLike
) -> NDArray[np.bool_]:
    """Tell for each problem whether a false claim is kept.

    Parameters
    ----------
    y : sequence of 1-D arrays, one per problem
        1 for a true claim, 0 for a false one, -1 for one that nobody judged, which counts
        as false.
    kept : sequence of boolean masks, as `predict` returns them

    Returns
    -------
    ndarray of bool, shape (n_problems,)

    Examples
    --------
    >>> from skdcf.metrics import problem_errors
    >>> problem_errors([[1, 0], [1, 1]], [[True, True], [True, False]])
    array([ True, False])
    """
    labels, kept, offsets = flatten(y, kept)
    return segment_sum(kept & (labels != 1), offsets) > 0


def retention_score(
    y: Sequence[ArrayLike] | ArrayLike,
    kept: Sequence[ArrayLike] | ArrayLike,
    *,
    claims: Literal["true", "all"] = "true",
    unit: Literal["count", "share"] = "count",
    sample_weight: ArrayLike | None = None,
) -> float:
    """Number or share of the claims that are kept.

    Parameters
    ----------
    y : sequence of 1-D arrays, one per problem
        1 for a true claim, 0 for a false one, -1 for one that nobody judged, which is
        not counted as true.
    kept : sequence of boolean masks, as `predict` returns them
    claims : {"true", "all"}
        Which claims count.
    unit : {"count", "share"}
        "count" is the mean number per problem, "share" the share of all those claims.
    sample_weight : array-like of shape (n_problems,), optional
        How much each problem counts.

    Returns
    -------
    float

    Examples
    --------
    >>> from skdcf.metrics import retention_score
    >>> retention_score([[1, 0], [1, 1]], [[True, True], [True, False]])
    1.0
    """
    check_choice("claims", claims, ("true", "all"))
    check_choice("unit", unit, ("count", "share"))
    labels, kept, offsets = flatten(y, kept)
    counted = (labels == 1) | (claims == "all")
    weight = check_weights(sample_weight, len(offsets) - 1)
    total = weight @ segment_sum(counted, offsets) if unit == "share" else weight.sum()
    return (
        float(weight @ segment_sum(kept & counted, offsets) / total) if total else 0.0
    )


def nonempty_score(kept: Sequence[ArrayLike] | ArrayLike) -> float:
    """Share of problems in which something is kept.

    Parameters
    ----------
    kept : sequence of boolean masks, as `predict` returns them

    Returns
    -------
    float in [0, 1]

    Examples
    --------
    >>> from skdcf.metrics import nonempty_score
    >>> nonempty_score([[True, False], [False], [True]])
    0.6666666666666666
    """
    _, masks, offsets = flatten(kept, kept)
    return float(np.mean(segment_sum(masks, offsets) > 0))


def clean_prefix_score(
    y: Sequence[ArrayLike] | ArrayLike, kept: Sequence[ArrayLike] | ArrayLike
) -> float:
    """Count the steps of an answer that can be read from its beginning.

    The clean prefix of an answer ends before the first claim that is dropped, or that is
    kept and not true: the retention of those who read step by step and stop at a gap.

    Parameters
    ----------
    y : sequence of 1-D arrays, one per problem
        1 for a true claim, 0 for a false one, -1 for one that nobody judged, which ends
        the prefix.
    kept : sequence of boolean masks, as `predict` returns them

    Returns
    -------
    float
        Mean length over problems, in claims.

    Examples
    --------
    >>> from skdcf.metrics import clean_prefix_score
    >>> clean_prefix_score([[1, 1, 0], [1, 1]], [[True, True, False], [False, True]])
    1.0
    """
    labels, masks, offsets = flatten(y, kept)
    return float(first_true(~(masks & (labels == 1)), offsets).mean())


def first_error_score(
    y: Sequence[ArrayLike] | ArrayLike, kept: Sequence[ArrayLike] | ArrayLike
) -> dict[str, float]:
    """Judge filters as detectors of the first error, in the terms of ProcessBench.

    The first claim that a filter drops is taken for the first error that it finds.

    Parameters
    ----------
    y : sequence of 1-D arrays, one per problem
        1 for a true claim, 0 for a false one; what follows the first error may be
        unknown, -1.
    kept : sequence of boolean masks, as `predict` returns them

    Returns
    -------
    dict of str to float
        ``error_accuracy``: share of the answers with an error whose first dropped claim
        is the first false one; ``correct_accuracy``: share of the answers without an
        error in which all is kept; ``f1``: their harmonic mean. NaN where there is no
        such answer.

    References
    ----------
    C. Zheng et al. ProcessBench: Identifying Process Errors in Mathematical Reasoning.
    arXiv:2412.06559.

    Examples
    --------
    >>> from skdcf.metrics import first_error_score
    >>> scores = first_error_score([[1, 0], [1, 1]], [[True, False], [True, False]])
    >>> scores["error_accuracy"], scores["correct_accuracy"], scores["f1"]
    (1.0, 0.0, 0.0)
    """
    labels, masks, offsets = flatten(y, kept)
    right = first_true(~masks, offsets) == first_true(labels != 1, offsets)
    wrong = segment_sum(labels != 1, offsets) > 0
    shares = [
        float(np.mean(r)) if len(r) else np.nan for r in (right[wrong], right[~wrong])
    ]
    total = sum(shares)
    return {
        "error_accuracy": shares[0],
        "correct_accuracy": shares[1],
        "f1": 2 * shares[0] * shares[1] / total if total else total,
    }


def first_true(flags, offsets):
    """Position in each segment of the first True, or its length, shape (n,)."""
    position = np.arange(len(flags)) - np.repeat(offsets[:-1], np.diff(offsets))
    first = segment_min(np.where(flags, position, np.inf), offsets)
    return np.minimum(first, np.diff(offsets))
