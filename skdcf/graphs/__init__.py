"""Layer 1, data: reasoning graphs, alone and packed."""

from ._batch import GraphBatch, as_batch, pack_labels
from ._graph import ReasoningGraph

__all__ = ["GraphBatch", "ReasoningGraph", "as_batch", "pack_labels"]
