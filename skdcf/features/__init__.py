"""Features: transformers that give reasoning graphs their columns."""

from ._agreement import AgreementFeatures, estimate_agreement
from ._base import GraphUnion
from ._claims import ClaimTransformer
from ._context import ContextFeatures, find_support
from ._domains import DomainIndicators, MetadataIndicators
from ._given import FrequencyFeature, SemanticFeatures
from ._graph import GraphFeatures
from ._models import PairFeature, StepReward
from ._options import OptionFeatures
from ._sets import paper_features, reasoning_features
from ._text import TextFeatures

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
