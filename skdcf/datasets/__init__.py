"""Load published data sets, simulate data sets, and read and write JSON Lines files."""

from ._generator import make_reasoning_graphs, make_word_problems
from .fetch import (
    fetch_coherent_math,
    fetch_felm,
    fetch_mr_ben,
    fetch_process_bench,
    labels_from_first_error,
)
from .jsonl import read_jsonl, write_jsonl
from .messages import from_messages
from .records import build_dataset

__all__ = [
    "build_dataset",
    "fetch_coherent_math",
    "fetch_felm",
    "fetch_mr_ben",
    "fetch_process_bench",
    "from_messages",
    "labels_from_first_error",
    "make_reasoning_graphs",
    "make_word_problems",
    "read_jsonl",
    "write_jsonl",
]
