"""Guard against claims that must never be kept, regardless of their scores.

If a model call failed, the verdict that is required to compute a column is missing. If a model
altered a number while splitting the answer into claims, the claim misstates the answer. The
column values of a claim without a verdict, or of a misstated claim, are meaningless. The path
risk of a claim that must never be kept, and of its descendants, is +inf in both calibration and
prediction. If such claims were removed only after filtering, guarantees about proportions would
be violated.
"""

from __future__ import annotations

import math

import numpy as np

from ..graphs.sources import NEVER_KEPT, is_list_of_claims, never_kept


def check_never_kept(metadata):
    """Check the positions of claims that must not be kept in an answer of unknown length."""
    for key in NEVER_KEPT:
        listed = (metadata or {}).get(key, [])
        if not is_list_of_claims(listed, math.inf):
            raise ValueError(
                f"metadata {key!r} must be a list of claim positions of at least 0, got "
                f"{listed!r}"
            )


def without_some_claims(risk, batch):
    """Return the risks, with +inf for claims that must not be kept according to the metadata."""
    for i, row in enumerate(batch.metadata):
        forbidden = np.array(never_kept(row), dtype=int)
        risk[batch.offsets[i] + forbidden] = np.inf
    return risk
