"""The columns that a filter computes by itself: learnt once, and applied at every entry point.

Transformers of graphs (`GraphTransformer`, ours) take and return problems. Any other transformer
of scikit-learn takes and returns the table with one row per claim. The steps of a Pipeline
are applied one by one, each as if it stood alone.
`ClaimTransformer` puts one of them on the claims of all problems, in front of others.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager, nullcontext
from io import BytesIO
from pickle import Pickler, PicklingError
from types import FunctionType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from .._parameters import HasMethods, settings
from ..graphs import GraphBatch, as_batch, pack_labels
from ._transformers import Graphs, GraphTransformer, list_columns


def list_steps(transformer: Any) -> list[Any]:
    """The transformers that are applied, in their order.

    Parameters
    ----------
    transformer : transformer, Pipeline or None
        What a filter takes as ``features=``.

    Returns
    -------
    list of transformers
        Without Pipelines, None and "passthrough".
    """
    if isinstance(transformer, Pipeline):
        return [inner for _, step in transformer.steps for inner in list_steps(step)]
    return [] if transformer in (None, "passthrough") else [transformer]


def columns_require_fit(transformer: Any) -> bool:
    """Whether a transformer learns from the problems that it is fitted to.

    Parameters
    ----------
    transformer : transformer, Pipeline or None
        What a filter takes as ``features=``.

    Returns
    -------
    bool
        A Pipeline learns if one of its steps does. A transformer of this package says so
        by ``requires_fit``, any other by its tag ``requires_fit``.
    """
    return any(map(requires_fit, list_steps(transformer)))


def requires_fit(step: Any) -> bool:
    """Whether a transformer learns, as its tags say; True where none do.

    Tags of a parent class do not speak of a `fit` that the class itself defines. A
    ``FrozenEstimator`` learns nothing: the caller has fitted it, and its own fit does nothing.
    """
    words = {"fit", "__sklearn_tags__"}
    first = next(filter(None, (words & vars(c).keys() for c in type(step).__mro__)), ())
    if "__sklearn_tags__" not in first and not isinstance(step, GraphTransformer):
        return True
    return get_tags(step).requires_fit and not isinstance(step, FrozenEstimator)


def reads_edges(transformer: Any) -> bool:
    """Whether columns depend on the edges of a problem; True where nobody knows.

    Parameters
    ----------
    transformer : transformer, Pipeline or None
        What a filter takes as ``features=``.

    Returns
    -------
    bool
        True if a step that makes columns of graphs reads edges.
    """
    our_steps = (s for s in list_steps(transformer) if isinstance(s, GraphTransformer))
    return any(step.reads_edges for step in our_steps)


def list_looking_ahead(transformer: Any) -> str:
    """Names of columns that later claims can change, as far as transformers say."""
    sets = [getattr(step, "looks_ahead", ()) for step in list_steps(transformer)]
    return ", ".join(sorted(name for names in sets for name in names))


def fit_columns(
    transformer: Any, batch: GraphBatch, labels: NDArray[Any] | None
) -> Any:
    """A fitted copy of a transformer.

    Parameters
    ----------
    transformer : transformer, Pipeline or None
        What a filter takes as ``features=``.
    batch : GraphBatch
        Training problems.
    labels : ndarray of int, shape (n_claims,), or None
        1 true, 0 false, -1 unknown. A transformer of tables that learns sees the judged
        claims only, and all of them where there are no labels.

    Returns
    -------
    fitted transformer, Pipeline or None
        None where there is no transformer.

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
        elif not isinstance(step, FrozenEstimator):  # which the caller has fitted
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
            f"{step!r} learns from judged claims, and no claim of the training problems is"
        )
    step.fit(table[judged], labels[judged])


def apply_columns(fitted: Any, batch: GraphBatch) -> GraphBatch:
    """The problems with the columns that a fitted transformer makes.

    Parameters
    ----------
    fitted : fitted transformer, Pipeline or None
        What `fit_columns` returned.
    batch : GraphBatch
        What it carries from `carry_columns` is not computed again.

    Returns
    -------
    GraphBatch
        The batch itself where there is no transformer.
    """
    steps = list_steps(fitted)
    n_own = _count_own(steps)
    if n_own and batch.tables and (table := batch.tables.get(_digest(steps[:n_own]))):
        batch = batch.replace_features(*table)
        steps = steps[n_own:]
    for step in steps:
        batch = _apply(step, batch)
    return batch


def carry_columns(transformer: Any, batch: GraphBatch) -> GraphBatch:
    """The same problems, with columns that need not be computed again.

    Only transformers of this package that learn nothing, in front of all others, look at
    one problem at a time for certain. Slices of the batch carry their rows of the table.

    Parameters
    ----------
    transformer : transformer, Pipeline or None
        What a filter takes as ``features=``.
    batch : GraphBatch
        The problems.

    Returns
    -------
    GraphBatch
        The batch itself where every column has to be computed again.
    """
    steps = list_steps(transformer)
    our_steps = [clone(step) for step in steps[: _count_own(steps)]]
    key = _digest(our_steps) if our_steps else None
    if key is None or key in (batch.tables or {}):
        return batch
    batch_so_far = batch
    for step in our_steps:
        batch_so_far = step.fit(batch_so_far).transform(batch_so_far)
    # These steps are of the package, and have made columns.
    assert batch_so_far.features is not None
    return batch.carry_table(key, batch_so_far.features, batch_so_far.feature_names)


def _count_own(steps):
    """Count the steps at the beginning that are ours and learn nothing."""
    return [
        *(_is_own(step) and not columns_require_fit(step) for step in steps),
        False,
    ].index(False)


def _is_own(step):
    is_ours = type(step).__module__.startswith("skdcf.")
    return is_ours and getattr(step, "per_problem", False)


def _digest(steps):
    """The settings of transformers as bytes; None where they cannot be told.

    Each prediction asks twice, so that it has to be fast. Equal bytes mean equal settings;
    should equal settings give other bytes, columns are only made once more.
    """
    settings = [(type(step).__name__, step.get_params()) for step in steps]
    with BytesIO() as file:
        try:
            _OwnPickler(file).dump(settings)
        except Exception:
            return None
        return file.getvalue()


class _OwnPickler(Pickler):
    """A pickler of values of this package, of numpy and of Python itself only.

    A function or a class of a notebook is pickled by its name, and so is the class of an
    instance: a cell that runs again makes another of the same name, whose columns are others.
    """

    def reducer_override(self, value):
        named = value if isinstance(value, (type, FunctionType)) else type(value)
        package = (named.__module__ or "").partition(".")[0]
        if package not in ("builtins", "numpy", "skdcf"):
            raise PicklingError(f"{named} may be another object of the same name")
        return NotImplemented


def _apply(step, batch):
    if isinstance(step, GraphTransformer):
        return step.transform(batch)
    table, names = transformed(step, batch)
    return batch.replace_features(table, names)


@contextmanager
def _naming_the_page(step):
    """Say what a transformer was given if it fails on problems without columns."""
    try:
        yield
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(
            f"{step!r} needs columns, and the problems have none, so it was given the problems "
            f"themselves and failed ({error}). Put a transformer that makes columns in front of "
            "it, such as reasoning_features(). The page 'Add a feature' shows how to write one"
        ) from error


def table_of(step: Any, batch: GraphBatch) -> Any:
    """The claims of all problems as a transformer of tables takes them.

    Parameters
    ----------
    step : transformer
        One transformer, without the Pipeline around it.
    batch : GraphBatch
        The problems.

    Returns
    -------
    ndarray of shape (n_claims, n_features)
        A data frame for a ColumnTransformer that may call columns by their names. The problems
        themselves if they have no columns.

    Raises
    ------
    ValueError
        If the transformer contains one of graphs.
    """
    params = step.get_params().values() if hasattr(step, "get_params") else ()
    if graph_steps := [p for p in params if isinstance(p, GraphTransformer)]:
        raise ValueError(
            f"{type(step).__name__} joins tables, but its {type(graph_steps[0]).__name__} "
            "returns graphs. In a pipeline each step adds its columns: "
            f"make_pipeline({', '.join(map(repr, graph_steps))})"
        )
    if batch.features is None:
        return batch
    if batch.feature_names and any(
        isinstance(p, ColumnTransformer) for p in (step, *params)
    ):
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
        One transformer, without the Pipeline around it.
    batch : GraphBatch
        The problems.

    Returns
    -------
    table : ndarray of shape (n_claims, n_columns)
        The columns, as numbers.
    names : list of str
        One name per column.

    Raises
    ------
    ValueError
        If it does not make one row per claim.
    """
    given = table_of(step, batch)
    with _naming_the_page(step) if given is batch else nullcontext():
        table = step.transform(given)
    table = np.asarray(table.toarray() if hasattr(table, "toarray") else table)
    if table.ndim != 2 or len(table) != batch.n_claims:
        raise ValueError(
            f"{step!r} makes an array of shape {table.shape} for {batch.n_claims} claims: "
            "one row per claim is needed"
        )
    names = names_of(step, list_columns(batch), table.shape[1])
    return table.astype(np.float64, copy=False), names


def names_of(step: Any, given: Sequence[str], n_columns: int) -> list[str]:
    """Names of the columns that a fitted transformer of tables makes.

    Parameters
    ----------
    step : fitted transformer
        One transformer, without the Pipeline around it.
    given : sequence of str
        Names of the columns that it sees.
    n_columns : int
        Number of columns that it makes.

    Returns
    -------
    list of str
        The names of the input where as many columns come out and no others are known.
    """
    names = np.array(given, dtype=object)
    try:
        return [str(name) for name in step.get_feature_names_out(names)]
    except (
        AttributeError,
        ValueError,
    ):
        # The step, or a step inside it, names no columns.
        if n_columns == len(names):
            return names.tolist()
        return [f"{type(step).__name__.lower()}{i}" for i in range(n_columns)]


@settings
class ClaimTransformer(GraphTransformer):
    """Any scikit-learn transformer, applied to the claims of all problems stacked.

    Filters take transformers as they are, by ``features=``. This one is for a transformer
    that learns nothing, in a Pipeline around a filter.

    Parameters
    ----------
    transformer : scikit-learn transformer
        Such as ``FunctionTransformer(numpy.log1p)``. A copy is fitted to the table with one
        row per claim, an array, so that it must call columns by their number; its output
        replaces the feature columns.

    Attributes
    ----------
    transformer_ : the fitted copy

    Notes
    -----
    In a Pipeline a step is fitted before the filter sets calibration problems apart, so that
    a transformer that learns is refused there. ``HardCF(features=PCA(3))`` fits it to the
    training problems only.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> from skdcf import GraphBatch
    >>> from skdcf.features import ClaimTransformer
    >>> batch = GraphBatch.from_arrays([[1.0], [2.0], [4.0]], [0, 2, 3])
    >>> ClaimTransformer(FunctionTransformer(np.log2)).fit_transform(batch).features.ravel()
    array([0., 1., 2.])
    """

    _parameter_constraints = {"transformer": [HasMethods(["fit", "transform"])]}
    reads_edges = False
    per_problem = False

    transformer: BaseEstimator

    def does_learn(self) -> bool:
        return columns_require_fit(self.transformer)

    def fit(self, X: Graphs, y: Any = None) -> Self:
        """Fit a copy of the transformer to the claims.

        Parameters
        ----------
        X : GraphBatch, sequence of ReasoningGraph, or 2-D array
            The problems.
        y : labels of the claims, optional
            A transformer that learns sees the claims that were judged, with 0 and 1; all
            claims, without labels, where y is None.

        Returns
        -------
        self
            The fitted transformer.

        Raises
        ------
        ValueError
            If the transformer cannot be fitted, or does not make one row per claim.
        """
        self.validate()
        batch = as_batch(X)
        labels = None if y is None else pack_labels(y, batch)
        self.transformer_ = fit_columns(self.transformer, batch, labels)
        self.n_columns_ = transformed(self.transformer_, batch)[0].shape[1]
        return super().fit(batch)

    def _add(self, batch: GraphBatch) -> GraphBatch:
        return batch.replace_features(*transformed(self.transformer_, batch))

    def _join_names(self, given: list[str]) -> list[str]:
        return names_of(self.transformer_, given, self.n_columns_)
