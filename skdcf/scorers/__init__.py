"""Scorers: from a claim's features to a confidence.

`Scorer` is the one protocol, and every filter takes every scorer. Differentiable models,
such as `LinearScorer`, become scorers through `ConformalScorer`, which trains them.
"""

from ._classifier import ClassifierScorer
from ._hazards import NeymanPearsonScorer
from ._mixture import MixtureScorer
from ._mixture import Selection as Selection
from ._models import ConformalScorer, LinearScorer, MLPScorer
from ._prior import PublicPrior
from ._scorer import FeatureScorer, FrequencyScorer, LinearForm, Scorer, Task
from ._tables import HazardTable as HazardTable
from .making import FunctionScorer as FunctionScorer

__all__ = [
    "ClassifierScorer",
    "ConformalScorer",
    "FeatureScorer",
    "FrequencyScorer",
    "LinearForm",
    "LinearScorer",
    "MLPScorer",
    "MixtureScorer",
    "NeymanPearsonScorer",
    "PublicPrior",
    "Scorer",
    "Task",
]

# Classes that files of filters hold, and that nobody has to make.
__saved__: list[str] = ["FunctionScorer", "HazardTable", "Selection"]
