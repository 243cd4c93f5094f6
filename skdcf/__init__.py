"""Filters for language-model reasoning that keep no false claim, with a guarantee."""

from .estimators import (
    BoostedIndependentFactuality,
    CoherentConformalFilter,
    HardCF,
    IndependentFactuality,
    SingleFeatureCF,
    XGBoostCF,
)
from .graphs import GraphBatch, ReasoningGraph
from .persistence import load, save

__all__ = [
    "BoostedIndependentFactuality",
    "CoherentConformalFilter",
    "GraphBatch",
    "HardCF",
    "IndependentFactuality",
    "ReasoningGraph",
    "SingleFeatureCF",
    "XGBoostCF",
    "load",
    "save",
]
__version__ = "0.1.0.dev0"
