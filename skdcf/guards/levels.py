"""Levels that are too small, or probably 1 - alpha, or differ from the level of the training.

Below ``1 / (n + 1)`` the rank is 0, and nothing may be kept. Using the smallest score or the
unfiltered answer instead would have no guarantee.
"""

from __future__ import annotations

from .._checks import warn
from .._messages import Advice, Message
from ..exceptions import CalibrationWarning, ParameterWarning


def level_in_force(estimator):
    """Return the level at which a filter calibrates: alpha, or the bound of the guarantee."""
    if estimator.guarantee is None:
        return estimator.alpha
    return estimator.guarantee.level(None, estimator.alpha)


def level_of(estimator, alpha):
    """Return the level for an alpha, or raise ValueError if the scorer needs another one."""
    level = estimator._resolved_guarantee().level(alpha, estimator.alpha)
    trained_at = estimator._alpha_of_fit
    if alpha is None and trained_at not in (None, level):
        raise ValueError(
            Message(
                f"the level is {level:g}, but the scorer was trained for {trained_at:g}: ",
                Advice(
                    "fit_for_level",
                    f"fit again, or pass the level, as in predict(X, alpha={level:g})",
                    alpha=f"{level:g}",
                ),
            )
        )
    return level


def warn_of_level(calibration, level):
    """Warn if nothing is kept at a level, or if 1 - alpha may have been meant."""
    if level > 0.5 and calibration.guarantee.is_probability:
        warn(
            f"alpha = {level:g} allows a false claim in {level:.0%} of the problems, because "
            f"alpha is the share of errors. Did you mean {1 - level:.3g}?",
            ParameterWarning,
        )
    shortage = calibration.shortage(level)
    if shortage:
        warn(shortage, CalibrationWarning)
