"""Layer 1, data: reasoning graphs, alone and packed."""

from ._batch import GraphBatch
from ._boundary import as_batch, as_graphs, is_graphs, pack_labels
from ._graph import ReasoningGraph

__all__ = [
    "GraphBatch",
    "ReasoningGraph",
    "as_batch",
    "as_graphs",
    "is_graphs",
    "pack_labels",
]
