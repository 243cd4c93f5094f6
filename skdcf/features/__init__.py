"""Features: transformers that give reasoning graphs their columns."""

from ._agreement import AgreementFeatures
from ._base import GraphUnion
from ._claims import ClaimTransformer
from ._domains import DomainIndicators
from ._given import FrequencyFeature, SemanticFeatures
from ._graph import GraphFeatures
from ._sets import paper_features, reasoning_features
from ._text import TextFeatures

__all__ = [
    "AgreementFeatures",
    "ClaimTransformer",
    "DomainIndicators",
    "FrequencyFeature",
    "GraphFeatures",
    "GraphUnion",
    "SemanticFeatures",
    "TextFeatures",
    "paper_features",
    "reasoning_features",
]
