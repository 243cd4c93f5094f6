"""Scorers: from a claim's features to a confidence.

`Scorer` is the one protocol, and every filter takes every scorer. Differentiable models,
such as `LinearModel`, become scorers through `ConfTrScorer`, which trains them.
"""

from ._classifier import ClassifierScorer
from ._hazards import NeymanPearsonScorer
from ._models import ConfTrScorer, LinearModel, MLPModel
from ._prior import PublicPrior
from ._scorer import FeatureScorer, FitTask, FrequencyScorer, LinearForm, Scorer
from ._stack import Selection as Selection
from ._stack import StackingScorer
from ._tree_tables import HazardTable as HazardTable
from .resolve import FunctionScorer as FunctionScorer

__all__ = [
    "ClassifierScorer",
    "ConfTrScorer",
    "FeatureScorer",
    "FitTask",
    "FrequencyScorer",
    "LinearForm",
    "LinearModel",
    "MLPModel",
    "NeymanPearsonScorer",
    "PublicPrior",
    "Scorer",
    "StackingScorer",
]

# Classes that files of filters hold, and that nobody has to make.
__saved__: list[str] = ["FunctionScorer", "HazardTable", "Selection"]
