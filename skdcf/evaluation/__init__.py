"""Filters compared on the same splits of the same problems, and searches that stay valid."""

from ._chances import ChanceReport, evaluate_error_probability
from ._report import ComparisonReport, DifferenceReport
from ._search import CalibratedSearch, fit_levels
from .compare import compare_filters

__all__ = [
    "CalibratedSearch",
    "ChanceReport",
    "ComparisonReport",
    "DifferenceReport",
    "compare_filters",
    "evaluate_error_probability",
    "fit_levels",
]
