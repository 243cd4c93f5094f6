"""Questions that are used for both training and calibration.

A scorer is too good on the problems that it was trained on. When answers were judged twice and
ended up on both sides, miscoverage with a decision tree was .44 at alpha .1.
"""

from __future__ import annotations

import numpy as np

from .._checks import warn
from ..exceptions import GuaranteeWarning


def refuse_trained(batch, hashes, trained):
    """ValueError where a question trained the filter; a warning where that is doubtful."""
    same_question, doubtful = hashes.among(trained)
    same_content = np.isin(hashes.content, trained["content"])
    proven = same_question | (same_content & hashes.asked)
    if proven.any():
        raise ValueError(
            f"{int(proven.sum())} problems, {batch.name_of(int(np.argmax(proven)))} "
            "first, trained the filter, or are answers to a question that did. The "
            "promise needs problems that are new to it: calibrate on others, or fit again"
        )
    if doubtful.any():
        warn(
            f"{int(doubtful.sum())} of {len(batch)} problems have the text of a question that "
            "trained the filter under another name, or as a question of its own. If it is the "
            "same question, the promise does not hold",
            GuaranteeWarning,
        )
    if same_content.any():
        warn(
            f"{int(same_content.sum())} of {len(batch)} problems are exact copies of problems "
            "that trained the filter. They have no question by which to tell whether they are "
            "the same ones: if they are, the promise does not hold",
            GuaranteeWarning,
        )


def refuse_copies(view, training_rows, calibration_rows, judged_twice):
    """Notice exact copies on both sides that no question tells to be the same answer or not.

    ValueError where answers are likely to stand there twice, as a model and a person judged
    them or as they were reviewed; else a warning, if they are texts. To leave copies out of
    training does not help: if they are other answers, what calibrates would be rarer
    than what is to come, and a scorer that trusts what is usual would keep too much.
    ``judged_twice`` tells which problems may be copies that were judged again.
    """
    batch = view.passed
    content = view.hashes.content
    hashes = view.hashes[calibration_rows]
    is_empty = batch.sizes[calibration_rows] == 0
    unknown = (hashes.question < 0) & ~hashes.alone & ~hashes.asked & ~is_empty
    if judged_twice is not None:
        twice = content[training_rows[judged_twice[training_rows]]]
        n_copies = int(np.sum(unknown & np.isin(hashes.content, twice)))
        if n_copies:
            raise ValueError(
                f"{n_copies} of {len(calibration_rows)} answers that calibrate are exact "
                "copies of answers that train, and have no question: judged twice, an answer "
                "cannot do both. Give each answer its question, or a group: the same for "
                "copies, and others for different answers"
            )
    n_copies = int(np.sum(unknown & np.isin(hashes.content, content[training_rows])))
    if n_copies and batch.claims is not None:
        warn(
            f"{n_copies} of {len(calibration_rows)} answers that calibrate are exact copies of "
            "answers that train, and have no question: if they are the same ones, the promise "
            "does not hold. Leave copies out, or pass groups, which are the same for copies",
            GuaranteeWarning,
        )
