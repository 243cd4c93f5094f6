"""Coverage and retention of filters, observed and predicted by theory."""

from ._evaluate import evaluate_filter, leave_one_out
from ._intervals import coverage_band, coverage_interval
from ._report import FilterReport
from ._scores import coverage_score, retention_score

__all__ = [
    "FilterReport",
    "coverage_band",
    "coverage_interval",
    "coverage_score",
    "evaluate_filter",
    "leave_one_out",
    "retention_score",
]
