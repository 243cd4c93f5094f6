"""Guard against edges, alternatives and contexts that are present in only some problems.

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
    "edges": "edges (unknown edges are not the same as no edges)",
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
    return estimator.edges == "given" or reads_edges(estimator.features)


def without_unknown_edges(estimator: Any, batch: GraphBatch) -> GraphBatch:
    """Drop the edges of new problems if the edges of all calibration problems were unknown.

    Without these edges, all problems are treated in the same way, so the guarantee holds. Answers
    that are filtered without edges are not necessarily coherent.

    Parameters
    ----------
    estimator : filter
        A filter whose ``provenance_`` describes the calibration problems.
    batch : GraphBatch
        The problems passed by the caller.

    Returns
    -------
    problems : GraphBatch
        The problems. The problems are returned unchanged if the edges were known in calibration
        or are not used.

    Warns
    -----
    GuaranteeWarning
        If the edges of new problems are dropped.
    """
    calibrated = getattr(estimator, "provenance_", None) or {}
    unknown = calibrated.get("edges") == [False] and needs_edges(estimator)
    if not unknown or not batch.edges_known[batch.sizes > 1].any():
        return batch
    n_dropped = len(np.unique(batch.problem_of[batch.edges[:, 1]]))
    if n_dropped:
        warn(
            f"the edges of {n_dropped} of {len(batch)} problems are ignored, because the "
            "edges of all calibration problems were unknown. The guarantee holds, but "
            "kept claims may depend on dropped claims. To use edges, calibrate the "
            "filter on problems with known edges",
            GuaranteeWarning,
        )
    return batch.without_edges(known=False)


def compare_presence(name, text, values, before):
    if name == "edges" and len(values) == 2 and not before:
        raise ValueError(
            f"{text} must be passed for all problems with several claims or for none of "
            "them. Pass edges for all of these problems (() if the claims are "
            'independent), or set edges="none" or edges to a function from skdcf.edges '
            "in the filter"
        )
    for value in values:
        if before and value not in before:
            have = "have" if value else "do not have"
            had = "did not have them" if value else "had them"
            choose = Advice(
                "choose_edges", ', or set edges="none" or edges to a function'
            )
            raise ValueError(
                Message(
                    f"problems {have} {text}, but the calibration problems {had}. The "
                    "guarantee holds only for problems made in the same way. Make "
                    "them in the same way, or fit again",
                    choose if name == "edges" else "",
                )
            )


def warn_of_edges(origin, calibrated):
    """Warn if edges are probably missing or marked as unknown by mistake."""
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
            Message(
                f"none of the {n_problems} problems with several claims has edges, "
                f"but {min(shares):.0%} of the calibration problems do. If the edges "
                "are unknown, ",
                Advice("leave_unknown", "pass edges=None, because ()"),
                " means that all claims are independent. If they are not "
                "independent, the guarantee does not hold",
            ),
            GuaranteeWarning,
        )
    if calibrated["edges"] == [] and False in origin["edges"]:
        warn(
            "all calibration problems have a single claim, but some of the problems in X "
            "have several claims with unknown edges. Calibrate the filter on answers "
            "with several claims, because answers with a single claim cannot contain "
            "several errors",
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
