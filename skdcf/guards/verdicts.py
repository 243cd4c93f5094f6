"""Guard against claims that must never be kept, regardless of their scores.

If a model call failed, the verdict that is required to compute a column is missing. If a model
altered a number while splitting the answer into claims, the claim misstates the answer. The
column values of a claim without a verdict, or of a misstated claim, are meaningless. The path
risk of a claim that must never be kept, and of its descendants, is +inf in both calibration and
prediction. If such claims were removed only after filtering, guarantees about proportions would
be violated.
"""

from __future__ import annotations

import numpy as np

from ..graphs.sources import never_kept


def without_some_claims(risk, batch):
    """Return the risks, with +inf for claims that must not be kept according to the metadata."""
    for i, row in enumerate(batch.metadata):
        forbidden = np.array(never_kept(row), dtype=int)
        risk[batch.offsets[i] + forbidden] = np.inf
    return risk
