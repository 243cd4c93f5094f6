"""Reasoning graphs, stored individually or packed in batches.

The modules ``labels`` and ``problems`` contain additional functions for other subpackages of
skdcf.
"""

from ._batch import GraphBatch as GraphBatch
from ._graph import ReasoningGraph as ReasoningGraph
from .labels import Labels as Labels
from .labels import pack_labels
from .problems import Problems as Problems
from .problems import answer_text, as_batch, question_groups

__all__ = [
    "answer_text",
    "as_batch",
    "pack_labels",
    "question_groups",
]
