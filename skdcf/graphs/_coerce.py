"""From what users pass as X to a batch, and from a graph to its text."""

from collections.abc import Sequence
from typing import Any, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from ._batch import GraphBatch
from ._graph import ReasoningGraph

#: Problems: graphs, packed graphs, or a table in which each row is a problem of one claim.
Problems: TypeAlias = GraphBatch | Sequence[ReasoningGraph] | ArrayLike
#: Labels: one array per problem, or one flat array.
Labels: TypeAlias = Sequence[ArrayLike] | ArrayLike


def as_batch(X: Any) -> GraphBatch:
    """A sequence of graphs, a GraphBatch or a 2-D array as a GraphBatch.

    Parameters
    ----------
    X : GraphBatch, sequence of ReasoningGraph, or 2-D array-like of numbers
        In a 2-D array each row is a problem with one claim.

    Returns
    -------
    GraphBatch

    Raises
    ------
    ValueError
        If X is something else, which the message says how to make graphs from; if it
        is empty, or its graphs disagree about their features.

    Examples
    --------
    >>> from skdcf.graphs import as_batch
    >>> as_batch([[0.9, 1.0], [0.2, 0.0], [0.7, 0.0]])
    GraphBatch(n_graphs=3, n_claims=3, n_edges=0, n_features=2)
    """
    if isinstance(X, GraphBatch):
        return X  # even an empty one, whose columns are known
    X = as_graphs(X)
    if is_graphs(X):
        return GraphBatch.pack(X)
    if not _is_table(X):
        many = isinstance(X, (list, tuple))
        found = f"a list of {type(X[0]).__name__}" if many else f"a {type(X).__name__}"
        raise ValueError(
            f"X is {found}: a GraphBatch, a list of ReasoningGraph or a 2-D array of "
            f"numbers expected. {_advise(X)}"
        )
    if not len(X):
        raise ValueError("no problems: X is empty, at least one is needed")
    return GraphBatch.from_arrays(X, np.arange(len(X) + 1), ())


def _is_table(X):
    """Whether X has two dimensions and no text; its numbers are looked at later."""
    try:
        table = np.asanyarray(X)
    except (TypeError, ValueError):
        return False
    if table.ndim == 2 and table.dtype == object:
        return not any(isinstance(value, (str, bytes)) for value in table.flat)
    return table.ndim == 2 and table.dtype.kind in "biufc"


def _advise(X):
    """What to do with something else than problems."""
    if hasattr(X, "collect"):
        return (
            "This table is read lazily: call its collect() first. "
            "skdcf.adapters.from_frame makes graphs from one row per claim"
        )
    if hasattr(X, "columns"):
        return "skdcf.adapters.from_frame makes graphs from one row per claim"
    if hasattr(X, "toarray"):
        return "Its toarray() gives an array"
    return "skdcf.adapters makes graphs from tables and records"


def as_graphs(X: Any) -> Any:
    """X as it is, but a Series of graphs as a list.

    Parameters
    ----------
    X : object
        Whatever was passed where problems are expected.

    Returns
    -------
    object
        A sequence of ReasoningGraph, or something else, as `is_graphs` says.

    Raises
    ------
    ValueError
        If X is an empty list or a single graph.
    """
    if isinstance(X, (list, tuple, GraphBatch)) and not len(X):
        raise ValueError("no problems: X is empty, at least one is needed")
    if isinstance(X, ReasoningGraph):
        raise ValueError("X is a single ReasoningGraph: pass a list of them, [graph]")
    if not is_graphs(X) and getattr(X, "ndim", None) == 1 and is_graphs(list(X)):
        return list(X)  # a pandas or polars Series
    return X


def is_graphs(X: Any) -> TypeGuard[GraphBatch | list[ReasoningGraph]]:
    """Whether X is a sequence of reasoning graphs, packed or not, and not a table.

    Parameters
    ----------
    X : object

    Returns
    -------
    bool
    """
    if isinstance(X, GraphBatch):
        return True
    flat = isinstance(X, (list, tuple)) or (
        isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 1
    )
    return flat and any(isinstance(item, ReasoningGraph) for item in X)


def answer_text(graph: ReasoningGraph) -> str:
    """The claims of an answer, one a line; empty if it has none.

    Parameters
    ----------
    graph : ReasoningGraph

    Returns
    -------
    str

    Raises
    ------
    ValueError
        If the texts of the claims are not known.
    """
    if graph.claims is None and graph.n_claims:
        named = "" if graph.id is None else f" ({graph.id})"
        raise ValueError(
            f"the claims of the problem{named} have no texts: give claims= when the "
            "graphs are made"
        )
    return "\n".join(graph.claims or ())
