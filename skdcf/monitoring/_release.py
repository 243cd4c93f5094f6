"""Selection of answers that need no review, and of claims for a batch of shown texts."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from .._checks import check_alpha
from ..estimators import ConformalFilter, check, shown_masks
from ..graphs import Problems
from ..ops.conformal import shown_rank
from ._monitors import largest_of


def release(filter: ConformalFilter, X: Problems, alpha: float) -> NDArray[np.bool_]:
    """Select whole answers that need no review.

    The expected share of the selected answers that contain a false claim is at most ``alpha``
    (false discovery rate, by Benjamini and Hochberg's procedure over all answers of ``X``).

    Parameters
    ----------
    filter : fitted filter
        Any filter without ``weight``. Neither its alpha nor the claims that it would keep
        matter.
    X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
        The answers to choose from, all at once.
    alpha : float in (0, 1)
        Largest expected share of the selected answers with a false claim.

    Returns
    -------
    ndarray of bool, shape (n_problems,)
        True for an answer that needs no review.

    Raises
    ------
    ValueError
        If problems or alpha are not valid, or the guarantee of the filter has a ``weight``.

    Notes
    -----
    The p-value of an answer for "it contains a false claim" is
    ``p = (1 + #{i : answer i contains a false claim, S_i <= S}) / (n + 1)``, where S is the
    largest path risk of the answer and i runs over the n calibration problems. The probability
    that an answer contains a false claim *and* has a p-value of at most t is at most t, for
    every t. This is not a statement about the wrong answers alone.

    Calibration problems and new problems must be exchangeable. Unjudged claims count as false
    in calibration, so fewer answers are selected. An answer without claims contains no false
    claim.

    `predict` selects claims within each answer. `release` selects whole answers, and its
    guarantee is about the selected answers on average.

    References
    ----------
    Y. Jin, E. Candès. Selection by Prediction with Conformal p-values. JMLR 24, 2023.
    Y. Benjamini, Y. Hochberg. Controlling the False Discovery Rate. JRSS B 57, 1995.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.monitoring import release
    >>> graphs, y = make_reasoning_graphs(
    ...     1000, kind="felm", random_state=0, return_X_y=True
    ... )
    >>> cf = HardCF(random_state=0).fit(graphs[:600], y[:600])
    >>> free = release(cf, graphs[600:], alpha=0.2)
    >>> int(free.sum())
    252
    >>> wrong = [bool((row == 0).any()) for row in y[600:]]
    >>> round(float((free & wrong).sum() / 252), 2)
    0.15
    """
    alpha = check_alpha(alpha)
    check_is_fitted(filter, "whole_answer_scores_")
    guarantee = filter.calibration_.guarantee
    if guarantee.weight is not None:
        raise ValueError(
            f"release ignores weights, and this filter has {guarantee!r}: it would release "
            "too much under the shift that the weights describe. Leave weight at None and "
            "calibrate again on answers like the new ones"
        )
    batch = check(filter, X)
    scores = filter.whole_answer_scores_
    largest = largest_of(filter.path_risk(batch))
    rank = shown_rank(scores, largest, alpha)
    return largest < scores[rank - 1] if rank else np.zeros(len(largest), dtype=bool)


def release_claims(
    filter: ConformalFilter,
    X: Problems,
    alpha: float,
    *,
    groups: ArrayLike | Literal[False] | None = None,
    one_per_question: bool = False,
) -> NDArray[Any]:
    """Choose the claims to keep in a batch, with a bound on the error rate of shown texts.

    A reader sees the answers of which something is kept. Within a batch, the expected share
    of these with a false claim is at most ``alpha``, where a batch that shows nothing counts
    as 0. Over many batches, the share of all shown texts with a false claim is about
    ``alpha`` divided by the share of the batches that show something. With small batches it
    can be far above ``alpha``. A filter whose guarantee has ``show=`` bounds the rate for each
    answer that passes, in batches of any size. With `predict` and ``show=1``, an answer of
    which nothing is kept counts as a success.

    Parameters
    ----------
    filter : fitted filter
        Its guarantee must be `~skdcf.guarantees.NoFalseClaim` without ``delta`` and
        ``weight``. Its alpha matters only for the number of calibration answers, of which
        `release_claims` needs more: calibrate at alpha times the share of the answers that
        you expect to be shown.
    X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
        The new answers of the batch, one for each question. With ``by=`` each group is its
        own batch.
    alpha : float in (0, 1)
        Largest expected share of the shown answers with a false claim.
    groups : array-like of shape (n_problems,), or False, optional
        The question that each problem answers, as in ``calibrate`` of the filter.
    one_per_question : bool
        Whether to take one of several answers to a question, chosen by a hash, and keep
        nothing of the others.

    Returns
    -------
    ndarray of shape (n_problems,)
        An object array with a boolean mask per problem, as `predict` returns.

    Raises
    ------
    ValueError
        If a question was used for training or calibration, if two answers are to the same
        question, or if the filter has another guarantee.

    Warns
    -----
    CalibrationWarning
        If nothing is shown.

    Notes
    -----
    The proof needs that the calibration answers and any one of the new answers are
    exchangeable, given the others. Whether an answer is shown depends on its batch. For a batch
    of one answer the result is that of `predict`.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.monitoring import release_claims
    >>> graphs, y = make_reasoning_graphs(
    ...     1000, kind="felm", random_state=0, return_X_y=True
    ... )
    >>> cf = HardCF(alpha=0.02, random_state=0).fit(graphs[:600], y[:600])
    >>> masks = release_claims(cf, graphs[600:], alpha=0.1)
    >>> shown = [bool(mask.any()) for mask in masks]
    >>> wrong = [bool((row[mask] == 0).any()) for row, mask in zip(y[600:], masks)]
    >>> sum(shown), sum(wrong)
    (254, 8)
    """
    alpha = check_alpha(alpha)
    check_is_fitted(filter, "nonconformity_scores_")
    return shown_masks(
        filter, X, alpha, groups=groups, one_per_question=one_per_question
    )
