"""Scorers: from a claim's features to a confidence.

`Scorer` is the one protocol, and every filter takes every scorer. Differentiable models,
such as `LinearScorer`, become scorers through `ConformalScorer`, which trains them.
"""

from ..ops.standardize import Standardizer
from ._classifier import ClassifierScorer
from ._conformal import ConformalScorer
from ._cross import CrossScorer
from ._form import LinearForm
from ._hazards import Hazard, Seen
from ._linear import LinearScorer
from ._mixture import MixtureScorer, Selection
from ._mlp import MLPScorer
from ._neyman_pearson import NeymanPearsonScorer
from ._prior import PublicPrior
from ._protocol import (
    FeatureScorer,
    FrequencyScorer,
    FunctionScorer,
    Scorer,
    Task,
    does_learn,
)
from ._resolve import as_scorer
from ._shifted import GroupShiftScorer
from ._tables import HazardTable
from ._text_hazard import TextHazard

__all__ = [
    "ClassifierScorer",
    "ConformalScorer",
    "CrossScorer",
    "FeatureScorer",
    "FrequencyScorer",
    "FunctionScorer",
    "GroupShiftScorer",
    "Hazard",
    "HazardTable",
    "LinearForm",
    "LinearScorer",
    "MLPScorer",
    "MixtureScorer",
    "NeymanPearsonScorer",
    "PublicPrior",
    "Scorer",
    "Seen",
    "Selection",
    "Standardizer",
    "Task",
    "TextHazard",
    "as_scorer",
    "does_learn",
]
