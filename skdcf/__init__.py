"""Filters for language-model reasoning that keep no false claim, with a guarantee."""

from .graphs import GraphBatch, ReasoningGraph

__all__ = ["GraphBatch", "ReasoningGraph"]
__version__ = "0.1.0.dev0"
