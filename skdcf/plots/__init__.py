"""Pictures of filters and problems, as Display classes like scikit-learn's.

Lines differ in colour, marker and dash, so that they can be told apart in grey.
"""

from ._graph import ReasoningGraphDisplay
from ._groups import GroupCoverageDisplay
from ._importance import ImportanceDisplay, ShapDisplay
from ._reports import ComparisonDisplay, FilterReportDisplay
from ._retention import RetentionDisplay
from ._scores import ScoreDistributionDisplay, SoftHardDisplay
from ._training import TrainingCurveDisplay

__all__ = [
    "ComparisonDisplay",
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
