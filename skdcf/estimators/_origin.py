"""What made the problems, and which of them were seen before.

A promise is about problems like those that calibrated. What cannot be told from numbers is
compared here: whether edges, alternatives and contexts are there, what extracted the claims,
whether people changed edges, and what a label means. Problems that trained are told by
hashes of their question and of their content.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import warn
from ..exceptions import GuaranteeWarning
from ..graphs import GraphBatch, question_groups
from ._ties import hash_text, mix

#: Whether these are there has to be as it was at calibration, problem by problem.
PARTS = {
    "edges": "edges (None is unknown, and () is known to be none)",
    "alternatives": "alternatives",
    "context": "contexts",
}
#: Values of the metadata that have to be as they were, where both are known.
MADE = {
    "extraction": "what extracted the claims",
    "edges_corrected": "whether a person changed edges",
    "label_meaning": "what a label means",
}


def origin_of(batch, *, reads_edges, labelled):
    """What is known of how problems were made: for each name a dict, value to first row."""
    found = {}
    if reads_edges:
        several = batch.sizes > 1  # one claim needs no edges
        found["edges"] = _first_rows(batch.edges_known, several)
    for name in ("alternatives", "context"):
        column = getattr(batch, name)
        there = np.zeros(len(batch), dtype=bool)
        if column is not None:
            there = np.array([value is not None for value in column])
        found[name] = _first_rows(there, np.ones(len(batch), dtype=bool))
    return found | _origin_of_metadata(batch, reads_edges, labelled)


def _first_rows(flags, counted):
    out = {}
    for value in (True, False):
        rows = np.flatnonzero(counted & (flags == value))
        if len(rows):
            out[value] = int(rows[0])
    return out


def _origin_of_metadata(batch, reads_edges, labelled):
    if batch.metadata is None:
        found = {"extraction": {None: 0}, "edges_corrected": {False: 0}}
        found["label_meaning"] = {None: 0} if labelled else {}
    else:
        found = {name: {} for name in MADE}
        text_of: dict = {}  # one dict often stands for all problems of a file
        for i, row in enumerate(batch.metadata):
            row = row or {}
            made = row.get("extraction")
            if id(made) not in text_of:
                text_of[id(made)] = made and json.dumps(
                    made, sort_keys=True, default=str
                )
            found["extraction"].setdefault(text_of[id(made)], i)
            found["edges_corrected"].setdefault(bool(row.get("edges_corrected")), i)
            meaning = row.get("label_meaning")
            if labelled or meaning is not None:
                found["label_meaning"].setdefault(meaning, i)
    if not reads_edges:
        found["edges_corrected"] = {}
    return found


def compare_origin(filter, found, accept, *, new=False):
    """ValueError or a warning where problems were made otherwise than those that calibrated.

    Parameters
    ----------
    filter : filter
        Its ``origin_``, where it has one, is what is compared with.
    found : dict
        From `origin_of`, or the ``origin_`` of a part.
    accept : str or None
        The reason why other values are to be accepted.
    new : bool
        Whether these problems are to calibrate, so that ``origin_`` becomes theirs.
    """
    if accept is not None and not (isinstance(accept, str) and accept.strip()):
        raise ValueError(
            f"accept_origin is {accept!r}, but must be a text: the reason why problems "
            "that were made in another way may be used"
        )
    found = {
        k: v if isinstance(v, dict) else dict.fromkeys(v) for k, v in found.items()
    }
    known, reasons = getattr(filter, "origin_", None) or {}, []
    for name, text in PARTS.items():
        _compare_parts(name, text, list(found.get(name, ())), known.get(name))
    for name, text in MADE.items():
        values = list(found.get(name, ()))
        reasons += _compare_made(name, text, values, known.get(name), accept)
    if new:
        kept = {name: list(found.get(name, ())) for name in (*PARTS, *MADE)}
        kept["accepted"] = [*known.get("accepted", ()), *dict.fromkeys(reasons)]
        filter.origin_ = kept


def _compare_parts(name, text, values, known):
    if name == "edges" and len(values) == 2 and not known:
        raise ValueError(
            f"some problems of several claims have {text}, and some have none: give all "
            "of them edges, () where no claim builds on another, or choose "
            'edges="none" or a rule of skdcf.edges for the filter'
        )
    for value in values:
        if known and value not in known:
            here, there = ("have", "had none") if value else ("have no", "had them")
            raise ValueError(
                f"problems {here} {text}, and those that calibrated {there}. They were "
                "made otherwise, and the promise does not hold for them: make them in the "
                "same way, or fit again"
                + (', or choose edges="none" or a rule' if name == "edges" else "")
            )


def _compare_made(name, text, values, known, accept):
    """ValueError, a warning, or the differences that were accepted."""
    before = list(known or ())
    first = [v for v in [*before, *values] if v is not None][:1]
    allowed = {v for v in before if v is not None} or set(first)
    other = [v for v in values if v is not None and v not in allowed]
    if other and accept is None:
        raise ValueError(
            f"{name} ({text}) is {_told(other[0])}, and was {_told(first[0])} for those "
            "that came before. The promise is about problems that are made alike: make "
            "them alike and fit or calibrate again, or say why the difference may be "
            'overlooked, accept_origin="reason"'
        )
    here, there = None in values, None in before if before else False
    if first and not other and here != there and (here or values):
        warn(
            f"{name} ({text}) is {'un' * here}known for some of these problems, and "
            f"{'un' * there}known for those that calibrate: it is {_told(first[0])} where "
            "it is known, and whether all were made alike cannot be checked",
            GuaranteeWarning,
        )
    return [f"{name}: {_told(v)} beside {_told(first[0])} ({accept})" for v in other]


def _told(value):
    return value if isinstance(value, str) else json.dumps(value)


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
    def of(
        cls, batch: GraphBatch, groups: ArrayLike | Literal[False] | None = False
    ) -> Seen:
        """The hashes of problems; ``groups`` as in `~skdcf.graphs.question_groups`."""
        question = question_groups(batch, groups)
        asked = np.zeros(len(batch), dtype=bool)
        if batch.problems is not None:
            asked = np.array([bool(text and text.strip()) for text in batch.problems])
        return cls(question, content_hashes(batch), asked)

    @classmethod
    def none(cls) -> Seen:
        """Of no problem."""
        return cls(np.empty(0, np.int64), np.empty(0, np.uint64), np.empty(0, bool))

    @classmethod
    def join(cls, several: list[Seen]) -> Seen:
        """Of the problems of several parts; each answer that stands alone still does."""
        question, content, asked = (
            np.concatenate([getattr(one, name) for one in several])
            for name in ("question", "content", "asked")
        )
        alone = question < 0
        question[alone] = -1 - np.flatnonzero(alone)
        return cls(question, content, asked)

    def __getitem__(self, rows) -> Seen:
        return Seen(self.question[rows], self.content[rows], self.asked[rows])

    def order(self) -> NDArray[np.uint64]:
        """A fixed hash of question and content, by which answers are chosen.

        Copies get hashes of their own: an answer that a model gives in nine of ten samples
        is chosen for nine of ten questions.
        """
        with np.errstate(over="ignore"):
            out = mix(mix(np.maximum(self.question, -1).view(np.uint64)) + self.content)
            by = np.lexsort((out, self.question.clip(-1)))
            place = np.arange(len(by))
            new = np.append(True, out[by][1:] != out[by][:-1])[: len(by)]
            copy = place - np.maximum.accumulate(np.where(new, place, 0))
            again = by[copy > 0]
            out[again] = mix(out[again] + copy[copy > 0].astype(np.uint64))
        return out

    def question_order(self) -> NDArray[np.uint64]:
        """A fixed hash by which questions are chosen; it does not know their answers.

        Of several hashes the smallest is smaller, so that questions with many answers
        would come first.
        """
        out, several = self.order(), self.question >= 0
        out[several] = mix(~self.question[several].view(np.uint64))
        return out

    def sorted(self) -> dict[str, NDArray]:
        """The hashes as they are kept: sorted, each once."""
        return {
            "question": _sort_distinct(self.question[self.question >= 0]),
            "content": _sort_distinct(self.content),
        }

    def among(self, kept: dict[str, NDArray]) -> NDArray[np.bool_]:
        """Which of the problems are among those that were kept."""
        known = (self.question >= 0) & np.isin(self.question, kept["question"])
        return known | np.isin(self.content, kept["content"])


def _sort_distinct(values):
    """Values sorted, each once; `numpy.unique` takes several times as long."""
    values = np.sort(values)
    return values[np.append(values[:1] == values[:1], values[1:] != values[:-1])]


def refuse_trained(batch, seen, trained, scorer):
    """ValueError where a question trained the filter; a warning where content is the same."""
    _refuse_known(batch, scorer.saw(batch))
    group = (seen.question >= 0) & np.isin(seen.question, trained["question"])
    same = np.isin(seen.content, trained["content"])
    proven = group | (same & seen.asked)
    if proven.any():
        raise ValueError(
            f"{batch.name_of(int(np.argmax(proven)))} and {int(proven.sum()) - 1} other "
            "problems trained the filter, or are answers to a question that did. The "
            "promise needs problems that are new to it: calibrate on others, or fit again"
        )
    if same.any():
        warn(
            f"{int(same.sum())} of {len(batch)} problems are exact copies of problems that "
            "trained the filter. They have no question by which to tell whether they are "
            "the same ones: if they are, the promise does not hold",
            GuaranteeWarning,
        )


def _refuse_known(batch, known):
    """ValueError where the scorer brings knowledge of a problem from elsewhere."""
    if known.any():
        raise ValueError(
            f"{batch.name_of(int(np.argmax(known)))} and {int(known.sum()) - 1} other "
            "problems have questions that the public prior in the scorer was learnt from. "
            "The promise needs problems that are new to it: calibrate on others, or fit "
            "with another prior"
        )


def content_hashes(batch: GraphBatch) -> NDArray[np.uint64]:
    """A hash of each problem: of its texts, else of its columns and edges."""
    out = np.zeros(len(batch), dtype=np.uint64)
    told = np.zeros(len(batch), dtype=bool)
    if batch.claims is not None:
        for i, (a, b) in enumerate(pairwise(batch.offsets.tolist())):
            told[i] = a < b and batch.claims[a] is not None
            if told[i]:
                out[i] = hash_text("\x1f".join(batch.claims[a:b]))
    if not told.all():
        out[~told] = _hash_numbers(batch)[~told]
    if batch.problems is not None:
        texts = (hash_text(text or "") for text in batch.problems)
        with np.errstate(over="ignore"):
            out += mix(np.fromiter(texts, dtype=np.uint64, count=len(batch)))
    return out


def _hash_numbers(batch):
    """A hash of the columns and edges of each problem, to the last bit."""
    out = batch.sizes.astype(np.uint64)
    claim = np.arange(batch.n_claims) - batch.offsets[:-1][batch.problem_of]
    with np.errstate(over="ignore"):
        rows = mix(claim.astype(np.uint64))
        if batch.features is not None:
            odd = mix(np.arange(1, 1 + batch.n_features, dtype=np.uint64)) | np.uint64(
                1
            )
            for column, factor in zip(batch.features.T, odd, strict=True):
                bits = (column + 0.0).view(np.uint64)
                rows += (bits ^ (bits >> np.uint64(29))) * factor
        np.add.at(out, batch.problem_of, mix(rows))
        if len(batch.edges):
            parent, child = claim[batch.edges].T.astype(np.uint64)
            problem = batch.problem_of[batch.edges[:, 1]]
            np.add.at(out, problem, mix(parent + mix(child + np.uint64(1))))
        return mix(out)


def count_as_trained(filter, X, groups=None):
    """Remember problems that chose the settings of a filter as if they had trained it.

    Parameters
    ----------
    filter : fitted filter
    X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
    groups : array-like of shape (n_problems,), or False, optional
        The question that each problem answers.
    """
    batch = filter.check(X)
    seen = Seen.of(batch, groups).sorted()
    before = filter._trained
    filter._trained = {k: np.union1d(before[k], found) for k, found in seen.items()}
