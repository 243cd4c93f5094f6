"""What a question, a problem or a text is called by its content.

Every hash of the package that tells whether two things are the same stands here. Most are kept
somewhere: in filters, in the public prior, in label files, in metadata. So none may change its
values, and none may depend on the session, as Python's own ``hash`` does.

==========================  ===================================================================
`hash_question`             SHA-256, since the hashes of questions ship with the public prior,
                            where nobody should find a text that collides with one
`text_code`                 the same of a cleaned text alone: groups in the metadata of data sets
`hash_text`                 BLAKE2, three times as fast, for each text of millions of claims
`mix`                       numbers: eight operations on whole arrays
`problem_digest`            letters, for label files that people may look into
==========================  ===================================================================
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._batch import GraphBatch


def mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Finaliser of splitmix64 (Steele, Lea and Flood 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def hash_text(text: str) -> int:
    """The first 64 bits of the BLAKE2 hash of a text."""
    content = text.encode(errors="replace")
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest())


def hash_question(kind: str, value: Any) -> int:
    """The first 63 bits of the SHA-256 of a value; ``kind`` says what it is the value of."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # as data frames read whole numbers beside missing ones
    content = repr((kind, value)).encode("utf-8", "surrogatepass")
    return _first_63_bits(content)


def text_code(text: str) -> int:
    """A number for a text, white space and case aside: the same in every data set."""
    cleaned = " ".join(text.split()).casefold().encode("utf-8", "surrogatepass")
    return _first_63_bits(cleaned)


def _first_63_bits(content):
    return int.from_bytes(hashlib.sha256(content).digest()[:8], "big") >> 1


def question_hashes(batch: GraphBatch) -> NDArray[np.int64]:
    """A number per problem for the text of its question, white space and case aside.

    Parameters
    ----------
    batch : GraphBatch
        The problems.

    Returns
    -------
    ndarray of int64, shape (n_problems,)
        The same for the same text in every process. Without a question it is a number for
        the contexts, and -1 without both.
    """
    hashes = np.full(len(batch), -1)
    for column, kind in ((batch.context, "context"), (batch.problems, "question")):
        hash_of: dict = {}  # of each distinct text: passages often serve many problems
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
    """A hash of each problem: of its texts, else of its columns and edges."""
    hashes = np.zeros(len(batch), dtype=np.uint64)
    by_text = np.zeros(len(batch), dtype=bool)
    if batch.claims is not None:
        for i, (start, stop) in enumerate(pairwise(batch.offsets.tolist())):
            by_text[i] = start < stop and batch.claims[start] is not None
            if by_text[i]:
                hashes[i] = hash_text("\x1f".join(batch.claims[start:stop]))
    if not by_text.all():
        hashes[~by_text] = _hash_numbers(batch)[~by_text]
    if batch.problems is not None:
        texts = (hash_text(text or "") for text in batch.problems)
        with np.errstate(over="ignore"):
            hashes += mix(np.fromiter(texts, dtype=np.uint64, count=len(batch)))
    return hashes


def _hash_numbers(batch):
    """A hash of the columns and edges of each problem, to the last bit."""
    home = batch.problem_of
    sizes = batch.sizes
    hashes = sizes.astype(np.uint64)
    position = np.arange(len(home)) - batch.offsets[:-1][home]
    with np.errstate(over="ignore"):
        mixed = mix(np.arange(1 + sizes.max(initial=0), dtype=np.uint64))
        rows = mixed[position]
        if batch.features is not None:
            number = np.arange(1, 1 + batch.n_features, dtype=np.uint64)
            odd = mix(number) | np.uint64(1)
            for column, factor in zip(batch.features.T, odd, strict=True):
                bits = (column + 0.0).view(np.uint64)  # -0.0 becomes 0.0
                rows += (bits ^ (bits >> np.uint64(29))) * factor
        np.add.at(hashes, home, mix(rows))
        if len(batch.edges):
            parent, child = position[batch.edges].T
            edge = mix(parent.astype(np.uint64) + mixed[child + 1])
            np.add.at(hashes, home[batch.edges[:, 1]], edge)
        return mix(hashes)


def problem_digest(graph: Any) -> str:
    """Letters for what is judged: judgements follow their problem through files."""
    content = json.dumps([graph.id, graph.problem, graph.claims])
    return hashlib.sha256(content.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Seen:
    """Hashes by which problems are known again.

    Attributes
    ----------
    question : ndarray of int64, shape (n_problems,)
        From `~skdcf.graphs.question_groups`; negative for answers that stand alone.
    content : ndarray of uint64, shape (n_problems,)
        Of question and claims; of columns and edges where there are no texts.
    asked : ndarray of bool, shape (n_problems,)
        Whether the problem has the text of a question.
    """

    question: NDArray[np.int64]
    content: NDArray[np.uint64]
    asked: NDArray[np.bool_]

    @classmethod
    def of(cls, batch: GraphBatch, question: NDArray[np.int64]) -> Seen:
        """The hashes of problems, whose questions `~skdcf.graphs.question_groups` gave."""
        asked = np.zeros(len(batch), dtype=bool)
        if batch.problems is not None:
            asked = np.array([bool(text and text.strip()) for text in batch.problems])
        return cls(question, content_hashes(batch), asked)

    @classmethod
    def alone(cls, n: int) -> Seen:
        """The hashes of n problems of which nothing is known."""
        return cls(-1 - np.arange(n), np.zeros(n, np.uint64), np.zeros(n, bool))

    @classmethod
    def join(cls, parts: list[Seen]) -> Seen:
        """The hashes of several parts; each answer that stands alone still does."""
        question = np.concatenate([part.question for part in parts])
        stands_alone = question < 0
        question[stands_alone] = -1 - np.flatnonzero(stands_alone)
        content = np.concatenate([part.content for part in parts])
        asked = np.concatenate([part.asked for part in parts])
        return cls(question, content, asked)

    def __getitem__(self, rows) -> Seen:
        return Seen(self.question[rows], self.content[rows], self.asked[rows])

    def orders(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Fixed hashes by which answers are chosen, and by which questions are.

        Copies get hashes of their own: an answer that a model gives in nine of ten samples
        is chosen for nine of ten questions. The hash of a question does not know its
        answers: of several hashes the smallest is smaller, so that questions with many
        answers would come first.
        """
        with np.errstate(over="ignore"):
            named = np.maximum(self.question, -1).view(np.uint64)
            answer = mix(mix(named) + self.content)

            # Number the copies of an answer, and give each after the first another hash.
            by = np.lexsort((answer, self.question.clip(-1)))
            place = np.arange(len(by))
            new = np.append(True, answer[by][1:] != answer[by][:-1])[: len(by)]
            copy = place - np.maximum.accumulate(np.where(new, place, 0))
            later_copies = by[copy > 0]
            answer[later_copies] = mix(
                answer[later_copies] + copy[copy > 0].astype(np.uint64)
            )

            question = mix(~self.question.view(np.uint64))
        return answer, np.where(self.question >= 0, question, answer)

    def sorted(self) -> dict[str, NDArray]:
        """The hashes as they are kept: sorted, each once."""
        question = _sort_distinct(self.question[self.question >= 0])
        return {"question": question, "content": _sort_distinct(self.content)}

    def among(self, kept: dict[str, NDArray]) -> NDArray[np.bool_]:
        """Tell which of the problems are among those that were kept."""
        same_question = np.isin(self.question, kept["question"])
        same_content = np.isin(self.content, kept["content"])
        return (self.question >= 0) & same_question | same_content


def _sort_distinct(values):
    """Values sorted, each once; `numpy.unique` takes several times as long."""
    values = np.sort(values)
    return values[np.append(values[:1] == values[:1], values[1:] != values[:-1])]
