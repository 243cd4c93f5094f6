"""Published data sets that only the benchmarks and tests read."""

from .claimwise import (
    fetch_conformal_factuality,
    fetch_perl,
    fetch_qags,
    fetch_refchecker,
)
from .retrieval import fetch_conformal_rag
from .stepwise import fetch_gsm8k_solutions, fetch_prmbench

__all__ = [
    "fetch_conformal_factuality",
    "fetch_conformal_rag",
    "fetch_gsm8k_solutions",
    "fetch_perl",
    "fetch_prmbench",
    "fetch_qags",
    "fetch_refchecker",
]
