"""Compute masks that bound the error rate among the shown texts of a batch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import warn
from .._docs import documented
from .._messages import Advice, Message
from ..exceptions import CalibrationWarning
from ..graphs.problems import Groups, Problems, hashes_of
from ..graphs.ragged import segment_ids
from ..guarantees import NoFalseClaim, problems_needed
from ..guards.overlap import refuse_trained
from ..ops.conformal import shown_rank
from ..ops.hard import segment_min
from ._parts import choose_one_each


@documented
def passing_answers(fitted: Any, X: Problems) -> NDArray[np.bool_]:
    """Return which answers pass. In answers that do not pass, no claims are kept.

    Parameters
    ----------
    fitted : fitted filter
        A filter whose guarantee sets ``show``.
    X : {problems}
        The answers.

    Returns
    -------
    passes : ndarray of bool of shape (n_problems,)
        Whether each answer passes.
    """
    claims, _ = fitted._claims(X)
    return fitted.calibration_.passes(claims)


def shown_masks(
    fitted: Any, X: Problems, alpha: float, groups: Groups, one_per_question: bool
) -> NDArray[Any]:
    """Return the masks for `skdcf.monitoring.release`."""
    _refuse_unproven(fitted)
    claims, view = fitted._claims(X)
    batch = view.raw
    hashes = hashes_of(batch, groups)
    refuse_trained(batch, hashes, fitted._trained)
    _refuse_calibrated(batch, hashes, fitted._calibrated)

    passes = fitted.calibration_.passes(claims)
    calibrations = fitted.calibration_.by_group()
    number_of = {name: number for number, name in enumerate(calibrations)}
    groups_of = claims.groups or [None] * len(batch)
    group_of = np.array([number_of.get(group, -1) for group in groups_of], int)
    rows = _one_answer_each(batch, hashes, group_of, one_per_question)

    lowest = segment_min(claims.path_risk, batch.offsets)
    rows = rows[passes[rows]]
    thresholds = np.full(len(batch), -np.inf)
    for number, steps in enumerate(calibrations.values()):
        # If only some answers may pass, the batch contains only the passing answers.
        members = rows[group_of[rows] == number]
        rank = shown_rank(steps.position, lowest[members], alpha)
        if rank:
            thresholds[members] = steps.position[rank - 1]
        elif len(members):
            _warn_of_few(steps.n, len(members), alpha)

    kept = claims.path_risk < thresholds[segment_ids(batch.offsets)]
    # A claim with infinite path risk is never kept.
    kept &= ~np.isposinf(claims.path_risk)
    return view.shaped(kept)


def _refuse_unproven(fitted):
    """Raise ValueError if no guarantee about shown texts has been proven for the filter."""
    guarantee = fitted.calibration_.guarantee
    if fitted.ties == "include":
        raise ValueError(
            'the filter must not have ties="include", because this setting keeps claims '
            "whose path risk equals the threshold and invalidates the guarantee. "
            'Calibrate a filter with ties="exclude"'
        )
    if type(guarantee) is not NoFalseClaim:
        raise ValueError(
            "the filter must be calibrated with guarantee=NoFalseClaim(), got "
            f"{guarantee!r}. The guarantee for shown texts has only been proven for this "
            "type of guarantee"
        )
    if guarantee.delta is not None:
        raise ValueError(
            f"delta must be None, got {guarantee!r}. The guarantee for shown texts has not been "
            "proven for other values. Set delta=None, and calibrate the filter again"
        )


def _refuse_calibrated(batch, hashes, calibrated):
    same_question, _ = hashes.among(calibrated)
    same_question |= (hashes.text >= 0) & np.isin(hashes.content, calibrated["content"])
    if same_question.any():
        raise ValueError(
            "the guarantee only covers new questions, but "
            f"{batch.name_of(int(np.argmax(same_question)))} and "
            f"{int(same_question.sum()) - 1} other problems contain questions that were "
            "used for calibration. Leave these problems out"
        )


def _one_answer_each(batch, hashes, group_of, one_per_question):
    """Return the row indices of one answer per question in each group."""
    order, _ = hashes.orders()
    rows = choose_one_each(hashes.question, order, group_of)
    if len(rows) == len(batch) or one_per_question:
        return rows
    second = np.setdiff1d(np.arange(len(batch)), rows)[0]
    question = hashes.question[second]
    n_answers = int((hashes.question == question).sum())
    raise ValueError(
        Message(
            f"{batch.name_of(int(second))} is one of {n_answers} answers to the same "
            "question, and the errors of such answers are not independent. Pass one "
            "answer to each question, or ",
            Advice("one_per_question", "one_per_question=True"),
            " to show one answer per question, chosen without labels",
        )
    )


def _warn_of_few(n, m, alpha):
    """Warn if no answers are shown because the calibration set is too small."""
    needed = problems_needed(alpha / 5)
    if n >= needed:
        return
    warn(
        f"none of the {m} answers are shown at alpha = {alpha:g}. The filter was "
        f"calibrated on {n} answers, but at least {needed} are needed to show a fifth "
        f"of a batch. Fit or calibrate the filter with alpha = {alpha / 5:g}, and "
        f"pass alpha = {alpha:g} here",
        CalibrationWarning,
    )
