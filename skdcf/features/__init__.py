"""Transformers that add feature columns to reasoning graphs."""

from ._answers import AgreementFeatures, estimate_agreement
from ._answers import OptionFeatures as OptionFeatures
from ._context import ContextFeatures
from ._functions import FunctionColumns
from ._sets import (
    DomainIndicators,
    GraphFeatures,
    MetadataIndicators,
    paper_features,
    reasoning_features,
)
from ._sets import GivenColumns as GivenColumns
from ._surprisal import SURPRISAL as SURPRISAL
from ._surprisal import surprisal
from ._text import TextFeatures
from ._transformers import GraphTransformer, GraphUnion
from .columns import ClaimTransformer

__all__ = [
    "AgreementFeatures",
    "ClaimTransformer",
    "ContextFeatures",
    "DomainIndicators",
    "FunctionColumns",
    "GraphFeatures",
    "GraphTransformer",
    "GraphUnion",
    "MetadataIndicators",
    "TextFeatures",
    "estimate_agreement",
    "paper_features",
    "reasoning_features",
    "surprisal",
]
