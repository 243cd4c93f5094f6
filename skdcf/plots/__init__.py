"""Pictures of filters and problems, as Display classes like scikit-learn's.

Lines differ in colour, marker and dash, so that they can be told apart in grey.
"""

from ._graph import ReasoningGraphDisplay
from ._reports import (
    ComparisonDisplay,
    CoverageDisplay,
    FilterReportDisplay,
    GroupCoverageDisplay,
)
from ._scores import (
    ImportanceDisplay,
    RetentionDisplay,
    ScoreDistributionDisplay,
    ShapDisplay,
    SoftHardDisplay,
    TrainingCurveDisplay,
)

__all__ = [
    "ComparisonDisplay",
    "CoverageDisplay",
    "FilterReportDisplay",
    "GroupCoverageDisplay",
    "ImportanceDisplay",
    "ReasoningGraphDisplay",
    "RetentionDisplay",
    "ScoreDistributionDisplay",
    "ShapDisplay",
    "SoftHardDisplay",
    "TrainingCurveDisplay",
]
