"""Coverage and retention of kept sets, observed and predicted by theory."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from .._checks import check_alpha, check_choice
from ..graphs.ragged import offsets_of
from ..ops.conformal import conformal_rank
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
    labels, kept, offsets = _flat(y, kept)
    return float(np.mean(segment_sum(kept & (labels != 1), offsets) == 0))


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
    sizes = np.array([np.size(row) for row in y])
    wrong = np.flatnonzero(sizes != [np.size(row) for row in kept])
    if wrong.size:
        i = wrong[0]
        raise ValueError(
            f"problem {i}: {sizes[i]} labels but {np.size(kept[i])} entries in kept"
        )
    labels = np.concatenate([np.ravel(row) for row in y])
    masks = np.concatenate([np.ravel(row) for row in kept])
    for name, values, known in (("y", labels, (0, 1, -1)), ("kept", masks, (0, 1))):
        numbers = values.dtype.kind in "biuf"
        if not numbers or not np.isin(values, known).all():
            raise ValueError(f"{name} holds values other than {known}")
    return labels, masks.astype(bool), offsets_of(sizes)


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
    return float(_first(~(masks & (labels == 1)), offsets).mean())


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
    right = _first(~masks, offsets) == _first(labels != 1, offsets)
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


def _first(flags, offsets):
    """Position in each segment of the first True, or its length, shape (n,)."""
    position = np.arange(len(flags)) - np.repeat(offsets[:-1], np.diff(offsets))
    first = segment_min(np.where(flags, position, np.inf), offsets)
    return np.minimum(first, np.diff(offsets))


def coverage_interval(
    n_covered: int, n_problems: int, *, confidence: float = 0.95
) -> tuple[float, float]:
    """Clopper-Pearson interval of a coverage that was observed.

    Parameters
    ----------
    n_covered, n_problems : int
        ``n_covered`` of ``n_problems`` test problems had no false claim kept.
    confidence : float, default=0.95

    Returns
    -------
    (low, high) : tuple of float

    Examples
    --------
    >>> from skdcf.metrics import coverage_interval
    >>> low, high = coverage_interval(90, 100)
    >>> round(low, 3), round(high, 3)
    (0.824, 0.951)
    """
    if not 0 <= n_covered <= n_problems or n_problems < 1:
        raise ValueError(f"{n_covered} of {n_problems} problems covered: impossible")
    _check_confidence(confidence)
    from scipy.special import betaincinv

    k, n, tail = int(n_covered), int(n_problems), (1 - confidence) / 2
    low = betaincinv(k, n - k + 1, tail) if k > 0 else 0.0
    high = betaincinv(k + 1, n - k, 1 - tail) if k < n else 1.0
    return float(low), float(high)


def coverage_band(
    n_calibration: int,
    alpha: float,
    *,
    confidence: float = 0.95,
    n_test: int | None = None,
) -> tuple[float, float]:
    """Band in which theory puts the coverage after one draw of calibration problems.

    The coverage given the calibration problems follows Beta(n + 1 - k, k), with k the
    conformal rank, where scores have no ties; ties, and problems without a false claim
    where they outnumber the rank, can only raise it.

    Parameters
    ----------
    n_calibration : int
        Number of calibration problems, n.
    alpha : float in (0, 1)
    confidence : float, default=0.95
    n_test : int, optional
        With a number of test problems, the band of what will be *observed* on them
        (beta-binomial); None is that of the coverage itself.

    Returns
    -------
    (low, high) : tuple of float; (1, 1) where nothing can be kept.

    References
    ----------
    V. Vovk. Conditional validity of inductive conformal predictors. ACML 2012.

    Examples
    --------
    >>> from skdcf.metrics import coverage_band
    >>> low, high = coverage_band(99, 0.1)
    >>> round(low, 3), round(high, 3)
    (0.834, 0.95)
    """
    _check_confidence(confidence)
    return _find_band(n_calibration, check_alpha(alpha), confidence, n_test)


def _check_confidence(confidence):
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence!r}, but must be between 0 and 1")


@lru_cache(4096)  # a comparison asks for the same few bands again and again
def _find_band(n_calibration, alpha, confidence, n_test):
    from scipy.stats import beta, betabinom

    k = conformal_rank(n_calibration, alpha)
    if k == 0:
        return 1.0, 1.0
    tail = (1 - confidence) / 2
    shape = (n_calibration + 1 - k, k)
    if n_test is None:
        low, high = beta.ppf([tail, 1 - tail], *shape)
    else:
        low, high = betabinom.ppf([tail, 1 - tail], n_test, *shape) / n_test
    return float(low), float(high)
