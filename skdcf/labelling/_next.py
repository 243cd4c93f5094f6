"""Which problems are worth the next hour of labelling."""

from typing import Any, NamedTuple

import numpy as np

from ..graphs import Labels
from ..metrics import unwrap
from ..ops.conformal import conformal_threshold


class NextProblem(NamedTuple):
    """A problem that labels can move the threshold with.

    Parameters
    ----------
    problem : int
        Its position.
    claims : tuple of int
        Positions of the claims to judge, the riskiest of the kept ones first. If all of
        them are true, the threshold moves; where one is false, the others need not be
        judged.
    gain : float
        How far the threshold rises if they are true and nothing else changes.
    """

    problem: int
    claims: tuple[int, ...]
    gain: float


def next_to_label(
    filter: Any, X: Any, y: Labels, alpha: float | None = None
) -> list[NextProblem]:
    """The calibration problems whose labels would move the threshold.

    An unknown label counts as false in calibration, which is safe and may cost a great
    deal. It costs nothing in a problem whose score lies above the threshold: no label
    there can move it. Where the score lies at or below the threshold because of claims
    that nobody judged, judging these may raise it, and more is kept of every new answer.

    Parameters
    ----------
    filter : fitted filter
        Or a fitted pipeline that ends in one. Its scorer is used, not its calibration.
    X : sequence of ReasoningGraph, or GraphBatch
        Calibration problems.
    y : sequence of arrays, one per problem
        1 true, 0 false, -1 unknown.
    alpha : float in (0, 1), optional
        None is the filter's own.

    Returns
    -------
    list of NextProblem
        First those that need the fewest judgements, then those with the larger gain.

    Raises
    ------
    ValueError
        On bad problems, labels or alpha, or if the filter has a guarantee of its own.

    Notes
    -----
    The threshold is the k-th smallest score. It rises if one of the k smallest scores
    rises above it, to the next larger score or to the new one. A problem whose known
    false claims hold its score down is left out, whatever else is unknown in it.

    Examples
    --------
    >>> from skdcf import HardCF, ReasoningGraph
    >>> from skdcf.labelling import next_to_label
    >>> graphs = [ReasoningGraph([[0.9], [0.1 * i]], []) for i in range(9)]
    >>> y = [[1, 0] if i < 6 else [-1, 0] for i in range(9)]
    >>> cf = HardCF(0, alpha=0.2).fit(graphs, y)
    >>> [(n.problem, n.claims) for n in next_to_label(cf, graphs, y)]
    [(6, (0,)), (7, (0,)), (8, (0,))]
    """
    filter, X = unwrap(filter, X)
    if filter.guarantee is not None:
        raise ValueError(
            f"guarantee={filter.guarantee!r} has thresholds of its own; what moves them is "
            "only known for the standard promise, guarantee=None"
        )
    batch, labels = filter.check(X, y)
    alpha = filter.alpha if alpha is None else alpha
    now = filter.calibration_scores(batch, labels)
    hoped = filter.calibration_scores(batch, np.where(labels == -1, 1, labels))
    risk = np.concatenate(list(filter.path_risk(batch)), axis=None)
    ordered = np.sort(now)
    threshold = conformal_threshold(ordered, alpha)
    found = []
    for i in np.flatnonzero((now <= threshold) & (hoped > threshold)).tolist():
        rows = slice(batch.offsets[i], batch.offsets[i + 1])
        claims = _to_judge(labels[rows], risk[rows], now[i], threshold)
        others = np.delete(ordered, np.searchsorted(ordered, now[i]))
        moved = conformal_threshold(np.sort(np.append(others, hoped[i])), alpha)
        found.append(NextProblem(i, claims, _rise(moved, threshold)))
    return sorted(found, key=lambda n: (len(n.claims), -n.gain, n.problem))


def _rise(moved, threshold):
    return 0.0 if moved == threshold else float(moved - threshold)


def _to_judge(labels, risk, score, threshold):
    """Unknown claims whose path risk holds the score at or below the threshold."""
    lowered = risk - (risk[labels != 1].min() - score)  # as the score was, by rounding
    rows = np.flatnonzero((labels == -1) & (lowered <= threshold))
    return tuple(rows[np.argsort(-risk[rows], kind="stable")].tolist())
