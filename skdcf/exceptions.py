"""Warnings of this package."""


class CalibrationWarning(UserWarning):
    """The filter keeps nothing, because there are too few calibration problems."""


__all__ = ["CalibrationWarning"]
