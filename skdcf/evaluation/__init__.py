"""Compare filters on the same splits, and search for settings without losing the guarantee."""

from ..estimators import fit_levels
from ._report import ComparisonReport, DifferenceReport
from ._search import CalibratedSearch
from .compare import compare_filters

__all__ = [
    "CalibratedSearch",
    "ComparisonReport",
    "DifferenceReport",
    "compare_filters",
    "fit_levels",
]
