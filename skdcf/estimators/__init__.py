"""Layer 5, estimators: the scikit-learn face."""

from ._decide import decide as decide
from ._origin import count_as_trained as count_as_trained
from ._parts import CalibrationPart
from ._presets import (
    BoostedIndependentFactuality,
    CoherentConformalFilter,
    HardCF,
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
