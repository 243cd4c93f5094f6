"""Coverage and retention of kept sets, observed and predicted by theory."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import check_choice
from ..graphs.ragged import offsets_of
from ..ops.hard import segment_min, segment_sum


def coverage_score(
    y: Sequence[ArrayLike] | ArrayLike, kept: Sequence[ArrayLike] | ArrayLike
) -> float:
    """Share of problems of which no false claim is kept.

    Parameters
    ----------
    y : sequence of 1-D arrays, one per problem
        1 for a true claim, 0 for a false one, -1 for one that nobody judged, which counts
        as false. A flat array has one claim per problem.
    kept : sequence of boolean masks, as `predict` returns them

    Returns
    -------
    float in [0, 1]

    Examples
    --------
    >>> from skdcf.metrics import coverage_score
    >>> coverage_score([[1, 0], [1, 1]], [[True, True], [True, False]])
    0.5
    """
    return float(np.mean(~problem_errors(y, kept)))


def problem_errors(
    y: Sequence[ArrayLike] | ArrayLike, kept: Sequence[ArrayLike] | ArrayLike
) -> NDArray[np.bool_]:
    """Of which problems a false claim is kept.

    Parameters
    ----------
    y, kept
        As in `coverage_score`.

    Returns
    -------
    ndarray of bool, shape (n_problems,)

    Examples
    --------
    >>> from skdcf.metrics import problem_errors
    >>> problem_errors([[1, 0], [1, 1]], [[True, True], [True, False]])
    array([ True, False])
    """
    labels, kept, offsets = _flat(y, kept)
    return segment_sum(kept & (labels != 1), offsets) > 0


def retention_score(
    y: Sequence[ArrayLike] | ArrayLike,
    kept: Sequence[ArrayLike] | ArrayLike,
    *,
    claims: Literal["true", "all"] = "true",
    unit: Literal["count", "share"] = "count",
) -> float:
    """How many claims are kept.

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
    labels, kept, offsets = _flat(y, kept)
    counted = (labels == 1) | (claims == "all")
    total = len(offsets) - 1 if unit == "count" else counted.sum()
    return float((kept & counted).sum() / total) if total else 0.0


def _flat(y, kept):
    if len(y) != len(kept):
        raise ValueError(f"y has {len(y)} problems but kept has {len(kept)}")
    if not len(y):
        raise ValueError("no problems: y is empty")
    (labels, sizes), (masks, n_kept) = _joined(y), _joined(kept)
    wrong = np.flatnonzero(sizes != n_kept)
    if wrong.size:
        i = wrong[0]
        raise ValueError(
            f"problem {i}: {sizes[i]} labels but {n_kept[i]} entries in kept"
        )
    for name, values, known in (("y", labels, (0, 1, -1)), ("kept", masks, (0, 1))):
        numbers = values.dtype.kind in "biuf"
        if not numbers or not np.isin(values, known).all():
            raise ValueError(f"{name} holds values other than {known}")
    return labels, masks.astype(bool), offsets_of(sizes)


def _joined(rows):
    """The values of all rows, and how many there are of each."""
    if isinstance(rows, np.ndarray) and rows.ndim == 1 and rows.dtype != object:
        return rows, np.ones(len(rows), dtype=np.int64)
    rows = [np.ravel(row) for row in rows]
    return np.concatenate(rows), np.array([len(row) for row in rows])


def nonempty_score(kept: Sequence[ArrayLike] | ArrayLike) -> float:
    """Share of problems of which something is kept.

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
    _, masks, offsets = _flat(kept, kept)
    return float(np.mean(segment_sum(masks, offsets) > 0))


def clean_prefix_score(
    y: Sequence[ArrayLike] | ArrayLike, kept: Sequence[ArrayLike] | ArrayLike
) -> float:
    """How many steps of an answer can be read from its beginning.

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
    labels, masks, offsets = _flat(y, kept)
    return float(first_true(~(masks & (labels == 1)), offsets).mean())


def first_error_score(
    y: Sequence[ArrayLike] | ArrayLike, kept: Sequence[ArrayLike] | ArrayLike
) -> dict[str, float]:
    """Filters as detectors of the first error, in the terms of ProcessBench.

    What a filter drops first is taken for the place that it finds the first error at.

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
        error of which all is kept; ``f1``: their harmonic mean. NaN where there is no
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
    labels, masks, offsets = _flat(y, kept)
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
