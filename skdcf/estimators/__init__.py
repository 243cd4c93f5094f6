"""Filters that implement the scikit-learn estimator interface."""

from ._calibrate import calibration_scores as calibration_scores
from ._choose import choose as choose
from ._choose import chosen_answers as chosen_answers
from ._filter import PROMISED as PROMISED
from ._filter import ConformalFilter as ConformalFilter
from ._levels import at_level as at_level
from ._levels import calibrated_masks as calibrated_masks
from ._levels import copy_at as copy_at
from ._levels import fit_levels as fit_levels
from ._levels import flat_masks as flat_masks
from ._online import decide as decide
from ._online import largest_risks as largest_risks
from ._parts import CalibrationPart as CalibrationPart
from ._presets import BoostedIndependentFactuality as BoostedIndependentFactuality
from ._presets import CoherentConformalFilter as CoherentConformalFilter
from ._presets import HardCF as HardCF
from ._presets import IndependentFactuality as IndependentFactuality
from ._presets import SingleFeatureCF as SingleFeatureCF
from ._presets import XGBoostCF as XGBoostCF
from ._seen import seen as seen
from ._shown import passing_answers as passing_answers
from ._shown import shown_masks as shown_masks
from ._validation import check as check
