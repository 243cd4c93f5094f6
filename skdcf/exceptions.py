"""Warnings of this package."""


class CalibrationWarning(UserWarning):
    """The filter keeps nothing, because there are too few calibration problems."""


class LabelWarning(UserWarning):
    """The guarantee is one about a model's labels, because no other ones calibrated."""


__all__ = ["CalibrationWarning", "LabelWarning"]
