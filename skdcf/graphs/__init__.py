"""Reasoning graphs, stored individually or packed in batches."""

from ._containers import GraphBatch as GraphBatch
from ._containers import Problems as Problems
from ._containers import ReasoningGraph as ReasoningGraph
from ._containers import answer_text as answer_text
from ._containers import as_batch as as_batch
from ._containers import pack_graphs as pack_graphs
