"""Thresholds and scores of fitted filters, which only tests ask for."""

from dataclasses import replace

import numpy as np

from skdcf import CalibrationPart
from skdcf.identity import Hashes


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


def part_of(jumps, lowest, groups=None):
    """A calibration part of problems without questions or texts."""
    hashes = Hashes("text", *np.zeros((4, len(lowest)), int))
    return CalibrationPart(jumps, lowest, lowest, lowest, lowest, hashes, groups)
