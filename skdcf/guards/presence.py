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


def presence_of(estimator, batch):
    """Return which fields the problems have, and in how many problems."""
    reads = needs_edges(estimator)
    # An answer with a single claim does not need edges.
    has_several = batch.sizes > 1
    # With edges="none", unknown edges mean that there are none, but columns may read known edges.
    only_columns_read = reads and estimator.edges == "none"
    found: dict[str, list[Any]] = {
        "edges": _distinct(batch.edges_known[has_several]) if only_columns_read else []
    }
    if reads and has_several.any():
        children = batch.edges[:, 1]
        has_edges = np.bincount(batch.problem_of[children], minlength=len(batch)) > 0
        found["share_with_edges"] = [float(has_edges[has_several].mean())]
        found["n_that_need_edges"] = [int(has_several.sum())]
    for name in ("alternatives", "context"):
        column = getattr(batch, name)
        present = [False] if column is None else [value is not None for value in column]
        found[name] = _distinct(present)
    if batch.alternatives is not None:
        # An answer without claims is not compared with its alternatives.
        pairs = zip(batch.alternatives, batch.sizes.tolist(), strict=True)
        found["n_alternatives"] = [
            sum(not text.isspace() for text in texts if text)
            for texts, n_claims in pairs
            if texts is not None and n_claims
        ]
    return found


def _distinct(flags):
    return np.unique(np.asarray(flags, dtype=bool))[::-1].tolist()


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


def compare_presence(calibrated, new):
    """Raise ValueError if a field is present in problems but was missing in calibration."""
    for name, text in PRESENT.items():
        values_before = calibrated.get(name)
        for value in new.get(name, []):
            if values_before and value not in values_before:
                have = "have" if value else "do not have"
                had = "did not have them" if value else "had them"
                raise ValueError(
                    f"problems {have} {text}, but the calibration problems {had}. The "
                    "guarantee holds only for problems made in the same way. Make "
                    "them in the same way, or fit again"
                )


def warn_of_edges(calibrated, new):
    """Warn if edges are probably missing by mistake."""
    if not calibrated:
        return
    shares = calibrated.get("share_with_edges") or [0.0]
    n_problems = max(new.get("n_that_need_edges", [0]))
    if min(shares) >= _MOST and n_problems >= 20 and max(new["share_with_edges"]) == 0:
        warn(
            f"none of the {n_problems} problems with several claims has edges, but "
            f"{min(shares):.0%} of the calibration problems do. The guarantee does not hold "
            "if the claims depend on each other. In that case, pass their edges",
            GuaranteeWarning,
        )


def warn_of_counts(calibrated, new):
    """Warn if the number of alternatives differs from that in calibration."""
    counts_before = calibrated.get("n_alternatives")
    counts_now = np.array(new.get("n_alternatives", []))
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
