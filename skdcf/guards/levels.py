"""A level that the scorer was not trained for, that is too small, or that was meant as 1 - alpha.

Below ``1 / (n + 1)`` the rank is 0, and nothing may be kept. Code that takes the smallest score
instead, or the unfiltered answer, has no guarantee.
"""

from __future__ import annotations

from .._checks import warn
from .._messages import Advice, Message
from ..exceptions import CalibrationWarning, ParameterWarning


def level_in_force(estimator):
    """The level that a filter calibrates at: its alpha, or the bound of its guarantee."""
    if estimator.guarantee is None:
        return estimator.alpha
    return estimator.guarantee.level(None, estimator.alpha)


def level_of(estimator, alpha):
    """The level for an alpha; ValueError if the scorer was trained for another one."""
    level = estimator._resolved().level(alpha, estimator.alpha)
    trained_at = estimator._alpha_of_fit
    if alpha is None and trained_at not in (None, level):
        raise ValueError(
            Message(
                f"the level is {level:g}, but the scorer was trained for {trained_at:g}: ",
                Advice(
                    "fit_for_level",
                    f"fit again, or ask for a level, as in predict(X, alpha={level:g})",
                    alpha=f"{level:g}",
                ),
            )
        )
    return level


def warn_of_level(calibration, level):
    """Warn of a level at which nothing is kept, and of one that is likely to be 1 - alpha."""
    if level > 0.5 and calibration.guarantee.is_probability:
        warn(
            f"alpha = {level:g} allows a false claim in {level:.0%} of the problems: "
            f"alpha is the share of errors. Was {1 - level:.3g} meant?",
            ParameterWarning,
        )
    shortage = calibration.shortage(level)
    if shortage:
        warn(shortage, CalibrationWarning)
