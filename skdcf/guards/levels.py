"""Guard against levels that are too small, confused with 1 - alpha, or not used in training.

At levels below ``1 / (n + 1)``, the rank is 0, so no claims can be kept. Using the smallest score
as the threshold, or leaving answers unfiltered, would invalidate the guarantee.
"""

from __future__ import annotations

from .._checks import warn
from .._messages import Advice, Message
from ..exceptions import CalibrationWarning, ParameterWarning


def level_in_force(estimator):
    """Return the calibration level, which is either alpha or the guarantee's bound."""
    return estimator._resolved_guarantee().level(None, estimator.alpha)


def level_of(estimator, alpha):
    """Return the level, or raise ValueError if the scorer was trained for another level."""
    level = estimator._resolved_guarantee().level(alpha, estimator.alpha)
    trained_at = estimator._alpha_of_fit
    if alpha is None and trained_at not in (None, level):
        raise ValueError(
            Message(
                f"the level must be {trained_at:g}, for which the scorer was trained, "
                f"got {level:g}: ",
                Advice(
                    "fit_for_level",
                    "fit again, or pass the level, for example predict(X, "
                    f"alpha={level:g})",
                    alpha=f"{level:g}",
                ),
            )
        )
    return level


def warn_of_level(calibration, level):
    """Warn if no claims are kept at a level, or if alpha was probably confused with 1 - alpha."""
    if level > 0.5 and calibration.guarantee.is_probability:
        warn(
            f"alpha = {level:g} allows a false claim in {level:.0%} of the problems, "
            f"because alpha is the maximum error rate. Did you mean {1 - level:.3g}?",
            ParameterWarning,
        )
    shortage = calibration.shortage(level)
    if shortage:
        warn(shortage, CalibrationWarning)
