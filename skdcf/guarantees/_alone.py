"""Groups and weights that look at the other problems of a batch are refused."""

from types import FunctionType

import numpy as np

from ..graphs.grouping import as_set

LARGEST = 512  # problems that are looked at
TOLERATED = 1e-5  # of the largest weight


def refuse_dependence(guarantee, batch, risks):
    """ValueError if the group or weight of a problem is another in another batch.

    Parameters
    ----------
    guarantee : Guarantee
    batch : GraphBatch
    risks : PathRisks
        Of the whole batch.
    """
    rows = np.unique(
        np.linspace(0, len(batch) - 1, min(len(batch), LARGEST)).astype(int)
    )
    if guarantee.by is None and guarantee.weight is None:
        return
    for some in (rows[:1], rows[1:2], rows[2 : 2 + len(rows) // 3]):
        if 0 < len(some) < len(batch):
            part = batch[some]
            alone = guarantee.path_risks(np.zeros(part.n_claims), part)
            _compare_groups(guarantee.by, alone.groups, risks.groups, batch, some)
            _compare_weights(alone.weights, risks.weights, batch, some)


def _compare_groups(by, alone, together, batch, rows):
    for group, i in zip(alone or (), rows if alone else (), strict=True):
        if as_set(group) != as_set(together[i]):
            raise ValueError(
                f"{batch.name_of(int(i))} is of group {together[i]!r} by {by!r} among "
                f"all problems, and of {group!r} among others. A group has to be a "
                "function of each problem alone: no rank or quantile over the batch"
            )


def _compare_weights(alone, together, batch, rows):
    if alone is None:
        return
    differ = np.abs(alone - together[rows]) > TOLERATED * together.max()
    if differ.any():
        j = int(np.argmax(differ))
        raise ValueError(
            f"{batch.name_of(int(rows[j]))} has weight {together[rows[j]]:g} among all "
            f"problems, and {alone[j]:g} among others. A weight has to be a function of "
            "each problem alone: do not divide by a sum over the batch"
        )


def functions_of(guarantee):
    """The plain functions that say groups and weights; they are compared as objects."""
    found = []
    for value in (guarantee.by, guarantee.weight):
        several = value if isinstance(value, (list, tuple)) else [value]
        found += [one for one in several if isinstance(one, FunctionType)]
    return found
