"""Thresholds and copies of fitted filters for other levels, which only tests ask for."""

from copy import copy, deepcopy

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skdcf.estimators import copy_at
from skdcf.guards.levels import level_of, warn_of_level
from skdcf.guards.settings import refuse_changed, settings_of


def with_alpha(fitted, alpha):
    """Return a copy of a filter for another level, with the same calibration problems."""
    check_is_fitted(fitted, "nonconformity_scores_")
    refuse_changed(fitted)
    copied = copy_at(fitted, alpha)
    copied.calibration_ = copy(fitted.calibration_)
    copied.calibration_.guarantee = deepcopy(copied._resolved_guarantee())
    copied._calibrated_as = settings_of(copied)
    warn_of_level(copied.calibration_, level_of(copied, None))
    return copied


def thresholds(fitted, X, alpha=None):
    """Return the threshold of each problem: claims with a smaller path risk are kept."""
    risks, view, level = fitted._at_level(X, alpha)
    of_problems = fitted.calibration_.thresholds(risks, level)
    return np.broadcast_to(of_problems, len(view.raw)).copy()
