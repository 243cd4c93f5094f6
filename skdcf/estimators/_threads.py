"""No more threads than the work is worth."""

from contextlib import nullcontext
from functools import cache

SMALL = 200_000  # claims times features: below, threads only get in each other's way


def few_threads(batch):
    """A context with one thread for small problems, and with all of them for large ones.

    Boosted trees and small products wake a team of threads for each of thousands of tiny
    steps. Where another process has a core, every step waits for the slowest thread: a
    fit of half a second was seen to take half a minute.
    """
    if batch.n_claims * (batch.n_features or 1) > SMALL:
        return nullcontext()
    return _controller().limit(limits=1)


@cache
def _controller():
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
