"""Pictures of filters and problems, as Display classes like scikit-learn's.

Lines differ in colour, marker and dash, so that they can be told apart in grey.
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
