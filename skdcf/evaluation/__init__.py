"""Filters compared on the same splits of the same problems."""

from ._compare import compare_filters
from ._comparison_report import ComparisonReport
from ._differences import DifferenceReport
from ._fitting import fit_levels, fit_search

__all__ = [
    "ComparisonReport",
    "DifferenceReport",
    "compare_filters",
    "fit_levels",
    "fit_search",
]
