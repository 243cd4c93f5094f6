"""Warnings and errors that a caller may want to catch by their kind."""


class CalibrationWarning(UserWarning):
    """The filter keeps nothing, because there are too few calibration problems."""


class GuaranteeWarning(UserWarning):
    """The guarantee rests on something that cannot be checked, or holds approximately."""


class UnknownKeyWarning(UserWarning):
    """A key of a line looks like one of the format, and may be a slip."""


class LabelWarning(UserWarning):
    """Labels contradict each other, are a model's, or are missing in too many problems."""


class ShareError(ValueError):
    """The guarantee of answers that pass cannot be given: settings or counts rule it out.

    Parameters
    ----------
    reason : str
        Why it cannot be given.
    advice : str
        What to change.
    """

    def __init__(self, reason: str, advice: str) -> None:
        super().__init__(reason, advice)
        self.reason = reason

    def __str__(self) -> str:
        return ". ".join(self.args)


class ParameterWarning(UserWarning):
    """A setting looks like a slip, or was left out because it cannot apply."""


__all__ = [
    "CalibrationWarning",
    "GuaranteeWarning",
    "LabelWarning",
    "UnknownKeyWarning",
]
__all__ += ["ParameterWarning", "ShareError"]
