"""Identity of questions and problems: hashes of their content, and groups.

All hashes that the package compares are defined in this module. Most of these hashes are stored
in filters, in label files, or in metadata. Therefore, the hash values must
never change, and must not depend on the session, unlike the values of Python's ``hash``.

==========================  ===================================================================
`hash_question`             SHA-256, for question hashes
`text_code`                 SHA-256 of a normalised text, for groups in the metadata of data sets
`hash_text`                 BLAKE2, which is three times as fast, for claim texts
`mix`                       hash of numbers that uses eight operations on whole arrays
`problem_digest`            hexadecimal digits, for label files that people may read
==========================  ===================================================================

SHA-256 is used for questions because it must be infeasible to construct a text with the same hash
as a question.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._checks import check_groups, is_integer, is_missing
from .graphs import GraphBatch, ReasoningGraph, as_batch
from .graphs.checks import show
from .graphs.ragged import reduce_segments, starts_run

#: What identifies the questions of a set of problems.
NamedBy: TypeAlias = Literal["group", "text", "answer"]
_ARRAYS = ("question", "text", "content", "answer")


def mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Apply the finaliser of splitmix64 (Steele, Lea and Flood 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def hash_text(text: str) -> int:
    """Return the first 64 bits of the BLAKE2 hash of a text."""
    content = text.encode(errors="replace")
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest())


def hash_question(kind: str, value: Any) -> int:
    """Return the first 63 bits of the SHA-256 hash of a value and its ``kind``."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # Data frames with missing values store integers as floats.
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)  # The key 7 in a table is equal to the key "7" in a file.
    content = repr((kind, value)).encode("utf-8", "surrogatepass")
    return _first_63_bits(content)


def text_code(text: str) -> int:
    """Return a hash of a text, ignoring whitespace and letter case."""
    cleaned = " ".join(text.split()).casefold().encode("utf-8", "surrogatepass")
    return _first_63_bits(cleaned)


def _first_63_bits(content):
    return int.from_bytes(hashlib.sha256(content).digest()[:8], "big") >> 1


def question_hashes(batch: GraphBatch) -> NDArray[np.int64]:
    """Return a hash of each question text, ignoring whitespace and letter case.

    Parameters
    ----------
    batch : GraphBatch
        The problems.

    Returns
    -------
    hashes : ndarray of int64 of shape (n_problems,)
        Hashes of the questions, or -1 for problems without a question text. Equal texts have the
        same hash in every process.
    """
    texts = [None] * len(batch) if batch.problems is None else batch.problems
    return np.fromiter(map(_hash_words, texts), dtype=np.int64, count=len(batch))


@lru_cache(2**16)  # Many problems may share a question.
def _hash_words(text):
    """Return the hash of a question without spaces and letter case, or -1 if there is none."""
    words = " ".join((text or "").split()).casefold()
    return hash_question("question", words) if words else -1


def text_hashes(batch: GraphBatch) -> NDArray[np.uint64]:
    """Return a hash of the claim texts of each problem, or 0 for problems without texts."""
    if batch.claims is None:
        return np.zeros(len(batch), dtype=np.uint64)
    answers = map("\x1f".join, batch.split(batch.claims))
    hashes = np.fromiter(map(hash_text, answers), dtype=np.uint64, count=len(batch))
    return np.where(batch.sizes > 0, hashes, np.uint64(0))


def content_hashes(batch: GraphBatch) -> NDArray[np.uint64]:
    """Return a hash of each problem's texts, or of its columns and edges if there are no texts."""
    hashes = text_hashes(batch)
    if not hashes.all():
        hashes = np.where(hashes > 0, hashes, hash_numbers(batch))
    if batch.problems is not None:
        texts = (hash_text(text or "") for text in batch.problems)
        with np.errstate(over="ignore"):
            hashes += mix(np.fromiter(texts, dtype=np.uint64, count=len(batch)))
    return hashes


def has_many_digits(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which numbers have more than four significant digits, as float32 numbers."""
    size = np.maximum(np.abs(values), 1e-290)
    unit = 10.0 ** (np.floor(np.log10(size)) - 3)
    # The tolerance is that of float32 numbers.
    return np.abs(np.round(values / unit) * unit - values) > 1e-6 * size


def are_fine(batch: GraphBatch) -> bool:
    """Return whether answers with equal columns must be copies.

    At least two columns must have more than 30 distinct values, nine in ten of which have more
    than four significant digits.
    """
    n_fine = 0
    for column in () if batch.features is None else batch.features[:10_000].T:
        values = np.unique(column)
        n_fine += len(values) > 30 and has_many_digits(values).mean() >= 0.9
    return n_fine >= 2


def answer_hashes(batch: GraphBatch, columns_are_fine: bool) -> NDArray[np.uint64]:
    """Return a hash that equal answers share whatever the question, or 0 if none is known.

    Several claims are compared by their texts, and problems without texts by columns that are
    fine (`are_fine`), as float32 numbers. An answer with a single text has no hash, because short
    answers may well be equal.
    """
    if batch.claims is not None:
        return np.where(batch.sizes > 1, text_hashes(batch), np.uint64(0))
    if not columns_are_fine:
        return np.zeros(len(batch), dtype=np.uint64)
    with np.errstate(over="ignore"):
        single = np.asarray(batch.features, dtype=np.float32)
    hashes = hash_numbers(batch.replace_edges(()).replace_features(single))
    return np.where(batch.sizes > 0, hashes, np.uint64(0))


def hash_numbers(batch: GraphBatch) -> NDArray[np.uint64]:
    """Return a hash of the columns and edges of each problem."""
    table = np.empty((batch.n_claims, 0)) if batch.features is None else batch.features
    odd = mix(np.arange(1, 1 + table.shape[1], dtype=np.uint64)) | np.uint64(1)
    position = np.arange(batch.n_claims) - batch.offsets[batch.problem_of]
    parent, child = position[batch.edges].T.astype(np.uint64)
    with np.errstate(over="ignore"):
        claims = mix(position.astype(np.uint64))
        for column, factor in zip(table.T, odd, strict=True):
            bits = (column + 0.0).view(np.uint64)  # Adding 0.0 converts -0.0 to 0.0.
            claims += (bits ^ (bits >> np.uint64(29))) * factor
        edges = mix(parent + mix(child + np.uint64(1)))
        hashes = batch.sizes.astype(np.uint64)
        hashes += reduce_segments(np.add, mix(claims), batch.offsets, np.uint64(0))
        hashes += reduce_segments(np.add, edges, batch.edge_offsets, np.uint64(0))
        return mix(hashes)


def problem_digest(graph: Any) -> str:
    """Return a hexadecimal digest of a problem, which identifies the problem in label files."""
    content = json.dumps([graph.id, graph.problem, graph.claims])
    return hashlib.sha256(content.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Hashes:
    """Hashes that identify problems.

    Attributes
    ----------
    question : ndarray of int64 of shape (n_problems,)
        Question identifiers returned by `~skdcf.identity.question_groups`, which are negative for
        unknown questions.
    text : ndarray of int64 of shape (n_problems,)
        Hashes of the question texts, or -1 for problems without a question text.
    content : ndarray of uint64 of shape (n_problems,)
        Hashes of the question and the claims, or of the columns and edges if there are no texts.
    answer : ndarray of uint64 of shape (n_problems,)
        Hashes that equal answers share whatever the question, or 0 (`answer_hashes`).
    named_by : {"group", "text", "answer"}
        What identifies a question: its name, its text, or the answer itself if the caller stated
        that each answer belongs to a separate question.
    """

    question: NDArray[np.int64]
    text: NDArray[np.int64]
    content: NDArray[np.uint64]
    answer: NDArray[np.uint64]
    named_by: NamedBy

    @classmethod
    def join(cls, parts: list[Hashes]) -> Hashes:
        """Concatenate the hashes of several parts.

        Parameters
        ----------
        parts : list of Hashes
            The parts, whose questions are all identified in the same way.

        Returns
        -------
        joined : Hashes
            The hashes of all parts.

        Raises
        ------
        ValueError
            If the questions of the parts are identified in different ways.
        """
        if len({part.named_by for part in parts}) > 1:
            raise ValueError(
                "the questions of all parts must be identified in the same way, got "
                f"{sorted({part.named_by for part in parts})}. Pass groups= (or the metadata key "
                "'group') for all parts or for none"
            )
        arrays = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in _ARRAYS
        }
        if len(parts) > 1:
            question = arrays["question"]
            own_numbers = -1 - np.arange(len(question))
            arrays["question"] = np.where(question < 0, own_numbers, question)
        return cls(**arrays, named_by=parts[0].named_by)

    def __getitem__(self, rows: NDArray[Any] | slice) -> Hashes:
        arrays = {name: getattr(self, name)[rows] for name in _ARRAYS}
        return replace(self, **arrays)

    def orders(
        self, *number_copies_by: NDArray[Any]
    ) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return the hashes that determine which answers and questions are selected.

        Copies of the same answer have different hashes. Therefore, if a model generates the same
        answer in nine of ten samples, this answer is selected for about nine of ten questions.
        The hash of a question does not depend on the hashes of its answers. If the smallest
        answer hash were used as the question hash, questions with many answers would be
        preferred.

        The hashes of answers and questions are salted with the six smallest question hashes.
        Without a salt, the same answers would be selected in every sample. For example, if a pool
        of 60 questions were split many times, some of the questions would almost always be used
        for calibration. The hashes do not depend on labels or on the order of rows, so users
        cannot search for a more favourable draw.

        Parameters
        ----------
        *number_copies_by : ndarray of shape (n_problems,)
            Values in whose order equal answers to a question are numbered, such as their scores.
            The last array is the first to be compared.
        """
        with np.errstate(over="ignore"):
            named = np.maximum(self.question, -1).view(np.uint64)
            answer = mix(mix(named) + self.content)

            # Number the copies of an answer, and change the hash of each copy after the
            # first. Copies with equal values of ``number_copies_by`` are interchangeable, so the
            # order of the rows has no influence.
            by = np.lexsort((*number_copies_by, answer, self.question.clip(-1)))
            place = np.arange(len(by))
            new = starts_run(answer[by])
            copy = place - np.maximum.accumulate(np.where(new, place, 0))
            later_copies = by[copy > 0]
            number = copy[copy > 0].astype(np.uint64)
            answer[later_copies] = mix(answer[later_copies] + number)

            question = mix(~self.question.view(np.uint64))
            question = np.where(self.question >= 0, question, answer)
            salt = _sum_of_smallest(question)
            return mix(answer + salt), mix(question + salt)

    def to_store(self) -> dict[str, NDArray[Any]]:
        """Return the sorted, distinct hashes that are stored to recognise problems."""
        return {
            "question": _sort_distinct(self.question[self.question >= 0]),
            "text": _sort_distinct(self.text[self.text >= 0]),
            "content": _sort_distinct(self.content),
            "answer": _sort_distinct(self.answer[self.answer > 0]),
            "named": np.array([self.named_by == "group"]),
            "alone": np.array([self.named_by == "answer"]),
        }

    def among(self, kept: dict[str, NDArray[Any]]) -> NDArray[np.bool_]:
        """Return whether each problem's question is stored.

        If both sets of problems have question names, the names must match. If each answer in both
        sets belongs to a separate question, no question is stored. Otherwise, the names or the
        question texts must match.

        Parameters
        ----------
        kept : dict
            Hashes of other problems, as returned by `to_store`.

        Returns
        -------
        same_question : ndarray of bool of shape (n_problems,)
        """
        same_question = np.isin(self.question, kept["question"])
        both_named = self.named_by == "group" and kept["named"].all()
        both_alone = self.named_by == "answer" and kept["alone"].all()
        if both_named or both_alone:
            return same_question
        return same_question | np.isin(self.text, kept["text"])


def _sum_of_smallest(hashes):
    """Return the sum of the six smallest distinct hashes."""
    total = np.uint64(0)
    for _ in range(6):
        if len(hashes):
            total += hashes.min()
            hashes = hashes[hashes > hashes.min()]
    return total


def _sort_distinct(values):
    """Return the sorted, distinct values several times faster than `numpy.unique`."""
    values = np.sort(values)
    return values[starts_run(values)]


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
    >>> from skdcf.identity import question_groups
    >>> texts = ["What is 2 + 2?", "what  is 2 + 2? ", "Why?", None]
    >>> batch = GraphBatch.from_arrays([[0.9], [0.8], [0.1], [0.2]], range(5), problems=texts)
    >>> a, b, c, d = question_groups(batch)
    >>> bool(a == b), bool(a == c), int(d)
    (True, False, -4)
    >>> question_groups(batch, groups=False).tolist()
    [-1, -2, -3, -4]
    """
    return _find_questions(as_batch(batch), groups)[0]


def hashes_of(
    batch: GraphBatch, groups: Groups = None, *, columns_are_fine: bool = False
) -> Hashes:
    """Return hashes that identify problems and their questions.

    Parameters
    ----------
    batch : GraphBatch
        The problems.
    groups : array-like of shape (n_problems,), or False, optional
        As in `question_groups`.
    columns_are_fine : bool, default=False
        Whether answers without texts are recognised by their columns.

    Returns
    -------
    hashes : Hashes
        Hashes of each problem's question, content and answer.
    """
    question, text, named_by = _find_questions(batch, groups)
    return Hashes(
        question=question,
        text=text,
        content=content_hashes(batch),
        answer=answer_hashes(batch, columns_are_fine),
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
    if groups is None:
        names = _read_names(batch)
    else:
        check_groups(groups, len(batch))
        names = np.asarray(groups).tolist()
    if names is None:
        return np.where(text < 0, own_numbers, text), text, "text"
    hash_of = {name: hash_question("group", name) for name in dict.fromkeys(names)}
    return np.array([hash_of[name] for name in names]), text, "group"


def _read_names(batch):
    """Return each problem's metadata key ``group``, or None if no problem has it.

    The names 7, 7.0 and "7" are considered equal, because files and tables use all of these
    forms.
    """
    names = [metadata.get(GROUP) for metadata in batch.metadata_rows]
    is_named = [not is_missing(name) for name in names]
    if not any(is_named):
        return None
    if not all(is_named):
        raise ValueError(
            f"{batch.name_of(is_named.index(True))} has the metadata key {GROUP!r}, but "
            f"{batch.name_of(is_named.index(False))} does not. Name the question of every problem "
            "or of none, or pass groups=. These lines separate the problems: "
            "named = [g for g in X if (g.metadata or {}).get('group') is not None]; "
            "unnamed = [g for g in X if (g.metadata or {}).get('group') is None]"
        )
    for i, name in enumerate(names):
        if not (isinstance(name, str) or is_integer(name)):
            raise ValueError(
                f"{batch.name_of(i)}: the metadata entry {GROUP!r} must be a string or an "
                f"integer, got {show(name)}"
            )
    return names


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
    if len(values) != len(batch):
        raise ValueError(
            f"by={by!r} must return one group for each of the {len(batch)} problems, got "
            f"{len(values)}"
        )
    for i, value in enumerate(values):
        is_group = isinstance(value, Hashable) and not isinstance(value, frozenset)
        if not is_group or is_missing(value):
            raise ValueError(
                f"{batch.name_of(i)} must have one group (a string or a number), got {value!r} "
                f"from by={by!r}"
            )
    return values


def _find_column(by, batch):
    """Return a metadata entry of each problem, or a feature that is equal for all its claims."""
    rows = batch.metadata_rows
    keys = {key for row in rows for key in row}
    is_feature = by in (batch.feature_names or ())
    if (by in keys) == is_feature:
        raise ValueError(
            f"by={by!r} must be either a feature name or a metadata key, but it is "
            f"{'both' if is_feature else 'neither'}. The metadata keys are "
            f"{sorted(map(str, keys))}"
        )
    if not is_feature:
        return [row.get(by) for row in rows]
    column = batch.features[:, batch.feature_names.index(by)]
    lowest = reduce_segments(np.minimum, column, batch.offsets, np.nan)
    highest = reduce_segments(np.maximum, column, batch.offsets, np.nan)
    wrong = np.flatnonzero(lowest != highest)  # NaN for problems without claims
    if wrong.size:
        i = wrong[0]
        raise ValueError(
            f"{batch.name_of(i)}: all claims must have the same value of the feature {by!r}, "
            f"which defines the group of a problem, got the values {lowest[i]} to {highest[i]} in "
            f"{batch.sizes[i]} claims"
        )
    return lowest.tolist()
