"""Layer 5, estimators: the scikit-learn face."""

from ._online import decide as decide
from ._online import largest_risks as largest_risks
from ._origin import accept_origin as accept_origin
from ._origin import compare_origin as compare_origin
from ._origin import count_as_trained as count_as_trained
from ._origin import origin_of as origin_of
from ._origin import reason_in_force as reason_in_force
from ._origin import reason_sent_with as reason_sent_with
from ._parts import CalibrationPart as CalibrationPart
from ._presets import BoostedIndependentFactuality as BoostedIndependentFactuality
from ._presets import CoherentConformalFilter as CoherentConformalFilter
from ._presets import HardCF as HardCF
from ._presets import IndependentFactuality as IndependentFactuality
from ._presets import SingleFeatureCF as SingleFeatureCF
from ._presets import XGBoostCF as XGBoostCF
from ._shown import shown_masks as shown_masks
