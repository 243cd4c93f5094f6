"""Data: real sets to download, made-up ones to draw, and files to exchange."""

from ..graphs import labels_from_first_error
from ._coherent_math import fetch_coherent_math
from ._common import question_groups
from ._factuality import fetch_conformal_factuality
from ._felm import fetch_felm
from ._files import get_data_home
from ._generator import make_reasoning_graphs
from ._gsm8k_solutions import fetch_gsm8k_solutions
from ._jsonl import format_jsonl, iter_jsonl, jsonl_schema, read_jsonl, write_jsonl
from ._jsonl_parts import JsonlPartition, jsonl_partitions
from ._mr_ben import fetch_mr_ben
from ._perl import fetch_perl
from ._prm800k import fetch_prm800k
from ._prmbench import fetch_prmbench
from ._process_bench import fetch_process_bench
from ._refchecker import fetch_refchecker
from ._word_problems import make_word_problems

__all__ = [
    "JsonlPartition",
    "fetch_coherent_math",
    "fetch_conformal_factuality",
    "fetch_felm",
    "fetch_gsm8k_solutions",
    "fetch_mr_ben",
    "fetch_perl",
    "fetch_prm800k",
    "fetch_prmbench",
    "fetch_process_bench",
    "fetch_refchecker",
    "format_jsonl",
    "get_data_home",
    "iter_jsonl",
    "jsonl_partitions",
    "jsonl_schema",
    "labels_from_first_error",
    "make_reasoning_graphs",
    "make_word_problems",
    "question_groups",
    "read_jsonl",
    "write_jsonl",
]
