"""Measure coverage and retention, compare filters, and search for settings."""

from ._metrics import (
    FilterReport,
    coverage_band,
    coverage_interval,
    coverage_score,
    error_rate_upper_bound,
    evaluate_filter,
    leave_one_out,
    retention_score,
)
from ._report import ComparisonReport
from ._search import CalibratedSearch
from .compare import compare_filters

__all__ = [
    "CalibratedSearch",
    "ComparisonReport",
    "FilterReport",
    "compare_filters",
    "coverage_band",
    "coverage_interval",
    "coverage_score",
    "error_rate_upper_bound",
    "evaluate_filter",
    "leave_one_out",
    "retention_score",
]
