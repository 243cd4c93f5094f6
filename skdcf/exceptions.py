"""Warnings of this package."""


class CalibrationWarning(UserWarning):
    """The filter keeps nothing, because there are too few calibration problems."""


class LabelWarning(UserWarning):
    """The labels that calibrate are all a model's, or missing in too many problems."""


__all__ = ["CalibrationWarning", "LabelWarning"]
