"""Guard against unknown edges, and against fields that are present in only some problems.

If the calibration problems have edges but new problems lack them, claims are no longer dropped
together with the claims that they depend on, so the coverage is too low.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._checks import warn
from .._messages import Advice, Message
from ..exceptions import GuaranteeWarning
from ..features.columns import reads_edges
from ..graphs import GraphBatch

#: Fields that must be present if they were present in calibration, and missing otherwise.
PRESENT = {
    "edges": "known edges",
    "alternatives": "alternatives",
    "context": "contexts",
}
# Missing edges are suspicious if more than 90 % of the calibration problems have edges.
_MOST = 0.9
_FEW = 0.05  # proportion of differing problems above which a warning is issued


def needs_edges(estimator):
    """Return whether a filter uses the edges of the problems that are passed to it."""
    if callable(estimator.edges):
        return False
    return estimator.edges == "given" or reads_edges(estimator._transformer)


def refuse_unknown_edges(estimator: Any, batch: GraphBatch) -> None:
    """Raise ValueError if ``edges="given"`` and the edges of problems are unknown.

    Parameters
    ----------
    estimator : filter
        The filter.
    batch : GraphBatch
        The problems passed by the caller. Problems with a single claim do not need edges.
    """
    unknown = ~batch.edges_known & (batch.sizes > 1)
    if unknown.any() and estimator.edges == "given":
        first = batch.name_of(int(np.argmax(unknown)))
        raise ValueError(
            Message(
                f"the edges of {int(unknown.sum())} of {len(batch)} problems with several "
                f"claims are unknown (the first is {first}). ",
                Advice(
                    "know_edges",
                    "Pass edges=() to the graph if its claims are independent, or set "
                    'edges="none" or edges to a function from skdcf.edges in the filter',
                ),
            )
        )


def compare_presence(text, values, before):
    """Raise ValueError if a field is present in problems but was missing in calibration."""
    for value in values:
        if before and value not in before:
            have = "have" if value else "do not have"
            had = "did not have them" if value else "had them"
            raise ValueError(
                f"problems {have} {text}, but the calibration problems {had}. The "
                "guarantee holds only for problems made in the same way. Make "
                "them in the same way, or fit again"
            )


def warn_of_edges(origin, calibrated):
    """Warn if edges are probably missing by mistake."""
    if not calibrated:
        return
    shares = calibrated.get("share_with_edges") or [0.0]
    [n_problems] = origin.get("n_that_need_edges", [0])
    if (
        min(shares) >= _MOST
        and n_problems >= 20
        and origin["share_with_edges"] == [0.0]
    ):
        warn(
            f"none of the {n_problems} problems with several claims has edges, but "
            f"{min(shares):.0%} of the calibration problems do. The guarantee does not hold "
            "if the claims depend on each other. In that case, pass their edges",
            GuaranteeWarning,
        )


def warn_of_counts(origin, calibrated):
    """Warn if the number of alternatives differs from that in calibration."""
    counts_before = calibrated.get("n_alternatives")
    counts_now = np.array(origin.get("n_alternatives", []))
    if not counts_before or not len(counts_now):
        return
    outside = (counts_now < min(counts_before)) | (counts_now > max(counts_before))
    if outside.mean() > _FEW:
        warn(
            f"the calibration problems have {min(counts_before)} to {max(counts_before)} "
            f"alternatives, but {int(outside.sum())} of {len(counts_now)} problems have more "
            f"or fewer, for example {counts_now[outside][0]}, so the guarantee does not "
            "hold. Generate as many alternatives as for the calibration problems",
            GuaranteeWarning,
        )
