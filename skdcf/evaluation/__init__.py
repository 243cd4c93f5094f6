"""Measure coverage and retention, compare filters, and search for settings."""

from .._html import Table
from ._intervals import coverage_band, coverage_interval, error_rate_upper_bound
from ._report import coverage_score, evaluate_filter, leave_one_out, retention_score
from ._search import CalibratedSearch
from .compare import compare_filters
from .judges import judge_report

__all__ = [
    "CalibratedSearch",
    "Table",
    "compare_filters",
    "coverage_band",
    "coverage_interval",
    "coverage_score",
    "error_rate_upper_bound",
    "evaluate_filter",
    "judge_report",
    "leave_one_out",
    "retention_score",
]
