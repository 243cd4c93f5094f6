"""Layer 5, estimators: the scikit-learn face."""

from ._door import accepting_origin as accepting_origin
from ._online import decide as decide
from ._parts import CalibrationPart
from ._presets import (
    BoostedIndependentFactuality,
    CoherentConformalFilter,
    HardCF,
    IndependentFactuality,
    SingleFeatureCF,
    XGBoostCF,
)
from ._repeat import count_as_trained as count_as_trained

__all__ = [
    "BoostedIndependentFactuality",
    "CalibrationPart",
    "CoherentConformalFilter",
    "HardCF",
    "IndependentFactuality",
    "SingleFeatureCF",
    "XGBoostCF",
]
