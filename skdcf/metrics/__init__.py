"""Coverage and retention of filters, observed and predicted by theory."""

from ._evaluate import evaluate_filter, filter_in, leave_one_out, report_predictions
from ._filter_report import FilterReport
from ._intervals import coverage_band, coverage_interval
from ._scores import (
    clean_prefix_score,
    coverage_score,
    first_error_score,
    nonempty_score,
    problem_errors,
    retention_score,
)

__all__ = [
    "FilterReport",
    "clean_prefix_score",
    "coverage_band",
    "coverage_interval",
    "coverage_score",
    "evaluate_filter",
    "filter_in",
    "first_error_score",
    "leave_one_out",
    "nonempty_score",
    "problem_errors",
    "report_predictions",
    "retention_score",
]
