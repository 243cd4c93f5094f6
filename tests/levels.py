"""Thresholds and copies of fitted filters for other levels, which only tests ask for."""

from copy import copy, deepcopy
from dataclasses import replace

from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from skdcf.guards import refuse_changed, warn_of_level
from skdcf.uses import copy_at


def fit_levels(filter, X, y, alphas, groups=None):
    """Return one fitted filter for each level."""
    return {
        alpha: clone(filter).set_params(alpha=alpha).fit(X, y, groups)
        for alpha in alphas
    }


def with_alpha(fitted, alpha):
    """Return a copy of a filter for another level, with the same calibration problems."""
    check_is_fitted(fitted, "nonconformity_scores_")
    refuse_changed(fitted._record.settings, fitted._settings)
    copied = copy_at(fitted, alpha)
    copied.calibration_ = copy(fitted.calibration_)
    copied.calibration_.guarantee = deepcopy(copied._resolved_guarantee)
    warn_of_level(copied.calibration_, copied._level(None))
    return copied


def thresholds(fitted, X, alpha=None):
    """Return the threshold of each problem: claims with a smaller path risk are kept."""
    risks, _ = fitted._risks_of(X)
    return fitted.calibration_.thresholds(risks, fitted._level(alpha))


def calibration_scores(estimator, X, y):
    """Return the nonconformity scores of shape (n_problems,) that ``calibrate`` would use.

    Each score is lowered by slightly more than the rounding error of the scorer.
    """
    problems = estimator._read_labelled(X, y, None)
    columns = estimator._with_columns(problems.batch)
    return estimator._part(replace(problems, columns=columns)).scores
