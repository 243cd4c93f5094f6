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
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._arrays import in_blocks, reduce_segments, starts_run
from ._checks import check_groups, is_integer, is_missing, show
from .graphs import GraphBatch, ReasoningGraph, as_batch

#: Question of each problem. False means that each problem belongs to a separate question.
Groups: TypeAlias = ArrayLike | Literal[False] | None


def mix(x):
    """Apply the finaliser of splitmix64 (Steele, Lea and Flood 2014)."""
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB
    return x ^ (x >> 31)


def _bits(values):
    return (values + 0.0).view(np.uint64)  # Adding 0.0 converts -0.0 to 0.0.


def rounded_bits(values):
    """Return the bits of numbers without their last digits, which depend on the processor."""
    return (_bits(values) + 2**28) >> 29


def hash_text(text):
    """Return the first 64 bits of the BLAKE2 hash of a text."""
    content = text.encode(errors="replace")
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest())


def hash_question(kind, value):
    """Return the first 63 bits of the SHA-256 hash of a value and its ``kind``.

    The numbers 7 and 7.0 and the text "7" are equal, because files and tables use all of these.
    """
    if is_integer(value) or (isinstance(value, float) and value.is_integer()):
        value = str(int(value))
    return _first_63_bits(repr((kind, value)))


def text_code(text):
    """Return a hash of a text, ignoring whitespace and letter case."""
    return _first_63_bits(_normalised(text))


def _normalised(text):
    return " ".join((text or "").split()).casefold()


def _first_63_bits(text):
    content = text.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(content).digest()[:8]) >> 1


@lru_cache(2**16)  # Many problems may share a question.
def _hash_words(text):
    """Return the hash of a question without spaces and letter case, or -1 if there is none."""
    words = _normalised(text)
    return hash_question("question", words) if words else -1


def has_many_digits(values):
    """Return which numbers have more than four significant digits, as float32 numbers."""
    size = np.maximum(np.abs(values), 1e-290)
    unit = 10.0 ** (np.floor(np.log10(size)) - 3)
    # The tolerance is that of float32 numbers.
    return np.abs(np.round(values / unit) * unit - values) > 1e-6 * size


def are_fine(batch):
    """Return whether answers with equal columns must be copies.

    At least two columns must have more than 30 distinct values, nine in ten of which have more
    than four significant digits.
    """
    fine = map(_is_fine, () if batch.features is None else batch.features.T)
    # Both calls advance the same iterator, so the search ends at the second fine column.
    return any(fine) and any(fine)


def _is_fine(column):
    values = _sort_distinct(column)
    return len(values) > 30 and has_many_digits(values).mean() >= 0.9


def hash_numbers(batch):
    """Return a hash of the columns and edges of each problem."""
    parent, child = batch.position[batch.edges].T.astype(np.uint64)
    edges = mix(parent + mix(child + 1))
    sums = reduce_segments(np.add, edges, batch.edge_offsets, 0)
    return mix(_sum_columns(batch, _bits) + sums)


def _sum_columns(batch, bits_of):
    """Return the sum of hashes of the claims in each problem, given the bits of their columns."""
    table = np.empty((batch.n_claims, 0)) if batch.features is None else batch.features
    odd = mix(np.arange(1, 1 + table.shape[1], dtype=np.uint64)) | 1
    own = in_blocks(lambda rows: _fold(bits_of(rows)) @ odd, table)
    claims = mix(batch.position.astype(np.uint64)) + own
    sums = reduce_segments(np.add, mix(claims), batch.offsets, 0)
    return sums + batch.sizes.astype(np.uint64)


def _fold(bits):
    return bits ^ (bits >> 29)


def problem_digest(graph):
    """Return a hexadecimal digest of a problem, which identifies the problem in label files."""
    content = (graph.id, graph.problem, graph.claims)
    return f"{hash_question('problem', content):x}"


@dataclass(frozen=True)
class Hashes:
    """Hashes that identify problems.

    Attributes
    ----------
    named_by : {"group", "text", "answer"}
        What identifies a question: its name, its text, or the answer itself if the caller stated
        that each answer belongs to a separate question.
    question : ndarray of int64 of shape (n_problems,)
        Question identifiers returned by `~skdcf.identity.question_groups`, which are negative for
        unknown questions.
    text : ndarray of int64 of shape (n_problems,)
        Hashes of the question texts, or negative numbers for problems without a question text.
    content : ndarray of uint64 of shape (n_problems,)
        Hashes of the question and the claims, or of the columns and edges if there are no texts.
    answer : ndarray of uint64 of shape (n_problems,)
        Hashes of the answers without their questions, or 0 if unknown. Several claims are compared
        by their texts, and problems without texts by columns that are fine (`are_fine`), as float32
        numbers.
    """

    named_by: str
    question: NDArray[np.int64]
    text: NDArray[np.int64]
    content: NDArray[np.uint64]
    answer: NDArray[np.uint64]

    @classmethod
    def join(cls, parts):
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
        kinds = sorted({part.named_by for part in parts})
        if len(kinds) > 1:
            raise ValueError(
                f"the questions of all parts must be identified in the same way, got {kinds}. "
                "Pass groups= (or the metadata key 'group') for all parts or for none"
            )
        _, *columns = zip(*(vars(part).values() for part in parts), strict=True)
        question, *others = map(np.concatenate, columns)
        own_numbers = -1 - np.arange(len(question))
        return cls(kinds[0], np.where(question < 0, own_numbers, question), *others)

    def __getitem__(self, rows):
        named_by, *arrays = vars(self).values()
        return Hashes(named_by, *(array[rows] for array in arrays))

    def orders(self, *number_copies_by):
        """Return the hashes that determine which answers and questions are selected.

        Copies of the same answer have different hashes. Therefore, if a model generates the same
        answer in nine of ten samples, this answer is selected for about nine of ten questions.
        The hash of a question does not depend on the hashes of its answers. If the smallest
        answer hash were used as the question hash, questions with many answers would be
        preferred.

        A salt is added to the hashes of answers and questions, so the selection differs between
        samples. The salt is the sum of the six smallest question hashes and of the values of all
        answers with equal contents. Without the first part, some questions would almost always be
        used for calibration if a pool of 60 questions were split many times. Without the second
        part, every sample would use the same number of "yes" and "no" answers, and a false claim
        could be kept in 16 % of the answers at alpha = 0.1. Users cannot search for a more
        favourable selection, because the hashes do not depend on the order of the rows, and the
        labels have an effect only if the contents of some answers are equal.

        Parameters
        ----------
        *number_copies_by : ndarray of shape (n_problems,)
            Values in whose order equal answers to a question are numbered, such as their scores.
            As in `numpy.lexsort`, the last array is the primary sort key. If no two answers have
            the same content, no values are needed.
        """
        named = np.maximum(self.question, -1).view(np.uint64)
        answer = mix(mix(named) + self.content)

        # Number the copies of an answer, and change the hash of each copy after the
        # first. Copies with equal values of ``number_copies_by`` are interchangeable, so the
        # order of the rows does not matter.
        values = answer[:0]
        if number_copies_by:
            is_equal = is_repeated(self.content)
            values = answer[is_equal]
            for column in number_copies_by:
                values = mix(values + rounded_bits(column[is_equal]))
            by = np.lexsort((*number_copies_by, answer))
            ordered = answer[by]
            copy = np.arange(len(by)) - np.searchsorted(ordered, ordered)
            numbered = mix(ordered + copy.astype(np.uint64))
            answer[by] = np.where(copy > 0, numbered, ordered)

        question = mix(~self.question.view(np.uint64))
        question = np.where(self.question >= 0, question, answer)
        salt = np.append(values, _sort_distinct(question)[:6]).sum()
        return mix(answer + salt), mix(question + salt)

    def to_store(self):
        """Return the sorted, distinct hashes that are stored to recognise problems."""
        _, *arrays = vars(self).items()
        stored = {name: _sort_distinct(values[values > 0]) for name, values in arrays}
        return stored | {"named_by": np.array([self.named_by])}

    def among(self, kept):
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
        if self.named_by != "text" and (kept["named_by"] == self.named_by).all():
            return same_question
        return same_question | np.isin(self.text, kept["text"])


def is_repeated(values):
    """Return which values of an array occur several times."""
    ordered = np.sort(values)
    repeated = ordered[1:][ordered[1:] == ordered[:-1]]
    return repeated.searchsorted(values, "right") > repeated.searchsorted(values)


def _sort_distinct(values):
    """Return the sorted, distinct values several times faster than `numpy.unique`."""
    values = np.sort(values)
    return values[starts_run(values)]


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
    return _find_questions(as_batch(batch), groups)[1]


def hashes_of(batch, groups=None, *, columns_are_fine=False):
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
    content = hash_numbers(batch)
    answer = np.zeros(len(batch), np.uint64)
    if batch.claims is not None:
        texts = map(hash_text, map("\x1f".join, batch.split(batch.claims)))
        content = np.where(batch.sizes > 0, np.fromiter(texts, np.uint64), content)
        # An answer with a single text has no hash, because short answers may well be equal.
        answer = np.where(batch.sizes > 1, content, answer)
    elif columns_are_fine:
        # Edges are ignored, and columns are compared as float32 numbers.
        sums = _sum_columns(batch, lambda x: _bits(x.astype(np.float32).astype(float)))
        answer = np.where(batch.sizes > 0, mix(sums), answer)
    if batch.problems is not None:
        # 0 leaves the hash as it is if no problem has a question.
        questions = [hash_text(text) if text else 0 for text in batch.problems]
        content = content + mix(np.array(questions, np.uint64))
    return Hashes(*_find_questions(batch, groups), content, answer)


def canonical_order(batch, labels, hashes, seed):
    """Sort problems before a split, so that the split does not depend on the order of the rows.

    If several answers to a question are equal, they are sorted by their columns and other values,
    and then by their labels.

    Parameters
    ----------
    batch : GraphBatch
        The problems.
    labels : ndarray of shape (n_claims,)
        Claim labels.
    hashes : Hashes
        Hashes of the problems.
    seed : int
        Seed of the split.

    Returns
    -------
    order : ndarray of int of shape (n_problems,)
        The problems, sorted by the hashes of their questions and contents.
    rng : RandomState
        The random numbers for the split. Their seed also depends on all questions. Otherwise, a
        fixed seed would hold out the same problems in many samples from a pool of problems.
    """
    values: Any = ()
    is_equal = is_repeated(hashes.content)
    if is_equal.any():
        own = hash_numbers(batch)
        fields = batch.context, batch.alternatives, batch.provenance, batch.metadata
        for field in fields:
            if field is not None:
                texts = [hash_text(repr(value)) for value in field[is_equal]]
                own[is_equal] = mix(own[is_equal] + np.array(texts, np.uint64))
        values = hash_numbers(batch.replace_features(labels[:, None])), own
    answer, question = hashes.orders(*values)
    drawn = int(question.sum()) % 2**32
    return np.lexsort((answer, question)), np.random.RandomState([seed, drawn])


def _find_questions(batch, groups) -> tuple[str, Any, Any]:
    """Return what identifies a question, question identifiers and hashes of the question texts."""
    own_numbers = text = -1 - np.arange(len(batch))
    if batch.problems is not None:
        text = np.array([_hash_words(text) for text in batch.problems], np.int64)
        text = np.where(text < 0, own_numbers, text)
    if groups is False:
        return "answer", own_numbers, text
    names = _read_names(batch) if groups is None else groups
    if names is None:
        return "text", text, text
    if groups is not None:
        check_groups(groups, len(batch))
        names = np.asarray(groups).tolist()
    return "group", np.array([hash_question("group", name) for name in names]), text


def _read_names(batch):
    """Return each problem's metadata key ``group``, or None if no problem has it."""
    if batch.metadata is None:
        return None
    names = [metadata.get("group") for metadata in batch.metadata_rows]
    if names.count(None) == len(names):
        return None
    for i, name in enumerate(names):
        if name is None:
            raise ValueError(
                f"{batch.name_of(i)} has no metadata key 'group', but other problems do. Name the "
                "question of every problem or of none, or pass groups=. These lines separate the "
                "problems: named = [g for g in X if (g.metadata or {}).get('group') is not None]; "
                "unnamed = [g for g in X if (g.metadata or {}).get('group') is None]"
            )
        if not isinstance(name, str) and not is_integer(name):
            raise ValueError(
                f"{batch.name_of(i)}: the metadata entry 'group' must be a string or an "
                f"integer, got {show(name)}"
            )
    return names


def read_groups(by, batch):
    """Return the group of each problem.

    Parameters
    ----------
    by : str, callable, or list of these
        The groups can be defined by a metadata key, or by a function of the batch, which must
        return one value per problem. If ``by`` is a list, each group is a tuple with one value
        for each entry.
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
        values = list(zip(*(read_groups(entry, batch) for entry in by), strict=True))
    else:
        rows = batch.metadata_rows or [{}] * len(batch)
        values = by(batch) if callable(by) else [row.get(by) for row in rows]
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


def group_numbers(groups, n):
    """Return the number of each of n groups in the order of appearance, or zeros without groups.

    ``groups`` is a list of length n, or None. The numbers are an int array of shape (n,).
    """
    if groups is None:
        return np.zeros(n, int)
    numbers = {}
    return np.array([numbers.setdefault(g, len(numbers)) for g in groups], int)
