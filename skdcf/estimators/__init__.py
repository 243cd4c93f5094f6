"""Layer 5, estimators: the scikit-learn face."""

from ._online import decide as decide
from ._online import largest_risks as largest_risks
from ._origin import accept_origin as accept_origin
from ._origin import count_as_trained as count_as_trained
from ._origin import reason_in_force as reason_in_force
from ._origin import reason_sent_with as reason_sent_with
from ._parts import CalibrationPart
from ._presets import (
    BoostedIndependentFactuality,
    CoherentConformalFilter,
    HardCF,
    IndependentFactuality,
    SingleFeatureCF,
    XGBoostCF,
)
from ._shown import shown_masks as shown_masks

__all__ = [
    "BoostedIndependentFactuality",
    "CalibrationPart",
    "CoherentConformalFilter",
    "HardCF",
    "IndependentFactuality",
    "SingleFeatureCF",
    "XGBoostCF",
]
