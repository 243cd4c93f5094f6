"""Claims of which the verdict that a column needs is missing, as where a model failed.

Such a claim has a column like any other, which says nothing of it. It is never kept.
"""

from __future__ import annotations

import numpy as np


def with_missing_verdicts(risk, batch):
    """Risks, with +inf for claims whose verdict is missing, so that none is kept."""
    for i, row in enumerate(batch.metadata):
        missing = list((row or {}).get("no_verdict") or ())
        risk[batch.offsets[i] + np.array(missing, dtype=int)] = np.inf
    return risk
