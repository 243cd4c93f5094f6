"""Claims that must not be kept whatever their scores are.

The verdict that a column needs is missing, as where a model failed, or the claim may not say
what the answer says, as where a model altered a number when it cut the answer up. Such a
claim has columns like any other, which say nothing of it. It is never kept, in calibration
and in use alike, nor is what builds on it: to remove it after the filter would break
guarantees about shares.
"""

from __future__ import annotations

import numpy as np

from ..graphs.sources import never_kept


def without_some_claims(risk, batch):
    """Risks, with +inf for claims that the metadata forbid to keep."""
    for i, row in enumerate(batch.metadata):
        forbidden = np.array(never_kept(row), dtype=int)
        risk[batch.offsets[i] + forbidden] = np.inf
    return risk
