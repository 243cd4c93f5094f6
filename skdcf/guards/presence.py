"""Edges, alternatives, contexts and wordings that are missing, or that calibration lacked.

If edges are left out in use, a claim is no longer dropped with the claims that it depends on:
coverage was .69 instead of .90. Calibrated without wordings and used with them, a filter missed
.33 for .1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._checks import warn
from .._messages import Advice, Message
from ..exceptions import GuaranteeWarning
from ..features.columns import reads_edges
from ..graphs import GraphBatch

#: Whether these are there has to be as it was at calibration, problem by problem.
PRESENT = {
    "edges": "edges (unknown ones are not the same as none)",
    "alternatives": "alternatives",
    "context": "contexts",
    "wordings": "wordings",
}
_MOST = 0.9  # share of problems with edges that counts as nearly all
_FEW = 0.05  # share of what is not as it should be above which there is a warning


def needs_edges(estimator):
    """Whether a filter reads the edges that come with the problems."""
    if callable(estimator.edges):
        return False
    return estimator.edges == "given" or reads_edges(estimator.features)


def without_unknown_edges(estimator: Any, batch: GraphBatch) -> GraphBatch:
    """Drop the edges of new problems if those of all calibration problems were unknown.

    The same is done with all problems then, so the guarantee holds. What is lost is coherence.

    Parameters
    ----------
    estimator : filter
        Its ``provenance_`` says what was known in calibration.
    batch : GraphBatch
        The problems as passed.

    Returns
    -------
    GraphBatch
        The same problems if the edges of calibration were known, or none are read.

    Warns
    -----
    GuaranteeWarning
        If edges are dropped.
    """
    calibrated = getattr(estimator, "provenance_", None) or {}
    unknown = calibrated.get("edges") == [False] and needs_edges(estimator)
    if not unknown or not batch.edges_known[batch.has_several].any():
        return batch
    n_dropped = len(np.unique(batch.problem_of[batch.edges_between[:, 1]]))
    if n_dropped:
        warn(
            f"the edges of {n_dropped} of {len(batch)} problems are dropped, since the edges of "
            "all calibration problems were unknown. The guarantee holds, but kept claims may "
            "rest on dropped ones. To use edges, fit a filter on problems whose edges are known",
            GuaranteeWarning,
        )
    return batch.without_edges(known=False)


def compare_presence(name, text, values, before):
    if name == "edges" and len(values) == 2 and not before:
        raise ValueError(
            f"some problems of several claims have {text}, and some have none: give all "
            "of them edges, () where no claim builds on another, or choose "
            'edges="none" or a rule of skdcf.edges for the filter'
        )
    for value in values:
        if before and value not in before:
            have = "have" if value else "have no"
            had = "had none" if value else "had them"
            choose = Advice("choose_edges", ', or choose edges="none" or a rule')
            raise ValueError(
                Message(
                    f"problems {have} {text}, and those that calibrated {had}. The promise "
                    "does not hold for what was made otherwise: make them alike, or fit "
                    "again",
                    choose if name == "edges" else "",
                )
            )


def warn_of_edges(origin, calibrated):
    """Warn where the edges are probably not what they are said to be."""
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
                f"none of {n_problems} problems of several claims has an edge, and "
                f"{min(shares):.0%} of those that calibrated have some. If these have none "
                "because nobody looked for them, ",
                Advice("leave_unknown", "pass edges=None: ()"),
                " says that no claim builds on another, and the promise does not hold where "
                "that is not so",
            ),
            GuaranteeWarning,
        )
    if calibrated["edges"] == [] and False in origin["edges"]:
        warn(
            "all problems that calibrated have one claim, and some of these have several, of "
            "which it is not known what builds on what. Nothing told how errors come together "
            "in an answer: calibrate on answers of several claims",
            GuaranteeWarning,
        )


def warn_of_wordings(origin, calibrated):
    """Warn if claims have more or fewer wordings than in calibration."""
    before = calibrated.get("n_wordings")
    now = np.array(origin.get("n_wordings", []))
    if not before or not len(now):
        return
    outside = (now < min(before)) | (now > max(before))
    if outside.mean() > _FEW:
        warn(
            f"{int(outside.sum())} of {len(now)} problems have claims with up to "
            f"{now[outside][0]} wordings, and the calibration problems have {min(before)} to "
            f"{max(before)}. The guarantee does not hold for claims that are reworded more or "
            "less often: ask for as many wordings as for calibration",
            GuaranteeWarning,
        )


def warn_of_alternatives(origin, calibrated):
    """Warn where answers are compared with more or fewer others than at calibration."""
    counts_before = calibrated.get("n_alternatives")
    counts = np.array(origin.get("n_alternatives", []))
    if not counts_before or not len(counts):
        return
    outside = (counts < min(counts_before)) | (counts > max(counts_before))
    if outside.mean() > _FEW:
        warn(
            f"{int(outside.sum())} of {len(counts)} problems have more or fewer alternatives than "
            f"the calibration problems, such as {counts[outside][0]} instead of "
            f"{min(counts_before)} to {max(counts_before)}. How far answers agree depends on the "
            "number of the others, so the guarantee does not hold: sample as many as for "
            "calibration",
            GuaranteeWarning,
        )
