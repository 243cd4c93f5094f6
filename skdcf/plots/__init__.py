"""Display classes for filters and problems, in the style of scikit-learn.

Lines differ in colour, marker and dash pattern, so they can be distinguished in greyscale.
"""

from ._displays import (
    ImportanceDisplay,
    ReportDisplay,
    ScoreDistributionDisplay,
)
from ._graph import ReasoningGraphDisplay

__all__ = [
    "ImportanceDisplay",
    "ReasoningGraphDisplay",
    "ReportDisplay",
    "ScoreDistributionDisplay",
]
