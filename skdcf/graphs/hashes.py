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
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ._containers import GraphBatch
from .ragged import starts_run

BLOCK = 10_000  # number of problems hashed at a time

#: What identifies the questions of a set of problems.
NamedBy: TypeAlias = Literal["group", "text", "answer"]
IDENTIFIED_BY = {
    "group": "question names",
    "text": "question texts",
    "answer": "groups=False",
}
_ARRAYS = ("question", "text", "content", "numbers")


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
    hashes = np.full(len(batch), -1)
    # Each distinct text is hashed once, because many problems may share a question.
    hash_of: dict[str, int] = {}
    for i, text in enumerate(() if batch.problems is None else batch.problems):
        if not text or text.isspace():
            continue
        if text not in hash_of:
            normalised = " ".join(text.split()).casefold()
            hash_of[text] = hash_question("question", normalised)
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


@dataclass(frozen=True)
class Hashes:
    """Hashes that identify problems.

    Attributes
    ----------
    question : ndarray of int64 of shape (n_problems,)
        Question identifiers returned by `~skdcf.graphs.question_groups`, which are negative for
        unknown questions.
    text : ndarray of int64 of shape (n_problems,)
        Hashes of the question texts, or -1 for problems without a question text.
    content : ndarray of uint64 of shape (n_problems,)
        Hashes of the question and the claims, or of the columns and edges if there are no texts.
    numbers : ndarray of uint64 of shape (n_problems,)
        Hashes of the columns and edges.
    named_by : {"group", "text", "answer"}
        What identifies a question: its name, its text, or the answer itself if the caller stated
        that each answer belongs to a separate question.
    """

    question: NDArray[np.int64]
    text: NDArray[np.int64]
    content: NDArray[np.uint64]
    numbers: NDArray[np.uint64]
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
        if len(kinds := {IDENTIFIED_BY[part.named_by] for part in parts}) > 1:
            raise ValueError(
                "the questions of all parts must be identified in the same way, but some parts "
                f"use {' and others use '.join(sorted(kinds))}. Pass groups= (or the metadata "
                "key 'group') for all parts or for none"
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
        """Return the sorted, distinct hashes that are stored to recognise problems."""
        return {
            "question": _sort_distinct(self.question[self.question >= 0]),
            "text": _sort_distinct(self.text[self.text >= 0]),
            "content": _sort_distinct(self.content),
            "named": np.array([self.named_by == "group"]),
            "alone": np.array([self.named_by == "answer"]),
        }

    def among(self, kept: dict[str, NDArray[Any]]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return whether each problem's question is stored, and whether the match is doubtful.

        Parameters
        ----------
        kept : dict
            Hashes of other problems, as returned by `to_store`.

        Returns
        -------
        same_question : ndarray of bool of shape (n_problems,)
            Whether the question is stored. If both sets of problems have question names, the
            names must match. If each answer in both sets belongs to a separate question, no
            question is stored. Otherwise, the question texts must match.
        doubtful : ndarray of bool of shape (n_problems,)
            Whether the texts match although the questions cannot be considered equal.
        """
        same_question = np.isin(self.question, kept["question"])
        same_text = np.isin(self.text, kept["text"])
        both_named = self.named_by == "group" and kept["named"].all()
        both_alone = self.named_by == "answer" and kept["alone"].all()
        if both_named or both_alone:
            return same_question, same_text & ~same_question
        return same_question | same_text, np.zeros_like(same_text)


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
