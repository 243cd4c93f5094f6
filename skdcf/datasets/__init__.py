"""Load published data sets, simulate data sets, and read and write files and tables."""

from ._generator import make_reasoning_graphs, make_word_problems
from .fetch import (
    fetch_coherent_math,
    fetch_felm,
    fetch_mr_ben,
    fetch_process_bench,
    labels_from_first_error,
)
from .frames import from_frame, to_frame
from .jsonl import jsonl_partitions, read_jsonl, write_jsonl
from .messages import from_messages
from .other_tools import from_lm_polygraph, from_uqlm
from .records import build_dataset

__all__ = [
    "build_dataset",
    "fetch_coherent_math",
    "fetch_felm",
    "fetch_mr_ben",
    "fetch_process_bench",
    "from_frame",
    "from_lm_polygraph",
    "from_messages",
    "from_uqlm",
    "jsonl_partitions",
    "labels_from_first_error",
    "make_reasoning_graphs",
    "make_word_problems",
    "read_jsonl",
    "to_frame",
    "write_jsonl",
]
