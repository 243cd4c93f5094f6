"""Conversion of user input to packed problems, questions, groups and weights."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Sequence
from itertools import compress
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import (
    check_groups,
    is_integer,
    is_missing,
    refuse_iterator,
)
from .._messages import Advice, Message
from ._batch import GraphBatch
from ._graph import ReasoningGraph
from ._inputs import show
from .hashes import (
    Hashes,
    content_hashes,
    hash_numbers,
    hash_passages,
    hash_question,
    join_questions,
    most_answers,
    question_hashes,
)
from .layout import join_sentences
from .ragged import slices
from .sources import cut_metadata, in_order, read_layout, sentences_without_claim

#: Question of each problem. False means that each problem belongs to a separate question.
Groups: TypeAlias = ArrayLike | Literal[False] | None
#: Problems as a list of graphs (including networkx graphs), as packed graphs, or as a table in
#: which each row is a problem with one claim.
Problems: TypeAlias = GraphBatch | Sequence[ReasoningGraph] | ArrayLike


def as_batch(X: Any) -> GraphBatch:
    """Convert a sequence of graphs or a 2-D array to a GraphBatch.

    Parameters
    ----------
    X : GraphBatch, sequence of ReasoningGraph, or 2-D array-like of numbers
        The problems. Each row of a 2-D array is a problem with a single claim.

    Returns
    -------
    batch : GraphBatch
        The packed problems. A GraphBatch is returned unchanged.

    Raises
    ------
    ValueError
        If X has an unsupported type, if X is empty, or if its graphs have different feature
        columns. The error message contains advice on how to convert X.

    Examples
    --------
    >>> from skdcf.graphs import as_batch
    >>> as_batch([[0.9, 1.0], [0.2, 0.0], [0.7, 0.0]])
    GraphBatch(n_graphs=3, n_claims=3, n_edges=0, n_features=2)
    """
    packed = pack_graphs(X)
    if packed is not None:
        # An empty batch is also returned, because its column names are known.
        return packed
    if not _is_table(X):
        many = isinstance(X, (list, tuple))
        kind = f"a list of {type(X[0]).__name__}" if many else f"a {type(X).__name__}"
        raise ValueError(
            "X must be a GraphBatch, a list of ReasoningGraph or a 2-D array of "
            f"numbers, got {kind}. {_advise(X)}"
        )
    if not len(X):
        raise ValueError("X must contain at least one problem, but it is empty")
    return GraphBatch.from_arrays(X, np.arange(len(X) + 1), ())


def _is_table(X):
    """Return whether X is two-dimensional and contains no strings."""
    try:
        table = np.asanyarray(X)
    except (TypeError, ValueError):
        return False
    if table.ndim == 2 and table.dtype == object:
        return not any(isinstance(value, (str, bytes)) for value in table.flat)
    return table.ndim == 2 and table.dtype.kind in "biufc"


def _advise(X):
    """Return advice on how to convert an object to problems."""
    lazy = hasattr(X, "collect")
    first = "This table is lazy: call its collect() first. " if lazy else ""
    if lazy or hasattr(X, "columns"):
        return (
            f"{first}If the table has one row per claim, use skdcf.adapters.from_frame"
        )
    if hasattr(X, "toarray"):
        return "Use its toarray() method to get an array"
    return "skdcf.adapters converts tables and records to graphs"


def pack_graphs(X: Any) -> Any:
    """Return X as a batch if it contains graphs, or None if X may be a table.

    networkx graphs are converted. A ValueError is raised if X is an empty list, an iterator or a
    single graph.
    """
    if isinstance(X, GraphBatch):
        return X
    if isinstance(X, ReasoningGraph) or _is_networkx(X):
        raise ValueError(
            f"X must be a list of graphs, got a single {type(X).__name__}. Pass [graph] "
            "instead"
        )
    refuse_iterator("X", X)
    if getattr(X, "ndim", None) == 1:  # X is an array or a Series (pandas or polars).
        X = list(X)
    if not isinstance(X, (list, tuple)):
        return None
    if any(map(_is_networkx, X)):
        X = [_from_networkx(graph, i) for i, graph in enumerate(X)]
    # `from_graphs` raises an error for an empty list.
    holds_graphs = not X or any(isinstance(item, ReasoningGraph) for item in X)
    return GraphBatch.from_graphs(X) if holds_graphs else None


def _is_networkx(item):
    """Return whether an object is a networkx graph, without importing networkx."""
    networkx = sys.modules.get("networkx")
    return networkx is not None and isinstance(item, networkx.Graph)


def _from_networkx(graph, i):
    if not _is_networkx(graph):
        return graph
    try:
        return ReasoningGraph.from_networkx(graph)
    except ValueError as error:
        raise ValueError(f"problem {i}: {error}") from None


def answer_text(graph: ReasoningGraph) -> str:
    """Return the text of an answer.

    If the answer was split by `skdcf split`, the text has the layout of the answer, such as its
    paragraphs and lists, and contains the sentences without claims. Otherwise, the text has one
    claim per line. The text of an answer without claims is empty, even if the answer contains
    other sentences.

    Parameters
    ----------
    graph : ReasoningGraph
        The answer.

    Returns
    -------
    text : str
        The claim texts, joined by the stored layout or by newlines.

    Raises
    ------
    ValueError
        If the claims do not have texts.
    """
    if graph.claims is None and graph.n_claims:
        named = "" if graph.id is None else f" ({graph.id})"
        raise ValueError(
            Message(
                f"the claims of the problem{named} must have texts, but they have "
                "none: ",
                Advice("give_claims", "pass claims= to the graph"),
            )
        )
    return _joined(graph.claims, graph.metadata)


def _joined(claims, metadata):
    """Return the claims and the sentences without claims, joined by the layout or by newlines."""
    if not claims:
        return ""
    others = sentences_without_claim(metadata, len(claims))
    sentences = in_order(claims, metadata, [text for _, text in others])
    layout = read_layout(metadata, len(claims))
    return join_sentences(sentences, layout) if layout else "\n".join(sentences)


def kept_text(graph: ReasoningGraph, mask: NDArray[np.bool_]) -> str:
    """Return the text of the kept claims of an answer, or "" if no claims are kept.

    Parameters
    ----------
    graph : ReasoningGraph
        One problem.
    mask : ndarray of bool of shape (n_claims,)
        Whether each claim is kept.

    Returns
    -------
    text : str
        The kept claims, with adjacent sentences that contain no claim. The text is a single line
        if the layout of the answer is not known.
    """
    kept = graph.subgraph(mask)
    return _on_one_line(answer_text(kept), kept.metadata, kept.n_claims)


def _on_one_line(text, metadata, n_claims):
    """Return a text as a single line, unless its layout is known."""
    return text if read_layout(metadata, n_claims) else " ".join(text.split())


def kept_texts(
    batch: GraphBatch, masks: Sequence[NDArray[np.bool_]]
) -> list[str | None]:
    """Return the text that `kept_text` returns for each answer, or None for unknown claims.

    Parameters
    ----------
    batch : GraphBatch
        The problems.
    masks : sequence of boolean arrays, one per problem
        Whether each claim is kept.

    Returns
    -------
    texts : list of (str or None)
        The kept text of each problem, or None if its claims have no texts.
    """
    if batch.claims is None:
        return [None] * len(batch)
    claims = batch.claims.tolist()
    metadata = batch.metadata_rows or [{}] * len(batch)
    texts: list[str | None] = []
    for i, rows in enumerate(slices(batch.offsets)):
        if claims[rows][:1] == [None]:
            texts.append(None)
        else:
            kept = [*compress(claims[rows], masks[i].tolist())]
            about = cut_metadata(metadata[i], masks[i])
            texts.append(_on_one_line(_joined(kept, about), about, len(kept)))
    return texts


#: Metadata key whose value identifies the question of an answer, as a string or an integer.
GROUP = "group"


def question_groups(
    batch: GraphBatch | Sequence[ReasoningGraph], groups: Groups = None
) -> NDArray[np.int64]:
    """Return a question identifier for each answer.

    Answers to the same question are not independent of each other. Therefore, only one answer per
    question can be used for calibration, and all answers to a question must be on the same side
    of a split. A question is identified by ``groups`` or, if this argument is None, by the
    metadata key ``group``. Without the key ``group``, a question is identified by its text,
    ignoring whitespace and letter case, or by the context if there is no text. An answer without
    a key, text or context is treated as the only answer to its question. If only some problems
    have the key, two answers belong to the same question if they are linked by equal keys or
    texts, either directly or through other answers.

    Parameters
    ----------
    batch : GraphBatch, or sequence of ReasoningGraph
        The problems.
    groups : array-like of shape (n_problems,), or False, optional
        A string or number for each problem, which takes precedence over metadata, texts and
        contexts. If False, each answer belongs to a separate question.

    Returns
    -------
    questions : ndarray of int64 of shape (n_problems,)
        Identifiers that are equal for answers to the same question. Non-negative identifiers are
        hashes, which are the same in every batch and session. Negative identifiers are assigned
        to answers with unknown questions, and are meaningless in any other batch.

    Raises
    ------
    ValueError
        If ``groups`` does not match the problems, or if a key is neither a string nor an integer.
        A ValueError is also raised if more than 20 problems and more than 5 % of all problems
        have the same question text or context, unless all of these problems have a key. The
        shared text may be an instruction.

    Examples
    --------
    >>> from skdcf import GraphBatch
    >>> from skdcf.graphs import question_groups
    >>> texts = ["What is 2 + 2?", "what  is 2 + 2? ", "Why?", None]
    >>> batch = GraphBatch.from_arrays([[0.9], [0.8], [0.1], [0.2]], range(5), problems=texts)
    >>> a, b, c, d = question_groups(batch)
    >>> bool(a == b), bool(a == c), int(d)
    (True, False, -4)
    >>> question_groups(batch, groups=False).tolist()
    [-1, -2, -3, -4]
    """
    batch = as_batch(batch)
    names = question_names(batch, groups)
    return _tell_questions(batch, names, question_hashes(batch), groups)


def hashes_of(batch: GraphBatch, groups: Groups = None) -> Hashes:
    """Return hashes that identify problems and their questions.

    Parameters
    ----------
    batch : GraphBatch
        The problems.
    groups : array-like of shape (n_problems,), or False, optional
        As in `question_groups`.

    Returns
    -------
    hashes : Hashes
        Hashes of the questions and of the problem contents.
    """
    names = question_names(batch, groups)
    texts = question_hashes(batch)
    asked = np.zeros(len(batch), dtype=bool)
    if batch.problems is not None:
        asked = np.array([bool(t and t.strip()) for t in batch.problems])
    return Hashes(
        question=_tell_questions(batch, names, texts, groups),
        content=content_hashes(batch),
        numbers=hash_numbers(batch),
        asked=asked,
        name=names,
        text=texts,
        passage=hash_passages(batch, texts),
        alone=np.full(len(batch), groups is False),
    )


def _tell_questions(batch, names, texts, groups):
    """Return question identifiers based on names, texts, or both if some names are missing."""
    if (names >= 0).all():
        return names
    own_numbers = -1 - np.arange(len(names))
    if groups is False or ((texts < 0).all() and (names < 0).all()):
        return own_numbers
    _check_shared(texts, names, batch)
    if (names < 0).all():
        return np.where(texts < 0, own_numbers, texts)
    return join_questions(names, texts, own_numbers)


def question_names(batch: GraphBatch, groups: Groups = None) -> NDArray[np.int64]:
    """Return a hash of each problem's question name, or -1 if the question has no name.

    The names 7, 7.0 and "7" are considered equal, because files and tables use all of these
    forms.

    Parameters
    ----------
    batch : GraphBatch
        The problems.
    groups : array-like of shape (n_problems,), or False, optional
        As in `question_groups`.

    Returns
    -------
    name_hashes : ndarray of int64 of shape (n_problems,)
        Hashes of the names. Equal names have the same hash in every process.
    """
    if groups is not None and groups is not False:
        first = check_groups(groups, len(batch))
        values = np.asarray(groups)[np.unique(first, return_index=True)[1]].tolist()
        return np.array([hash_question("group", value) for value in values])[first]
    names = np.full(len(batch), -1)
    if groups is False:
        return names
    for i, metadata in enumerate(batch.metadata_rows):
        key = metadata.get(GROUP)
        if is_missing(key):
            continue
        if not (isinstance(key, str) or is_integer(key)):
            raise ValueError(
                f"{batch.name_of(i)}: the metadata entry {GROUP!r} must be a string or an "
                f"integer, got {show(key)}"
            )
        names[i] = hash_question("group", key)
    return names


def _check_shared(texts, keys, batch):
    """Raise ValueError if too many problems have the same text, which may be an instruction."""
    distinct, first, count = np.unique(texts, return_index=True, return_counts=True)
    most = most_answers(len(texts))
    for text, i, n in zip(distinct, first, count, strict=True):
        if text >= 0 and n > most and (keys[texts == text] < 0).any():
            shared_text = (
                batch.problems is not None and batch.problems[i]
            ) or batch.context[i]
            raise ValueError(
                Message(
                    f"{n} of {len(texts)} problems have the same question or context, "
                    f"which is that of {batch.name_of(i)}: {show(shared_text)}. This "
                    "text may be an instruction with a different task for each "
                    f"answer, or one question that was answered {n} times. ",
                    Advice(
                        "name_questions",
                        "Pass groups= (one entry per problem, equal for answers to "
                        "one question), or the metadata key 'group', or groups=False "
                        "if each answer belongs to a separate question",
                    ),
                )
            )


def read_groups(by: Any, batch: GraphBatch) -> Any:
    """Return the group of each problem.

    Parameters
    ----------
    by : str, callable, or list of these
        The groups can be defined by a metadata key, by a feature that is equal for all claims of
        a problem, or by a function of the batch, which must return one value per problem. If
        ``by`` is a list, each group is a tuple with one value for each entry.
    batch : GraphBatch
        The problems.

    Returns
    -------
    groups : list of length n_problems
        The group of each problem, which is hashable.

    Raises
    ------
    ValueError
        If the group of a problem is unknown. The error message contains the name of the problem.
    """
    if isinstance(by, (list, tuple)):
        if not by:
            raise ValueError(
                "by must have at least one entry or be None, got an empty list"
            )
        return list(zip(*(read_groups(entry, batch) for entry in by), strict=True))
    values = by(batch) if callable(by) else _find_column(by, batch)
    values = [v.item() if isinstance(v, np.generic) else v for v in values]
    if (n := len(values)) != len(batch):
        raise ValueError(
            f"by={by!r} must return one group for each of the {len(batch)} problems, got "
            f"{n}"
        )
    _check_known(values, by, batch)
    return values


def _find_column(by, batch):
    names_known = {key for row in batch.metadata_rows for key in row}
    is_feature = by in (batch.feature_names or ())
    if (by in names_known) == is_feature:
        raise ValueError(
            f"by={by!r} is both a feature name and a metadata key: rename one of them"
            if is_feature
            else f"by={by!r} is neither a feature name nor a metadata key of the problems. "
            f"The metadata keys are {sorted(map(str, names_known))}"
        )
    if is_feature:
        return _constant(batch, by)
    return [row.get(by) for row in batch.metadata_rows]


def _constant(batch, name):
    """Return the values of a feature that is equal for all claims in a problem."""
    column = batch.features[:, batch.feature_names.index(name)]
    empty = np.flatnonzero(batch.sizes == 0)
    if len(empty):
        raise ValueError(
            f"{batch.name_of(int(empty[0]))} has no claims, so the feature {name!r} "
            "cannot assign it to a group"
        )
    first = column[batch.offsets[:-1]]
    differs = np.flatnonzero(column != first[batch.problem_of])
    if len(differs):
        raise ValueError(
            f"{batch.locate(int(differs[0]))}: the feature {name!r} defines the group of "
            "a problem, so it must have the same value for all claims of the problem, "
            "but the value for this claim differs from the value for the first claim"
        )
    return first.tolist()


def _check_known(values, by, batch):
    for i, value in enumerate(values):
        if (
            isinstance(value, frozenset)
            or not isinstance(value, Hashable)
            or is_missing(value)
        ):
            raise ValueError(
                f"{batch.name_of(i)} must have one group (a string or a number), got {value!r} "
                f"from by={by!r}"
            )
