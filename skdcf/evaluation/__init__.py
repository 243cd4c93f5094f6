"""Filters compared on the same splits of the same problems, and searches that stay valid."""

from ._compare import compare_filters
from ._comparison_report import ComparisonReport, DifferenceReport
from ._search import CalibratedSearch, fit_levels

__all__ = [
    "CalibratedSearch",
    "ComparisonReport",
    "DifferenceReport",
    "compare_filters",
    "fit_levels",
]
