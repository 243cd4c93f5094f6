"""Scorers, which compute the confidence in each claim.

Every filter accepts any scorer that inherits from the base class `Scorer`. To use a
differentiable model such as `LinearModel` as a scorer, pass it to `ConfTrScorer`.
"""

from ._classifier import ClassifierScorer
from ._hazards import NeymanPearsonScorer
from ._models import ConfTrScorer, LinearModel, MLPModel
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
    "Scorer",
    "StackingScorer",
]

# Classes that saved filters may contain, but that users need not instantiate.
__saved__: list[str] = ["FunctionScorer", "HazardTable", "Selection"]
