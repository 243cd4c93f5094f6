"""Scores or edges that are passed backwards.

If a risk is passed as a confidence, the guarantee holds, but almost nothing is kept. If edges
lead from a child to its parent, claims are kept without the claims that they depend on.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

from .._checks import warn
from ..exceptions import GuaranteeWarning, ParameterWarning

# So many claims tell the direction of a score as well as a million would.
_LOOKED_AT = 20_000
_FEWEST = 20  # claims of either kind, without which nothing is said
_LEAST = 0.3  # share of pairs in the right order, below which a score is more than bad


def warn_of_reversed_edges(batch):
    """Warn if every edge leads from a later claim to an earlier one."""
    edges = batch.edges_between
    if len(edges) >= 10 and (np.diff(edges) < 0).all():
        warn(
            "every edge leads from a later claim to an earlier one. In an edge (parent, child) "
            "the child depends on the parent. Are these edges reversed?",
            GuaranteeWarning,
        )


def warn_of_direction(confidence, labels):
    """Warn where false claims are trusted more than true ones, as where a risk is passed.

    Parameters
    ----------
    confidence : ndarray of shape (n_claims,)
        What the scorer says of each claim that calibrates.
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
    if share < min(_LEAST, 0.5 - 4 * error):
        warn(
            "the score ranks backwards: of a true and a false claim that calibrate it trusts "
            f"the false one more in {1 - share:.0%} of the pairs. Is it a risk? Larger has to "
            "mean more trusted: pass its negative. The promise holds, but little is kept",
            ParameterWarning,
        )
