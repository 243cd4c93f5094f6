"""Which whole answers need no review, and what is shown of each answer."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from .._checks import check_alpha
from ..estimators import Filter, check, shown_masks
from ..graphs import Problems
from ._monitors import largest_of


def release(filter: Filter, X: Problems, alpha: float) -> NDArray[np.bool_]:
    """Choose whole answers that may go out without review.

    Of those chosen, the expected share with something false in them is at most ``alpha``
    (false discovery rate, by Benjamini and Hochberg's procedure over all answers of
    ``X``).

    Parameters
    ----------
    filter : fitted filter
        Any without ``weight``; its own alpha plays no part, nor does what it would keep.
    X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
        The answers to choose from, all at once.
    alpha : float in (0, 1)
        Largest share of what is released that may have something false in it.

    Returns
    -------
    ndarray of bool, shape (n_problems,)
        True for an answer that needs no review.

    Raises
    ------
    ValueError
        On bad problems or alpha, or if the guarantee of the filter has a ``weight``.

    Notes
    -----
    The p-value of an answer for "there is something false in it" is
    ``p = (1 + #{i : answer i has something false in it, S_i <= S}) / (n + 1)``, where S
    is the largest path risk of the answer and i runs over the n calibration problems. The
    chance that an answer has something false in it *and* a p-value of at most t is at
    most t, for every t; it says nothing about those answers alone that are wrong.

    Needed is that calibration problems and new ones are exchangeable. A claim that nobody
    judged counts as false in calibration, which releases less. Where an answer has no
    claims, there is nothing false in it.

    The filter keeps the claims of an answer that it can vouch for; this keeps whole
    answers, and promises something about those that it keeps, on average over them.

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
    # An answer's p-value is so many of n + 1: itself, and the calibration problems with
    # an error and no larger risk.
    counts = 1 + np.searchsorted(scores, largest, side="right")
    n = len(scores)
    m = len(counts)
    order = np.argsort(counts, kind="stable")
    k = np.arange(1, m + 1)
    # A quotient of whole numbers is rounded once, so it meets the decimal alpha exactly.
    good = np.flatnonzero(counts[order] * m / ((n + 1) * k) <= alpha)
    out = np.zeros(m, dtype=bool)
    out[order[: good[-1] + 1 if len(good) else 0]] = True
    return out


def release_claims(
    filter: Filter,
    X: Problems,
    alpha: float,
    *,
    groups: ArrayLike | Literal[False] | None = None,
    one_per_question: bool = False,
) -> NDArray[Any]:
    """Choose the claims to keep so that the texts that are shown can be trusted.

    A reader meets the answers of which something is kept. Of these, in this batch, the
    expected share with a false claim is at most ``alpha``; a batch in which nothing is
    shown counts as 0. Over many batches, the share of all shown texts with a false claim is
    about ``alpha`` divided by the share of the batches that show something: with small
    batches it may be far above ``alpha``. A filter whose guarantee has ``show=`` bounds the
    rate for each answer that passes, in batches of any size. `predict` promises less to that
    reader: it counts an answer of which nothing is kept as a success.

    Parameters
    ----------
    filter : fitted filter
        It promises no false claim (or at most ``max_false``), without ``delta`` and
        ``weight``. Its own alpha plays no part but for the number of answers that
        calibrate, of which this takes more: calibrate at alpha times the share of the
        answers that you expect to be shown.
    X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
        New answers, all at once, and one to each question. With ``by=`` each group is a
        batch of its own.
    alpha : float in (0, 1)
        Largest expected share of the shown answers with a false claim.
    groups : array-like of shape (n_problems,), or False, optional
        The question that each problem answers, as in ``calibrate`` of the filter.
    one_per_question : bool
        Of several answers to a question take one, chosen by a hash, and keep nothing of
        the others.

    Returns
    -------
    ndarray of shape (n_problems,)
        Objects: a boolean mask per problem, as `predict` returns them.

    Raises
    ------
    ValueError
        If a question trained or calibrated the filter, if two answers are to the same
        question, or if the filter has another guarantee.

    Warns
    -----
    CalibrationWarning
        If nothing is shown.

    Notes
    -----
    The proof needs that the calibration answers and any one of the new ones are
    exchangeable, given the others. It is about the batch: an answer may be shown in one
    batch and not in another. One answer at a time it is `predict`.

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
