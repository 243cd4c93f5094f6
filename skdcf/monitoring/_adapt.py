"""Filters that follow what changes, and whole answers that need no review.

The answers are found by conformal selection (Jin and Candès 2023).
"""

from __future__ import annotations

from copy import copy
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .._checks import check_alpha
from .._parameters import Settings, positive
from ..estimators import CalibrationPart
from ..graphs import Labels, Problems
from ..ops.hard import segment_min


class SlidingCalibration(Settings):
    """Keep a filter calibrated on the latest judged problems.

    Parameters
    ----------
    filter : fitted filter
        It stays as it is; a copy is calibrated. Its scorer is not trained again.
    window : int, default=1000
        Number of problems that calibrate.
    smallest : int, default=200
        Until so many new problems were judged, the calibration of ``filter`` is kept.

    Attributes
    ----------
    filter_ : fitted filter
        Calibrated on the window; use it as any other.
    n_seen_ : int
        Problems that were judged so far.

    Notes
    -----
    The promise holds where the problems of the window and the next one are exchangeable.
    Where problems change slowly, coverage is lost by no more than they differ, in total
    variation, on average over the window (Barber, Candès, Ramdas and Tibshirani 2023).
    Look at `filter_` as often as you like, but take the masks for a problem from the
    filter as it was before that problem was judged.

    References
    ----------
    R. F. Barber, E. Candès, A. Ramdas, R. Tibshirani. Conformal prediction beyond
    exchangeability. Annals of Statistics 51, 2023.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.monitoring import SlidingCalibration
    >>> graphs, y = make_reasoning_graphs(900, random_state=0, return_X_y=True)
    >>> cf = HardCF("frequency-score").fit(graphs[:300], y[:300])
    >>> sliding = SlidingCalibration(cf, window=400).update(graphs[300:], y[300:])
    >>> sliding.filter_.n_calibration_, cf.n_calibration_
    (399, 299)
    """

    _parameter_constraints = {
        "window": [positive(Integral)],
        "smallest": [positive(Integral)],
    }

    part_: CalibrationPart

    def __init__(self, filter: Any, *, window: int = 1000, smallest: int = 200) -> None:
        self.filter = filter
        self.window = window
        self.smallest = smallest

    def validate(self) -> None:
        """Raise ValueError unless all parameters fit together."""
        super().validate()
        if not hasattr(self.filter, "calibrate_parts"):
            raise ValueError(f"filter is {self.filter!r}, but must be a fitted filter")
        if self.smallest > self.window:
            raise ValueError(
                f"smallest is {self.smallest}, but the window holds {self.window} problems"
            )

    def update(self, X: Problems, y: Labels) -> Self:
        """Calibrate on these problems as well, and drop the oldest.

        Parameters
        ----------
        X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
            Problems in the order of time, as in ``fit`` of the filter.
        y : sequence of 1-D arrays, one per problem
            Their labels.

        Returns
        -------
        self
            This object.

        Warns
        -----
        CalibrationWarning
            If the window is too small for the filter's alpha.
        """
        self.validate()
        current = copy(getattr(self, "filter_", self.filter))
        new = current.calibration_part(X, y)
        before = [self.part_] if hasattr(self, "part_") else []
        part = type(new).join([*before, new])[-self.window :]
        if len(part) >= self.smallest:
            current.calibrate_parts([part])
        self.n_seen_ = getattr(self, "n_seen_", 0) + len(new)
        self.part_, self.filter_ = part, current
        return self


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
        Largest share of what is released that may have something false in it.

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
    check_is_fitted(filter, "answer_scores_")
    batch, scores = filter.check(X), filter.answer_scores_
    risk = [np.empty(0), *np.atleast_1d(filter.path_risk(batch))]
    largest = -segment_min(-np.concatenate(risk), batch.offsets)
    # An answer's p-value is so many of n + 1: itself, and the calibration problems with
    # an error and no larger risk.
    counts = 1 + np.searchsorted(scores, largest, side="right")
    n, m, order = len(scores), len(counts), np.argsort(counts, kind="stable")
    k = np.arange(1, m + 1)
    # A quotient of whole numbers is rounded once, so it meets the decimal alpha exactly.
    good = np.flatnonzero(counts[order] * m / ((n + 1) * k) <= alpha)
    out = np.zeros(m, dtype=bool)
    out[order[: good[-1] + 1 if len(good) else 0]] = True
    return out
