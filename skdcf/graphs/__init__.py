"""Reasoning graphs, stored individually or packed in batches.

The modules ``labels`` and ``problems`` contain additional functions for other subpackages of
skdcf.
"""

from ._containers import GraphBatch as GraphBatch
from ._containers import Problems as Problems
from ._containers import ReasoningGraph as ReasoningGraph
from ._containers import answer_text, as_batch
from .labels import Labels as Labels
from .labels import pack_labels
from .problems import question_groups

__all__ = [
    "answer_text",
    "as_batch",
    "pack_labels",
    "question_groups",
]
