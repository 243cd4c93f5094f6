"""Guard against scores or edges whose direction is reversed.

If a risk is passed as the confidence, the guarantee still holds, but almost no claims are kept.
If edges point from children to parents, claims are kept without the claims that they depend on.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

from .._checks import warn
from ..exceptions import GuaranteeWarning, ParameterWarning

# number of claims that suffices to determine the direction of a score
_LOOKED_AT = 20_000
# minimum number of claims with each label for a warning
_FEWEST = 20
# number of standard errors below one half at which a proportion is unlikely to be due to
# chance
_ERRORS = 4


def warn_of_reversed_edges(batch):
    """Warn if every edge points from a later claim to an earlier one."""
    edges = batch.edges
    if len(edges) >= 10 and (np.diff(edges) < 0).all():
        warn(
            "every edge points from a later claim to an earlier claim, so the edges may "
            "be reversed. In an edge (parent, child), the child must depend on the parent",
            GuaranteeWarning,
        )


def warn_of_direction(confidence, labels, problem_of):
    """Warn if false claims score higher than true claims, for example if the score is a risk.

    The test statistic is the proportion of pairs of one true and one false claim in which the
    true claim has the higher score. One standard error is computed under the assumption that the
    score is uninformative. A second standard error is computed from the contributions of whole
    answers, because claims in the same answer may be correlated. The test uses the larger of the
    two standard errors.

    Parameters
    ----------
    confidence : ndarray of shape (n_claims,)
        Confidence in each calibration claim.
    labels : ndarray of shape (n_claims,)
        Claim labels (1 true, 0 false, -1 unknown).
    problem_of : ndarray of shape (n_claims,)
        Problem index of each claim.
    """
    judged = np.flatnonzero(labels[:_LOOKED_AT] >= 0)
    true = labels[judged] == 1
    n_true = int(true.sum())
    n_false = len(true) - n_true
    if min(n_true, n_false) < _FEWEST:
        return
    confidence = confidence[judged]
    # For each claim, compute the proportion of claims with the opposite label that have a lower
    # score.
    exceeded = rankdata(confidence)
    exceeded[true] = (exceeded[true] - rankdata(confidence[true])) / n_false
    exceeded[~true] = (exceeded[~true] - rankdata(confidence[~true])) / n_true
    share = exceeded[true].mean()
    contribution = np.where(
        true, (exceeded - share) / n_true, (1 - share - exceeded) / n_false
    )
    error_of_answers = np.linalg.norm(np.bincount(problem_of[judged], contribution))
    error_by_chance = np.sqrt((len(true) + 1) / (12 * n_true * n_false))
    error = max(error_of_answers, error_by_chance)
    if share < 0.5 - _ERRORS * error:
        warn(
            f"the score may have the wrong sign. In {1 - share:.0%} of all pairs of one "
            "true and one false calibration claim, the false claim has the higher score. "
            "A higher score must mean higher confidence, so pass the negative of a score "
            "that measures risk. The guarantee still holds, but few claims are kept",
            ParameterWarning,
        )
