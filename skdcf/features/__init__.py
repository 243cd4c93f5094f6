"""Transformers that add feature columns to reasoning graphs."""

from ._answers import AgreementFeatures
from ._answers import OptionFeatures as OptionFeatures
from ._context import ContextFeatures
from ._functions import FunctionColumns
from ._sets import (
    DomainIndicators,
    GraphFeatures,
    GraphUnion,
    paper_features,
    reasoning_features,
)
from ._sets import GivenColumns as GivenColumns
from ._surprisal import SURPRISAL as SURPRISAL
from ._surprisal import surprisal
from ._text import TextFeatures
from ._transformers import GraphTransformer

__all__ = [
    "AgreementFeatures",
    "ContextFeatures",
    "DomainIndicators",
    "FunctionColumns",
    "GraphFeatures",
    "GraphTransformer",
    "GraphUnion",
    "TextFeatures",
    "paper_features",
    "reasoning_features",
    "surprisal",
]
