"""Filters for language-model reasoning that keep no false claim, with a guarantee."""

from .estimators import HardCF, IndependentFactuality, SingleFeatureCF
from .graphs import GraphBatch, ReasoningGraph

__all__ = [
    "GraphBatch",
    "HardCF",
    "IndependentFactuality",
    "ReasoningGraph",
    "SingleFeatureCF",
]
__version__ = "0.1.0.dev0"
