"""Compare filters on the same splits, and search for settings without losing the guarantee."""

from ._report import ComparisonReport
from ._search import CalibratedSearch
from .compare import compare_filters

__all__ = [
    "CalibratedSearch",
    "ComparisonReport",
    "compare_filters",
]
