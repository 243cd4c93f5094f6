"""Layer 3, scorers: from a claim's features to a confidence.

A scorer for `HardCF` has ``confidence(batch) -> (n_claims,)``, higher meaning
more trustworthy, and, if it learns, ``fit(batch, labels) -> self``. A class attribute
``needs_training = False`` says that fit learns nothing from labels.
"""

from ._classifier import ClassifierScorer
from ._fixed import FeatureScorer, FrequencyScorer, FunctionScorer
from ._resolve import as_scorer

__all__ = [
    "ClassifierScorer",
    "FeatureScorer",
    "FrequencyScorer",
    "FunctionScorer",
    "as_scorer",
]
