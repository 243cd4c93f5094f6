"""Features: transformers that give reasoning graphs their columns."""

from ._agreement import AgreementFeatures, estimate_agreement
from ._answers import OptionFeatures
from ._base import GraphUnion
from ._context import ContextFeatures, find_support
from ._domains import DomainIndicators, MetadataIndicators
from ._models import PairFeature, StepReward
from ._sets import (
    FrequencyFeature,
    GraphFeatures,
    SemanticFeatures,
    paper_features,
    reasoning_features,
)
from ._text import TextFeatures
from .columns import ClaimTransformer

__all__ = [
    "AgreementFeatures",
    "ClaimTransformer",
    "ContextFeatures",
    "DomainIndicators",
    "FrequencyFeature",
    "GraphFeatures",
    "GraphUnion",
    "MetadataIndicators",
    "OptionFeatures",
    "PairFeature",
    "SemanticFeatures",
    "StepReward",
    "TextFeatures",
    "estimate_agreement",
    "find_support",
    "paper_features",
    "reasoning_features",
]
