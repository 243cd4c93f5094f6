"""Layer 3, scorers: from a claim's features to a confidence.

A scorer for `HardCF` has ``confidence(batch) -> (n_claims,)``, higher meaning
more trustworthy, and, if it learns, ``fit(batch, labels) -> self``. A class attribute
``needs_training = False`` says that fit learns nothing from labels.
"""

from ._classifier import ClassifierScorer
from ._fixed import FeatureScorer, FrequencyScorer, FunctionScorer
from ._linear import LinearScorer
from ._mlp import MLPScorer
from ._neyman_pearson import NeymanPearsonScorer
from ._resolve import as_scorer

__all__ = [
    "ClassifierScorer",
    "FeatureScorer",
    "FrequencyScorer",
    "FunctionScorer",
    "LinearScorer",
    "MLPScorer",
    "NeymanPearsonScorer",
    "as_scorer",
]
