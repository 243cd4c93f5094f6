"""Claims that are never kept, whatever their scores.

If a model failed, the verdict that a column needs is missing. If a model altered a number when it
split the answer, the claim misstates the answer. The columns of such a claim are meaningless. Its
path risk is +inf in calibration and in use, and so is the path risk of its descendants. Removing
the claim after filtering would violate guarantees about shares.
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
