"""Scorers, which compute the confidence in each claim.

Every filter accepts any scorer that inherits from the base class `Scorer`. To use a
differentiable model such as `LinearModel` as a scorer, pass it to `ConfTrScorer`.
"""

from ._classifier import ClassifierScorer
from ._models import ConfTrScorer, LinearModel, MLPModel
from ._scorer import FeatureScorer, FitTask, FrequencyScorer, Scorer

__all__ = [
    "ClassifierScorer",
    "ConfTrScorer",
    "FeatureScorer",
    "FitTask",
    "FrequencyScorer",
    "LinearModel",
    "MLPModel",
    "Scorer",
]
