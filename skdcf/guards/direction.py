"""Scores or edges with reversed direction.

If a risk is passed as a confidence, the guarantee holds, but almost nothing is kept. If edges
point from a child to its parent, claims are kept without the claims that they depend on.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

from .._checks import warn
from ..exceptions import GuaranteeWarning, ParameterWarning

# This many claims are enough to determine the direction of a score.
_LOOKED_AT = 20_000
_FEWEST = 20  # claims of either kind needed for a warning
_ERRORS = 4  # standard errors below one half, which chance hardly reaches


def warn_of_reversed_edges(batch):
    """Warn if every edge leads from a later claim to an earlier one."""
    edges = batch.edges_between
    if len(edges) >= 10 and (np.diff(edges) < 0).all():
        warn(
            "every edge leads from a later claim to an earlier one, so the edges may be reversed. "
            "In an edge (parent, child) the child depends on the parent",
            GuaranteeWarning,
        )


def warn_of_direction(confidence, labels):
    """Warn if false claims score higher than true ones, for example if a risk was passed.

    Parameters
    ----------
    confidence : ndarray of shape (n_claims,)
        Confidences of the calibration claims.
    labels : ndarray of shape (n_claims,)
        1 true, 0 false, -1 unknown.
    """
    confidence = confidence[:_LOOKED_AT]
    labels = labels[:_LOOKED_AT]
    n_true = int(np.sum(labels == 1))
    n_false = int(np.sum(labels == 0))
    if min(n_true, n_false) < _FEWEST:
        return
    judged = labels >= 0
    ranks_of_true = rankdata(confidence[judged])[labels[judged] == 1].sum()
    share = (ranks_of_true - n_true * (n_true + 1) / 2) / (n_true * n_false)
    error = np.sqrt((n_true + n_false + 1) / (12 * n_true * n_false))
    if share < 0.5 - _ERRORS * error:
        warn(
            "the score ranks backwards: among pairs of a true and a false calibration claim, "
            f"the false one scores higher in {1 - share:.0%}. If the score is a risk, pass its "
            "negative, since higher must mean more trusted. The guarantee holds, but little "
            "is kept",
            ParameterWarning,
        )
