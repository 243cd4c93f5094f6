"""Save and load fitted filters, or only their thresholds as JSON.

The functions `skdcf.save` and `skdcf.load` are aliases for `save` and `load` in this module.
"""

from ._save import load, save
from ._threshold import CalibratedThreshold, load_threshold, save_threshold

__all__ = ["CalibratedThreshold", "load", "load_threshold", "save", "save_threshold"]
