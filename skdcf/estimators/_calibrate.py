"""Functions that calibrate a filter, used by `fit` and `calibrate`.

The risk of a claim is minus its confidence. The path risk of a claim is the largest risk among
the claim and its ancestors. A filter keeps all claims whose path risk is below the threshold. The
nonconformity score of a problem is the smallest path risk among its false claims. The
nonconformity score is therefore the largest threshold at which no false claim is kept.

`score` computes the nonconformity scores and lowers them to allow for rounding errors.
`calibrate_with` selects one answer per question, independently of the scores, and stores the
scores of the selected answers. At any level, the threshold is one of the stored nonconformity
scores.

The smallest and the largest path risk of each answer are also stored. The smallest path risk
determines whether an answer passes (``show=``), and the largest path risks are compared with those
of new answers in `skdcf.monitoring.ExchangeabilityTest`.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .. import guards
from .._docs import documented
from ..guards.copies import with_texts
from ..guards.levels import level_of, warn_of_level
from ..guards.settings import settings_of
from ..ops.hard import path_risk, segment_max, segment_min
from ._parts import CalibrationPart
from ._share import is_chosen, set_share
from ._validation import filter_in, read_labelled, with_names

#: Attributes that a filter has only after calibration.
_OF_CALIBRATION = (
    "max_path_risks_",
    "unused_indices_",
    "calibration_",
    "nonconformity_scores_",
)


def labelled_part(estimator, X, y, groups):
    """Read, check and score the calibration problems of a fitted filter."""
    check_is_fitted(estimator, "scorer_")
    view = read_labelled(estimator, X, y, groups)
    guards.at_calibrate(estimator, view)
    view.with_columns = estimator._with_columns(view.raw)
    return score(estimator, view)


def score(estimator, view):
    """Compute the nonconformity scores of the calibration problems.

    The scores are lowered to allow for rounding errors only after the guards have checked the
    exact values.

    Parameters
    ----------
    estimator : filter
        A filter whose columns and scorer are already fitted.
    view : View
        The problems. The attributes ``labels``, ``hashes``, ``rows`` and ``with_columns`` must be
        set.

    Returns
    -------
    part : CalibrationPart
        Jumps in the losses, together with the other calibration data of the problems.
    """
    guarantee = estimator._resolved_guarantee()
    view.confidence = estimator._confidence(view)
    risk = estimator._risk(view.confidence, view.raw, steady=True)
    path = path_risk(risk, view.with_columns)
    jumps = guarantee.jumps(path, view.labels, view.raw.offsets)
    named = with_names(view, guarantee)
    claims = guarantee.path_risks(path, named)
    precision = guards.at_scores(estimator, view, named, claims)
    # With ties="include", scores are compared without modification, as in the published code.
    if estimator.ties != "include":
        jumps = replace(jumps, position=precision.lower(jumps.position))
    return CalibrationPart(
        jumps=jumps,
        groups=claims.groups,
        hashes=view.hashes,
        rows=view.rows,
        has_texts=with_texts(view.raw),
        **_extremes(risk, view, precision),
    )


def _extremes(risk, view, precision):
    """Return the extreme path risks of each answer, with and without a tolerance for rounding."""
    offsets = view.raw.offsets
    largest = segment_max(risk, offsets)
    # An answer passes if its smallest path risk is below the cut. The smallest path risk
    # belongs to a claim without parents.
    risk_of_roots = risk.copy()
    risk_of_roots[view.with_columns.edges[:, 1]] = np.inf
    lowest = segment_min(risk_of_roots, offsets)
    return {
        "largest": largest,
        "lowest": lowest,
        "lowest_lowered": precision.lower(lowest),
    }


def calibrate_with(estimator, part, fewest):
    """Select one answer per question, calibrate on the scores, and store the calibration."""
    part.refuse_copies()
    if is_chosen(estimator):
        set_share(estimator, part)
    # Copy the array, because the caller may change the original.
    guarantee = deepcopy(estimator._resolved_guarantee())
    level = level_of(estimator, None)
    chosen, left_over = part.choose(guarantee, level, fewest)
    # Even if the answers to a question belong to several groups, one of them is compared with new
    # answers.
    compared = chosen
    if part.groups is not None:
        compared, _ = part.choose(guarantee, level, fewest, in_groups=False)
    estimator.max_path_risks_ = np.sort(part.largest[compared])
    estimator._calibrated = part.hashes[np.union1d(chosen, compared)].to_store()
    estimator.unused_indices_ = part.rows[left_over]
    if len(chosen) < len(part):
        part = part[chosen]
    if estimator.ties != "include":
        part = part.below_copies()
    calibration = part.calibrate(guarantee)
    warn_of_level(calibration, level)
    estimator.calibration_ = calibration
    estimator.n_calibration_ = calibration.n
    estimator.nonconformity_scores_ = np.sort(part.scores)
    estimator._calibrated_as = settings_of(estimator)


def leave_uncalibrated(estimator, hashes):
    """Mark a filter that was only trained, so all methods that require a threshold refuse."""
    for name in _OF_CALIBRATION:
        vars(estimator).pop(name, None)
    estimator._calibrated = hashes[:0].to_store()
    estimator.n_calibration_ = 0
    estimator._calibrated_as = settings_of(estimator)


@documented
def calibration_scores(estimator, X, y):
    """Return the nonconformity scores that ``calibrate`` would use.

    Parameters
    ----------
    estimator : fitted filter
    {X}
    y : {labels}
        Claim labels, as in ``fit``.

    Returns
    -------
    scores : ndarray of shape (n_problems,)
        Nonconformity score of each problem, which is +inf if no threshold violates the guarantee.
        For the default guarantee, the score is the smallest path risk among the claims that are
        not known to be true. Each nonconformity score is lowered by slightly more than the
        rounding error of the scorer.
    """
    fitted = filter_in(estimator)
    return score(fitted, fitted._look(X, y=y)).scores
