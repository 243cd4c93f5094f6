"""Conversion of user input to packed problems, questions, groups and weights."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import (
    check_groups,
    is_integer,
    is_missing,
)
from .._messages import Advice, Message
from ._containers import GraphBatch, ReasoningGraph, as_batch
from ._containers import Problems as Problems
from ._containers import pack_graphs as pack_graphs
from ._inputs import show
from .hashes import (
    Hashes,
    NamedBy,
    content_hashes,
    hash_numbers,
    hash_question,
    question_hashes,
)

#: Question of each problem. False means that each problem belongs to a separate question.
Groups: TypeAlias = ArrayLike | Literal[False] | None


#: Metadata key whose value identifies the question of an answer, as a string or an integer.
GROUP = "group"


def question_groups(
    batch: GraphBatch | Sequence[ReasoningGraph], groups: Groups = None
) -> NDArray[np.int64]:
    """Return a question identifier for each answer.

    Answers to the same question are not independent of each other. Therefore, only one answer per
    question can be used for calibration, and all answers to a question must be on the same side
    of a split. A question is identified by ``groups`` or, if this argument is None, by the
    metadata key ``group``, which all problems or none must have. Without the key ``group``, a
    question is identified by its text, ignoring whitespace and letter case. An answer without a
    question text is treated as the only answer to its question, even if other answers have the
    same context.

    Parameters
    ----------
    batch : GraphBatch, or sequence of ReasoningGraph
        The problems.
    groups : array-like of shape (n_problems,), or False, optional
        A string or number for each problem, which takes precedence over metadata and texts. If
        False, each answer belongs to a separate question.

    Returns
    -------
    questions : ndarray of int64 of shape (n_problems,)
        Identifiers that are equal for answers to the same question. Non-negative identifiers are
        hashes, which are the same in every batch and session. Negative identifiers are assigned
        to answers with unknown questions, and are meaningless in any other batch.

    Raises
    ------
    ValueError
        If ``groups`` does not match the problems, if a key is neither a string nor an integer, or
        if only some problems have the key ``group``.

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
    return _find_questions(as_batch(batch), groups)[0]


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
    question, text, named_by = _find_questions(batch, groups)
    return Hashes(
        question=question,
        text=text,
        content=content_hashes(batch),
        numbers=hash_numbers(batch),
        named_by=named_by,
    )


def _find_questions(
    batch: GraphBatch, groups: Groups
) -> tuple[NDArray[np.int64], NDArray[np.int64], NamedBy]:
    """Return question identifiers, hashes of the question texts, and what identifies a question."""
    text = question_hashes(batch)
    own_numbers = -1 - np.arange(len(batch))
    if groups is False:
        return own_numbers, text, "answer"
    if groups is not None:
        first = check_groups(groups, len(batch))
        values = np.asarray(groups)[np.unique(first, return_index=True)[1]].tolist()
        names = np.array([hash_question("group", value) for value in values])[first]
        return names, text, "group"
    names = _read_names(batch)
    if names is not None:
        return names, text, "group"
    return np.where(text < 0, own_numbers, text), text, "text"


def _read_names(batch):
    """Return a hash of each problem's metadata key ``group``, or None if no problem has it.

    The names 7, 7.0 and "7" are considered equal, because files and tables use all of these
    forms.
    """
    keys = [metadata.get(GROUP) for metadata in batch.metadata_rows]
    is_named = [not is_missing(key) for key in keys]
    if not any(is_named):
        return None
    if not all(is_named):
        raise ValueError(
            Message(
                f"{batch.name_of(is_named.index(True))} has the metadata key {GROUP!r}, but "
                f"{batch.name_of(is_named.index(False))} does not. ",
                Advice(
                    "name_questions",
                    "Name the question of every problem or of none, or pass groups=. These "
                    "lines separate the problems: "
                    "named = [g for g in X if (g.metadata or {}).get('group') is not None]; "
                    "unnamed = [g for g in X if (g.metadata or {}).get('group') is None]",
                ),
            )
        )
    for i, key in enumerate(keys):
        if not (isinstance(key, str) or is_integer(key)):
            raise ValueError(
                f"{batch.name_of(i)}: the metadata entry {GROUP!r} must be a string or an "
                f"integer, got {show(key)}"
            )
    return np.array([hash_question("group", key) for key in keys])


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
