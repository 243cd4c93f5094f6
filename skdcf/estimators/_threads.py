"""No more threads than the work is worth."""

import sys
from contextlib import nullcontext
from functools import lru_cache

SMALL = 200_000  # claims times features: below, threads only get in each other's way


def few_threads(batch):
    """A context with one thread for small problems, and with all of them for large ones.

    Boosted trees and small products wake a team of threads for each of thousands of tiny
    steps. Where another process has a core, every step waits for the slowest thread: a
    fit of half a second was seen to take half a minute.
    """
    if batch.n_claims * (batch.n_features or 1) > SMALL:
        return nullcontext()
    return _controller(len(sys.modules)).limit(limits=1)


@lru_cache(1)
def _controller(n_modules):
    """Of the libraries that are loaded now; looked for again when modules were imported."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
