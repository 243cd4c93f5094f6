"""Guard against claims that must never be kept, regardless of their scores.

If a model failed, the verdict from which a column is computed is missing. If a model altered a
number when it split the answer, the claim misstates the answer. The columns of such a claim are
meaningless. The path risk of the claim and of its descendants is +inf in calibration and
prediction. If the claim were removed after filtering, guarantees about proportions would be
violated.
"""

from __future__ import annotations

import numpy as np

from ..graphs.sources import never_kept


def without_some_claims(risk, batch):
    """Return the risks, with +inf for claims that the metadata mark as never kept."""
    for i, row in enumerate(batch.metadata):
        forbidden = np.array(never_kept(row), dtype=int)
        risk[batch.offsets[i] + forbidden] = np.inf
    return risk
