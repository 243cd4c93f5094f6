"""Layer 5, estimators: the scikit-learn face."""

from ._conformal import CoherentConformalFilter
from ._hard import HardCF
from ._parts import CalibrationPart
from ._presets import (
    BoostedIndependentFactuality,
    IndependentFactuality,
    SingleFeatureCF,
    XGBoostCF,
)

__all__ = [
    "BoostedIndependentFactuality",
    "CalibrationPart",
    "CoherentConformalFilter",
    "HardCF",
    "IndependentFactuality",
    "SingleFeatureCF",
    "XGBoostCF",
]
