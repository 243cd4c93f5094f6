"""Data: real sets to download, made-up ones to draw, and files to exchange."""

from ._coherent_math import fetch_coherent_math
from ._common import question_groups
from ._factuality import fetch_conformal_factuality
from ._felm import fetch_felm
from ._files import get_data_home
from ._generator import make_reasoning_graphs
from ._jsonl import iter_jsonl, jsonl_schema, read_jsonl, write_jsonl
from ._perl import fetch_perl

__all__ = [
    "fetch_coherent_math",
    "fetch_conformal_factuality",
    "fetch_felm",
    "fetch_perl",
    "get_data_home",
    "iter_jsonl",
    "jsonl_schema",
    "make_reasoning_graphs",
    "question_groups",
    "read_jsonl",
    "write_jsonl",
]
