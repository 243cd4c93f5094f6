"""How a filter is calibrated; `fit` and `calibrate` share this.

`score` turns confidences into risks, path risks and nonconformity scores, one per problem, and
lowers them for rounding. `calibrate_with` chooses one answer to each question, sorts their scores,
and stores them. The threshold at a level is one of these scores.

Smallest and largest path risks of each answer are kept too. The smallest decides whether an answer
passes (``show=``), and the largest whether a whole answer may be released.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .. import guards
from ..graphs.wordings import count_once
from ..guarantees import NoFalseClaim
from ..guards.copies import with_texts
from ..guards.judges import labels_of_people
from ..guards.levels import level_of, warn_of_level
from ..guards.settings import settings_of
from ..ops.hard import path_risk, path_risk_of_errors, segment_max, segment_min
from ._parts import CalibrationPart
from ._selection import select_to_calibrate
from ._validation import filter_in, read_labelled, with_names


def labelled_part(estimator, X, y, groups):
    """Read, select, guard and score problems that a fitted filter is to be calibrated with."""
    check_is_fitted(estimator, "scorer_")
    selection = select_to_calibrate(read_labelled(estimator, X, y, groups))
    guards.at_calibrate(estimator, selection)
    view = selection.view.take(selection.candidates)
    view.scored = estimator._scored(view.passed)
    part = score(estimator, view)
    # If a model judged answers of another call, only the verdicts of people count.
    labels = labels_of_people(view.labels, view.passed)
    if (labels == view.labels).all():
        return part
    by_people = score(estimator, replace(view, labels=labels))
    return replace(part, of_people=(by_people.jumps, by_people.answers))


def score(estimator, view):
    """Score calibration problems.

    Scores are lowered for rounding at the end, so the guards compare the exact numbers.

    Parameters
    ----------
    estimator : filter
        Its columns and its scorer are fitted.
    view : View
        The problems, with labels, hashes, rows and columns.

    Returns
    -------
    CalibrationPart
    """
    guarantee = estimator._resolved()
    view.confidence = estimator._confidence(view)
    risk = estimator._risk(view.confidence, view.passed, steady=True)
    # For `NoFalseClaim` the path risks of problems without a false claim do not matter. Another
    # guarantee may need them.
    if type(guarantee) is NoFalseClaim:
        path = path_risk_of_errors(risk, view.labels, view.scored)
    else:
        path = path_risk(risk, view.scored)
    jumps = jumps_of(guarantee, path, view.labels, view.passed)
    named = with_names(view, guarantee)
    claims = guarantee.path_risks(path, named)
    precision = guards.at_scores(estimator, view, named, claims)
    if estimator.ties != "include":  # the published code compares scores as they are
        jumps = replace(jumps, position=precision.lower(jumps.position))
    return CalibrationPart(
        jumps=jumps,
        weights=claims.weights,
        groups=claims.groups,
        hashes=view.hashes,
        judges=view.judges,
        rows=view.rows,
        has_texts=with_texts(view.passed),
        **_extremes(risk, view, precision),
    )


def jumps_of(guarantee, path_risk, labels, batch):
    """Where the loss of each problem grows, with one statement for each claim."""
    labels = count_once(labels, batch)
    if batch.vaguest is None:
        return guarantee.jumps(path_risk, labels, batch.offsets)
    return guarantee.jumps(path_risk, labels, batch.offsets, batch.vaguest)


def _extremes(risk, view, precision):
    """Return the smallest and largest path risk of each answer, exact and lowered."""
    offsets = view.passed.offsets
    largest = segment_max(risk, offsets)
    # A whole answer is released if its largest risk is below those of answers with an error.
    wrong = np.zeros(len(largest), dtype=bool)
    wrong[view.passed.problem_of[view.labels != 1]] = True
    # Something is shown of an answer if any claim is kept. The smallest path risk is that of a
    # claim without parents.
    starts = risk.copy()
    starts[view.scored.edges[:, 1]] = np.inf
    lowest = segment_min(starts, offsets)
    return {
        "answers": precision.lower(np.where(wrong, largest, np.inf)),
        "largest": largest,
        "lowest": lowest,
        "lowest_lowered": precision.lower(lowest),
    }


def calibrate_with(estimator, part, fewest):
    """Choose one answer to each question, calibrate with their scores, and store the result."""
    part.refuse_copies()
    # A copy, since the caller may change the original.
    guarantee = deepcopy(estimator._resolved())
    level = level_of(estimator, None)
    chosen, left_over = part.choose(guarantee, level, fewest)
    # A whole answer is released once, whatever groups it is in. So one answer to its question
    # is chosen among all groups: a question with answers in many groups would count more often.
    released = chosen
    if part.groups is not None:
        released, _ = part.choose(guarantee, level, fewest, in_groups=False)
    estimator.whole_answer_scores_ = np.sort(part.answers[released])
    estimator.max_path_risks_ = np.sort(part.largest[released])
    estimator._calibrated = part.hashes[np.union1d(chosen, released)].kept()
    estimator.unused_indices_ = part.rows[left_over]
    if len(chosen) < len(part):
        part = part[chosen]
    if estimator.ties != "include":
        part = part.below_copies()
    calibration = guarantee.calibrate(part.jumps, part.path_risks())
    warn_of_level(calibration, level)
    estimator.calibration_ = calibration
    estimator.n_calibration_ = calibration.n
    # A guarantee with groups has scores of its own for each group.
    scores = calibration.scores
    estimator.nonconformity_scores_ = np.sort(part.scores) if scores is None else scores
    estimator._calibrated_as = settings_of(estimator)


def calibration_scores(estimator, X, y):
    """Nonconformity score of each problem, as ``calibrate`` would use it.

    Parameters
    ----------
    estimator : fitted filter
    X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
        The problems.
    y : sequence of 1-D arrays, one per problem
        Their labels, as in ``fit``.

    Returns
    -------
    ndarray of shape (n_problems,)
        The largest threshold that is safe, lowered by more than the rounding of the
        scorer: the smallest path risk of a claim that is not known to be true, or
        what ``guarantee`` makes of these. +inf where every threshold is safe.
    """
    fitted = filter_in(estimator)
    return score(fitted, fitted._look(X, y=y)).scores
