"""Several wordings of one claim, of which texts show the most specific one that is kept.

Inside a graph each wording is a node. The wordings of a claim are adjacent, the most specific one
first, and each one depends on the next, which is vaguer. So a filter that keeps a wording also
keeps all vaguer ones. An edge between two claims connects the most specific wording of the
parent to the vaguest one of the child, because a child must not rest on a premise that the text
does not state.

=============  ==============================================================================
counts         number of wordings of each claim
vaguest        whether a row is the vaguest wording of its claim
label          true only if all vaguer wordings are true as well: `close_labels`
counted once   the vaguest false wording of a claim represents all false ones: `count_once`
statement      what a text says about a claim, its most specific kept wording: `shown_statements`
=============  ==============================================================================

All counts refer to what a text shows, one statement per claim. Without wordings, ``counts`` and
``vaguest`` are None, and nothing is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import warn
from ..exceptions import LabelWarning
from .ragged import flatten, offsets_of

if TYPE_CHECKING:
    from ._batch import GraphBatch
    from ._graph import ReasoningGraph


def check_wordings(
    wordings: Any, claims: tuple[str, ...] | None, where: str
) -> tuple[tuple[str, ...], ...]:
    """Return the wordings of each claim as tuples, or raise ValueError.

    Parameters
    ----------
    wordings : sequence
        The wordings of each claim, the most specific one first. None or an empty sequence if a
        claim has only the wording in ``claims``.
    claims : tuple of str or None
        The most specific wording of each claim.
    where : str
        Prefix of messages.

    Returns
    -------
    tuple of tuples of str
        One for each claim, none of them empty.
    """
    from ._inputs import check_texts, in_order

    rows = in_order(wordings, "wordings", where)
    if claims is not None and len(rows) != len(claims):
        raise ValueError(
            f"{where}wordings has {len(rows)} entries, but there are {len(claims)} claims"
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
                f"{place}its wordings begin with {texts[0]!r}, but the claim is "
                f"{claims[v]!r}. List every wording of the claim, starting with the claim "
                "itself, which is the most specific one"
            )
        checked.append(tuple(texts))
    return tuple(checked)


def text_key(text: str) -> str:
    """Normalize case and white space of a wording, for comparisons.

    Parameters
    ----------
    text : str
        A wording.

    Returns
    -------
    str
    """
    return " ".join(text.split()).casefold()


def _check_texts_differ(texts, place):
    if not texts:
        raise ValueError(f"{place}wordings is empty: pass at least one wording")
    seen: dict[str, int] = {}
    for k, text in enumerate(texts):
        key = text_key(text)
        if not key:
            raise ValueError(
                f"{place}wordings[{k}] is empty: leave it out, or write a vaguer statement"
            )
        if key in seen:
            raise ValueError(
                f"{place}wordings[{k}] is {text!r}, as is wordings[{seen[key]}]: each "
                "wording must be vaguer than the previous one"
            )
        seen[key] = k


def expand_edges(edges: NDArray[np.int64], counts: Any) -> list[tuple[int, int]]:
    """Compute the edges between wordings from the edges between claims.

    Parameters
    ----------
    edges : ndarray of int, shape (n_edges, 2)
        (parent, child), positions of claims.
    counts : array-like of int, shape (n_claims,)
        Number of wordings of each claim.

    Returns
    -------
    list of (parent, child)
        Positions of wordings.
    """
    first = offsets_of(counts)
    between = np.stack([first[edges[:, 0]], first[edges[:, 1] + 1] - 1], axis=1)
    return [*map(tuple, between.tolist()), *map(tuple, _ladders(first).tolist())]


def _ladders(first):
    """Return the edges from each wording to the more specific one of the same claim."""
    child = np.setdiff1d(np.arange(first[-1]), first[1:] - 1)
    return np.stack([child + 1, child], axis=1)


def claim_of_row(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of the claim that each wording belongs to.

    Parameters
    ----------
    counts : ndarray of int, shape (n_claims,)
        Number of wordings of each claim.

    Returns
    -------
    ndarray of int, shape (n_wordings,)
    """
    return np.repeat(np.arange(len(counts)), counts)


def edges_between(
    edges: NDArray[np.int64], counts: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Compute the edges between claims from the edges between wordings.

    Parameters
    ----------
    edges : ndarray of int, shape (n_edges, 2)
        (parent, child), positions of wordings.
    counts : ndarray of int, shape (n_claims,)
        Number of wordings of each claim.

    Returns
    -------
    ndarray of int, shape (n_edges_between, 2)
        (parent, child), positions of claims, in the same order.
    """
    pairs = claim_of_row(counts)[edges]
    return pairs[pairs[:, 0] != pairs[:, 1]]


def rows_of_claims(graph: ReasoningGraph) -> list[range]:
    """Return the positions of the wordings of each claim, the most specific one first.

    Parameters
    ----------
    graph : ReasoningGraph
        One problem.

    Returns
    -------
    list of range
        Without wordings, each range holds one claim.
    """
    counts = [1] * graph.n_claims
    if graph.wordings is not None:
        counts = [len(row) for row in graph.wordings]
    first = offsets_of(counts).tolist()
    return [range(a, b) for a, b in pairwise(first)]


def shown_rows(graph: ReasoningGraph, kept: Sequence[bool] | NDArray[Any]) -> list[int]:
    """Return the positions of the shown wordings: the most specific kept one of each claim.

    Parameters
    ----------
    graph : ReasoningGraph
        One problem.
    kept : sequence of bool
        Whether each wording is kept.

    Returns
    -------
    list of int
    """
    kept_rows = ([v for v in rows if kept[v]] for rows in rows_of_claims(graph))
    return [rows[0] for rows in kept_rows if rows]


def premises_of(graph: ReasoningGraph, v: int) -> list[int]:
    """Return the parents of a claim, regardless of wordings.

    Parameters
    ----------
    graph : ReasoningGraph
        One problem.
    v : int
        Position of a wording.

    Returns
    -------
    list of int
        Positions of the most specific wordings of the parents.
    """
    if graph.wordings is None:
        return graph.edges[graph.edges[:, 1] == v, 0].tolist()
    counts = np.array([len(row) for row in graph.wordings], dtype=np.int64)
    claim = int(claim_of_row(counts)[v])
    between = edges_between(graph.edges, counts)
    parents = between[between[:, 1] == claim, 0]
    return offsets_of(counts)[parents].tolist()


def close_labels(labels: NDArray[np.int8], batch: GraphBatch) -> NDArray[np.int8]:
    """Complete the labels of wordings, from the vaguest one to the most specific one.

    A wording that is more specific than a false one counts as false. If a vaguer wording is
    unknown, a true wording counts as unknown. This keeps the guarantee exact for all wordings.
    If a true wording made vaguer ones count as true, false rewordings would lead to error rates
    of .14 to .17 instead of .1.

    Parameters
    ----------
    labels : ndarray of int8, shape (n_claims,)
        1 true, 0 false, -1 unknown.
    batch : GraphBatch
        The problems.

    Returns
    -------
    ndarray of int8, shape (n_claims,)
        The same array if no problem has wordings.

    Warns
    -----
    LabelWarning
        If a wording is labelled true and a vaguer wording of the same claim false.
    """
    counts = batch.counts
    if counts is None:
        return labels
    closed = labels.copy()
    first = offsets_of(counts)
    contradictions = 0
    for steps in range(1, int(counts.max(initial=1))):
        # Wordings that are ``steps`` steps more specific than the vaguest wording of their claim.
        rows = (first[1:] - 1 - steps)[counts > steps]
        vaguer = closed[rows + 1]
        own = closed[rows]
        contradictions += int(np.sum((vaguer == 0) & (labels[rows] == 1)))
        doubtful = np.where((vaguer == -1) & (own == 1), -1, own)
        closed[rows] = np.where(vaguer == 0, 0, doubtful)
    if contradictions:
        warn(
            f"{contradictions} wordings are labelled true, but a vaguer wording of the same "
            "claim is labelled false. The vaguer one counts, so they count as false. Judge "
            "from the vaguest wording to the most specific one, and stop at the first false one",
            LabelWarning,
        )
    return closed


def count_once(labels: NDArray[Any], batch: GraphBatch) -> NDArray[Any]:
    """Return labels in which each claim has at most one wording that is not true.

    Among the wordings of a claim that are not true, the vaguest one has the smallest path risk.
    As soon as it is kept, the text states something false about the claim.

    Parameters
    ----------
    labels : ndarray of shape (n_claims,)
        As `close_labels` returns them.
    batch : GraphBatch
        The problems.

    Returns
    -------
    ndarray of shape (n_claims,)
        All other wordings have the label 1. The same array if no problem has wordings.
    """
    if batch.vaguest is None:
        return labels
    vaguer = np.append(labels[1:], 1)[: len(labels)]
    counted = batch.vaguest | (vaguer == 1)
    return np.where(counted, labels, 1).astype(labels.dtype)


def shares_of_claims(batch: GraphBatch) -> NDArray[np.float64]:
    """Return the weight of each wording in training; the wordings of a claim sum to 1.

    Training therefore prefers a true specific wording to a vaguer one, and a claim with
    several wordings counts as much as any other claim.

    Parameters
    ----------
    batch : GraphBatch
        Problems with wordings.

    Returns
    -------
    ndarray of shape (n_claims,)
    """
    counts = batch.counts
    assert counts is not None  # checked by the caller
    return np.repeat(1 / counts, counts)


def true_shares(labels: NDArray[Any], batch: GraphBatch) -> NDArray[np.float64]:
    """Return the gain of keeping each claim in training: 1 if it is true, otherwise 0.

    Parameters
    ----------
    labels : ndarray of shape (n_claims,)
        1 true, 0 false, -1 unknown.
    batch : GraphBatch
        The problems.

    Returns
    -------
    ndarray of shape (n_claims,)
        For a true wording, its share of the claim.
    """
    true = (labels == 1).astype(np.float64)
    return true if batch.counts is None else true * shares_of_claims(batch)


class Statements(NamedTuple):
    """What texts say about their claims, one statement per claim.

    Attributes
    ----------
    labels : ndarray of shape (n_statements,)
        Label of the wording that is shown, or of the vaguest one if none is.
    kept : ndarray of bool, shape (n_statements,)
        Whether a wording of the claim is shown.
    offsets : ndarray of int, shape (n_problems + 1,)
        Bounds of the problems among the statements.
    reworded : ndarray of bool, shape (n_statements,)
        Whether a vaguer wording than the most specific one is shown.
    rows : ndarray of int, shape (n_statements,)
        Row of that wording.
    """

    labels: NDArray[Any]
    kept: NDArray[np.bool_]
    offsets: NDArray[np.int64]
    reworded: NDArray[np.bool_]
    rows: NDArray[np.int64]


def shown_statements(
    X: Any, y: ArrayLike | Sequence[ArrayLike], kept: ArrayLike | Sequence[ArrayLike]
) -> Statements:
    """Return what texts say about their claims: one statement per claim, with its label.

    Parameters
    ----------
    X : GraphBatch, or sequence of ReasoningGraph
        The problems.
    y : sequence of 1-D arrays, one per problem
        Their labels, one for each wording.
    kept : sequence of boolean masks
        The masks, as `predict` returns them.

    Returns
    -------
    Statements
        Without wordings, the labels and masks themselves.

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
    """Return `shown_statements` for flat labels and masks, without checks.

    Parameters
    ----------
    batch : GraphBatch
        The problems.
    labels : ndarray of shape (n_claims,)
        As `close_labels` returns them.
    kept : ndarray of bool, shape (n_claims,)
        If a wording is kept, all vaguer ones must be kept.

    Returns
    -------
    Statements
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
    """Return the problems with one wording of each claim, as if there were no others.

    Parameters
    ----------
    batch : GraphBatch
        Problems with wordings.
    steps : int
        0 selects the most specific wording of each claim, 1 the next one, and so on. Claims
        with fewer wordings use their vaguest one.

    Returns
    -------
    batch : GraphBatch
        Without wordings; the edges are those between claims.
    rows : ndarray of int
        Row of the wording of each claim.
    """
    from ._batch import GraphBatch

    counts = batch.counts
    assert counts is not None  # checked by the caller
    first = offsets_of(counts)
    rows = first[:-1] + np.minimum(steps, counts - 1)
    plain = GraphBatch.from_arrays(
        None if batch.features is None else batch.features[rows],
        np.searchsorted(first, batch.offsets),
        edges_between(batch.edges, counts),
        edges_known=batch.edges_known,
        claims=None if batch.claims is None else batch.claims[rows],
        problems=batch.problems,
        alternatives=batch.alternatives,
        context=batch.context,
        feature_names=batch.feature_names,
        ids=batch.ids,
        metadata=_without_positions(batch.metadata),
    )
    return plain, rows


def _without_positions(metadata: Any) -> Any:
    """Remove metadata about single claims, since the positions of claims differ here."""
    from .sources import MARKED_WORDS, NEVER_KEPT, SOURCES, WITHOUT_CLAIM

    if metadata is None:
        return None
    of_claims = {*NEVER_KEPT, *MARKED_WORDS.values(), SOURCES, WITHOUT_CLAIM}
    return [
        row and {key: value for key, value in row.items() if key not in of_claims}
        for row in metadata
    ]


def table_of_wordings(
    make: Callable[[GraphBatch], Any], batch: GraphBatch
) -> NDArray[np.float64]:
    """Compute columns of wordings from answers in which each claim has one wording.

    The columns of the most specific wordings are computed with the most specific wordings of
    all claims, and so on. So columns that do not depend on the wording, such as the position of
    a claim in its answer, are equal for all its wordings.

    Parameters
    ----------
    make : callable
        ``make(batch)`` returns the columns of problems without wordings.
    batch : GraphBatch
        Problems with wordings.

    Returns
    -------
    ndarray of shape (n_claims, n_columns)
        One row for each wording.
    """
    counts = batch.counts
    assert counts is not None  # checked by the caller
    table: Any = None
    for steps in range(max(int(counts.max(initial=1)), 1)):
        plain, rows = claims_as_worded(batch, steps)
        columns = make(plain)
        if table is None:
            table = np.empty((batch.n_claims, columns.shape[1]))
        own = counts > steps
        table[rows[own]] = columns[own]
    return table
