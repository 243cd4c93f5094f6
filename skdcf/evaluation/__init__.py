"""Filters compared on the same splits of the same problems."""

from ._compare import compare_filters
from ._differences import DifferenceReport
from ._display import ComparisonDisplay
from ._levels import fit_levels
from ._report import ComparisonReport

__all__ = [
    "ComparisonDisplay",
    "ComparisonReport",
    "DifferenceReport",
    "compare_filters",
    "fit_levels",
]
