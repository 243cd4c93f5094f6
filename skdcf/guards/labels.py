"""Guard against missing labels and against labels that are all equal.

With missing or equal labels, the guarantee still holds, but the filter may keep far fewer claims
than possible. Unjudged claims count as false in calibration. A scorer cannot be trained if no
claim is labelled false.
"""

from __future__ import annotations

import numpy as np

from .._checks import warn
from ..exceptions import LabelWarning
from .levels import level_in_force


def warn_of_no_errors(labels):
    """Warn if some claims are labelled true but no claim is labelled false."""
    n_true = int(np.sum(labels == 1))
    if n_true and not (labels == 0).any():
        warn(
            f"no claim is labelled false, because all {n_true} labels are 1. There are "
            "therefore no errors to learn from. Check that 1 means true and 0 means false",
            LabelWarning,
        )


def warn_of_unjudged(estimator, batch, labels):
    """Warn if too many calibration problems have no judged claims for the given alpha."""
    if len(labels) == 0 or labels.min() >= 0:
        return
    level = level_in_force(estimator)
    n_judged_claims = np.bincount(batch.problem_of[labels >= 0], minlength=len(batch))
    n_unjudged = int(np.sum((n_judged_claims == 0) & (batch.sizes > 0)))
    if n_unjudged > level * (len(batch) + 1):
        warn(
            f"{n_unjudged} of the {len(batch)} calibration problems have no claims judged "
            "true or false. All claims of these problems are treated as false, so the "
            "filter may keep far fewer claims than possible. If the problems to label "
            "were drawn at random, leave out the problems that nobody has examined",
            LabelWarning,
        )
