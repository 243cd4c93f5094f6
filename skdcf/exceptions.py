"""Warnings of this package."""


class CalibrationWarning(UserWarning):
    """The filter keeps nothing, because there are too few calibration problems."""


class LabelWarning(UserWarning):
    """The labels that calibrate are all a model's, or missing in too many problems."""


class KeyWarning(UserWarning):
    """A key of a line looks like one of the format, and may be a slip."""


__all__ = ["CalibrationWarning", "KeyWarning", "LabelWarning"]
