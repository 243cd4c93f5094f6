"""One thread for small fits, since threads that wait for each other cost more than they save."""

from __future__ import annotations

import sys
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from threading import Lock
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

SMALL = 200_000  # claims times features; below, threads only get in each other's way

_lock = Lock()
_limits: list[
    Any
] = []  # the limit that the first fit has set, once for each fit under way


@contextmanager
def few_threads(batch):
    """One thread for small problems, and all of them for large ones, while a filter is fitted.

    Boosted trees and small products wake a team of threads for each of thousands of tiny
    steps. Where another process has a core, every step waits for the slowest thread: a
    fit of half a second was seen to take half a minute. The limit of BLAS is one for the
    whole process: the first fit under way sets it, and the last one takes it back. That of
    OpenMP is one for each thread.
    """
    if max(batch.n_claims, np.size(batch.features)) > SMALL:
        yield
        return
    controller = _controller(len(sys.modules))
    with _lock:
        blas = controller.select(user_api="blas")
        _limits.append(_limits[0] if _limits else blas.limit(limits=1))
    try:
        with controller.select(user_api="openmp").limit(limits=1):
            yield
    finally:
        with _lock:
            limit = _limits.pop()
            # Leaving the limit restores the old number of threads.
            with nullcontext() if _limits else limit:
                pass


@lru_cache(1)
def _controller(n_modules):
    """The controller of loaded libraries, made anew after modules were imported."""
    return ThreadpoolController()
