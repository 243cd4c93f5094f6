"""Warnings and errors of this package that callers may want to catch."""


class CalibrationWarning(UserWarning):
    """Warning that the filter keeps nothing because there are too few calibration problems."""


class GuaranteeWarning(UserWarning):
    """Warning that the guarantee is only approximate, or depends on an unchecked assumption."""


class LabelWarning(UserWarning):
    """Warning that labels are contradictory, model-generated, or missing in many problems."""


class ParameterWarning(UserWarning):
    """Warning that a setting may be a mistake, or was ignored because it has no effect."""


__all__ = ["CalibrationWarning", "GuaranteeWarning", "LabelWarning", "ParameterWarning"]
