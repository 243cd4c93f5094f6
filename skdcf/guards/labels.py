"""Guard against missing labels and against labels that are all equal.

With missing or equal labels, the guarantee still holds, but the filter may keep far fewer claims
than possible. Unjudged claims count as false in calibration. A scorer cannot be trained if no
claim is labelled false.
"""

from __future__ import annotations

import numpy as np

from .._checks import warn
from ..exceptions import LabelWarning


def warn_of_no_errors(labels):
    """Warn if some claims are labelled true but no claim is labelled false."""
    n_true = int(np.sum(labels == 1))
    if n_true and not (labels == 0).any():
        warn(
            f"no claim is labelled false, because all {n_true} labels are 1. There are "
            "therefore no errors to learn from. Check that 1 means true and 0 means false",
            LabelWarning,
        )


def warn_of_unjudged(batch, labels):
    """Warn if no claim of some calibration problems was judged."""
    n_judged_claims = np.bincount(batch.problem_of[labels >= 0], minlength=len(batch))
    n_unjudged = int(np.sum((n_judged_claims == 0) & (batch.sizes > 0)))
    if n_unjudged:
        warn(
            f"{n_unjudged} of the {len(batch)} calibration problems have no claims judged "
            "true or false. All claims of these problems count as false, so the filter may "
            "keep far fewer claims than possible. Leave these problems out only if the "
            "problems that were judged are a random sample",
            LabelWarning,
        )


def refuse_chosen_labels(batch):
    """Raise ValueError if the answers to label were not drawn at random.

    ``skdcf label`` stores the order in which answers were judged in the provenance. If the most
    doubtful answers are judged first, or a filter chose what a person checks, the judged answers
    are not a random sample.
    """
    for i, row in enumerate(batch.provenance_rows):
        order = row.get("label_order", "random")
        if order != "random":
            raise ValueError(
                "calibration problems must be drawn at random before they are labelled, but "
                f"{batch.name_of(i)} has the label_order {order!r} in its provenance. Use "
                "such problems only for training: fit with calibration_size=0, and calibrate "
                "on problems that were drawn at random"
            )
