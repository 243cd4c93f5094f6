"""Random parts of a set of problems that keep groups together."""

from numbers import Integral, Real

import numpy as np


def holdout_count(name, size, n):
    """Number of problems held out of n, for a fraction or a count.

    Raises
    ------
    ValueError
        If nothing would be held out, or nothing would be left.
    """
    count = size
    if isinstance(size, Real) and not isinstance(size, Integral) and 0 < size < 1:
        count = max(1, round(size * n))
    if not isinstance(count, Integral) or isinstance(count, bool) or count < 1:
        raise ValueError(
            f"{name} is {size!r}, but must be a fraction in (0, 1) or a number of "
            "problems, at least 1"
        )
    if count >= n:
        raise ValueError(
            f"{name} holds out {count} of n_samples = {n} problems, but at least 1 "
            f"sample must be left to train on: pass more problems, or a smaller {name}"
        )
    return int(count)


def hold_out(n, count, groups, rng):
    """Positions (rest, held out) of a random split of n problems.

    Parameters
    ----------
    n, count : int
        ``count`` of ``n`` problems are held out, or as many groups of them.
    groups : ndarray of shape (n,) or None
    rng : RandomState or Generator

    Returns
    -------
    rest, held : ndarrays of int, sorted
    """
    codes = np.arange(n) if groups is None else number_groups(groups)
    n_groups = codes.max() + 1
    if n_groups < 2:
        raise ValueError("all problems are in one group: nothing can be held out")
    held = np.isin(codes, rng.permutation(n_groups)[: min(count, n_groups - 1)])
    return np.flatnonzero(~held), np.flatnonzero(held)


def number_groups(groups):
    """Numbers of the groups, in the order of the first problem of each."""
    _, first, code = np.unique(groups, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[code]


def pick(batch, labels, rows):
    """Problems ``rows``, increasing, with their flat labels."""
    chosen = np.zeros(len(batch), dtype=bool)
    chosen[rows] = True
    return batch[rows], labels[chosen[batch.problem_of]]
