"""Alternative wordings of claims, from the most specific to the vaguest wording.

Each wording is a node of the graph. The wordings of a claim are adjacent and start with the most
specific wording. Each wording depends on the next vaguer wording. Therefore, a filter that keeps
a wording also keeps all vaguer wordings of the claim. An edge between two claims connects the
most specific wording of the parent to the vaguest wording of the child, because a child must not
depend on a premise that the text does not state.

=============  ==============================================================================
counts         number of wordings of each claim
vaguest        whether a row is the vaguest wording of its claim
label          true only if all vaguer wordings are true as well: `close_labels`
counted once   the vaguest false wording of a claim represents all false ones: `count_once`
statement      most specific kept wording of a claim, which is shown: `shown_statements`
=============  ==============================================================================

Claims in a filtered answer are counted as statements, with one statement per claim. If there are
no wordings, ``counts`` and ``vaguest`` are None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import warn
from ..exceptions import LabelWarning
from .ragged import flatten, offsets_of, optional_rows
from .sources import without_positions

if TYPE_CHECKING:
    from ._batch import GraphBatch
    from ._graph import ReasoningGraph


def check_wordings(
    wordings: Any, claims: tuple[str, ...] | None, where: str
) -> tuple[tuple[str, ...], ...]:
    """Validate the wordings of each claim, and return them as tuples.

    Parameters
    ----------
    wordings : sequence
        The wordings of each claim, starting with the most specific wording. If a claim has only
        the wording in ``claims``, its entry is None or empty.
    claims : tuple of str or None
        The most specific wording of each claim.
    where : str
        Prefix of messages.

    Returns
    -------
    checked_wordings : tuple of tuples of str
        The wordings of each claim. No tuple is empty.
    """
    from ._inputs import check_texts, in_order

    rows = in_order(wordings, "wordings", where)
    if claims is not None and len(rows) != len(claims):
        raise ValueError(
            f"{where}wordings must have one entry for each of the {len(claims)} claims, "
            f"got {len(rows)}"
        )
    checked = []
    for v, row in enumerate(rows):
        place = f"{where}claim {v}: "
        given: Any = () if row is None else row
        texts: Sequence[str] = check_texts(given, "wordings", place) or ()
        if not texts and claims is not None:
            texts = (claims[v],)
        _check_texts_differ(texts, place)
        if claims is not None and texts[0] != claims[v]:
            raise ValueError(
                f"{place}the wordings must start with the claim {claims[v]!r}, got "
                f"{texts[0]!r}. List all wordings, starting with the claim itself, which is "
                "the most specific one"
            )
        checked.append(tuple(texts))
    return tuple(checked)


def text_key(text: str) -> str:
    """Return a wording with normalised letter case and whitespace, for use in comparisons.

    Parameters
    ----------
    text : str
        The wording.

    Returns
    -------
    key : str
        The normalised wording.
    """
    return " ".join(text.split()).casefold()


def _check_texts_differ(texts, place):
    if not texts:
        raise ValueError(f"{place}wordings must contain at least one wording, got none")
    seen: dict[str, int] = {}
    for k, text in enumerate(texts):
        key = text_key(text)
        if not key:
            raise ValueError(
                f"{place}wordings[{k}] must not be empty. Remove this wording, or write a "
                "vaguer statement"
            )
        if key in seen:
            raise ValueError(
                f"{place}wordings[{k}] must be vaguer than the previous wording, but it is "
                f"the same as wordings[{seen[key]}], {text!r}"
            )
        seen[key] = k


def expand_edges(edges: NDArray[np.int64], counts: Any) -> list[tuple[int, int]]:
    """Compute the edges between wordings from the edges between claims.

    Parameters
    ----------
    edges : ndarray of int of shape (n_edges, 2)
        Edges (parent, child) as claim indices.
    counts : array-like of int, shape (n_claims,)
        Number of wordings of each claim.

    Returns
    -------
    wording_edges : list of (parent, child)
        Edges as wording indices.
    """
    first = offsets_of(counts)
    between = np.stack([first[edges[:, 0]], first[edges[:, 1] + 1] - 1], axis=1)
    return [*map(tuple, between.tolist()), *map(tuple, _ladders(first).tolist())]


def _ladders(first):
    """Return the edges from each wording to the next more specific wording of the same claim."""
    child = np.setdiff1d(np.arange(first[-1]), first[1:] - 1)
    return np.stack([child + 1, child], axis=1)


def claim_of_row(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the index of the claim to which each wording belongs.

    Parameters
    ----------
    counts : ndarray of int of shape (n_claims,)
        Number of wordings of each claim.

    Returns
    -------
    claim_of_row : ndarray of int of shape (n_wordings,)
        Claim index of each wording.
    """
    return np.repeat(np.arange(len(counts)), counts)


def edges_between(
    edges: NDArray[np.int64], counts: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Compute the edges between claims from the edges between wordings.

    Parameters
    ----------
    edges : ndarray of int of shape (n_edges, 2)
        Edges (parent, child) as wording indices.
    counts : ndarray of int of shape (n_claims,)
        Number of wordings of each claim.

    Returns
    -------
    claim_edges : ndarray of int of shape (n_edges_between, 2)
        Edges (parent, child) as claim indices, in the same order.
    """
    pairs = claim_of_row(counts)[edges]
    return pairs[pairs[:, 0] != pairs[:, 1]]


def count_wordings(graph: ReasoningGraph) -> NDArray[np.int64]:
    """Return the number of wordings of each claim, which is 1 if the graph has no wordings."""
    if graph.wordings is None:
        return np.ones(graph.n_claims, dtype=np.int64)
    return np.array([len(row) for row in graph.wordings], dtype=np.int64)


def rows_of_claims(graph: ReasoningGraph) -> list[range]:
    """Return the indices of the wordings of each claim, starting with the most specific wording.

    Parameters
    ----------
    graph : ReasoningGraph
        One problem.

    Returns
    -------
    rows : list of range
        Indices of the wordings, with one range per claim. If the graph has no wordings, each
        range contains a single index.
    """
    first = offsets_of(count_wordings(graph)).tolist()
    return [range(a, b) for a, b in pairwise(first)]


def premises_of(graph: ReasoningGraph, v: int) -> list[int]:
    """Return the direct premises of the claim to which a wording belongs.

    Parameters
    ----------
    graph : ReasoningGraph
        One problem.
    v : int
        Position of a wording.

    Returns
    -------
    premises : list of int
        Indices of the most specific wordings of the parents.
    """
    counts = count_wordings(graph)
    claim = int(claim_of_row(counts)[v])
    between = edges_between(graph.edges, counts)
    parents = between[between[:, 1] == claim, 0]
    return offsets_of(counts)[parents].tolist()


def close_labels(labels: NDArray[np.int8], batch: GraphBatch) -> NDArray[np.int8]:
    """Make the labels of wordings consistent, from the vaguest to the most specific wording.

    A wording is false if any vaguer wording of the same claim is false. The label of a true
    wording becomes unknown if the label of a vaguer wording is unknown. With the resulting
    labels, the guarantee holds exactly for all wordings. If the label of a true wording were
    instead copied to all vaguer wordings, the error rate would be 0.26 instead of 0.1 in the
    simulation ``benchmarks/guarantees/wordings.py``.

    Parameters
    ----------
    labels : ndarray of int8 of shape (n_claims,)
        Claim labels (1 for true, 0 for false, -1 for unknown).
    batch : GraphBatch
        The problems.

    Returns
    -------
    consistent_labels : ndarray of int8 of shape (n_claims,)
        The consistent labels of all wordings. If no problem has wordings, the input array is
        returned.

    Warns
    -----
    LabelWarning
        If a wording is labelled true but a vaguer wording of the same claim is labelled false.
    """
    counts = batch.counts
    if counts is None:
        return labels
    closed = labels.copy()
    first = offsets_of(counts)
    contradictions = 0
    for steps in range(1, int(counts.max(initial=1))):
        # Rows of the wordings that are exactly ``steps`` steps more specific than the vaguest
        # wording of the same claim.
        rows = (first[1:] - 1 - steps)[counts > steps]
        vaguer = closed[rows + 1]
        labels_of_wording = closed[rows]
        contradictions += int(np.sum((vaguer == 0) & (labels[rows] == 1)))
        doubtful = np.where(
            (vaguer == -1) & (labels_of_wording == 1), -1, labels_of_wording
        )
        closed[rows] = np.where(vaguer == 0, 0, doubtful)
    if contradictions:
        warn(
            f"{contradictions} wordings are labelled true, although a vaguer wording of "
            "the same claim is labelled false. These wordings are therefore treated as "
            "false. Judge the vaguest wording first, and stop at the first false wording",
            LabelWarning,
        )
    return closed


def count_once(labels: NDArray[Any], batch: GraphBatch) -> NDArray[Any]:
    """Return labels in which each claim has at most one wording that is not true.

    Among all untrue wordings of a claim, the vaguest wording has the smallest path risk. If the
    vaguest untrue wording is kept, the text makes a false statement about the claim.

    Parameters
    ----------
    labels : ndarray of shape (n_claims,)
        Result of `close_labels`.
    batch : GraphBatch
        The problems.

    Returns
    -------
    counted_labels : ndarray of shape (n_claims,)
        The label of the vaguest untrue wording of each claim, and 1 for all other wordings. If no
        problem has wordings, the input array is returned.
    """
    if batch.vaguest is None:
        return labels
    vaguer = np.append(labels[1:], 1)[: len(labels)]
    counted = batch.vaguest | (vaguer == 1)
    return np.where(counted, labels, 1).astype(labels.dtype)


def shares_of_claims(batch: GraphBatch) -> NDArray[np.float64]:
    """Return the training weights of the wordings, which sum to 1 for each claim.

    With these weights, training favours true specific wordings over vaguer wordings. All claims
    have the same total weight.

    Parameters
    ----------
    batch : GraphBatch
        Problems with wordings.

    Returns
    -------
    shares : ndarray of shape (n_claims,)
        The weights of the wordings.
    """
    counts = batch.counts
    assert counts is not None  # The caller ensures that the problems have wordings.
    return np.repeat(1 / counts, counts)


def true_shares(labels: NDArray[Any], batch: GraphBatch) -> NDArray[np.float64]:
    """Return the gain from keeping each claim, which is positive only for true claims.

    Parameters
    ----------
    labels : ndarray of shape (n_claims,)
        Claim labels (1 for true, 0 for false, -1 for unknown).
    batch : GraphBatch
        The problems.

    Returns
    -------
    gain : ndarray of shape (n_claims,)
        The gain from keeping each claim. The gain of a true wording is its share of the claim's
        weight.
    """
    true = (labels == 1).astype(np.float64)
    return true if batch.counts is None else true * shares_of_claims(batch)


class Statements(NamedTuple):
    """Statements in filtered answers, with one statement per claim.

    Attributes
    ----------
    labels : ndarray of shape (n_statements,)
        Label of the shown wording, or of the vaguest wording if no wording is shown.
    kept : ndarray of bool of shape (n_statements,)
        Whether a wording of each claim is shown.
    offsets : ndarray of int of shape (n_problems + 1,)
        Statements ``offsets[i]:offsets[i + 1]`` belong to problem i.
    reworded : ndarray of bool of shape (n_statements,)
        Whether the shown wording is vaguer than the most specific wording.
    rows : ndarray of int of shape (n_statements,)
        Row of the wording whose label is in ``labels``.
    """

    labels: NDArray[Any]
    kept: NDArray[np.bool_]
    offsets: NDArray[np.int64]
    reworded: NDArray[np.bool_]
    rows: NDArray[np.int64]


def shown_statements(
    X: Any, y: ArrayLike | Sequence[ArrayLike], kept: ArrayLike | Sequence[ArrayLike]
) -> Statements:
    """Return the statements in filtered answers, one per claim, together with their labels.

    Parameters
    ----------
    X : GraphBatch, or sequence of ReasoningGraph
        The problems.
    y : sequence of 1-D arrays, one per problem
        Wording labels.
    kept : sequence of boolean masks
        Masks returned by `predict`.

    Returns
    -------
    statements : Statements
        The statements. If there are no wordings, the statements are the claims themselves.

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.graphs import shown_statements
    >>> X = [ReasoningGraph(None, [], wordings=[["It opened in 1871", "It is old"], ["So"]])]
    >>> shown = shown_statements(X, [[0, 1, 1]], [[False, True, False]])
    >>> shown.labels, shown.kept, shown.reworded
    (array([1, 1], dtype=int8), array([ True, False]), array([ True, False]))
    """
    from .labels import pack_labels
    from .problems import as_batch

    batch = as_batch(X)
    labels = pack_labels(y, batch)
    _, flat_kept, _ = flatten(batch.split(labels), kept)
    return statements_of(batch, labels, flat_kept)


def statements_of(
    batch: GraphBatch, labels: NDArray[Any], kept: NDArray[np.bool_]
) -> Statements:
    """Compute `shown_statements` for flat labels and masks, without checks.

    Parameters
    ----------
    batch : GraphBatch
        The problems.
    labels : ndarray of shape (n_claims,)
        Result of `close_labels`.
    kept : ndarray of bool of shape (n_claims,)
        Whether each wording is kept. If a wording is kept, all vaguer wordings of the claim must
        be kept as well.

    Returns
    -------
    statements : Statements
        The statements in the filtered answers, one per claim.
    """
    counts = batch.counts
    if counts is None:
        return Statements(
            labels=labels,
            kept=kept,
            offsets=batch.offsets,
            reworded=np.zeros_like(kept),
            rows=np.arange(len(kept)),
        )
    first = offsets_of(counts)
    rows = np.where(kept, np.arange(len(kept)), len(kept))
    rows = np.minimum.reduceat(rows, first[:-1]) if len(counts) else rows
    shown = rows < len(kept)
    rows = np.where(shown, rows, first[1:] - 1)
    reworded = shown & (rows > first[:-1])
    offsets = np.searchsorted(first, batch.offsets)
    return Statements(
        labels=labels[rows], kept=shown, offsets=offsets, reworded=reworded, rows=rows
    )


def claims_as_worded(batch: GraphBatch, steps: int) -> tuple[GraphBatch, Any]:
    """Return the problems with only one wording of each claim.

    Parameters
    ----------
    batch : GraphBatch
        Problems with wordings.
    steps : int
        Index of the selected wording of each claim, where 0 is the most specific wording. If a
        claim has too few wordings, its vaguest wording is selected.

    Returns
    -------
    batch : GraphBatch
        The problems without wordings, with the edges between claims.
    rows : ndarray of int
        Row of the selected wording of each claim.
    """
    from ._batch import GraphBatch

    counts = batch.counts
    assert counts is not None  # The caller ensures that the problems have wordings.
    first = offsets_of(counts)
    rows = first[:-1] + np.minimum(steps, counts - 1)
    plain = GraphBatch.from_arrays(
        optional_rows(batch.features, rows),
        np.searchsorted(first, batch.offsets),
        edges_between(batch.edges, counts),
        edges_known=batch.edges_known,
        claims=optional_rows(batch.claims, rows),
        problems=batch.problems,
        alternatives=batch.alternatives,
        context=batch.context,
        feature_names=batch.feature_names,
        ids=batch.ids,
        metadata=None
        if batch.metadata is None
        else map(without_positions, batch.metadata),
    )
    return plain, rows


def table_of_wordings(
    make: Callable[[GraphBatch], Any], batch: GraphBatch
) -> NDArray[np.float64]:
    """Compute the feature columns of wordings from answers with a single wording per claim.

    The columns of the k-th wording of each claim are computed from answers that contain only the
    k-th wording of every claim. Columns that do not depend on the wording, such as the position
    of a claim in its answer, are therefore the same for all wordings of the claim.

    Parameters
    ----------
    make : callable
        Function that accepts problems without wordings and returns their columns.
    batch : GraphBatch
        Problems with wordings.

    Returns
    -------
    table : ndarray of shape (n_claims, n_columns)
        The columns, with one row per wording.
    """
    counts = batch.counts
    assert counts is not None  # The caller ensures that the problems have wordings.
    table: Any = None
    for steps in range(max(int(counts.max(initial=1)), 1)):
        plain, rows = claims_as_worded(batch, steps)
        columns = make(plain)
        if table is None:
            table = np.empty((batch.n_claims, columns.shape[1]))
        has_wording = counts > steps
        table[rows[has_wording]] = columns[has_wording]
    return table
