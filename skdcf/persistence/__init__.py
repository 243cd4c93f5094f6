"""Save and load fitted filters, or only their thresholds as JSON.

`skdcf.save` and `skdcf.load` are the same functions.
"""

from ._save import load, save
from ._threshold import CalibratedThreshold, load_threshold, save_threshold

__all__ = ["CalibratedThreshold", "load", "load_threshold", "save", "save_threshold"]
