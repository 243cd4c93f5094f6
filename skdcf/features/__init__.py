"""Transformers that add feature columns to reasoning graphs."""

from ._answers import AgreementFeatures, estimate_agreement
from ._answers import OptionFeatures as OptionFeatures
from ._context import ContextFeatures, find_support
from ._models import PairFeature, StepReward
from ._sets import (
    DomainIndicators,
    FrequencyFeature,
    GraphFeatures,
    MetadataIndicators,
    SemanticFeatures,
    paper_features,
    reasoning_features,
)
from ._surprisal import Surprisal
from ._text import TextFeatures
from ._transformers import GraphTransformer, GraphUnion
from ._writer import add_surprisal, logprobs_of_claims
from .columns import ClaimTransformer

__all__ = [
    "AgreementFeatures",
    "ClaimTransformer",
    "ContextFeatures",
    "DomainIndicators",
    "FrequencyFeature",
    "GraphFeatures",
    "GraphTransformer",
    "GraphUnion",
    "MetadataIndicators",
    "PairFeature",
    "SemanticFeatures",
    "StepReward",
    "Surprisal",
    "TextFeatures",
    "add_surprisal",
    "estimate_agreement",
    "find_support",
    "logprobs_of_claims",
    "paper_features",
    "reasoning_features",
]

# Saved filters may contain classes that `reasoning_features` uses.
__saved__: list[str] = ["OptionFeatures"]
