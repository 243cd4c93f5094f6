"""Warnings and errors of this package that callers may want to catch."""

from ._messages import Message


class CalibrationWarning(UserWarning):
    """Warning that the filter keeps nothing because there are too few calibration problems."""


class GuaranteeWarning(UserWarning):
    """Warning that the guarantee is only approximate, or depends on an unchecked assumption."""


class UnknownKeyWarning(UserWarning):
    """Warning that the input contains an unknown key that resembles a known key."""


class LabelWarning(UserWarning):
    """Warning that labels are contradictory, model-generated, or missing in many problems."""


class ShareError(ValueError):
    """Error raised if the settings or data do not allow a guarantee for passing answers.

    Parameters
    ----------
    reason : str
        Reason why the guarantee is impossible.
    advice : str
        Advice on what to change.
    """

    def __init__(self, reason: str, advice: str) -> None:
        super().__init__(reason, advice)
        self.reason = reason

    def __str__(self) -> str:
        return Message(self.reason, ". ", self.args[1])


class ParameterWarning(UserWarning):
    """Warning that a setting may be a mistake, or was ignored because it has no effect."""


__all__ = [
    "CalibrationWarning",
    "GuaranteeWarning",
    "LabelWarning",
    "ParameterWarning",
    "ShareError",
    "UnknownKeyWarning",
]
