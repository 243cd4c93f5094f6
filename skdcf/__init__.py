"""Filters for language-model reasoning that keep no false claim, with a guarantee."""

# First of all, and from here: within the nested imports of the package CPython's call
# stack is so deep that it allocates its next piece again and again, which would make
# importing scipy a seventh slower.
import sklearn  # noqa: F401

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
