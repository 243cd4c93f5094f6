"""Warnings of this package, one category for each kind, so that each can be filtered."""


class CalibrationWarning(UserWarning):
    """The filter keeps nothing, because there are too few calibration problems."""


class GuaranteeWarning(UserWarning):
    """The guarantee rests on something that cannot be checked, or holds approximately."""


class UnknownKeyWarning(UserWarning):
    """A key of a line looks like one of the format, and may be a slip."""


class LabelWarning(UserWarning):
    """Labels contradict each other, are a model's, or are missing in too many problems."""


class ParameterWarning(UserWarning):
    """A setting looks like a slip, or was left out because it cannot apply."""


__all__ = [
    "CalibrationWarning",
    "GuaranteeWarning",
    "LabelWarning",
    "UnknownKeyWarning",
]
__all__ += ["ParameterWarning"]
