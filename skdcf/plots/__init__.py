"""Display classes for filters and problems, in the style of scikit-learn.

Lines differ in colour, marker and dash pattern, so they can be distinguished in greyscale.
"""

from ._displays import (
    ChanceDisplay,
    ImportanceDisplay,
    ReportDisplay,
    ScoreDistributionDisplay,
    ShownDisplay,
    SoftHardDisplay,
)
from ._graph import ReasoningGraphDisplay

__all__ = [
    "ChanceDisplay",
    "ImportanceDisplay",
    "ReasoningGraphDisplay",
    "ReportDisplay",
    "ScoreDistributionDisplay",
    "ShownDisplay",
    "SoftHardDisplay",
]
