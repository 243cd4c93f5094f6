"""Warnings and errors that callers may want to catch."""


class CalibrationWarning(UserWarning):
    """The filter keeps nothing, because there are too few calibration problems."""


class GuaranteeWarning(UserWarning):
    """The guarantee depends on something that cannot be checked, or holds approximately."""


class UnknownKeyWarning(UserWarning):
    """A key of a line is unknown, but resembles a key of the format."""


class LabelWarning(UserWarning):
    """Labels contradict each other, are from a model, or are missing in too many problems."""


class ShareError(ValueError):
    """The guarantee for the answers that pass is impossible with these settings or counts.

    Parameters
    ----------
    reason : str
        Why it is impossible.
    advice : str
        What to change.
    """

    def __init__(self, reason: str, advice: str) -> None:
        super().__init__(reason, advice)
        self.reason = reason

    def __str__(self) -> str:
        return ". ".join(self.args)


class ParameterWarning(UserWarning):
    """A setting may be a mistake, or was ignored because it cannot apply."""


__all__ = [
    "CalibrationWarning",
    "GuaranteeWarning",
    "LabelWarning",
    "UnknownKeyWarning",
]
__all__ += ["ParameterWarning", "ShareError"]
