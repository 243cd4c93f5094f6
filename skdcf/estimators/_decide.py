"""What decides which claims are kept, all of it from one look at the problems."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._ties import TIES

if TYPE_CHECKING:
    from ..graphs import GraphBatch, Problems
    from ..scorers import LinearForm


class Decision(NamedTuple):
    """What decides which claims are kept; every array has one entry per claim.

    Attributes
    ----------
    batch : GraphBatch
        The problems as the scorer sees them.
    kept : ndarray of bool
        Whether the claim is kept.
    confidence : ndarray
        The scorer's confidence in the claim by itself.
    path_risk : ndarray
        The largest risk among the claim and its ancestors.
    threshold : ndarray
        The claim is kept where its path risk is below.
    smallest_alpha : ndarray
        The smallest alpha at which the claim is kept; NaN where it has none of its own.
    form : LinearForm or None
        The confidence as a weighted sum of columns, where it is one.
    """

    batch: GraphBatch
    kept: NDArray[np.bool_]
    confidence: NDArray[np.float64]
    path_risk: NDArray[np.float64]
    threshold: NDArray[np.float64]
    smallest_alpha: NDArray[np.float64]
    form: LinearForm | None


def decide(
    filter: Any,
    X: Problems,
    alpha: float | None = None,
    accept_origin: str | None = None,
) -> Decision:
    """Score problems once, and say all that decides which of their claims are kept.

    Parameters
    ----------
    filter : fitted filter
        The filter that decides.
    X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
        Problems to filter.
    alpha : float in (0, 1), optional
        None is the filter's own.
    accept_origin : str, optional
        As in `fit`.

    Returns
    -------
    Decision
    """
    risks, view = filter._claims(X, accept_origin)
    calibration, level = filter.calibration_, filter._level(alpha)
    filter._warn(calibration, level)
    margin, graphs = filter._margin(risks, view, level), filter._graphs(view)
    threshold = calibration.thresholds(risks, level)
    if np.ndim(threshold):
        threshold = threshold[view.passed.problem_of]
    try:
        levels = calibration.levels(risks, TIES[filter.ties].keep_equal)
    except ValueError:  # groups that overlap give a claim no level of its own
        levels = np.full(len(margin), np.nan)
    return Decision(
        batch=graphs,
        kept=margin > 0,
        confidence=view.confidence,
        path_risk=risks.path_risk,
        threshold=np.broadcast_to(threshold, margin.shape),
        smallest_alpha=levels,
        form=filter.scorer_.linear_form(graphs),
    )
