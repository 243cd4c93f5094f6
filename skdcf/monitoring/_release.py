"""Which whole answers need no review (conformal selection; Jin and Candès 2023)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .._checks import check_alpha
from ..graphs import Problems
from ..ops.hard import segment_min


def answer_p_values(filter: Any, X: Problems) -> NDArray[np.float64]:
    """P-value of each whole answer for "there is something false in it".

    It is ``p = (1 + #{i : answer i has something false in it, S_i <= S}) / (n + 1)``,
    where S is the largest path risk of an answer and i runs over the n calibration
    problems.

    Parameters
    ----------
    filter : fitted filter
    X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)

    Returns
    -------
    ndarray of shape (n_problems,), multiples of 1 / (n + 1)

    Notes
    -----
    The chance that an answer has something false in it *and* a p-value of at most t is at
    most t, for every t. All n calibration problems are in the denominator, also those
    without an error: that answers may be right is what this p-value makes use of, and it
    says nothing about those answers alone that are wrong.
    """
    return _counts(filter, X) / (len(filter.answer_scores_) + 1)


def release(filter: Any, X: Problems, alpha: float) -> NDArray[np.bool_]:
    """Choose whole answers that may go out without review.

    Of those chosen, the expected share with something false in them is at most ``alpha``
    (false discovery rate, by Benjamini and Hochberg's procedure over all answers of
    ``X``).

    Parameters
    ----------
    filter : fitted filter
        Any; its own alpha plays no part, nor does what it would keep.
    X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
        The answers to choose from, all at once.
    alpha : float in (0, 1)

    Returns
    -------
    ndarray of bool, shape (n_problems,)
        True for an answer that needs no review.

    Raises
    ------
    ValueError
        On bad problems or alpha.

    Notes
    -----
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
    counts = _counts(filter, X)
    n, m = len(filter.answer_scores_), len(counts)
    order = np.argsort(counts, kind="stable")
    k = np.arange(1, m + 1)
    # A quotient of whole numbers is rounded once, so it meets the decimal alpha exactly.
    good = np.flatnonzero(counts[order] * m / ((n + 1) * k) <= alpha)
    out = np.zeros(m, dtype=bool)
    if len(good):
        out[order[: good[-1] + 1]] = True
    return out


def _counts(filter, X):
    """1 plus the number of calibration problems with an error and no larger risk."""
    check_is_fitted(filter, "answer_scores_")
    batch = filter.check(X)
    risk = filter.path_risk(batch)
    flat = np.concatenate([np.empty(0), *np.atleast_1d(risk)]).astype(np.float64)
    largest = -segment_min(-flat, batch.offsets)
    return 1 + np.searchsorted(filter.answer_scores_, largest, side="right")
