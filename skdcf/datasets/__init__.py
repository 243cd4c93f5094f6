"""Load published data sets, simulate data sets, and read and write JSON Lines files."""

from ._claimwise import (
    fetch_coherent_math,
    fetch_conformal_factuality,
    fetch_felm,
    fetch_perl,
    fetch_qags,
    fetch_refchecker,
)
from ._generator import make_reasoning_graphs, make_word_problems
from ._retrieval import fetch_conformal_rag
from ._stepwise import (
    fetch_gsm8k_solutions,
    fetch_mr_ben,
    fetch_prm800k,
    fetch_prmbench,
    fetch_process_bench,
    labels_from_first_error,
)
from .jsonl import jsonl_partitions, read_jsonl, write_jsonl
from .messages import from_messages
from .records import build_dataset

__all__ = [
    "build_dataset",
    "fetch_coherent_math",
    "fetch_conformal_factuality",
    "fetch_conformal_rag",
    "fetch_felm",
    "fetch_gsm8k_solutions",
    "fetch_mr_ben",
    "fetch_perl",
    "fetch_prm800k",
    "fetch_prmbench",
    "fetch_process_bench",
    "fetch_qags",
    "fetch_refchecker",
    "from_messages",
    "jsonl_partitions",
    "labels_from_first_error",
    "make_reasoning_graphs",
    "make_word_problems",
    "read_jsonl",
    "write_jsonl",
]
