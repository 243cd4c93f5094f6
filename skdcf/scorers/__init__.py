"""Scorers, which compute a confidence for each claim.

`Scorer` is the protocol, and every filter accepts every scorer. `ConfTrScorer` trains a
differentiable model, such as `LinearModel`, and is the scorer.
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

# Classes that saved filters contain, and that users need not create.
__saved__: list[str] = ["FunctionScorer", "HazardTable", "Selection"]
