"""Claims that are never kept, whatever their scores are.

The verdict that a column needs may be missing because a model failed. Or the claim may misstate
the answer because a model altered a number when it split the answer. The columns of such a claim
mean nothing. Its path risk is +inf in calibration and in use alike, and so is that of the claims
that depend on it. Removing it after filtering would break guarantees about shares.
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
