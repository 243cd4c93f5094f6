"""Layer 1, data: reasoning graphs, alone and packed."""

from ._batch import GraphBatch
from ._graph import ReasoningGraph
from ._labels import (
    LABEL_WORDS,
    LABELS,
    Labels,
    Problems,
    answer_text,
    as_batch,
    as_graphs,
    is_graphs,
    labels_from_first_error,
    pack_labels,
    read_column,
    read_labels,
    read_words,
)
from ._questions import question_groups, question_hashes

__all__ = [
    "LABELS",
    "LABEL_WORDS",
    "GraphBatch",
    "Labels",
    "Problems",
    "ReasoningGraph",
    "answer_text",
    "as_batch",
    "as_graphs",
    "is_graphs",
    "labels_from_first_error",
    "pack_labels",
    "question_groups",
    "question_hashes",
    "read_column",
    "read_labels",
    "read_words",
]
