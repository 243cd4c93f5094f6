"""Hashes that identify a question, a problem or a text by its content.

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
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ._batch import GraphBatch
from .ragged import starts_run

BLOCK = 10_000  # number of problems hashed at a time


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
    """Return a hash of each question, ignoring whitespace and letter case.

    Parameters
    ----------
    batch : GraphBatch
        The problems.

    Returns
    -------
    hashes : ndarray of int64 of shape (n_problems,)
        Hashes of the questions. Equal texts have the same hash in every process. For a problem
        without a question, the hash of its context is returned, or -1 if there is no context.
    """
    hashes = np.full(len(batch), -1)
    for column, kind in ((batch.context, "context"), (batch.problems, "question")):
        # Each distinct text is hashed once, because many problems may share a passage.
        hash_of: dict[Any, Any] = {}
        for i, text in enumerate(() if column is None else column):
            if not text:
                continue
            if text not in hash_of:
                normalised = (
                    text if kind == "context" else " ".join(text.split()).casefold()
                )
                blank = not any(map(str.strip, normalised))
                hash_of[text] = -1 if blank else hash_question(kind, normalised)
            if hash_of[text] >= 0:
                hashes[i] = hash_of[text]
    return hashes


def content_hashes(batch: GraphBatch) -> NDArray[np.uint64]:
    """Return a hash of each problem's texts, or of its columns and edges if there are no texts."""
    n = len(batch)
    hashes = np.zeros(n, dtype=np.uint64)
    by_text = np.zeros(n, dtype=bool)
    if batch.claims is not None:
        for i, (start, stop) in enumerate(pairwise(batch.offsets.tolist())):
            by_text[i] = start < stop and batch.claims[start] is not None
            if by_text[i]:
                hashes[i] = hash_text("\x1f".join(batch.claims[start:stop]))
    if not by_text.all():
        hashes[~by_text] = hash_numbers(batch)[~by_text]
    if batch.problems is not None:
        texts = (hash_text(text or "") for text in batch.problems)
        with np.errstate(over="ignore"):
            hashes += mix(np.fromiter(texts, dtype=np.uint64, count=n))
    return hashes


def hash_numbers(batch):
    """Return a hash of the columns and edges of each problem.

    The problems are processed in blocks that fit into the processor cache, which halves the
    running time for a million problems.
    """
    hashes = batch.sizes.astype(np.uint64)
    odd = mix(np.arange(1, 1 + (batch.n_features or 0), dtype=np.uint64)) | np.uint64(1)
    with np.errstate(over="ignore"):
        mixed = mix(np.arange(1 + batch.sizes.max(initial=0), dtype=np.uint64))
        for start in range(0, len(hashes), BLOCK):
            problems = slice(start, min(start + BLOCK, len(hashes)))
            _add_numbers(hashes, batch, problems, mixed=mixed, odd=odd)
        return mix(hashes)


def _add_numbers(hashes, batch, problems, mixed, odd):
    """Add the claim and edge hashes of the given problems to the problem hashes."""
    first, last = batch.offsets[[problems.start, problems.stop]]
    home = batch.problem_of[first:last]
    position = np.arange(first, last) - batch.offsets[home]
    rows = mixed[position]
    for column, factor in enumerate(odd):
        # Adding 0.0 converts -0.0 to 0.0.
        bits = (batch.features[first:last, column] + 0.0).view(np.uint64)
        rows += (bits ^ (bits >> np.uint64(29))) * factor
    np.add.at(hashes, home, mix(rows))
    edges = batch.edges[slice(*batch.edge_offsets[[problems.start, problems.stop]])]
    if len(edges):
        parent, child = position[edges - first].T
        edge = mix(parent.astype(np.uint64) + mixed[child + 1])
        np.add.at(hashes, home[edges[:, 1] - first], edge)


def problem_digest(graph: Any) -> str:
    """Return a hexadecimal digest of a problem, which identifies the problem in label files."""
    content = json.dumps([graph.id, graph.problem, graph.claims])
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def most_answers(n: int) -> float:
    """Return the maximum number of answers, out of ``n``, that may share a question text.

    A text shared by too many answers may be an instruction rather than a question.
    """
    return max(20, 0.05 * n)


def join_questions(names: Any, texts: Any, alone: Any) -> NDArray[Any]:
    """Return question identifiers, which are equal for answers linked by shared names or texts.

    Each question is identified by its smallest name hash, or by its smallest text hash if it has
    no name.

    Parameters
    ----------
    names, texts : ndarray of int64 of shape (n,)
        Hashes of the names and texts, with negative numbers for unknown names and texts.
    alone : ndarray of int64 of shape (n,)
        Identifiers used for answers that have neither a name nor a text.

    Returns
    -------
    questions : ndarray of int64 of shape (n,)
        Question identifier of each answer.
    """
    n = len(names)
    nodes, number = np.unique(np.concatenate([names, texts]), return_inverse=True)
    row = np.tile(np.arange(n), 2)
    is_known = np.concatenate([names, texts]) >= 0
    links = (np.ones(is_known.sum()), (row[is_known], n + number[is_known]))
    size = n + len(nodes)
    component = connected_components(coo_array(links, shape=(size, size)), False)[1][:n]
    question = np.full(component.max(initial=0) + 1, np.iinfo(np.int64).max)
    np.minimum.at(question, component[texts >= 0], texts[texts >= 0])
    question[component[names >= 0]] = np.iinfo(np.int64).max
    np.minimum.at(question, component[names >= 0], names[names >= 0])
    return np.where((names < 0) & (texts < 0), alone, question[component])


@dataclass(frozen=True)
class Hashes:
    """Hashes that identify problems.

    A question may be identified by its name in one call and by its text in another call, so both
    hashes are stored.

    Attributes
    ----------
    question : ndarray of int64 of shape (n_problems,)
        Question identifiers returned by `~skdcf.graphs.question_groups`, which are negative for
        unknown questions.
    content : ndarray of uint64 of shape (n_problems,)
        Hashes of the question and the claims, or of the columns and edges if there are no texts.
    numbers : ndarray of uint64 of shape (n_problems,)
        Hashes of the columns and edges.
    asked : ndarray of bool of shape (n_problems,)
        Whether each problem has a question text.
    name : ndarray of int64 of shape (n_problems,)
        Hashes of the question names, or -1 for questions without a name.
    text : ndarray of int64 of shape (n_problems,)
        Hashes of the question texts, or of the contexts for problems without a question text. The
        hash is -1 if a problem has neither a question text nor a context.
    passage : ndarray of uint64 of shape (n_problems,)
        Hashes of the question together with the context.
    alone : ndarray of bool of shape (n_problems,)
        Whether the caller stated that each answer belongs to a separate question.
    """

    question: NDArray[np.int64]
    content: NDArray[np.uint64]
    numbers: NDArray[np.uint64]
    asked: NDArray[np.bool_]
    name: NDArray[np.int64]
    text: NDArray[np.int64]
    passage: NDArray[np.uint64]
    alone: NDArray[np.bool_]

    @classmethod
    def join(cls, parts: list[Hashes]) -> Hashes:
        """Concatenate the hashes of several parts, and identify the questions across all parts."""
        joined = cls(
            **{
                field.name: np.concatenate(
                    [getattr(part, field.name) for part in parts]
                )
                for field in fields(cls)
            }
        )
        if len(parts) == 1:
            return joined
        n = len(joined.question)
        own_numbers = -1 - np.arange(n)
        # If each part declares that every answer belongs to a separate question, this also holds
        # for the joined parts.
        text = np.full(n, -1) if joined.alone.all() else joined.text
        if (joined.name >= 0).all():
            question = joined.name
        else:
            question = join_questions(joined.name, text, own_numbers)
        return replace(joined, question=question)

    def __getitem__(self, rows: NDArray[Any] | slice) -> Hashes:
        return Hashes(**{f.name: getattr(self, f.name)[rows] for f in fields(self)})

    def orders(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
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
        """
        with np.errstate(over="ignore"):
            named = np.maximum(self.question, -1).view(np.uint64)
            answer = mix(mix(named) + self.content)

            # Number the copies of an answer, and change the hash of each copy after the
            # first. Copies with different columns are numbered in the order of their columns,
            # so the order of the rows has no influence.
            by = np.lexsort((self.numbers, answer, self.question.clip(-1)))
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
        """Return the sorted, distinct hashes that are stored to recognise problems.

        For each text, a flag is stored that indicates whether the text identifies a single
        question. A text identifies a question if all named answers with this text have the same
        name, and if the number of answers with this text does not exceed `most_answers`.
        """
        text, names_one, is_named = self._texts()
        return {
            "question": _sort_distinct(self.question[self.question >= 0]),
            "content": _sort_distinct(self.content),
            "name": _sort_distinct(self.name[self.name >= 0]),
            "passage": _sort_distinct(self.passage[self.text >= 0]),
            "text": text,
            "text_names_one": names_one,
            "text_is_named": is_named,
            "alone": self.alone[:1],
        }

    def _texts(self):
        """Return the distinct texts, and whether each text identifies a question and has a name."""
        has_text = self.text >= 0
        text, code, count = np.unique(
            self.text[has_text], return_inverse=True, return_counts=True
        )
        is_named = self.name[has_text] >= 0
        pairs = np.unique(
            np.stack([code[is_named], self.name[has_text][is_named]]), axis=1
        )
        n_names = np.bincount(pairs[0], minlength=len(text))
        few = count <= most_answers(len(self.text))
        return text, few & (n_names <= 1), n_names > 0

    def among(self, kept: dict[str, NDArray[Any]]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return whether each problem's question is stored, and whether the match is doubtful.

        Parameters
        ----------
        kept : dict
            Hashes of other problems, as returned by `to_store`.

        Returns
        -------
        same_question : ndarray of bool of shape (n_problems,)
            Whether the names match, or whether the texts match and identify a single question in
            both sets of problems. If the texts match but the names differ, the contexts must
            match as well.
        doubtful : ndarray of bool of shape (n_problems,)
            Whether the texts match although the questions cannot be considered equal.
        """
        same_name = (self.name >= 0) & np.isin(self.name, kept["name"])
        if not len(kept["text"]) or not (self.text >= 0).any():
            return same_name, np.zeros(len(same_name), dtype=bool)
        text, names_one, is_named = self._texts()
        row = np.searchsorted(text, self.text).clip(max=len(text) - 1)
        row_kept = np.searchsorted(kept["text"], self.text).clip(
            max=len(kept["text"]) - 1
        )
        same_text = kept["text"][row_kept] == self.text
        both_name_one = names_one[row] & kept["text_names_one"][row_kept]
        both_named = is_named[row] & kept["text_is_named"][row_kept]
        same_passage = ~both_named | np.isin(self.passage, kept["passage"])
        both_alone = self.alone & kept["alone"].any()
        same_question = same_name | (
            same_text & both_name_one & same_passage & ~both_alone
        )
        return same_question, same_text & ~same_question


def hash_passages(batch, text):
    """Return a hash of the question and context of each problem."""
    passage = mix(text.view(np.uint64))
    if batch.context is None:
        return passage
    hash_of: dict[Any, Any] = {None: 0}
    for context in batch.context:
        if context not in hash_of:
            hash_of[context] = hash_text("\x1f".join(context))
    contexts = (hash_of[context] for context in batch.context)
    with np.errstate(over="ignore"):
        return passage + mix(np.fromiter(contexts, np.uint64, count=len(text)))


def _sum_of_smallest(hashes):
    """Return the sum of the six smallest distinct hashes."""
    total = np.uint64(0)
    for _ in range(6):
        if not len(hashes):
            break
        smallest = hashes.min()
        total += smallest
        hashes = hashes[hashes > smallest]
    return total


def _sort_distinct(values):
    """Return the sorted, distinct values several times faster than `numpy.unique`."""
    values = np.sort(values)
    return values[starts_run(values)]
