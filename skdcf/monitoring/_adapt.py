"""Filters that follow what changes: another level, or another window of problems.

Whole answers that need no review are found by conformal selection (Jin and Candès 2023).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from .._checks import check_alpha
from .._parameters import Settings, positive
from ..estimators import CalibrationPart
from ..graphs import Labels, Problems
from ..metrics import problem_errors
from ..ops.hard import segment_min


def _errors_of(y, kept):
    """Whether a false claim was kept of each problem; there may be no problems."""
    return problem_errors(y, kept) if len(y) or len(kept) else np.zeros(0, dtype=bool)


class AdaptiveAlpha(Settings):
    """Move the level up and down so that errors come out right in the long run.

    After each judged answer the level moves by ``gamma (alpha - error)``: down by much
    after a false claim that was kept, up by little otherwise. This needs no assumption
    about the problems at all, not even that they are random.

    Parameters
    ----------
    alpha : float, default=0.1
        Share of problems, in (0, 1), that may keep a false claim in the long run.
    gamma : float, default=0.01
        Step. Large steps follow faster and swing more.

    Attributes
    ----------
    level_ : float
        What to filter with now. At 0 and below, nothing is kept; at 1, everything.
    history_ : ndarray of shape (n_problems,)
        The level before each problem was taken in.
    n_errors_ : int

    Notes
    -----
    After T problems, whatever they were, the share of errors is at most
    ``alpha + (alpha + gamma) / (gamma T)`` where each is taken in before the next is
    filtered, because the level starts at alpha, never falls below ``-gamma``, and errors
    are what lowers it. Where b problems at a time are filtered and then taken in, it can
    fall to ``-b gamma``, and the bound is ``alpha + (alpha + b gamma) / (gamma T)``: keep
    ``b gamma`` small. The published rule bounds the
    share from below as well. Here it can stay below alpha: where everything is kept
    there may still be no false claim, and the level is held at 1 then, so that no credit
    piles up for worse times.

    References
    ----------
    I. Gibbs, E. Candès. Adaptive Conformal Inference Under Distribution Shift. NeurIPS
    2021.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.monitoring import AdaptiveAlpha
    >>> graphs, y = make_reasoning_graphs(400, random_state=0, return_X_y=True)
    >>> cf = HardCF("frequency-score").fit(graphs[:200], y[:200])
    >>> level = AdaptiveAlpha(alpha=0.2, gamma=0.02)
    >>> for i in range(200, 400):
    ...     kept = level.predict(cf, graphs[i : i + 1])
    ...     level = level.update(y[i : i + 1], kept)
    >>> bool(level.n_errors_ / 200 <= 0.2 + (0.2 + 0.02) / (0.02 * 200))
    True
    """

    _parameter_constraints = {"gamma": [positive(Real)]}

    def __init__(self, alpha: float = 0.1, *, gamma: float = 0.01) -> None:
        self.alpha = alpha
        self.gamma = gamma

    def validate(self) -> None:
        """Raise ValueError unless all parameters are as declared."""
        check_alpha(self.alpha)
        super().validate()

    @property
    def level_(self) -> float:
        """What to filter with now."""
        return getattr(self, "_level", float(self.alpha))

    def predict(self, filter: Any, X: Problems) -> NDArray:
        """Which claims a filter keeps at the present level.

        Parameters
        ----------
        filter : fitted filter
        X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)

        Returns
        -------
        As ``predict`` of the filter.
        """
        self.validate()
        needed, level = filter.predict_alpha(X), self.level_
        if needed.dtype != object:
            return (needed <= level) | (level >= 1)
        out = np.empty(len(needed), dtype=object)
        for i, row in enumerate(needed):
            out[i] = (row <= level) | (level >= 1)
        return out

    def update(
        self, y: Sequence[ArrayLike] | ArrayLike, kept: Sequence[ArrayLike] | ArrayLike
    ) -> Self:
        """Take in answers that were judged, in the order of time.

        Parameters
        ----------
        y : sequence of 1-D arrays, one per problem
            1 for a true claim, 0 for a false one, -1 for one that nobody judged, which
            counts as false. A flat array has one claim per problem.
        kept : sequence of boolean masks, as `predict` returned them

        Returns
        -------
        self
        """
        self.validate()
        errors, alpha, gamma = _errors_of(y, kept), float(self.alpha), float(self.gamma)
        levels, level = [], self.level_
        for error in errors.tolist():
            levels.append(level)
            level = min(level + gamma * (alpha - error), 1.0)
        self._level = level
        self.history_ = np.append(getattr(self, "history_", ()), levels)
        self.n_errors_ = getattr(self, "n_errors_", 0) + int(errors.sum())
        return self


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
        X, y
            As in ``fit`` of the filter, in the order of time.

        Returns
        -------
        self

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
