"""Compare filters on the same splits, and search for settings without losing the guarantee."""

from ..estimators import fit_levels
from ._chances import ChanceReport, evaluate_error_probability
from ._report import ComparisonReport, DifferenceReport
from ._search import CalibratedSearch
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
