"""Which group a problem belongs to, by its metadata, a feature, or a function; its weight."""

from collections.abc import Hashable

import numpy as np

from .._checks import is_missing, without_places

SEVERAL = (list, set, frozenset)
EXTREME = 1e100  # of a weight, either way


def read_groups(by, batch):
    """The groups of each problem.

    Parameters
    ----------
    by : str, callable, or list of these
        The key of the metadata, the name of a feature that is the same for all claims of
        a problem, or a function of the batch. The function gives one value per problem,
        or a 2-D array of booleans with one column per group. With a list, a problem
        belongs to the groups of each entry, as pairs (name of the entry, group).
    batch : GraphBatch
        The problems.

    Returns
    -------
    values : list of length n_graphs
        The group of each problem; the frozenset of its groups where they may overlap.
    overlap : bool
        Whether a problem may belong to several groups.

    Raises
    ------
    ValueError
        Naming the problem whose group is not known.
    """
    if isinstance(by, (list, tuple)):
        columns = []
        for name, one in zip(_names(by), by, strict=True):
            groups = map(as_set, read_groups(one, batch)[0])
            columns.append([{(name, group) for group in some} for some in groups])
        return [frozenset().union(*row) for row in zip(*columns, strict=True)], True
    values = by(batch) if callable(by) else _column(by, batch)
    if getattr(values, "ndim", 1) == 2:
        values = [frozenset(np.flatnonzero(r).tolist()) for r in _booleans(values, by)]
    else:
        values = [v.item() if isinstance(v, np.generic) else v for v in values]
    if (n := len(values)) != len(batch):
        raise ValueError(f"by={by!r} gave {n} groups for {len(batch)} problems")
    overlap = any(isinstance(value, SEVERAL) for value in values)
    if overlap:
        values = [frozenset(v if isinstance(v, SEVERAL) else [v]) for v in values]
    _check(values, by, batch)
    return values, overlap


def _column(by, batch):
    known = set()
    if batch.metadata is not None:
        known = {key for row in batch.metadata if row for key in row}
    is_feature = by in (batch.feature_names or ())
    if (by in known) == is_feature:
        raise ValueError(
            f"by={by!r} is the name of a feature and a key of the metadata: rename one"
            if is_feature
            else f"by={by!r}: the problems have no such metadata (they have "
            f"{sorted(map(str, known))}) and no feature of that name. Problems get "
            "metadata by ReasoningGraph(..., metadata={...}) or "
            "GraphBatch.replace_metadata"
        )
    if is_feature:
        return _constant(batch, by)
    return [(row or {}).get(by) for row in batch.metadata]


def _constant(batch, name):
    """A feature that is the same for all claims of a problem, one value each."""
    column = batch.features[:, batch.feature_names.index(name)]
    empty = np.flatnonzero(batch.sizes == 0)
    if len(empty):
        raise ValueError(
            f"{batch.name_of(int(empty[0]))} has no claims, and so no feature {name!r}: "
            "its group is not known"
        )
    first = column[batch.offsets[:-1]]
    differs = np.flatnonzero(column != first[batch.problem_of])
    if len(differs):
        raise ValueError(
            f"{batch.locate(int(differs[0]))}: the feature {name!r} differs from that of "
            "the first claim, but a group is one of whole problems"
        )
    return first.tolist()


def _booleans(table, by):
    """A table of booleans, or of numbers that are 0 or 1; else ValueError."""
    table = np.asarray(table)
    if not np.isin(table, (0, 1)).all():
        raise ValueError(
            f"by={by!r} gave a table with other values than True and False: it needs one "
            "column per group, and says which problems are in it"
        )
    return table.astype(bool)


def _check(values, by, batch):
    for i, value in enumerate(values):
        one = value if isinstance(value, frozenset) else (value,)
        if not isinstance(value, Hashable) or any(is_missing(v) for v in one):
            raise ValueError(
                f"{batch.name_of(i)}: its group by={by!r} is {value!r}. Give every "
                "problem one (a text or a number), or a list of them"
            )


def _names(several):
    """What each entry of a list is called; those called alike are numbered."""
    names = [_name(by) for by in several]
    alike = {name for name in names if names.count(name) > 1}
    return [f"{name} {k}" if name in alike else name for k, name in enumerate(names)]


def _name(by):
    """What an entry is called, in a copy and in another session too."""
    text = by if isinstance(by, str) else getattr(by, "__name__", repr(by))
    return without_places(text)


def as_set(group):
    """The groups of a problem as a set, also where its batch had none that overlap."""
    return group if isinstance(group, frozenset) else frozenset([group])


def as_one(group):
    """The one group of a problem, also where others of its batch had several."""
    groups = as_set(group)
    return next(iter(groups)) if len(groups) == 1 else groups


def read_weights(weight, batch):
    """What ``weight`` gives for each problem, or ValueError."""
    values = np.asarray(weight(batch), dtype=np.float64)
    if values.shape != (len(batch),):
        raise ValueError(
            f"weight={weight!r} gave shape {values.shape} for {len(batch)} problems: one "
            "number per problem is needed"
        )
    # Sums of numbers beyond these would overflow, and products lose their last bits.
    usual = (values == 0) | ((values >= 1 / EXTREME) & (values <= EXTREME))
    if not usual.all():
        i = int(np.argmin(usual))
        raise ValueError(
            f"{batch.name_of(i)}: its weight is {values[i]}, but a likelihood ratio is "
            f"finite and at least 0 (here: 0, or between {1 / EXTREME:g} and {EXTREME:g})"
        )
    return values
