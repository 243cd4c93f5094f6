"""Fit and apply a filter's transformer consistently in all methods of the filter.

The transformers of this package (`GraphTransformer`) transform problems. Any other scikit-learn
transformer transforms a table with one row per claim. The steps of a Pipeline are applied one
by one, as if each were the only step.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext, suppress
from itertools import takewhile
from pickle import dumps
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from ..graphs import GraphBatch
from ._transformers import GraphTransformer


def list_steps(transformer) -> list[Any]:
    """Return the transformers that a filter applies, in order.

    Parameters
    ----------
    transformer : transformer, Pipeline or None
        The parameter ``features`` of a filter.

    Returns
    -------
    steps : list of transformers
        The transformers. Pipelines are replaced by their steps, and None and "passthrough" are
        omitted.
    """
    if isinstance(transformer, Pipeline):
        return [inner for _, step in transformer.steps for inner in list_steps(step)]
    return [] if transformer in (None, "passthrough") else [transformer]


def columns_require_fit(transformer) -> bool:
    """Return whether a transformer needs fitting.

    Parameters
    ----------
    transformer : transformer, Pipeline or None
        The parameter ``features`` of a filter.

    Returns
    -------
    requires_fit : bool
        For a Pipeline, the result is True if one of its steps needs fitting. For a transformer of
        this package, the result is its attribute ``requires_fit``. For any other transformer, the
        result is its scikit-learn tag ``requires_fit``.
    """
    return any(map(requires_fit, list_steps(transformer)))


def requires_fit(step) -> bool:
    """Return whether a transformer needs fitting according to its tags, or True if it has no tags.

    If a class overrides `fit`, the tags of its parent class are ignored. A ``FrozenEstimator``
    needs no fitting, because its `fit` does nothing.
    """
    words = {"fit", "__sklearn_tags__"}
    first = next(filter(None, (words & vars(c).keys() for c in type(step).__mro__)), ())
    if "__sklearn_tags__" not in first and not isinstance(step, GraphTransformer):
        return True
    return get_tags(step).requires_fit and not isinstance(step, FrozenEstimator)


def reads_edges(transformer) -> bool:
    """Return whether the columns depend on the edges of a problem.

    Parameters
    ----------
    transformer : transformer, Pipeline or None
        The parameter ``features`` of a filter.

    Returns
    -------
    reads_edges : bool
        True if a step of this package uses edges, or does not declare whether it uses edges.
    """
    return any(
        isinstance(step, GraphTransformer) and step.reads_edges
        for step in list_steps(transformer)
    )


def fit_columns(transformer, batch: GraphBatch, labels: NDArray[Any] | None):
    """Fit a copy of a transformer to the training problems.

    Parameters
    ----------
    transformer : transformer, Pipeline or None
        The parameter ``features`` of a filter.
    batch : GraphBatch
        Training problems.
    labels : ndarray of int of shape (n_claims,), or None
        Claim labels: 1 true, 0 false, -1 unknown. A scikit-learn transformer that needs fitting is
        fitted to the judged claims only, or to all claims if labels is None.

    Returns
    -------
    fitted_copy : fitted transformer, Pipeline or None
        The fitted copy, or None if there is no transformer.

    Raises
    ------
    ValueError
        If a transformer cannot be fitted to the problems.
    """
    fitted = None if transformer is None else clone(transformer)
    steps = list_steps(fitted)
    for position, step in enumerate(steps):
        if isinstance(step, GraphTransformer):
            step.fit(batch, labels)
        elif not isinstance(step, FrozenEstimator):  # A frozen step is already fitted.
            _fit_table(step, batch, labels)
        if position + 1 < len(steps):
            batch = _apply(step, batch)
    return fitted


def _fit_table(step, batch, labels):
    table = table_of(step, batch)
    if table is batch:
        with _naming_the_page(step):
            step.fit(batch, labels)
        return
    if labels is None or not requires_fit(step):
        step.fit(table)
        return
    judged = labels >= 0
    if not judged.any():
        raise ValueError(
            f"{step!r} requires judged claims for fitting, but the training problems "
            "contain no judged claims. Label some claims of the training problems"
        )
    step.fit(table[judged], labels[judged])


def apply_columns(fitted, batch: GraphBatch) -> GraphBatch:
    """Transform the problems with a fitted transformer.

    Parameters
    ----------
    fitted : fitted transformer, Pipeline or None
        The fitted transformer, as returned by `fit_columns`.
    batch : GraphBatch
        The problems. Columns that `carry_columns` attached are not computed again.

    Returns
    -------
    batch : GraphBatch
        The transformed batch, or the batch itself if there is no transformer.
    """
    steps = list_steps(fitted)
    our_steps = [*takewhile(_is_own, steps)]
    if batch.tables and (table := batch.tables.get(_digest(our_steps))):
        batch = batch.replace_features(*table)
        steps = steps[len(our_steps) :]
    for step in steps:
        batch = _apply(step, batch)
    return batch


def carry_columns(transformer, batch: GraphBatch) -> GraphBatch:
    """Attach computed columns to the problems, for reuse in every split.

    Columns are attached only for the leading steps that belong to this package and need no
    fitting, because later steps may combine problems. Slices of the batch keep the corresponding
    rows of the attached columns.

    Parameters
    ----------
    transformer : transformer, Pipeline or None
        The parameter ``features`` of a filter.
    batch : GraphBatch
        The problems.

    Returns
    -------
    batch : GraphBatch
        The batch with the attached columns, or the batch itself if no column can be attached.
    """
    our_steps = [*map(clone, takewhile(_is_own, list_steps(transformer)))]
    key = our_steps and _digest(our_steps)
    if not key or key in (batch.tables or {}):
        return batch
    batch_so_far = batch
    for step in our_steps:
        batch_so_far = step.fit(batch_so_far).transform(batch_so_far)
    # Optional columns may all be left out.
    if batch_so_far.features is None:
        return batch
    return batch.carry_table(key, batch_so_far.features, batch_so_far.feature_names)


def _is_own(step):
    """Return whether a step and the members of a union belong to this package."""
    is_ours = type(step).__module__.startswith("skdcf.")
    return is_ours and all(map(_is_own, getattr(step, "transformers", ())))


def _digest(steps):
    """Return the parameters of transformers as bytes, or None if they cannot be pickled.

    Equal bytes imply equal parameters. If equal parameters have different bytes, the columns are
    merely recomputed.
    """
    try:
        return dumps(
            [(type(step).__name__, step.get_params(deep=False)) for step in steps]
        )
    except Exception:
        return None


@contextmanager
def _naming_the_page(step):
    """Add an explanation to the error if a transformer fails on problems without columns."""
    try:
        yield
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(
            f"{step!r} failed ({error}). The step received problems instead of a table, "
            "because the problems have no columns. Add a transformer that computes "
            "columns before this step, such as reasoning_features(). The page 'Add a "
            "feature' shows how to write such a transformer"
        ) from error


def table_of(step, batch: GraphBatch):
    """Return the claims of all problems as the input of a scikit-learn transformer.

    Parameters
    ----------
    step : transformer
        A single transformer, not a Pipeline.
    batch : GraphBatch
        The problems.

    Returns
    -------
    table : ndarray of shape (n_claims, n_features)
        The table. For a ColumnTransformer, a data frame is returned, so columns can be selected
        by name. If the problems have no columns, the problems themselves are returned.

    Raises
    ------
    ValueError
        If the transformer contains a GraphTransformer.
    """
    params = step.get_params().values() if hasattr(step, "get_params") else ()
    if graph_steps := [p for p in params if isinstance(p, GraphTransformer)]:
        raise ValueError(
            f"{type(step).__name__} can only concatenate tables, but its "
            f"{type(graph_steps[0]).__name__} returns graphs. Use "
            f"make_pipeline({', '.join(map(repr, graph_steps))}) instead, in which each "
            "step adds columns"
        )
    if batch.features is None:
        return batch
    if batch.feature_names and any(
        isinstance(p, ColumnTransformer) for p in (step, *params)
    ):
        with suppress(ModuleNotFoundError):
            from pandas import DataFrame

            return DataFrame(batch.features, columns=list(batch.feature_names))
    return batch.features


def _apply(step, batch):
    """Return the problems with the columns that a fitted transformer returns for them.

    The columns of a scikit-learn transformer have the names that it returns. If it returns no
    names, the input names are used, or numbered names if the number of columns has changed. A
    ValueError is raised if the transformer does not return one row per claim.
    """
    if isinstance(step, GraphTransformer):
        return step.transform(batch)
    given = table_of(step, batch)
    with _naming_the_page(step) if given is batch else nullcontext():
        table = step.transform(given)
    table = np.asarray(table.toarray() if hasattr(table, "toarray") else table)
    if table.ndim != 2 or len(table) != batch.n_claims:
        raise ValueError(
            f"{step!r} must return one row per claim, got an array of shape {table.shape} for "
            f"{batch.n_claims} claims"
        )
    names = batch.column_names
    n_columns = table.shape[1]
    try:
        names = step.get_feature_names_out(np.array(names, dtype=object))
    except (AttributeError, ValueError):
        # The step or one of its nested steps does not define column names.
        if n_columns != len(names):
            names = [f"{type(step).__name__.lower()}{i}" for i in range(n_columns)]
    return batch.replace_features(table.astype(np.float64, copy=False), names)
