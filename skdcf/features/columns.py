"""The columns that a filter computes by itself: learnt once, applied at every door.

Transformers of graphs (`KeepsGraphs`, ours) take and return problems. Any other transformer
of scikit-learn takes and returns the table with one row per claim. The steps of a Pipeline
are applied one by one, each as if it stood alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from joblib import hash as digest_of
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.compose import ColumnTransformer

from ..graphs import GraphBatch
from ._base import (
    KeepsGraphs,
    learns,
    list_columns,
    list_steps,
    reads_edges,
    requires_fit,
)

__all__ = ["apply_columns", "carry_columns", "fit_columns", "learns", "reads_edges"]


def list_looking_ahead(transformer: Any) -> str:
    """Names of columns that later claims can change, as far as transformers say."""
    sets = [getattr(step, "looks_ahead", ()) for step in list_steps(transformer)]
    return ", ".join(sorted(name for names in sets for name in names))


def fit_columns(transformer: Any, batch: GraphBatch, labels: NDArray | None) -> Any:
    """A fitted copy of a transformer.

    Parameters
    ----------
    transformer : transformer, Pipeline or None
    batch : GraphBatch
        Training problems.
    labels : ndarray of int, shape (n_claims,), or None
        1 true, 0 false, -1 unknown. A transformer of tables that learns sees the judged
        claims only, and all of them where there are no labels.

    Returns
    -------
    fitted transformer, Pipeline or None

    Raises
    ------
    ValueError
        If a transformer cannot be fitted to the problems.
    """
    fitted = None if transformer is None else clone(transformer)
    steps = list_steps(fitted)
    for position, step in enumerate(steps):
        if isinstance(step, KeepsGraphs):
            step.fit(batch, labels)
        else:
            _fit_table(step, batch, labels)
        if position + 1 < len(steps):
            batch = _apply(step, batch)
    return fitted


def _fit_table(step, batch, labels):
    table = table_of(step, batch)
    if labels is None or not requires_fit(step):
        step.fit(table)
        return
    judged = labels >= 0
    if not judged.any():
        raise ValueError(
            f"{step!r} learns from judged claims, and no claim of the training problems is"
        )
    if not judged.all():
        rows = np.flatnonzero(judged)
        table = table.iloc[rows] if hasattr(table, "iloc") else table[rows]
    step.fit(table, labels[judged])


def apply_columns(fitted: Any, batch: GraphBatch) -> GraphBatch:
    """The problems with the columns that a fitted transformer makes.

    Parameters
    ----------
    fitted : fitted transformer, Pipeline or None
    batch : GraphBatch
        What it carries from `carry_columns` is not computed again.

    Returns
    -------
    GraphBatch
        The batch itself where there is no transformer.
    """
    steps = list_steps(fitted)
    n_own = _count_own(steps)
    if n_own and batch.tables:
        table = batch.tables.get(_digest(steps[:n_own]))
        if table is not None:
            batch, steps = batch.replace_features(*table), steps[n_own:]
    for step in steps:
        batch = _apply(step, batch)
    return batch


def carry_columns(transformer: Any, batch: GraphBatch) -> GraphBatch:
    """The same problems, which carry the columns that need not be computed again.

    Only transformers of this package that learn nothing, in front of all others, look at
    one problem at a time for certain. Slices of the batch carry their rows of the table.

    Parameters
    ----------
    transformer : transformer, Pipeline or None
    batch : GraphBatch

    Returns
    -------
    GraphBatch
    """
    steps = list_steps(transformer)
    own = [clone(step) for step in steps[: _count_own(steps)]]
    key = _digest(own) if own else None
    if key is None or key in (batch.tables or {}):
        return batch
    seen = batch
    for step in own:
        seen = step.fit(seen).transform(seen)
    return batch.carry_table(key, seen.features, seen.feature_names)


def _count_own(steps):
    """How many steps in front are ours and learn nothing."""
    own = [_is_own(step) and not learns(step) for step in steps]
    return own.index(False) if False in own else len(own)


def _is_own(step):
    own = type(step).__module__.startswith("skdcf.")
    return own and getattr(step, "per_problem", False)


def _digest(steps):
    """The settings of transformers as a short text; None where they cannot be told."""
    try:
        return digest_of([(type(step).__name__, step.get_params()) for step in steps])
    except Exception:
        return None


def _apply(step, batch):
    if isinstance(step, KeepsGraphs):
        return step.transform(batch)
    table, names = transformed(step, batch)
    return batch.replace_features(table, names)


def table_of(step: Any, batch: GraphBatch) -> Any:
    """The claims of all problems as a transformer of tables takes them.

    Parameters
    ----------
    step : transformer
    batch : GraphBatch

    Returns
    -------
    ndarray of shape (n_claims, n_features)
        A data frame for a ColumnTransformer that may call columns by their names.

    Raises
    ------
    ValueError
        If the problems have no columns.
    """
    if batch.features is None:
        raise ValueError(
            f"{step!r} needs columns, but the problems have none yet: put a transformer "
            "that makes some in front of it, such as reasoning_features()"
        )
    parts = [step, *step.get_params().values()] if hasattr(step, "get_params") else []
    if batch.feature_names and any(isinstance(p, ColumnTransformer) for p in parts):
        try:
            from pandas import DataFrame
        except ModuleNotFoundError:
            return batch.features
        return DataFrame(batch.features, columns=list(batch.feature_names))
    return batch.features


def transformed(step: Any, batch: GraphBatch) -> tuple[NDArray[np.float64], list[str]]:
    """The table that a fitted transformer of tables makes, and the names of its columns.

    Parameters
    ----------
    step : fitted transformer
    batch : GraphBatch

    Returns
    -------
    table : ndarray of shape (n_claims, n_columns)
    names : list of str

    Raises
    ------
    ValueError
        If it does not make one row per claim.
    """
    table = step.transform(table_of(step, batch))
    table = np.asarray(table.toarray() if hasattr(table, "toarray") else table)
    if table.ndim != 2 or len(table) != batch.n_claims:
        raise ValueError(
            f"{step!r} makes an array of shape {table.shape} for {batch.n_claims} claims: "
            "one row per claim is needed"
        )
    return table.astype(np.float64, copy=False), names_of(
        step, list_columns(batch), table.shape[1]
    )


def names_of(step: Any, given: Sequence[str], n_columns: int) -> list[str]:
    """Names of the columns that a fitted transformer of tables makes.

    Parameters
    ----------
    step : fitted transformer
    given : sequence of str
        Names of the columns that it sees.
    n_columns : int

    Returns
    -------
    list of str
        The names of the input where as many columns come out and no others are known.
    """
    given = np.array(given, dtype=object)
    try:
        return [str(name) for name in step.get_feature_names_out(given)]
    except (AttributeError, ValueError):  # it has none, or one of its steps has none
        if n_columns == len(given):
            return given.tolist()
        return [f"{type(step).__name__.lower()}{i}" for i in range(n_columns)]
